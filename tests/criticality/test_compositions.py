"""lib.criticality.compositions against the losses written out and differentiated by mpmath in three hundred digits."""

import mpmath as mp
import numpy as np
import pytest
from bad_input import exercised
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.criticality import compositions

EPSILON, POWER, RATE = 0.05, 3.5, -0.7
OPTIONS = {
    "clip + cross-entropy": {"epsilon": EPSILON},
    "ReLU + power": {"power": POWER},
    "exponential": {"rate": RATE},
}
ACTIVATIONS = {
    "sigmoid": lambda y: 1 / (1 + mp.exp(-y)),
    "tanh": lambda y: (1 + mp.tanh(y)) / 2,
    "softplus": lambda y: mp.log(1 + mp.exp(y)),
    "ELU": lambda y: mp.exp(y) - 1 if y < 0 else y,
    "GELU": lambda y: y * mp.ncdf(y),
    "erf": lambda y: (1 + mp.erf(y / mp.sqrt(2))) / 2,
    "swish": lambda y: y / (1 + mp.exp(-y)),
    "arctan": lambda y: mp.mpf(1) / 2 + mp.atan(y) / mp.pi,
    "softsign": lambda y: (1 + y / (1 + abs(y))) / 2,
}
MIRRORED = [
    "sigmoid + cross-entropy",
    *(f"{name} + squared" for name in ("sigmoid", "tanh", "erf", "arctan", "softsign")),
]


def made(name):
    return compositions.named(name, **OPTIONS.get(name, {}))


def loss(name, y, t):
    if name == "exponential":
        return mp.exp(mp.mpf(RATE) * y)
    if name.startswith("ReLU"):
        return (
            abs(y - t) ** {"ReLU + squared": 2, "ReLU + quartic": 4, "ReLU + power": mp.mpf(POWER)}[name]
            if y > 0
            else mp.mpf(t)
        )
    if name == "clip + cross-entropy":
        f = min(max(y, mp.mpf(EPSILON)), 1 - mp.mpf(EPSILON))
        return -mp.log(f) if t else -mp.log(1 - f)
    if name == "sigmoid + cross-entropy":
        return mp.log(1 + mp.exp(-y)) if t else mp.log(1 + mp.exp(y))
    return (ACTIVATIONS[name.removesuffix(" + squared")](y) - t) ** 2


@pytest.mark.parametrize("t", [0, 1])
@pytest.mark.parametrize("name", compositions.NAMES)
def test_slopes_are_the_derivatives_of_the_loss(name, t):
    composition = made(name)
    y = (
        np.array([0.06, 0.31, 0.87, 0.94])
        if name.startswith("clip")
        else np.array([-25.0, -9.0, -1.7, -0.3, 0.4, 0.8, 1.9, 8.0, 24.0])
    )
    with mp.workdps(300):  # 1 - f of GELU is 1e-135 at y = -25
        for order, found in enumerate((composition.slope(y, t), composition.slope1(y, t), composition.slope2(y, t)), 1):
            expected = [
                float(mp.diff(lambda u: loss(name, u, t), mp.mpf(float(point)), order, h=mp.mpf(10) ** -30))
                for point in y
            ]
            np.testing.assert_allclose(found, expected, rtol=2e-11, atol=1e-290)


def test_saturated_tails_keep_their_relative_precision():
    for name in ("sigmoid + cross-entropy", "sigmoid + squared", "tanh + squared", "softplus + squared"):
        power = {"sigmoid + cross-entropy": 1, "tanh + squared": 4}.get(name, 2)
        composition, factor = made(name), {"sigmoid + cross-entropy": 1, "tanh + squared": 4}.get(name, 2)
        y = np.array([-170.0, -40.0])
        for order, found in enumerate((composition.slope(y, 0), composition.slope1(y, 0), composition.slope2(y, 0))):
            np.testing.assert_allclose(found, factor * power**order * np.exp(power * y), rtol=1e-12)
    far = np.array([-1e8, 1e8])
    assert all(np.all(np.isfinite(made(name).slope2(far, t))) for name in compositions.NAMES[6:] for t in (0, 1))
    np.testing.assert_allclose(made("arctan + squared").slope(-1e8, 0), 2 / np.pi**2 * 1e-24, rtol=1e-14)
    np.testing.assert_allclose(made("softsign + squared").slope(-1e8, 0), 0.5 * (1 + 1e8) ** -3, rtol=1e-14)


@pytest.mark.parametrize("name", MIRRORED)
@settings(deadline=None, max_examples=20)
@given(y=st.floats(-40, 40))
def test_exchanging_the_labels_mirrors_what_rises_from_zero_to_one(name, y):
    composition = made(name)
    for part, sign in ((composition.slope, -1), (composition.slope1, 1), (composition.slope2, -1)):
        np.testing.assert_allclose(part(y, 1), sign * part(-y, 0), rtol=1e-12)


def test_the_clipped_line_is_mirrored_at_one_half():
    clip, y = made("clip + cross-entropy"), np.linspace(0.051, 0.949, 40)
    np.testing.assert_allclose(clip.slope(y, 1), -clip.slope(1 - y, 0), rtol=1e-13)
    np.testing.assert_allclose(clip.slope2(y, 1), -clip.slope2(1 - y, 0), rtol=1e-13)


@pytest.mark.parametrize("t", [0, 1])
@pytest.mark.parametrize("name", compositions.NAMES)
def test_kinks_are_all_places_where_a_slope_jumps_and_dead_means_zero(name, t):
    composition = made(name)
    parts = composition.slope, composition.slope1, composition.slope2
    grid = np.linspace(-3.0003, 3.0007, 997)
    jumps = np.any(
        [np.abs(part(grid + 1e-9, t) - part(grid - 1e-9, t)) > 1e-5 * (1 + np.abs(part(grid, t))) for part in parts],
        axis=0,
    )
    kinks = np.array(composition.kinks(t))
    assert not jumps[np.abs(grid[:, None] - kinks).min(axis=1, initial=np.inf) > 0.01].any()
    for kink in kinks:
        h = [[part(kink + side * 1e-7, t) for side in (-1, 1)] for part in parts]
        assert any(abs(left - right) > 1e-4 for left, right in h) or (
            name == "ReLU + quartic" and t == 0
        )  # y³ from 0 on: h''' jumps
    dead = np.any(
        [(low <= grid) & (grid <= high) for low, high in composition.dead(t)] or [np.zeros(grid.size, bool)], axis=0
    )
    assert np.array_equal(composition.slope(grid, t) == 0, dead)


def test_power_includes_squared_and_quartic_and_no_cut_leaves_the_poles():
    y = np.linspace(-1, 3, 41) + 1e-3
    for power, name in ((2, "ReLU + squared"), (4, "ReLU + quartic")):
        general = compositions.named("ReLU + power", power=power)
        for t in (0, 1):
            np.testing.assert_allclose(general.slope(y, t), made(name).slope(y, t), rtol=1e-13)
            np.testing.assert_allclose(general.slope2(y, t), made(name).slope2(y, t), rtol=1e-13)
            assert general.kinks(t) == made(name).kinks(t) == (0.0,)
    uncut = compositions.named("clip + cross-entropy", epsilon=0.0)
    np.testing.assert_allclose(uncut.slope([1e-12, 0.0, -1.0, 1.0], 1), [-1e12, 0, 0, 0], rtol=1e-12)


def test_labels_broadcast_and_single_numbers_stay_single():
    composition = made("sigmoid + squared")
    y, t = np.linspace(-2, 2, 6), np.array([0, 1, 1, 0, 1, 0])
    assert np.array_equal(composition.slope(y, t), np.where(t, composition.slope(y, 1), composition.slope(y, 0)))
    assert composition.slope(0.3, [[0], [1]]).shape == (2, 1) and np.ndim(composition.slope(0.3, 1)) == 0
    assert made("sigmoid + squared") == composition and len({composition, made("sigmoid + squared")}) == 1


@pytest.mark.parametrize("option", ["epsilon", "power", "rate"])
def test_a_number_that_a_composition_does_not_have_is_refused(option):
    for name in compositions.NAMES:
        if option not in OPTIONS.get(name, {}):
            with pytest.raises(ValueError, match=f"^{option} must be left out"):
                compositions.named(name, **{option: 0.3})
    with pytest.raises(ValueError, match="^power must be"):
        compositions.named("ReLU + power")
    for bad in (0, np.nan, "1", True):
        with pytest.raises(ValueError, match="^rate must be"):
            compositions.named("exponential", rate=bad)
    for bad in (0.5, -1e-3, np.inf, [0.1]):
        with pytest.raises(ValueError, match="^epsilon must be"):
            compositions.named("clip + cross-entropy", epsilon=bad)


def test_slopes_beyond_the_floating_point_range_are_refused():
    with pytest.raises(ValueError, match="^y must keep the slope inside"):
        compositions.named("exponential").slope(1000.0, 0)
    with pytest.raises(ValueError, match="^y must keep the slope inside"):
        compositions.named("ReLU + power", power=2.5).slope2([0.5, 1.0], 1)


ONE = made("ReLU + quartic")
CALLS = {
    compositions.named: {"name": "ReLU + power", "power": 3.0},
    **{part: {"y": [0.1, 2.0], "t": [0, 1]} for part in (ONE.slope, ONE.slope1, ONE.slope2)},
    ONE.kinks: {"t": 1},
    ONE.dead: {"t": 0},
}
LABEL = [2, -1, 0.5, np.nan, "0", None]
BAD = {
    "name": ["sigmoid", 3, None, ["sigmoid + squared"]],
    "power": [1.9, None, "4", np.inf, [3]],
    "y": [np.nan, [0, np.inf], "1", None, 1j],
    "t": LABEL,
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)
test_labels_of_a_shape_that_does_not_fit_are_refused = exercised(
    {ONE.slope: {"y": [0.1, 2.0], "t": 0}}, {"y": [np.nan], "t": [[0, 1, 1]]}
)[1]
