"""lib.fluctuations.sigmoid against automatic differentiation, averages over all minibatches, the linear limit, and the
recursion in plain NumPy.
"""

import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from linear_data import chain_matrices, every_batch, listed_second_moment
from scipy.optimize import least_squares
from scipy.special import expit
from sigmoid_data import overlapping, parity

from lib.common.estimate import Estimate
from lib.fluctuations import minibatches, regression, sigmoid
from lib.fluctuations.descent import Descent

X, Y = parity()
UNIT = sigmoid.Unit.at_minimum(X, Y)
TOP = np.linalg.eigvalsh(UNIT.hessian)[-1]
SMALL = sigmoid.Unit.at_minimum(*overlapping(6, 2, seed=1))
THIRTY = sigmoid.Unit.at_minimum(*overlapping(30, 3, seed=1))
SAMPLING = [(batch, replacement) for batch in (1, 2, 3) for replacement in (False, True)]


def close(value, expected, tolerance=1e-10):
    assert np.linalg.norm(value - expected) <= tolerance * np.linalg.norm(expected)


def rms(values):
    return np.sqrt(np.mean(values**2))


def sigmas(blocks, expected):
    return Estimate.of(blocks).sigmas(expected)


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


def test_the_minimum_is_one_that_another_optimizer_finds_too():
    point = torch.tensor(UNIT.weights, requires_grad=True)
    assert np.abs(torch.autograd.grad(loss(point), point)[0].numpy()).max() < 1e-12
    hessian = torch.autograd.functional.hessian(loss, point).numpy()
    close(UNIT.hessian, hessian)
    assert np.linalg.eigvalsh(hessian)[0] > 1e-3
    assert UNIT.curvature.min() < 0  # single samples may bend the other way
    start = np.random.default_rng(0).standard_normal(6)
    found = least_squares(lambda w: Y - expit(X @ w), start, xtol=1e-15, ftol=1e-15, gtol=1e-15).x
    np.testing.assert_allclose(UNIT.weights, found, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_of_the_inputs_do_not_matter(scale):
    mix = scale * np.array([[1.0, 0.5], [0.0, 3.0]])
    inputs, targets = overlapping(40, 2, seed=3)
    plain, mixed = sigmoid.Unit.at_minimum(inputs, targets), sigmoid.Unit.at_minimum(inputs @ mix, targets)
    close(mix @ mixed.weights, plain.weights)
    close(mixed.hessian, mix.T @ plain.hessian @ mix)


def test_the_mean_shift_balances_the_third_derivative():
    """<k (xᵀGx) x> is the gradient of Tr(G ∇∇f), by automatic differentiation."""
    root = np.random.default_rng(2).standard_normal((6, 6))
    g = root @ root.T
    point = torch.tensor(UNIT.weights, requires_grad=True)
    hessian = torch.autograd.functional.hessian(loss, point, create_graph=True)
    force = torch.autograd.grad((torch.tensor(g) * hessian).sum(), point)[0].numpy()
    close(UNIT.hessian @ UNIT.mean_shift(g), -force / 2)


def test_mirrored_samples_change_nothing():
    """x -> -x with y -> 1 - y leaves the loss of a sample as it is, so ℓ' and ℓ''' change sign and ℓ'' does not."""
    inputs, targets = overlapping(30, 2, seed=4)
    single, mirrored = sigmoid.Unit.at_minimum(inputs, targets), sigmoid.Unit.at_minimum(-inputs, 1 - targets)
    close(mirrored.weights, single.weights)
    for name, sign in (("slope", -1), ("curvature", 1), ("third_derivative", -1)):
        close(getattr(mirrored, name), sign * getattr(single, name))
    close(mirrored.mean_shift(np.eye(2)), single.mean_shift(np.eye(2)))


@pytest.mark.parametrize("batch, replacement", SAMPLING)
def test_noise_and_twin_by_listing_all_minibatches(batch, replacement):
    batches = every_batch(6, batch, replacement)
    x = SMALL.inputs[batches]  # (number, m, 2)
    forces = np.einsum("bs,bsi->bi", SMALL.slope[batches], x) / batch
    curvatures = np.einsum("bs,bsi,bsj->bij", SMALL.curvature[batches], x, x) / batch
    how = {"replacement": replacement}
    close(SMALL.noise_moment(batch, **how), forces.T @ forces / len(batches))
    for rate in (0.1, 3.0):
        steps = chain_matrices(curvatures, -forces, rate)
        close(SMALL.quadratic_covariance(rate, batch, **how), listed_second_moment(steps, steps)[:2, :2])


def test_leading_order_balances_and_is_the_limit_of_the_twin():
    rate, noise = 0.1, UNIT.noise_moment(10)
    g = UNIT.leading_order_covariance(rate, 10)
    close(UNIT.hessian @ g + g @ UNIT.hessian, rate * noise)
    gaps = [
        np.linalg.norm(UNIT.quadratic_covariance(r, 10) / UNIT.leading_order_covariance(r, 10) - 1)
        for r in (rate, rate / 2)
    ]
    assert abs(gaps[0] / gaps[1] - 2) < 0.02
    assert not SMALL.noise_moment(6).any() and not SMALL.leading_order_covariance(0.1, 6).any()  # the full batch


def test_for_small_weights_the_unit_is_linear():
    """With targets 1/2 + δr the field is of order δ, and σ(u) = 1/2 + u/4: least squares of y - 1/2 on x/4."""
    inputs, noise = overlapping(40, 3, seed=2)
    gaps = []
    for delta in (1e-2, 1e-3):
        targets = 0.5 + delta * (noise - 0.5)
        unit, problem = sigmoid.Unit.at_minimum(inputs, targets), regression.fit(inputs / 4, targets[:, None] - 0.5)
        descent = Descent(problem, 0.5 * problem.learning_rate_threshold(4), 4)
        exact = problem.in_input_basis(descent.stationary_covariance())
        leading = problem.in_input_basis(descent.leading_order_covariance())
        for ours, theirs in (("leading_order_covariance", leading), ("quadratic_covariance", exact)):
            found = getattr(unit, ours)(descent.learning_rate, 4)
            gaps.append(np.linalg.norm(found - theirs) / np.linalg.norm(theirs))
    assert gaps[0] < 1e-5
    np.testing.assert_allclose(np.divide(gaps[:2], gaps[2:]), 100, rtol=0.01)  # of order δ²: σ''(0) = 0
    run = unit.simulate(descent.learning_rate, 4, steps=4000, replicas=200, rng=3, blocks=40, record_every=10)
    assert np.abs(sigmas(run.second_moment, exact)).max() < 4.5  # far beyond leading order in ε
    assert np.abs(sigmas(run.second_moment, leading)).max() > 20
    np.testing.assert_allclose(run.second_moment, run.twin_second_moment, rtol=1e-4, atol=1e-4 * np.abs(exact).max())


def gradients(unit, v, chosen):
    z = expit(unit.inputs[chosen] @ (unit.weights + v))
    return -((unit.targets[chosen] - z) * z * (1 - z))[:, None] * unit.inputs[chosen]


@pytest.mark.parametrize("replacement", [False, True])
def test_a_replica_and_its_twin_are_the_recursions_on_the_minibatches_of_their_stream(replacement):
    rate, burn_in, steps, unit = 2.0, 6, 40, THIRTY
    how = {"steps": steps, "replicas": 2, "rng": 5, "burn_in": burn_in, "record_every": 4, "blocks": 2}
    run = unit.simulate(rate, 7, replacement=replacement, **how)
    *streams, first = (np.random.Generator(np.random.SFC64(child)) for child in np.random.SeedSequence(5).spawn(3))
    spread = unit.leading_order_covariance(rate, 7, replacement=replacement)
    values, vectors = np.linalg.eigh(spread)
    u = vectors @ (np.sqrt(values) * first.standard_normal(3))  # block 0
    v = u + unit.mean_shift(spread)
    seen, squares = [], []
    series = [minibatches.draw(30, 7, length, streams[0], replacement=replacement) for length in (burn_in, steps)]
    for step, chosen in enumerate(np.vstack(series)):
        x, force = unit.inputs[chosen], gradients(unit, v, chosen).mean(axis=0)
        if step >= burn_in:
            squares.append(force @ force)
            if (step - burn_in) % 4 == 0:
                seen.append((v, u, v @ gradients(unit, v, np.arange(30)).mean(axis=0)))
        u = u - rate * x.T @ (unit.slope[chosen] + unit.curvature[chosen] * (x @ u)) / 7
        v = v - rate * force
    v, u, pulls = (np.array(each) for each in zip(*seen))
    expected = [v.mean(axis=0), u.mean(axis=0), v.T @ v / 10, u.T @ u / 10, pulls.mean(), np.mean(squares)]
    for found, value in zip(vars(run).values(), expected, strict=True):
        np.testing.assert_allclose(found[0], value, rtol=1e-11, atol=1e-14)


@pytest.fixture(scope="module")
def runs():
    """By ε λ_max(H): the learning rate and a stationary run, longer where relaxation is slower."""
    sizes = {0.025: 8000, 0.1: 5000, 0.4: 5000}
    common = {"replicas": 100, "rng": 1, "blocks": 20, "record_every": 25}
    return {size: (size / TOP, UNIT.simulate(size / TOP, 10, steps=steps, **common)) for size, steps in sizes.items()}


def excess(learning_rate, moment):
    """The part of HC + CH beyond ε D, in units of ε D (along D)."""
    noise, flow = learning_rate * UNIT.noise_moment(10), UNIT.hessian @ moment
    return ((flow + np.swapaxes(flow, -1, -2)) * noise).sum(axis=(-2, -1)) / (noise**2).sum() - 1


@pytest.mark.slow
@pytest.mark.parametrize("size", [0.025, 0.1, 0.4])
def test_the_twin_has_its_exact_covariance_and_no_mean_and_yaidas_relation_is_exact(runs, size):
    rate, run = runs[size]
    assert rms(sigmas(run.twin_second_moment, UNIT.quadratic_covariance(rate, 10))) < 1.6
    assert np.abs(sigmas(run.twin_mean, 0)).max() < 4.5
    ratio, error = Estimate.of(run.pull / (rate / 2 * run.force_square))
    assert abs(ratio - 1) < 0.02 and abs(ratio - 1) < 4.5 * error and error < 0.01


@pytest.mark.slow
def test_relation_and_mean_shift_fail_in_proportion_to_the_learning_rate(runs):
    found, ratios = {}, {}
    for size, (rate, run) in runs.items():
        mean, shift = run.mean.mean(axis=0), UNIT.mean_shift(UNIT.leading_order_covariance(rate, 10))
        control = run.twin_second_moment - UNIT.quadratic_covariance(rate, 10)
        found[size] = Estimate.of(excess(rate, run.second_moment - np.outer(mean, mean) - control))
        ratios[size] = Estimate.of((run.mean - run.twin_mean) @ shift / (shift @ shift))
    assert found[0.025].mean < 0.05 and found[0.025].error < 0.005
    assert 3 < found[0.4].mean / found[0.1].mean < 7
    assert abs((4 * found[0.025].mean - found[0.1].mean) / 3) < 0.015  # what is linear in ε drops out
    assert abs((4 * ratios[0.025].mean - ratios[0.1].mean) / 3 - 1) < 0.03 and ratios[0.025].error < 0.01
    assert 3 < (ratios[0.4].mean - 1) / (ratios[0.1].mean - 1) < 7
    rate, run = runs[0.025]  # every component, not only their sum along the prediction
    shift = UNIT.mean_shift(UNIT.leading_order_covariance(rate, 10))
    mean, error = Estimate.of(run.mean - run.twin_mean)
    assert (np.abs(mean - shift) < 4.5 * error + 0.05 * np.linalg.norm(shift)).all()
    assert np.linalg.norm(mean) > 10 * np.linalg.norm(error)


def test_one_quick_run_has_the_twins_covariance_the_shift_and_yaidas_relation():
    rate = 0.1 / TOP
    run = UNIT.simulate(rate, 10, steps=2000, replicas=60, rng=2, blocks=20, record_every=25)
    assert rms(sigmas(run.twin_second_moment, UNIT.quadratic_covariance(rate, 10))) < 1.8
    shift = UNIT.mean_shift(UNIT.leading_order_covariance(rate, 10))
    ratio, error = Estimate.of((run.mean - run.twin_mean) @ shift / (shift @ shift))
    assert abs(ratio - 1.1) < 0.1 and error < 0.05
    assert abs(Estimate.of(run.pull / (rate / 2 * run.force_square)).sigmas(1)) < 4.5


def test_runs_repeat_do_not_depend_on_workers_and_burn_in_follows_the_slowest_mode():
    common = {"steps": 50, "replicas": 8, "blocks": 4}
    sequence = np.random.SeedSequence(1)
    first, second = (THIRTY.simulate(0.5, 3, rng=sequence, workers=w, **common) for w in (1, 2))
    for one, other in zip(vars(first).values(), vars(second).values()):
        np.testing.assert_array_equal(one, other)
    assert np.abs(first.mean - THIRTY.simulate(0.5, 3, rng=2, **common).mean).max() > 1e-6
    slowest = 0.5 * np.linalg.eigvalsh(THIRTY.hessian)[0]
    given_ = THIRTY.simulate(0.5, 3, rng=sequence, burn_in=int(np.ceil(5 / slowest)), **common)
    np.testing.assert_array_equal(first.mean, given_.mean)


@pytest.mark.parametrize("targets", [[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0], [0, 0, 0, 1e-9, 0, 0]])
def test_no_minimum_where_weights_would_grow_for_ever(targets):
    inputs = np.column_stack([np.arange(6.0), np.ones(6)])
    with pytest.raises(ValueError, match="^targets must leave a minimum with positive curvature"):
        sigmoid.Unit.at_minimum(inputs, targets)


@pytest.mark.parametrize(
    "inputs", [np.zeros((6, 2)), np.ones((6, 2)), np.eye(6), np.zeros((6, 0)), 1e40 * X, 1e-40 * X]
)
def test_inputs_without_a_unique_minimum_are_refused(inputs):
    with pytest.raises(ValueError, match="^inputs must "):
        sigmoid.Unit.at_minimum(inputs, np.linspace(0, 1, len(inputs)))


@pytest.mark.parametrize(
    "said, call",
    [
        ("learning_rate must be below 26.85", lambda: UNIT.quadratic_covariance(2.1 / TOP, 10)),
        ("learning_rate must be large enough", lambda: UNIT.simulate(1e-12, 10, rng=4, steps=50, replicas=20)),
        ("learning_rate must keep the r", lambda: THIRTY.simulate(1e300, 3, steps=50, replicas=10, rng=1, burn_in=0)),
        ("batch must be at most N = 30", lambda: THIRTY.noise_moment(31)),
        ("blocks must divide", lambda: THIRTY.simulate(0.5, 3, steps=4, replicas=4, rng=1, blocks=3)),
        ("record_every must divide", lambda: THIRTY.simulate(0.5, 3, steps=4, replicas=4, rng=1, record_every=3)),
    ],
)
def test_what_does_not_fit_is_refused(said, call):
    with pytest.raises(ValueError, match=f"^{said}"):
        call()


def test_the_threshold_in_the_message_is_where_the_twin_diverges():
    with pytest.raises(ValueError) as caught:
        SMALL.quadratic_covariance(1e3, 2)
    edge = float(re.search("below ([0-9.]+),", str(caught.value))[1])
    sizes = [np.trace(SMALL.quadratic_covariance((1 - gap) * edge, 2)) for gap in (1e-3, 1e-4)]
    assert sizes[1] / sizes[0] == pytest.approx(10, rel=0.1)  # a simple pole


def test_a_column_of_truth_values_is_read_as_numbers():
    inputs, targets = overlapping(40, 2, seed=3)
    wanted = sigmoid.Unit.at_minimum(inputs, np.round(targets))
    for given_ in (np.round(targets)[:, None], targets > 0.5, list(targets > 0.5), (targets > 0.5)[:, None]):
        np.testing.assert_array_equal(sigmoid.Unit.at_minimum(inputs, given_).weights, wanted.weights)
    for bad in (np.ones((40, 2)), [[1], [1, 2]], "labels", None):
        with pytest.raises(ValueError, match="^targets must"):
            sigmoid.Unit.at_minimum(inputs, bad)
