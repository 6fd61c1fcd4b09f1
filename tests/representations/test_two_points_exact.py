"""two_points_exact against automatic differentiation, the integrator, its Riccati equation, and gradient descent on a
linear net."""

import numpy as np
import pytest
import torch
from bad_input import AXIS, NUMBER, exercised, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from two_point_data import amplitudes, state_of

from lib.representations import two_points, two_points_exact, two_points_limits

TIMES = np.linspace(0, 15, 40)
SIZE = st.floats(0.1, 4)


def random_start(seed, outputs, hidden=5, scale=1.0):
    """dh, D_y, Δ and (X, α, β)."""
    random = np.random.default_rng(seed)
    dh, decoder = scale * random.normal(size=hidden), scale * random.normal(size=(outputs, hidden))
    return (dh, decoder, random.normal(size=outputs)), np.exp(0.5 * random.standard_normal(3))


@pytest.mark.parametrize("seed", range(4))
def test_gradients_have_the_quarter_of_automatic_differentiation(seed):
    random = np.random.default_rng(seed)
    mean, encoder, decoder = random.normal(size=3), random.normal(size=(4, 2)), random.normal(size=(3, 4))
    inputs, targets = random.normal(size=(2, 2)), random.normal(size=(2, 3))
    tensors = [torch.tensor(part, requires_grad=True) for part in (mean, encoder, decoder)]
    half = tensors[2] @ tensors[1] @ torch.tensor(inputs[1] - inputs[0]) / 2
    errors = torch.stack([tensors[0] - half, tensors[0] + half]) - torch.tensor(targets)
    (errors**2).sum(dim=1).mean().div(2).backward()
    for found, tensor in zip(two_points_exact.gradients(mean, encoder, decoder, inputs, targets), tensors):
        np.testing.assert_allclose(found, tensor.grad.numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("outputs", [1, 3])
def test_integration_follows_the_gradients_and_conserves_the_matrix(outputs):
    (dh, decoder, delta), (x, alpha, beta) = random_start(7, outputs)
    run = two_points_exact.integrate(TIMES, dh, decoder, delta, x, alpha, beta)
    matrices = np.einsum("tmi,tmj->tij", run.decoder, run.decoder) / beta - np.einsum(
        "ti,tj->tij", run.hidden, run.hidden
    ) / (alpha * x)
    np.testing.assert_allclose(
        matrices, np.broadcast_to(matrices[0], matrices.shape), atol=1e-9 * np.abs(matrices[0]).max()
    )
    np.testing.assert_allclose(run.residual[-1], 0, atol=1e-3)
    # rates of (7) are half the postulated ones, since the gradients carry ¼ and not ½
    step, near = 1e-4, [0.5 - 1e-4, 0.5, 0.5 + 1e-4]
    close = two_points_exact.integrate(near, dh, decoder, delta, x, alpha, beta)
    across = np.zeros((2, 1))
    across[1] = np.sqrt(x)
    slopes = two_points_exact.gradients(
        np.zeros(outputs), close.hidden[1][:, None] / np.sqrt(x), close.decoder[1], across, [0 * delta, delta]
    )
    np.testing.assert_allclose(
        (close.hidden[2] - close.hidden[0]) / (2 * step),
        -2 * alpha * slopes[1][:, 0] * np.sqrt(x),
        rtol=1e-6,
        atol=1e-8,
    )
    np.testing.assert_allclose(
        (close.decoder[2] - close.decoder[0]) / (2 * step), -2 * beta * slopes[2], rtol=1e-6, atol=1e-8
    )


def test_three_numbers_close_only_without_rotation():
    (dh, decoder, delta), (x, alpha, beta) = random_start(3, 3, scale=0.3)
    dh = 0.1 * dh  # where dh is small, the decoder decides in which direction it grows
    aligned = np.outer(decoder @ dh, dh) / (dh @ dh)
    run = two_points_exact.integrate(TIMES, dh, decoder, delta, x, alpha, beta)
    curves = two_points.state(run.hidden, run.output, delta)
    closed = two_points.trajectory(TIMES, curves[0], x, delta @ delta, alpha, beta)
    assert np.abs(closed[:, 0] / curves[:, 0] - 1).max() > 0.05
    run = two_points_exact.integrate(TIMES, dh, aligned, delta, x, alpha, beta)
    curves = two_points.state(run.hidden, run.output, delta)
    np.testing.assert_allclose(
        two_points.trajectory(TIMES, curves[0], x, delta @ delta, alpha, beta), curves, rtol=1e-8, atol=1e-9
    )


@pytest.mark.parametrize(("outputs", "seed"), [(1, 0), (1, 1), (1, 2), (3, 3), (3, 4), (3, 5), (2, 6)])
def test_rank_one_solution_is_the_integral_with_its_signs(outputs, seed):
    (dh, decoder, delta), (x, alpha, beta) = random_start(seed, outputs)
    dy = decoder @ dh
    dy = dy if seed % 2 else -dy
    run = two_points_exact.integrate(TIMES, dh, np.outer(dy, dh) / (dh @ dh), delta, x, alpha, beta)
    exact = two_points_exact.rank_one(TIMES, dh, dy, delta, x, alpha, beta)
    for name in ("hidden", "decoder", "output", "residual"):
        expected = getattr(run, name)
        np.testing.assert_allclose(getattr(exact, name), expected, rtol=0, atol=1e-8 * np.abs(expected).max())


def test_rank_one_turns_round_where_it_passes_zero():
    turned = 0
    for start, (x, y, alpha, beta) in amplitudes(30, seed=8):
        delta, dy = np.array([np.sqrt(y), 0.0]), start[0] * start[1:]
        exact = two_points_exact.rank_one([0.0, 200.0], [start[0], 0.0], dy, delta, x, alpha, beta)
        crossing = two_points_limits.zero_crossing(state_of(start, y), x, y, alpha, beta)
        assert (exact.hidden[-1, 0] < 0) == np.isfinite(crossing)
        turned += np.isfinite(crossing)
    assert 0 < turned < 30
    still = two_points_exact.rank_one([0.0, 9.0], [1.0], [0.5, 0.5], [0.0, 0.0], 1.0, 1.0, 1.0)  # the same targets
    run = two_points_exact.integrate([0.0, 9.0], [1.0], [[0.5], [0.5]], [0.0, 0.0], 1.0, 1.0, 1.0)
    np.testing.assert_allclose(still.output, run.output, rtol=1e-9)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([1e-3, 0.3, 1.0, 2.0]))
def test_one_output_solution_is_the_integral(seed, scale):
    (dh, decoder, delta), (x, alpha, beta) = random_start(seed, 1, scale=scale)
    run = two_points_exact.integrate(TIMES, dh, decoder, delta, x, alpha, beta)
    exact = two_points_exact.one_output(TIMES, dh, decoder, delta, x, alpha, beta)
    for name in ("hidden", "decoder", "output", "residual"):
        expected = getattr(run, name)
        np.testing.assert_allclose(getattr(exact, name), expected, rtol=0, atol=1e-8 * max(1, np.abs(expected).max()))


def test_what_starts_at_zero_stays():
    for start in (([0.0, 0.0], [[0.0, 0.0]]), ([1.0, 0.0], [[0.0, 0.0]])):
        run = two_points_exact.integrate([0.0, 3.0], *start, [0.0], 1.0, 1.0, 1.0)
        np.testing.assert_array_equal(run.hidden, [start[0]] * 2)
    exact = two_points_exact.one_output([0.0, 1e9], [0.0, 0.0], [[0.0, 0.0]], [1.0], 1.0, 1.0, 1.0)
    np.testing.assert_array_equal(exact.residual, [[-1.0]] * 2)
    assert two_points_exact.final_distance([0.0], [[0.0]], [0.0], 1.0, 1.0) == 0
    assert two_points_exact.integrate([0.0], [1.0], [[0.1]], [1.0], 1.0, 1.0, 1.0).output.tolist() == [[0.1]]


def test_one_output_obeys_its_riccati_equation():
    (dh, decoder, delta), (x, alpha, beta) = random_start(11, 1)
    step = 1e-5
    near = two_points_exact.one_output([0.4 - step, 0.4, 0.4 + step], dh, decoder, delta, x, alpha, beta)
    plus = near.hidden / np.sqrt(alpha * x) + near.decoder[:, 0] / np.sqrt(beta)
    start = dh / np.sqrt(alpha * x) + decoder[0] / np.sqrt(beta), dh / np.sqrt(alpha * x) - decoder[0] / np.sqrt(beta)
    value = (plus @ start[0] / (start[0] @ start[0])) ** 2
    k = np.sqrt(alpha * beta * x) / 2
    slope = -(k**2) * (start[0] @ start[0]) * value[1] ** 2 + 2 * k * delta[0] * value[1] + k**2 * (start[1] @ start[1])
    assert (value[2] - value[0]) / (2 * step) == pytest.approx(slope, rel=1e-7)
    np.testing.assert_allclose(
        np.outer(plus @ start[0], start[0]) / (start[0] @ start[0]), plus, rtol=1e-10, atol=1e-12
    )  # it keeps its direction


def test_aligned_vectors_are_the_case_of_three_numbers():
    for factor in (0.6, -0.6, 3.0, -3.0):
        dh, delta = np.array([0.4, -0.3]), np.array([0.8])
        exact = two_points_exact.one_output(TIMES, dh, [factor * dh], delta, 0.5, 1.2, 0.8)
        closed = two_points.trajectory(TIMES, two_points.state(dh, [factor * (dh @ dh)], delta), 0.5, 0.64, 1.2, 0.8)
        np.testing.assert_allclose(two_points.state(exact.hidden, exact.output, delta), closed, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("sign", "delta"), [(1, 1.0), (1, -1.0), (-1, 1.0), (-1, -1.0), (1, 0.0), (0, 1.0), (0, -1.0)])
def test_one_output_at_its_degenerate_starts(sign, delta):
    # balanced and parallel or antiparallel (P or M is zero), at rest at the saddle or learned; and a dark decoder
    dh = np.array([0.6, -0.2])
    times = np.array([0.0, 1.0, 8.0])
    exact = two_points_exact.one_output(times, dh, [sign * dh], [delta], 1.0, 1.0, 1.0)
    run = two_points_exact.integrate(times, dh, [sign * dh], [delta], 1.0, 1.0, 1.0)
    np.testing.assert_allclose(exact.hidden, run.hidden, atol=1e-9)
    np.testing.assert_allclose(exact.residual, run.residual, atol=1e-9)
    late = two_points_exact.one_output([1e5, 1e300], dh, [sign * dh], [delta], 1.0, 1.0, 1.0)
    saddle = sign * delta < 0 or delta == 0
    np.testing.assert_allclose(late.residual[:, 0], -delta if saddle else 0.0, atol=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_final_distance_of_one_output(seed):
    (dh, decoder, delta), (x, alpha, beta) = random_start(seed, 1, scale=[1e-2, 0.5, 3.0][seed % 3])
    ratio = alpha / beta
    found = two_points_exact.final_distance(dh, decoder, delta, x, ratio)
    end = two_points_exact.one_output([1e6], dh, decoder, delta, x, alpha, beta)
    assert found == pytest.approx(end.hidden[0] @ end.hidden[0], rel=1e-10)
    high, low = dh @ dh - ratio * x * (decoder[0] @ decoder[0]), np.sqrt(ratio * x) * abs(delta[0])
    assert found > two_points_limits.final_distance(high, low)  # its middle term is positive
    parallel = two_points_exact.final_distance(dh, [0.7 * dh], delta, x, ratio)
    start = two_points.state(dh, [0.7 * (dh @ dh)], delta)
    assert parallel == pytest.approx(two_points_limits.fixed_point(start, x, delta[0] ** 2, ratio)[0], rel=1e-10)
    large = two_points_exact.final_distance(dh, [1e6 * dh], delta, x, ratio)
    assert large == pytest.approx(two_points_limits.final_distance(dh @ dh * (1 - 1e12 * ratio * x), low), rel=1e-8)


def test_orthogonal_start_ends_between_and_escapes_earlier():
    scale, k = 1e-5, 0.5
    dh, v = scale * np.array([1.0, 0.0]), scale * np.array([0.0, 2.0])
    times = np.linspace(0, 60, 60001)
    exact = two_points_exact.one_output(times, dh, [v], [1.0], 1.0, 1.0, 1.0)
    cosine = exact.hidden[-1] @ dh / np.linalg.norm(exact.hidden[-1]) / scale
    assert cosine == pytest.approx(1 / np.sqrt(5), rel=1e-6)
    equal = two_points_exact.one_output(times, dh, [[0.0, scale]], [1.0], 1.0, 1.0, 1.0)
    # (7) sees dy = 0, and with it half of the squared growing part
    closed = two_points.trajectory(times, [scale**2, 0.0, 0.0], 1.0, 1.0, 1.0, 1.0)
    half = [times[np.argmax(output > 0.25)] for output in (equal.output[:, 0] ** 2, closed[:, 1])]
    assert half[1] - half[0] == pytest.approx(np.log(2) / (2 * k), abs=3e-3)


def test_gradient_descent_on_a_linear_net_comes_to_the_solution_at_first_order():
    random = np.random.default_rng(2)
    first, last = 0.4 * random.normal(size=6), 0.4 * random.normal(size=6)
    errors = []
    for rate in (0.02, 0.01):
        h, v, curve = first.copy(), last.copy(), []
        for _ in range(round(12 / rate)):
            curve.append(h @ h)
            error = np.array([-0.5, 0.5]) * (v @ h) - np.array([-0.5, 0.5])  # inputs ∓½, targets ∓½
            h, v = h - rate * v * (error @ [-0.5, 0.5]) / 2, v - rate * h * (error @ [-0.5, 0.5]) / 2
        exact = two_points_exact.one_output(rate * np.arange(len(curve)), first, [last], [1.0], 1.0, 0.5, 0.5)
        errors.append(np.abs((exact.hidden**2).sum(axis=1) - curve).max())
    assert errors[1] < 1e-2 and errors[0] / errors[1] == pytest.approx(2, abs=0.1)


# --- bad input: every public function, every argument ---------------------------------------------

RATES = {"input_distance": 1.0, "encoder_rate": 1.0, "decoder_rate": 1.0}
START = {"times": [0.0, 1.0], "hidden_difference": [0.5, 0.1], "decoder": [[0.2, 0.3]], "target_difference": [1.0]}
POINTS = {"inputs": [[0.0], [1.0]], "targets": [[0.0], [1.0]]}


def without(name):
    return {key: value for key, value in START.items() if key != name}


CALLS = {
    two_points_exact.gradients: {"mean_output": [1.0], "encoder": [[1.0], [2.0]], "decoder": [[1.0, 2.0]], **POINTS},
    two_points_exact.integrate: {**START, **RATES},
    two_points_exact.rank_one: {**without("decoder"), "output_difference": [0.3], **RATES},
    two_points_exact.one_output: {**START, **RATES},
    two_points_exact.final_distance: {**without("times"), "input_distance": 1.0, "rate_ratio": 1.0},
}
BAD = {
    "mean_output": [[[1.0]], 1.0, [np.nan], "a", None],
    "encoder": [[1.0], 1.0, [[np.nan], [1.0]], "a", None],
    "decoder": [[1.0], 1.0, [[1.0]], [[1.0, 2.0], [3.0, 4.0]], [[np.nan, 1.0]], "a", None],
    "inputs": [[1.0], 1.0, [[0.0], [1.0], [2.0]], [[np.inf], [1.0]], "a", None],
    "targets": [[1.0], 1.0, [[0.0], [1.0], [2.0]], [[np.inf], [1.0]], "a", None],
    "times": AXIS,
    "hidden_difference": [[], 1.0, [[1.0]], [np.nan, 1.0], "a", None],
    "output_difference": [[], 1.0, [[1.0]], [1.0, 2.0], [np.nan], "a", None],
    "target_difference": [[], 1.0, [[1.0]], [np.nan], "a", None],
    "rate_ratio": NUMBER,
    "input_distance": NUMBER,
    "encoder_rate": NUMBER,
    "decoder_rate": NUMBER,
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)


def test_rank_one_needs_a_direction_and_one_output_one_target():
    refused(CALLS[two_points_exact.rank_one], two_points_exact.rank_one, "hidden_difference", [0.0, 0.0])
    for function in (two_points_exact.one_output, two_points_exact.final_distance):
        refused(CALLS[function], function, "target_difference", [1.0, 2.0])
