"""lib.fluctuations.gradient_noise against the exact law of linear descent, differences, and chains of SGD."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from lib.fluctuations import gradient_noise, regression
from lib.fluctuations.descent import Descent

RNG = np.random.default_rng(4)
X, Y = RNG.standard_normal((40, 3)) * [2.0, 1.0, 0.5], RNG.standard_normal((40, 2))


def half(output, target):
    return ((output - target) ** 2).sum() / 2


def linear(weights):
    module = torch.nn.Linear(weights.shape[1], len(weights), bias=False).double()
    with torch.no_grad():
        module.weight.copy_(torch.from_numpy(weights))
    return module


@pytest.mark.parametrize("replacement", [False, True])
def test_a_linear_module_has_the_exact_law_of_linear_descent(replacement):
    problem = regression.fit(X, Y)
    noise = gradient_noise.measure(linear(problem.optimum @ problem.basis.T), half, X, Y)
    np.testing.assert_allclose(noise.hessian, np.kron(np.eye(2), problem.moment), atol=1e-12)
    rate = 0.5 * problem.learning_rate_threshold(4, replacement=replacement)
    descent = Descent(problem, rate, 4, replacement=replacement)
    found = noise.covariance(rate, 4, replacement=replacement).reshape(2, 3, 2, 3)
    for pair in ((0, 0), (0, 1), (1, 1)):
        expected = problem.basis @ descent.stationary_covariance(pair=pair) @ problem.basis.T
        np.testing.assert_allclose(found[pair[0], :, pair[1]], expected, rtol=1e-8, atol=1e-12)
    with pytest.raises(ValueError, match="^learning_rate must be lower: the spread of the weights has no bound"):
        noise.covariance(2.2 * rate, 4, replacement=replacement)


def test_gradients_and_hessians_are_those_of_differences():
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh(), torch.nn.Linear(2, 3))
    classes = RNG.integers(0, 3, 40)
    noise = gradient_noise.measure(net, cross_entropy, torch.from_numpy(X).float(), classes, weight_decay=0.1)
    again = gradient_noise.measure(net, cross_entropy, torch.from_numpy(X).float(), torch.from_numpy(classes),
                                   weight_decay=0.1)  # fmt: skip
    assert np.array_equal(noise.gradients, again.gradients)
    q = torch.nn.utils.parameters_to_vector(net.parameters()).double()
    net, x = net.double(), torch.from_numpy(X).float().double()

    def loss(q):
        torch.nn.utils.vector_to_parameters(q, net.parameters())
        with torch.no_grad():
            return float(cross_entropy(net(x), torch.from_numpy(classes)) + 0.05 * (q @ q))

    steps = 1e-4 * torch.eye(len(q), dtype=torch.float64)
    slope = [(loss(q + step) - loss(q - step)) / 2e-4 for step in steps]
    np.testing.assert_allclose(noise.gradients.mean(axis=0), slope, atol=1e-7)
    for k in (0, 7, 16):
        bend = [loss(q + a + b) - loss(q + a - b) - loss(q - a + b) + loss(q - a - b)
                for a, b in ((step, steps[k]) for step in steps)]  # fmt: skip
        np.testing.assert_allclose(noise.hessian[k], np.array(bend) / 4e-8, atol=1e-6)


def test_logistic_regression_spreads_as_it_says():
    """Torch's SGD with weight decay, 40 000 steps: the law is to second order in the deviation, of a hundredth here."""
    labels = (X[:, 0] + RNG.standard_normal(40) > 0).astype(np.int64)
    net, x, t = torch.nn.Linear(3, 2).double(), torch.from_numpy(X), torch.from_numpy(labels)
    full = torch.optim.LBFGS(net.parameters(), max_iter=500, tolerance_grad=1e-12, tolerance_change=0)

    def closure():
        full.zero_grad()
        value = cross_entropy(net(x), t) + 0.1 * sum((w**2).sum() for w in net.parameters())
        value.backward()
        return value

    full.step(closure)
    noise = gradient_noise.measure(net, cross_entropy, x, t, weight_decay=0.2)
    predicted = noise.covariance(0.1, 4)
    # The chain itself, with the gradient written out: (p - onehot) xᵀ.
    rng, q = np.random.default_rng(5), np.c_[net.weight.detach().numpy(), net.bias.detach().numpy()]
    inputs, onehot, records = np.c_[X, np.ones(40)], np.eye(2)[labels], []
    for step in range(40_000):
        pick = rng.choice(40, 4, replace=False)
        p = np.exp(inputs[pick] @ q.T)
        q = q - 0.1 * ((p / p.sum(axis=1, keepdims=True) - onehot[pick]).T @ inputs[pick] / 4 + 0.2 * q)
        if step >= 1000:
            records.append(np.concatenate([q[:, :3].ravel(), q[:, 3]]))
    measured = np.cov(np.transpose(records))
    # 39 000 steps of a relaxation time of at most 1/(0.1·0.2) = 50: variances are known to √(4·50/39 000) = 7 %.
    ratio = np.trace(measured) / np.trace(predicted)
    assert abs(ratio - 1) < 0.15
    np.testing.assert_allclose(np.diag(measured), np.diag(predicted), rtol=0.3)


def test_one_sample_at_a_time_is_one_over_the_batch_and_the_full_batch_is_silent():
    noise = gradient_noise.GradientNoise(Y, np.tile(np.eye(2), (40, 1, 1)))
    np.testing.assert_allclose(noise.noise(1, replacement=True), np.cov(Y.T, bias=True), rtol=1e-12)
    np.testing.assert_allclose(noise.noise(4, replacement=True), noise.noise(1) / 4, rtol=1e-12)
    assert np.all(noise.noise(40) == 0)


ONES, WIDE = linear(np.ones((2, 3))), torch.nn.Linear(900, 2)
BATCHNORM, DROPOUT = torch.nn.BatchNorm1d(3), torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Dropout(0.5))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gradient_noise.measure(BATCHNORM, half, X, X), "module must be without dropout or batch norm"),
        (lambda: gradient_noise.measure(DROPOUT, half, X, Y), "module must be without dropout"),
        (lambda: gradient_noise.measure(ONES, half, X, Y[:-1]), "targets must have 40 rows"),
        (lambda: gradient_noise.measure(ONES, lambda a, b: a - b, X, Y), "loss must give one number"),
        (lambda: gradient_noise.measure(WIDE, half, np.ones((40, 900)), Y), "module must have at most"),
        (lambda: gradient_noise.measure(ONES, half, X, Y).covariance(0.1, 4),
         "module must be at a minimum of the loss: descend on all samples"),
        (lambda: gradient_noise.measure(torch.nn.Linear(3, 2), cross_entropy, X, [0, 1] * 20).covariance(0.1, 4),
         "module must be at a minimum with curvature in every direction: descend further, or add weight_decay"),
        (lambda: gradient_noise.measure(ONES, half, X, Y).noise(41), "batch must be at most N = 40"),
    ],
)  # fmt: skip
def test_what_has_no_answer_is_refused(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()


def test_in_evaluation_mode_dropout_is_no_obstacle():
    assert gradient_noise.measure(DROPOUT.eval(), half, X, Y).gradients.shape == (40, 8)
    DROPOUT.train()
