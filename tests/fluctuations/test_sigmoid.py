"""lib.fluctuations.sigmoid against automatic differentiation, averages over all minibatches, and the linear limit."""

import numpy as np
import pytest
import torch
from bad_input import COUNT, NUMBER, exercised
from hypothesis import given
from hypothesis import strategies as st
from linear_data import chain_matrices, every_batch, listed_second_moment
from scipy.optimize import least_squares
from scipy.special import expit
from sigmoid_data import overlapping, parity

from lib.fluctuations import linear, regression, sigmoid

X, Y = parity()
UNIT = sigmoid.minimum(X, Y)
SMALL = sigmoid.minimum(*overlapping(6, 2, seed=1))
SAMPLING = [(batch, replacement) for batch in (1, 2, 3) for replacement in (False, True)]


def close(value, expected, tolerance=1e-10):
    assert np.linalg.norm(value - expected) <= tolerance * np.linalg.norm(expected)


def loss(weights):
    return torch.mean((torch.tensor(Y) - torch.sigmoid(torch.tensor(X) @ weights)) ** 2) / 2


@given(st.lists(st.tuples(st.floats(-20, 20), st.floats(0, 1)), min_size=1, max_size=8))
def test_derivatives_are_those_of_automatic_differentiation(pairs):
    field, target = np.array(pairs).T
    u, y = torch.tensor(field, requires_grad=True), torch.tensor(target)
    value, found = (y - torch.sigmoid(u)) ** 2 / 2, []
    for _ in range(3):
        value = torch.autograd.grad(value.sum(), u, create_graph=True)[0]
        found.append(value.detach().numpy())
    np.testing.assert_allclose(sigmoid.loss_derivatives(field, target), found, rtol=1e-10, atol=1e-14)


def test_derivatives_far_out_keep_their_relative_accuracy():
    """σ(u) is e^u for u -> -∞, where ℓ = (y - e^u)²/2 has elementary derivatives."""
    e = np.exp(-50.0)
    expected = [-e + e**2, -e + 2 * e**2, -e + 4 * e**2]
    np.testing.assert_allclose(sigmoid.loss_derivatives([-50.0], [1.0])[:, 0], expected, rtol=1e-12)
    mirrored = [[-1], [1], [-1]] * sigmoid.loss_derivatives([-42.0, -3.0], [0.0, 0.25])
    np.testing.assert_allclose(sigmoid.loss_derivatives([42.0, 3.0], [1.0, 0.75]), mirrored, rtol=1e-14)
    for field, target in ((-42.0, 0.0), (42.0, 1.0), (-3.0, 0.25), (800.0, 0.5), (-800.0, 0.5)):
        expected = sigmoid.loss_derivatives([field], [target])[0, 0]
        np.testing.assert_allclose(sigmoid._slope.py_func(field, target), expected, rtol=1e-14)
    assert np.isfinite(sigmoid.loss_derivatives([-1e308, 1e308], [0.0, 1.0])).all()


def test_the_minimum_is_one():
    point = torch.tensor(UNIT.weights, requires_grad=True)
    assert np.abs(torch.autograd.grad(loss(point), point)[0].numpy()).max() < 1e-12
    hessian = torch.autograd.functional.hessian(loss, point).numpy()
    close(UNIT.hessian, hessian)
    assert np.linalg.eigvalsh(hessian)[0] > 1e-3
    assert UNIT.curvature.min() < 0  # single samples may bend the other way


def test_another_optimizer_finds_it_too():
    start = np.random.default_rng(0).standard_normal(6)
    found = least_squares(lambda w: Y - expit(X @ w), start, xtol=1e-15, ftol=1e-15, gtol=1e-15).x
    np.testing.assert_allclose(UNIT.weights, found, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_of_the_inputs_do_not_matter(scale):
    mix = scale * np.array([[1.0, 0.5], [0.0, 3.0]])
    inputs, targets = overlapping(40, 2, seed=3)
    plain, mixed = sigmoid.minimum(inputs, targets), sigmoid.minimum(inputs @ mix, targets)
    close(mix @ mixed.weights, plain.weights)
    close(mixed.hessian, mix.T @ plain.hessian @ mix)


def test_the_mean_shift_balances_the_third_derivative():
    """<k (xᵀGx) x> is the gradient of Tr(G ∇∇f), by automatic differentiation."""
    root = np.random.default_rng(2).standard_normal((6, 6))
    g = root @ root.T
    point = torch.tensor(UNIT.weights, requires_grad=True)
    hessian = torch.autograd.functional.hessian(loss, point, create_graph=True)
    force = torch.autograd.grad((torch.tensor(g) * hessian).sum(), point)[0].numpy()
    close(UNIT.hessian @ sigmoid.mean_shift(UNIT, g), -force / 2)


def test_mirrored_samples_change_nothing():
    """x -> -x with y -> 1 - y leaves the loss of a sample as it is, so ℓ' and ℓ''' change sign and ℓ'' does not."""
    inputs, targets = overlapping(30, 2, seed=4)
    single, mirrored = sigmoid.minimum(inputs, targets), sigmoid.minimum(-inputs, 1 - targets)
    close(mirrored.weights, single.weights)
    for name, sign in (("slope", -1), ("curvature", 1), ("skewness", -1)):
        close(getattr(mirrored, name), sign * getattr(single, name))
    close(sigmoid.mean_shift(mirrored, np.eye(2)), sigmoid.mean_shift(single, np.eye(2)))


@pytest.mark.parametrize("batch, replacement", SAMPLING)
def test_noise_and_twin_by_listing_all_minibatches(batch, replacement):
    batches = every_batch(6, batch, replacement)
    x = SMALL.inputs[batches]  # (number, m, 2)
    forces = np.einsum("bs,bsi->bi", SMALL.slope[batches], x) / batch
    curvatures = np.einsum("bs,bsi,bsj->bij", SMALL.curvature[batches], x, x) / batch
    how = {"replacement": replacement}
    close(sigmoid.noise_moment(SMALL, batch, **how), forces.T @ forces / len(batches))
    for rate in (0.1, 3.0):
        steps = chain_matrices(curvatures, -forces, rate)
        close(sigmoid.quadratic_covariance(SMALL, rate, batch, **how), listed_second_moment(steps, steps)[:2, :2])


def test_the_full_batch_has_no_noise():
    assert not sigmoid.noise_moment(SMALL, 6).any() and not sigmoid.leading_order_covariance(SMALL, 0.1, 6).any()


def test_leading_order_balances_and_is_the_limit_of_the_twin():
    rate = 0.1
    noise, g = sigmoid.noise_moment(UNIT, 10), sigmoid.leading_order_covariance(UNIT, rate, 10)
    close(UNIT.hessian @ g + g @ UNIT.hessian, rate * noise)
    gaps = [
        np.linalg.norm(sigmoid.quadratic_covariance(UNIT, r, 10) / sigmoid.leading_order_covariance(UNIT, r, 10) - 1)
        for r in (rate, rate / 2)
    ]
    assert abs(gaps[0] / gaps[1] - 2) < 0.02


def test_for_small_weights_the_unit_is_linear():
    """With targets 1/2 + δr the field is of order δ, and σ(u) = 1/2 + u/4: least squares of y - 1/2 on x/4."""
    inputs, noise = overlapping(30, 3, seed=5)
    gaps = []
    for delta in (1e-2, 1e-3):
        targets = 0.5 + delta * (noise - 0.5)
        unit = sigmoid.minimum(inputs, targets)
        problem = regression.fit(inputs / 4, targets[:, None] - 0.5)
        rate = 0.5 * linear.learning_rate_threshold(problem, 4)
        for ours, theirs in (
            (sigmoid.leading_order_covariance, linear.leading_order_covariance),
            (sigmoid.quadratic_covariance, linear.stationary_covariance),
        ):
            expected = regression.in_input_basis(problem, theirs(problem, rate, 4))
            gaps.append(np.linalg.norm(ours(unit, rate, 4) - expected) / np.linalg.norm(expected))
    assert gaps[0] < 1e-5
    np.testing.assert_allclose(np.divide(gaps[:2], gaps[2:]), 100, rtol=0.01)  # of order δ²: σ''(0) = 0


@pytest.mark.parametrize("targets", [[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0], [0, 0, 0, 1e-9, 0, 0]])
def test_no_minimum_where_weights_would_grow_for_ever(targets):
    inputs = np.column_stack([np.arange(6.0), np.ones(6)])
    with pytest.raises(ValueError, match="^targets must leave a minimum with positive curvature"):
        sigmoid.minimum(inputs, targets)


def test_a_learning_rate_without_stationary_twin_is_refused():
    with pytest.raises(ValueError, match="^learning_rate must be smaller"):
        sigmoid.quadratic_covariance(UNIT, 2.1 / np.linalg.eigvalsh(UNIT.hessian)[-1], 10)


# --- bad input: every public function, every argument ---------------------------------------------

SAMPLED = {"unit": SMALL, "learning_rate": 0.1, "batch": 2, "replacement": False}
CALLS = {
    sigmoid.loss_derivatives: {"field": [0.0, 1.0], "target": [0.0, 1.0]},
    sigmoid.minimum: {"inputs": SMALL.inputs, "targets": SMALL.targets},
    sigmoid.noise_moment: {name: value for name, value in SAMPLED.items() if name != "learning_rate"},
    sigmoid.leading_order_covariance: SAMPLED,
    sigmoid.quadratic_covariance: SAMPLED,
    sigmoid.mean_shift: {"unit": SMALL, "covariance": np.eye(2)},
}
BAD = {
    "field": [1.0, [[1.0]], [np.nan, 0.0], "field", None, [True, False]],
    "target": [[1.0], [[1.0, 0.0]], [np.inf, 0.0], "target", None],
    "inputs": [
        np.ones(6),
        np.ones((6, 2)),
        np.zeros((6, 2)),
        np.eye(6),
        np.zeros((6, 0)),
        np.full((6, 2), np.nan),
        "inputs",
        None,
        1e40 * SMALL.inputs,
        1e-40 * SMALL.inputs,
    ],
    "targets": [np.ones(5), np.full(6, 1.1), np.full(6, -0.1), np.full(6, np.nan), np.ones((6, 1)), "targets", None],
    "unit": [None, "unit", np.eye(2)],
    "learning_rate": NUMBER,
    "batch": [*COUNT, 7],
    "replacement": [None, 0, 1, "yes"],
    "covariance": [np.eye(3), np.ones(2), [[1.0, 0.5], [0.0, 1.0]], [[np.nan, 0], [0, 1]], "covariance", None],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)
