"""two_points against integration, high-precision arithmetic, the equations themselves, and gradient descent."""

import mpmath
import numpy as np
import pytest
from bad_input import AXIS, NUMBER, exercised, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from two_point_data import amplitudes, integrated, state_of

from lib.representations import two_points

TIMES = np.linspace(0, 12, 40)
SIZE = st.floats(0.05, 5)
SIGNED = st.one_of(st.just(0.0), st.floats(1e-6, 3), st.floats(-3, -1e-6))  # smaller ones have squares that underflow


def precise(t, start, constants):
    """(a, b, w) and the loss by the solution in hyperbolic functions, with 400 digits."""
    with mpmath.workdps(400):
        s, p, q, x, y, alpha, beta, t = (mpmath.mpf(float(value)) for value in (*start, *constants, t))
        s, p, q = s / mpmath.sqrt(alpha * x), p / mpmath.sqrt(beta), q / mpmath.sqrt(beta)
        k, gap = mpmath.sqrt(alpha * beta * x) / 2, mpmath.sqrt(y)
        mu, kappa = k**2 * (s**2 - p**2 - q**2), k * gap
        lam = mpmath.sqrt(mu**2 + kappa**2)
        cosh, sinh = mpmath.cosh(lam * t), mpmath.sinh(lam * t) / lam
        norm = (s**2 + p**2) * mpmath.sinh(2 * lam * t) / (2 * lam) + (mu * s**2 + 2 * kappa * s * p - mu * p**2) * (
            mpmath.cosh(2 * lam * t) - 1) / (2 * lam**2) + q**2 * (1 - mpmath.exp(-2 * mu * t)) / (2 * mu)  # fmt: skip
        root = mpmath.sqrt(1 + 2 * k**2 * norm)
        s, p, q = (
            (cosh * s + sinh * (mu * s + kappa * p)) / root,
            (cosh * p + sinh * (kappa * s - mu * p)) / root,
            q * mpmath.exp(-mu * t) / root,
        )
        along, across = 2 * k * s * p, 2 * k * s * q
        values = (
            alpha * x * s**2,
            along**2 + across**2,
            along * (along - gap) + across**2,
            ((along - gap) ** 2 + across**2) / 8,
        )
        return np.array([float(value) for value in values])


def test_closed_form_is_the_integral_of_the_amplitudes():
    for start, constants in amplitudes(60):
        x, y, alpha, beta = constants
        expected = state_of(integrated(TIMES, start, constants), y)
        found = two_points.trajectory(TIMES, state_of(start, y), x, y, alpha, beta)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("scale", [1.0, 1e-5, 30.0])
def test_closed_form_keeps_its_digits_from_plateau_to_the_last_decay(scale):
    times = np.array([0.0, 1e-6, 0.3, 7.0, 25.0])
    for start, (x, y, alpha, beta) in amplitudes(8, seed=4):
        start = scale * np.abs(start)  # along Δ: no cancellation anywhere
        if scale > 1:
            times = np.array([0.0, 1e-6, 1e-4, 1e-3])
        expected = np.array([precise(t, start, (x, y, alpha, beta)) for t in times])
        begin = state_of(start, y)
        np.testing.assert_allclose(two_points.trajectory(times, begin, x, y, alpha, beta), expected[:, :3], rtol=1e-10)
        if start[2] == 0:
            np.testing.assert_allclose(
                two_points.loss_curve(times, begin, x, y, alpha, beta), expected[:, 3], rtol=1e-10
            )


def test_the_end_and_huge_times():
    for start, (x, y, alpha, beta) in amplitudes(60, seed=1):
        s, p, q = start
        high, low = s**2 - alpha / beta * x * (p**2 + q**2), np.sqrt(alpha / beta * x * y)
        found = two_points.trajectory([1e6, 1e300], state_of(start, y), x, y, alpha, beta)
        final = high / 2 + np.sqrt(high**2 / 4 + low**2)
        np.testing.assert_allclose(found, np.tile([final, y, 0], (2, 1)), rtol=1e-7, atol=1e-7)
    lazy = two_points.trajectory([0.0, 1e9], [6.4, 409.6, 409.6 - np.sqrt(409.6)], 1.0, 1.0, 1.0, 1.0)
    assert lazy[1, 0] == pytest.approx(0.01736, abs=5e-6)


def test_derivative_is_that_of_a_rank_one_net_and_of_the_closed_form():
    step = 1e-6
    for start, (x, y, alpha, beta) in amplitudes(30, seed=2):
        s, p, q = start
        gap = np.sqrt(y)
        found = two_points.derivative(state_of(start, y), x, y, alpha, beta)
        ds = -0.5 * alpha * x * (p * (s * p - gap) + s * q**2)
        dp, dq = -0.5 * beta * s * (s * p - gap), -0.5 * beta * s**2 * q
        b_slope = 2 * s * ds * (p**2 + q**2) + 2 * s**2 * (p * dp + q * dq)
        expected = np.array([2 * s * ds, b_slope, b_slope - gap * (ds * p + s * dp)])
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())
        near = two_points.trajectory([0.1 - step, 0.1, 0.1 + step], state_of(start, y), x, y, alpha, beta)
        slope = two_points.derivative(near[1], x, y, alpha, beta)
        np.testing.assert_allclose((near[2] - near[0]) / (2 * step), slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max())
    many = np.array([[1.0, 0.5, 0.1], [2.0, 0.5, 0.4]])
    both = [two_points.derivative(one, 1.0, 1.0, 2.0, 3.0) for one in many]
    np.testing.assert_array_equal(two_points.derivative(many, 1.0, 1.0, 2.0, 3.0), both)


@settings(deadline=None, max_examples=40)
@given(SIZE, SIGNED, st.one_of(st.just(0.0), SIZE), SIZE, SIZE, SIZE, SIZE)
def test_what_holds_along_every_trajectory(s, p, q, x, y, alpha, beta):
    start = state_of(np.array([s, p, q]), y)
    a, b, w = (curves := two_points.trajectory(TIMES, start, x, y, alpha, beta)).T
    np.testing.assert_allclose(curves[0], start, rtol=1e-10, atol=1e-10 * np.abs(start).max())
    scale = max(y, b.max())
    assert np.all(2 * w - b + y >= -1e-10 * scale) and np.all((b - w) ** 2 <= b * y + 1e-10 * scale**2)
    if q == 0:
        np.testing.assert_allclose((b - w) ** 2, b * y, rtol=1e-7, atol=1e-10 * scale**2)
    constant = two_points.conserved(start, x, alpha, beta)
    drift = b - a * (constant + beta / (alpha * x) * a)
    assert np.abs(drift).max() <= 1e-8 * max(scale, (beta / (alpha * x) * a**2).max(), np.abs(constant * a).max())
    losses = two_points.loss_curve(TIMES, start, x, y, alpha, beta, mean_distance=0.7, mean_rate=0.2)
    identity = two_points.loss(curves, y, mean_distance=0.7 * np.exp(-0.4 * TIMES))
    np.testing.assert_allclose(losses, identity, rtol=1e-9, atol=1e-12 * scale)
    assert np.all(np.diff(losses) <= 1e-13 * scale)


@settings(deadline=None, max_examples=25)
@given(SIZE, SIGNED, SIZE, SIZE, SIZE, SIZE, SIZE, st.floats(0.2, 5))
def test_symmetries_map_solutions_to_solutions(s, p, q, x, y, alpha, beta, c):
    start, powers = state_of(np.array([s, p, q]), y), np.array([c, c**2, c**2])
    curves = two_points.trajectory(TIMES, start, x, y, alpha, beta)
    close = {"rtol": 1e-9, "atol": 1e-9 * np.abs(curves).max()}
    np.testing.assert_allclose(two_points.trajectory(TIMES / c, start, x, y, c * alpha, c * beta), curves, **close)
    np.testing.assert_allclose(two_points.trajectory(TIMES, start, c**2 * x, y, alpha / c**2, beta), curves, **close)
    np.testing.assert_allclose(
        two_points.trajectory(TIMES / c, powers * start, x, c**2 * y, alpha, beta) / powers, curves, **close
    )


@pytest.mark.parametrize(("forward", "order"), [(0.0, 2), (0.3, 1)])
def test_large_weights_make_the_targets_alike(forward, order):
    # a = G a', b = G² b': second order in 1/G only if dy starts across Δ, first order if it starts with a part along it
    times = np.linspace(0, 6, 200)
    alike = two_points.trajectory(times, [1.0, 0.5, 0.5], 1.0, 0.0, 1.0, 1.0)[:, 0]
    apart = []
    for gain in (256.0, 1024.0):
        begin = np.array([gain, 0.5 * gain**2, 0.5 * gain**2 - forward * gain])
        apart.append(
            np.abs(two_points.trajectory(times / gain, begin, 1.0, 1.0, 1.0, 1.0)[:, 0] / gain / alike - 1).max()
        )
    assert apart[1] < 1e-3 and np.log(apart[0] / apart[1]) / np.log(4) == pytest.approx(order, abs=0.05)


def test_starts_without_a_growing_part_rest_at_the_saddle():
    anti = two_points.trajectory([0.0, 1.0, 1e5], [1.0, 1.0, 2.0], 1.0, 1.0, 1.0, 1.0)  # ŝ = -p̂
    assert np.abs(anti[2]).max() < 1e-300 and anti[1, 0] < 1
    still = two_points.trajectory([0.0, 1e5], [4.0, 0.0, 0.0], 1.0, 0.0, 1.0, 1.0)  # the same outputs and targets
    np.testing.assert_array_equal(still, [[4.0, 0.0, 0.0]] * 2)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 10**6))
def test_loss_of_two_points_is_an_identity(hidden, outputs, seed):
    random = np.random.default_rng(seed)
    f, y, h = random.normal(size=(2, outputs)), random.normal(size=(2, outputs)), random.normal(size=(2, hidden))
    delta, mean = y[1] - y[0], ((f - y).mean(axis=0) ** 2).sum()
    found = two_points.loss(two_points.state(h[1] - h[0], f[1] - f[0], delta), delta @ delta, mean_distance=mean)
    assert found == pytest.approx(0.25 * ((f - y) ** 2).sum(), rel=1e-12, abs=1e-12)


def test_loss_is_an_identity_for_a_trained_net_in_single_precision():
    random = np.random.default_rng(5)
    x, y = np.array([[-1.0], [0.5]], np.float32), np.array([[0.6], [1.3]], np.float32)
    first, bias, last = (random.normal(0, 0.7, shape).astype(np.float32) for shape in ((1, 30), (30,), (30, 1)))
    for _ in range(300):
        h = np.tanh(x @ first + bias)
        error = (h @ last - y) / 2
        back = error @ last.T * (1 - h**2)
        first, bias, last = first - 0.1 * x.T @ back, bias - 0.1 * back.sum(axis=0), last - 0.1 * h.T @ error
        losses = float((error**2).sum())
        f = 2 * error + y
        now = two_points.state(h[1] - h[0], f[1] - f[0], y[1] - y[0])
        mean = float(((f - y).mean(axis=0) ** 2).sum())
        assert two_points.loss(now, float((y[1] - y[0])[0]) ** 2, mean_distance=mean) == pytest.approx(losses, abs=1e-6)
    assert losses < 1e-3


def test_state_keeps_leading_axes():
    random = np.random.default_rng(0)
    dh, dy, delta = random.normal(size=(5, 3)), random.normal(size=(5, 2)), random.normal(size=2)
    each = [two_points.state(one, other, delta) for one, other in zip(dh, dy)]
    np.testing.assert_allclose(two_points.state(dh, dy, delta), each, rtol=1e-14)
    a, b, w = each[0]
    assert a == pytest.approx(np.linalg.norm(dh[0]) ** 2) and 2 * w - b + delta @ delta == pytest.approx(
        ((dy[0] - delta) ** 2).sum()
    )


# --- bad input: every public function, every argument ---------------------------------------------

RATES = {"input_distance": 1.0, "target_distance": 1.0, "encoder_rate": 1.0, "decoder_rate": 1.0}
CALLS = {
    two_points.state: {"hidden_difference": [1.0, 2.0], "output_difference": [0.5], "target_difference": [1.0]},
    two_points.derivative: {"state": [1.0, 0.25, -0.25], **RATES},
    two_points.trajectory: {"times": [0.0, 1.0], "start": [1.0, 0.25, -0.25], **RATES},
    two_points.loss_curve: {
        "times": [0.0, 1.0],
        "start": [1.0, 0.25, -0.25],
        **RATES,
        "mean_distance": 0.1,
        "mean_rate": 0.1,
    },
    two_points.loss: {"state": [1.0, 0.25, -0.25], "target_distance": 1.0, "mean_distance": 0.1},
    two_points.conserved: {
        "state": [1.0, 0.25, -0.25],
        "input_distance": 1.0,
        "encoder_rate": 1.0,
        "decoder_rate": 1.0,
    },
}
STATE = [
    [0.0, 1.0] * 2,
    [1.0, -0.1, 0.0],
    [-1.0, 0.25, -0.25],
    [1.0, 0.25],
    [],
    1.0,
    [1.0, np.nan, 0.0],
    "state",
    None,
    np.ones((0, 3)),
]
BAD = {
    "hidden_difference": [[], 1.0, [np.inf], "a", None],
    "output_difference": [[], 1.0, [[1.0]], [np.nan], "a", None],
    "target_difference": [[], 1.0, [1.0, 2.0], [np.nan], "a", None],
    "state": STATE,
    "start": [*STATE, [0.0, 0.0, 0.0], [1.0, 0.25, 0.9], [1.0, 0.25, -0.26], [[1.0, 0.25, -0.25]]],
    "times": AXIS,
    "input_distance": NUMBER,
    "encoder_rate": NUMBER,
    "decoder_rate": NUMBER,
    "target_distance": [-1.0, np.nan, np.inf, "1", None, [0.1], True],
    "mean_distance": [-1.0, np.nan, np.inf, "1", None, [0.1], True],
    "mean_rate": [-1.0, np.nan, np.inf, "1", None, [0.1], True],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)


@pytest.mark.parametrize("function", [two_points.derivative, two_points.loss])
def test_states_outside_the_cauchy_schwarz_bound_are_refused(function):
    refused(CALLS[function], function, "state", [1.0, 0.25, 0.9])
    refused(CALLS[two_points.derivative], two_points.derivative, "state", [0.0, 0.0, 0.0])


def test_what_leaves_the_floating_point_range_is_refused():
    with pytest.raises(ValueError, match=r"^start must keep"):
        two_points.trajectory([1.0], [1e-300, 0.0, 0.0], 1e200, 1.0, 1e200, 1.0)
