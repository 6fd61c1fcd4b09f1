"""Steps and Jacobians of small models: derivatives by hand, finite differences, autograd of torch's own
losses, the digits."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import norm
from sklearn.datasets import load_digits
from torch.nn import functional

from lib.criticality.sample_gradients import LOSSES, Model, log_area, one_dimensional_map


def problem(model, count, seed):
    """Parameters, inputs and labels."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal(model.size), rng.standard_normal((count, model.inputs)), rng.integers(0, 2, count)


def digits(components):
    """Principal coordinates of images of zeros and ones, and their labels."""
    images, labels = load_digits(n_class=2, return_X_y=True)
    centred = images / 16 - (images / 16).mean(axis=0)
    return centred @ np.linalg.svd(centred)[2][:components].T, labels


def layer(model, q):
    d, m = model.inputs, model.width
    return q[: m * d].reshape(m, d), q[m * d : m * d + m], q[m * d + m : m * d + 2 * m], q[-1]


def logit(model, q, x):
    if model.width == 0:
        return x @ q[:-1] + q[-1]
    weights, biases, readout, constant = layer(model, q)
    return np.tanh(x @ weights.T + biases) @ readout + constant


def loss_derivatives(model, y, t):
    """h, h' from the textbook forms, with f = expit(y)."""
    f, g = expit(y), expit(-y)
    if model.loss == "cross_entropy":
        return f - t, f * g
    return 2 * (f - t) * f * g, 2 * f * g * (f * g + (f - t) * (g - f))


def logit_derivatives(model, q, x):
    """∂y/∂q (K,), ∂y/∂x (d,) and the mixed derivatives (K, d) of one sample, by hand."""
    d, m = model.inputs, model.width
    if m == 0:
        return np.append(x, 1.0), q[:d], np.vstack([np.eye(d), np.zeros(d)])
    weights, biases, readout, _ = layer(model, q)
    units = np.tanh(weights @ x + biases)
    one, two = 1 - units**2, -2 * units * (1 - units**2)
    first = np.concatenate([np.outer(readout * one, x).ravel(), readout * one, units, [1.0]])
    biases_row = (readout * two)[:, None] * weights
    weights_row = np.einsum("ml,i->mil", biases_row, x) + np.einsum("m,il->mil", readout * one, np.eye(d))
    mixed = np.vstack([weights_row.reshape(m * d, d), biases_row, one[:, None] * weights, np.zeros(d)])
    return first, (readout * one) @ weights, mixed


MODELS = [Model(d, width=m, loss=loss) for d, m in ((1, 0), (4, 0), (1, 3), (5, 4)) for loss in LOSSES]


# --- derivatives ----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_steps_are_minus_the_gradient_of_torchs_own_losses(model):
    q, x, t = problem(model, 7, 1)
    found = model.steps(q, x, t, learning_rate=0.3)
    for n in range(7):
        parameters = torch.from_numpy(q.copy()).requires_grad_()
        if model.width == 0:
            y = torch.from_numpy(x[n]) @ parameters[:-1] + parameters[-1]
        else:
            weights, biases, readout, constant = layer(model, parameters)
            y = torch.tanh(weights @ torch.from_numpy(x[n]) + biases) @ readout + constant
        target = torch.tensor(float(t[n]), dtype=torch.float64)
        if model.loss == "cross_entropy":
            loss = functional.binary_cross_entropy_with_logits(y, target)
        else:
            loss = functional.mse_loss(torch.sigmoid(y), target)
        loss.backward()
        np.testing.assert_allclose(found[n], -0.3 * parameters.grad.numpy(), rtol=1e-11, atol=1e-15)


@settings(max_examples=30)
@given(st.sampled_from(MODELS), st.integers(0, 99), st.floats(0.1, 10))
def test_jacobians_are_the_analytic_ones(model, seed, rate):
    q, x, t = problem(model, 3, seed)
    found = model.jacobians(q, x, t, learning_rate=rate, chunk=2)
    for n in range(3):
        h, h1 = loss_derivatives(model, logit(model, q, x[n]), t[n])
        to_q, to_x, mixed = logit_derivatives(model, q, x[n])
        expected = -rate * (h1 * np.outer(to_q, to_x) + h * mixed)
        np.testing.assert_allclose(found[n], expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("loss", LOSSES)
def test_steps_and_jacobians_keep_their_relative_precision_where_a_sample_is_certain(loss):
    model, power = Model(1, loss=loss), {"cross_entropy": 1, "squared": 2}[loss]
    for label, w in ((0, -1.0), (1, 1.0)):
        x = np.array([[100.0], [300.0]])
        size = power * np.exp(-power * x[:, 0])
        sign = 2 * label - 1
        np.testing.assert_allclose(model.steps([w, 0.0], x, [label] * 2)[:, 1], sign * size, rtol=1e-12)
        np.testing.assert_allclose(model.jacobians([w, 0.0], x, [label] * 2)[:, 1, 0], -sign * power * size, rtol=1e-12)


# --- training -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model", [Model(4, penalty=1e-2), Model(4, loss="squared"), Model(4, width=3), Model(4, width=3, loss="squared")]
)
def test_training_ends_at_a_minimum_where_the_mean_step_balances_the_penalty(model):
    _, x, t = problem(model, 40, 11)
    t = (x[:, 0] + 0.5 * x[:, 1] ** 2 > 0.3).astype(float)
    q = model.train(x, t, 0)
    excess = model.steps(q, x, t).mean(axis=0) - model.penalty * q
    assert np.linalg.norm(excess) < 1e-9

    def total(q):
        y = logit(model, q, x)
        data = np.logaddexp(0, (1 - 2 * t) * y) if model.loss == "cross_entropy" else (expit(y) - t) ** 2
        return data.mean() + model.penalty / 2 * (q @ q)

    nearby = q + 1e-3 * np.random.default_rng(0).standard_normal((50, model.size))
    assert min(map(total, nearby)) > total(q)


def test_newton_steps_reach_what_the_rounding_of_the_loss_hides():
    x, t = digits(10)
    model = Model(10)
    ends = [model.train(x, t, seed, tolerance=1e-15) for seed in (1, 2)]  # for a neuron there is one for all starts
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(model.train(x, t, 1), ends[0], atol=1e-5)
    with pytest.raises(ValueError, match="^tolerance must be within reach"):
        model.train(x, t, 1, tolerance=1e-30)


def test_training_repeats_itself_and_a_stronger_penalty_makes_smaller_weights():
    x, t = digits(4)
    model = Model(4, width=2)
    assert np.array_equal(model.train(x, t, 5), model.train(x, t, 5))
    assert not np.array_equal(model.train(x, t, 5), model.train(x, t, 6))
    sizes = [np.linalg.norm(Model(4, penalty=penalty).train(x, t, 0)) for penalty in (1e-4, 1e-3, 1e-2)]
    assert sizes[0] > sizes[1] > sizes[2]


# --- areas of the surface of steps ----------------------------------------------------------------


def test_areas_of_small_triangles_and_the_probability_on_them():
    """Cells of a grid of inputs are carried onto two triangles each."""
    model, q, error = Model(2), [1.5, -0.7, -0.4], []
    for count in (100, 200):
        side = np.linspace(-5, 5, count + 1)
        x = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1)
        s = model.steps(q, x.reshape(-1, 2), np.zeros(x.size // 2)).reshape(count + 1, count + 1, 3)
        cells = [(s[:-1, :-1], s[1:, :-1], s[:-1, 1:]), (s[1:, 1:], s[1:, :-1], s[:-1, 1:])]
        areas = sum(np.linalg.norm(np.cross(one - corner, other - corner), axis=-1) / 2 for corner, one, other in cells)
        centres = ((x[1:, 1:] + x[:-1, :-1]) / 2).reshape(-1, 2)
        formula = np.exp(log_area(model.jacobians(q, centres, np.zeros(count**2), chunk=10_000)))
        error.append(np.abs(areas.ravel() / (formula * (10 / count) ** 2) - 1).max())
    assert error[1] < 0.012 and np.log2(error[0] / error[1]) == pytest.approx(2, abs=0.1)  # second order in the side
    density = np.exp(norm.logpdf(centres).sum(axis=1)) / formula
    assert density @ areas.ravel() == pytest.approx(1, abs=1e-3)


@given(st.integers(1, 6), st.integers(0, 3), st.integers(0, 99))
def test_the_area_is_a_determinant_and_its_logarithm_survives_where_it_does_not(d, more, seed):
    jacobians = np.random.default_rng(seed).standard_normal((3, d + more, d))
    expected = np.linalg.slogdet(jacobians.transpose(0, 2, 1) @ jacobians)[1] / 2
    np.testing.assert_allclose(log_area(jacobians), expected, rtol=1e-6, atol=1e-6)
    tiny = log_area(1e-300 * jacobians)
    np.testing.assert_allclose(tiny, log_area(jacobians) + d * np.log(1e-300), rtol=1e-10)


@pytest.mark.parametrize("d", [1, 2, 6])
def test_on_a_cone_the_density_per_area_has_exponent_d(d):
    """A flat density of inputs along w on an exponential tail: up to 1/|w|."""
    model, q = Model(d), np.append(500 * np.eye(d)[0], -400.0)
    x = np.zeros((2, d)) + 0.3
    x[1, 0] += 0.04  # 20 e-foldings of h
    radii = np.log(np.linalg.norm(model.steps(q, x, [0, 0]), axis=1))
    slope = np.diff(log_area(model.jacobians(q, x, [0, 0])))[0] / np.diff(radii)[0]
    assert np.diff(radii)[0] > 19 and slope == pytest.approx(d, abs=0.01 * d)


# --- one-dimensional maps, eq. (4.6) --------------------------------------------------------------


def test_a_linear_map_decouples_exactly_even_for_correlated_inputs():
    rng = np.random.default_rng(1)
    x = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.8], [0.8, 1.0]], 200_000)
    matrix = rng.standard_normal((3, 2))
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    inputs, outputs = x @ right.T, x @ matrix.T @ left
    assert abs(np.corrcoef(inputs.T)[0, 1]) > 0.1
    for i in range(2):
        found = one_dimensional_map(inputs[:, i], outputs[:, i])
        assert found.distance < 1e-3 and found.explained > 1 - 1e-12
        np.testing.assert_allclose(found.predicted, values[i] * inputs[:, i], atol=1e-12)


def test_the_map_is_the_conditional_mean():
    rng = np.random.default_rng(2)
    x = rng.standard_normal(200_000)
    y = np.sin(x) + 0.5 * rng.standard_normal(len(x))
    found = one_dimensional_map(x, y)
    signal = (1 - np.exp(-2)) / 2  # variance of sin x
    assert found.explained == pytest.approx(signal / (signal + 0.25), abs=0.005)
    inside = np.abs(x) < 2
    assert np.abs(found.predicted - np.sin(x))[inside].max() < 5 * 0.5 / np.sqrt(1000) + 0.01
    order = rng.permutation(len(x))
    again = one_dimensional_map(x[order], y[order])
    np.testing.assert_allclose(again.predicted, found.predicted[order], atol=1e-12)
    assert again.explained == pytest.approx(found.explained, rel=1e-10) and again.distance == pytest.approx(
        found.distance, abs=1e-12
    )


def test_the_distance_between_the_laws_is_that_of_the_laws():
    rng = np.random.default_rng(4)
    x, noise = rng.standard_normal((2, 200_000))
    found = one_dimensional_map(x, x + noise, bins=20)
    grid = np.linspace(-5, 5, 10_001)
    exact = np.abs(norm.cdf(grid) - norm.cdf(grid / np.sqrt(2))).max()
    at = grid[np.abs(norm.cdf(grid) - norm.cdf(grid / np.sqrt(2))).argmax()]
    sigma = np.hypot(
        np.sqrt(0.5 / len(x)), norm.pdf(at) * np.sqrt(20 / len(x))
    )  # of the two laws, of the mean in a bin
    assert exact > 20 * sigma and found.distance == pytest.approx(exact, abs=4 * sigma)


def test_maps_and_areas_that_do_not_exist_are_refused():
    for bad in (np.ones((2, 3, 4)), np.zeros((0, 4, 3)), np.ones((1, 3, 2))):
        with pytest.raises(ValueError, match="^jacobians must "):
            log_area(bad)
    x, y = np.linspace(0, 1, 20), np.linspace(1, 3, 20) ** 2
    for bad, name in (
        ((np.repeat([0.0, 1.0], 10), y, 4), "inputs must differ between bins"),
        ((x, y, 11), "inputs must hold at least two samples a bin"),
        ((x, y[:-1], 5), "outputs must have shape"),
        ((x, 0.1 + 1e-16 * np.arange(20), 5), "outputs must differ between samples"),
    ):
        with pytest.raises(ValueError, match=f"^{name}"):
            one_dimensional_map(*bad[:2], bins=bad[2])


def test_results_that_are_no_numbers_are_refused():
    for function in (Model(2).steps, Model(2).jacobians):
        with pytest.raises(ValueError, match="^inputs must keep the result inside"):
            function([1e308, 1e308, 0.0], [[1e308, -1e308]], [0])


GOOD = {"parameters": [1.0, 2.0, 0.0], "inputs": [[0.5, 1.0], [0.0, -1.0]], "labels": [0, 1]}


@pytest.mark.parametrize(("bad", "name"), [
    ({"parameters": [1.0, 2.0]}, "parameters"), ({"inputs": np.zeros((0, 2))}, "inputs"),
    ({"inputs": [[1.0], [2.0]]}, "inputs"), ({"labels": [0]}, "labels"), ({"labels": [0, 2]}, "labels"),
])  # fmt: skip
def test_samples_that_do_not_fit_the_model_are_refused(bad, name):
    with pytest.raises(ValueError, match=f"^{name} must"):
        Model(2).steps(**GOOD | bad)
