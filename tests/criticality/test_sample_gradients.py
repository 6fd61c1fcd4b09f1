"""Steps, Jacobians and exponents of small models: derivatives by hand, finite differences, autograd of torch's own
losses, the digits."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.datasets import load_digits
from torch.nn import functional

from lib.criticality import area_formula
from lib.criticality.sample_gradients import LOSSES, Model, two_digits


def problem(model, count, seed):
    """Parameters, inputs and labels."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal(model.size), rng.standard_normal((count, model.inputs)), rng.integers(0, 2, count)


def layer(model, q):
    d, m = model.inputs, model.width
    return q[: m * d].reshape(m, d), q[m * d : m * d + m], q[m * d + m : m * d + 2 * m], q[-1]


def logit(model, q, x):
    if model.width == 0:
        return x @ q[:-1] + q[-1]
    weights, biases, readout, constant = layer(model, q)
    return np.tanh(x @ weights.T + biases) @ readout + constant


def loss_derivatives(model, y, t):
    """h, h', h'' from the textbook forms, with f = expit(y)."""
    f, g = expit(y), expit(-y)
    if model.loss == "cross_entropy":
        return f - t, f * g, f * g * (g - f)
    slope = 2 * (f - t) * f * g
    slope1 = 2 * f * g * (f * g + (f - t) * (g - f))
    slope2 = 2 * f * g * (g - f) * (f * g + (f - t) * (g - f)) + 2 * f * g * (2 * f * g * (g - f) - 2 * (f - t) * f * g)
    return slope, slope1, slope2


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
        h, h1, _ = loss_derivatives(model, logit(model, q, x[n]), t[n])
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


def test_the_squared_loss_keeps_it_where_a_sample_is_certainly_wrong():
    x = np.array([[100.0], [300.0]])
    size = 2 * np.exp(-x[:, 0])
    np.testing.assert_allclose(Model(1, loss="squared").steps([1.0, 0.0], x, [0, 0])[:, 1], -size, rtol=1e-12)
    np.testing.assert_allclose(Model(1, loss="squared").jacobians([1.0, 0.0], x, [0, 0])[:, 1, 0], size, rtol=1e-12)


# --- exponents ------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(st.sampled_from([m for m in MODELS if m.width == 0]), st.integers(0, 99))
def test_exponents_of_the_neuron_in_closed_form(model, seed):
    q, x, t = problem(model, 4, seed)
    rng = np.random.default_rng(seed)
    u, v = rng.standard_normal((4, model.size, 2)), rng.standard_normal((4, model.inputs, 2))
    found = model.local_exponents(q, x, t, u, v)
    h, h1, h2 = loss_derivatives(model, logit(model, q, x), t)
    for r in range(2):
        along = v[:, :, r] @ q[:-1]
        lever, turn = (u[:, :-1, r] * x).sum(1) + u[:, -1, r], (u[:, :-1, r] * v[:, :, r]).sum(1)
        slope = h1 * along * lever + h * turn
        curvature = h2 * along**2 * lever + 2 * h1 * along * turn
        np.testing.assert_allclose(found[:, r], h * lever * curvature / slope**2, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_exponents_of_the_tanh_layer_by_differences(loss):
    model = Model(3, width=4, loss=loss)
    q, x, t = problem(model, 6, 8)
    pairs = area_formula.singular_pairs(model.jacobians(q, x, t), pairs=3)
    found = model.local_exponents(q, x, t, pairs.left, pairs.right)
    for r in range(3):
        shift = 1e-3 * pairs.right[:, :, r]
        phi = np.array([(pairs.left[:, :, r] * model.steps(q, x + k * shift, t)).sum(1) for k in (-2, -1, 0, 1, 2)])
        slope = (phi[0] - 8 * phi[1] + 8 * phi[3] - phi[4]) / 12e-3
        curvature = (-phi[0] + 16 * phi[1] - 30 * phi[2] + 16 * phi[3] - phi[4]) / 12e-6
        np.testing.assert_allclose(found[:, r], phi[2] * curvature / slope**2, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(slope, pairs.values[:, r], rtol=1e-8, atol=1e-9)
    moved = model.local_exponents(q, x, t, -3 * pairs.left, 0.2 * pairs.right)
    np.testing.assert_allclose(moved, found, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(("loss", "c"), [("cross_entropy", 1), ("squared", 2)])
def test_on_an_exponential_tail_the_exponent_is_one_plus_the_curvature_of_the_logit(loss, c):
    model = Model(3, width=4, loss=loss)
    q, x, t = problem(model, 6, 9)
    q[-1] = -60.0  # far in the tail of class 0; u below is the direction of this bias, where φ = -h(y)
    u, v = np.zeros((6, model.size, 1)), np.random.default_rng(1).standard_normal((6, 3, 1))
    u[:, -1] = 1.0
    weights, biases, readout, _ = layer(model, q)
    units, along = np.tanh(x @ weights.T + biases), v[:, :, 0] @ weights.T
    first, second = (along * (1 - units**2)) @ readout, (along**2 * -2 * units * (1 - units**2)) @ readout
    found = model.local_exponents(q, x, np.zeros(6), u, v)[:, 0]
    np.testing.assert_allclose(found, 1 + second / (c * first**2), rtol=1e-9)
    assert np.abs(found - 1).max() > 0.1


def test_a_direction_that_no_step_sees_has_no_exponent():
    model = Model(2)
    with pytest.raises(ValueError, match="^right must be directions along which"):
        model.local_exponents([1.0, 0.0, 0.0], [[1.0, 2.0]], [0], [[[0.0], [0.0], [1.0]]], [[[0.0], [1.0]]])


# --- training -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model", [Model(4, penalty=1e-2), Model(4, loss="squared"), Model(4, width=3), Model(4, width=3, loss="squared")]
)
def test_training_ends_at_a_minimum_where_the_mean_step_balances_the_penalty(model):
    _, x, t = problem(model, 40, 11)
    t = (x[:, 0] + 0.5 * x[:, 1] ** 2 > 0.3).astype(float)
    end = model.train(x, t, 0)
    excess = model.steps(end.parameters, x, t).mean(axis=0) - model.penalty * end.parameters
    assert np.linalg.norm(excess) < 1e-9 and end.gradient_norm < 1e-9

    def total(q):
        y = logit(model, q, x)
        data = np.logaddexp(0, (1 - 2 * t) * y) if model.loss == "cross_entropy" else (expit(y) - t) ** 2
        return data.mean() + model.penalty / 2 * (q @ q)

    assert end.loss == pytest.approx(total(end.parameters), rel=1e-12)
    rng = np.random.default_rng(0)
    nearby = end.parameters + 1e-3 * rng.standard_normal((50, model.size))
    assert min(total(q) for q in nearby) > end.loss


def test_newton_steps_reach_what_the_rounding_of_the_loss_hides():
    x, t = two_digits(components=10)
    model = Model(10)
    ends = [model.train(x, t, seed, tolerance=1e-15) for seed in (1, 2)]
    assert max(end.gradient_norm for end in ends) < 1e-15  # and for a neuron there is one end for all starts
    np.testing.assert_allclose(ends[0].parameters, ends[1].parameters, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(model.train(x, t, 1).parameters, ends[0].parameters, atol=1e-5)
    with pytest.raises(ValueError, match="^tolerance must be within reach"):
        model.train(x, t, 1, tolerance=1e-30)


def test_training_repeats_itself_and_a_stronger_penalty_makes_smaller_weights():
    x, t = two_digits(components=4)
    model = Model(4, width=2)
    assert np.array_equal(model.train(x, t, 5).parameters, model.train(x, t, 5).parameters)
    assert not np.array_equal(model.train(x, t, 5).parameters, model.train(x, t, 6).parameters)
    sizes = [np.linalg.norm(Model(4, penalty=penalty).train(x, t, 0).parameters) for penalty in (1e-4, 1e-3, 1e-2)]
    assert sizes[0] > sizes[1] > sizes[2]


# --- digits ---------------------------------------------------------------------------------------


def test_the_digits_are_centred_zeros_and_ones_and_their_principal_coordinates():
    source = load_digits()
    kept = source.target < 2
    x, t = two_digits()
    np.testing.assert_allclose(x, source.data[kept] / 16 - (source.data[kept] / 16).mean(axis=0), atol=1e-14)
    assert np.array_equal(t, source.target[kept])
    every, few = two_digits(components=64)[0], two_digits(components=3)[0]
    np.testing.assert_allclose(every @ every.T, x @ x.T, atol=1e-12)
    np.testing.assert_allclose(few, every[:, :3], atol=1e-12)
    covariance = every.T @ every
    np.testing.assert_allclose(np.diag(covariance), np.linalg.eigvalsh(x.T @ x)[::-1], atol=1e-9)


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


@pytest.mark.parametrize(("left", "right", "name"), [
    ((2, 3, 0), (2, 2, 0), "left"), ((1, 3, 1), (2, 2, 1), "left"), ((2, 4, 1), (2, 2, 1), "left"),
    ((2, 3, 1), (2, 2, 2), "right"),
])  # fmt: skip
def test_directions_that_do_not_fit_the_model_are_refused(left, right, name):
    with pytest.raises(ValueError, match=f"^{name} must"):
        Model(2).local_exponents(**GOOD, left=np.ones(left), right=np.ones(right))
