"""lib.criticality.compositions against the losses written out and differentiated by mpmath in three hundred digits."""

import mpmath as mp
import numpy as np
import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.criticality.compositions import LOSSES, Composition

OWN = {"clip": {"epsilon": 0.05}, "power": {"power": 3.5}, "exponential": {"rate": -0.7}}
ALL = [Composition(f, loss, **OWN.get(f, {}), **OWN.get(loss, {})) for f, losses in LOSSES.items() for loss in losses]
IDS = [f"{made.activation}-{made.loss}" for made in ALL]
EXACT = {
    "sigmoid": lambda y: 1 / (1 + mp.exp(-y)),
    "tanh": lambda y: (1 + mp.tanh(y)) / 2,
    "softplus": lambda y: mp.log(1 + mp.exp(y)),
    "elu": lambda y: mp.exp(y) - 1 if y < 0 else y,
    "gelu": lambda y: y * mp.ncdf(y),
    "erf": lambda y: (1 + mp.erf(y / mp.sqrt(2))) / 2,
    "swish": lambda y: y / (1 + mp.exp(-y)),
    "arctan": lambda y: mp.mpf(1) / 2 + mp.atan(y) / mp.pi,
    "softsign": lambda y: (1 + y / (1 + abs(y))) / 2,
    "relu": lambda y: max(y, 0),
    "clip": lambda y: min(max(y, mp.mpf(0.05)), 1 - mp.mpf(0.05)),
    "linear": lambda y: y,
}


def parts(composition, y, t):
    return [composition.slope(y, t, order=order) for order in (0, 1, 2)]


def loss(composition, y, t):
    f = EXACT[composition.activation](y)
    return {
        "squared": lambda: (f - t) ** 2,
        "power": lambda: abs(f - t) ** mp.mpf(3.5),
        "cross_entropy": lambda: -mp.log(f if t else 1 - f),
        "exponential": lambda: mp.exp(mp.mpf(-0.7) * f),
    }[composition.loss]()


@pytest.mark.parametrize("t", [0, 1])
@pytest.mark.parametrize("composition", ALL, ids=IDS)
def test_slopes_are_the_derivatives_of_the_loss(composition, t):
    y = np.array([-25.0, -9.0, -1.7, -0.3, 0.4, 0.8, 1.9, 8.0, 24.0])
    if composition.activation == "clip":
        y = np.array([-1.0, 0.06, 0.31, 0.87, 0.94, 1.2])
    with mp.workdps(300):  # 1 - f of GELU is 1e-135 at y = -25
        for order, found in enumerate(parts(composition, y, t), 1):
            steps = {"n": order, "h": mp.mpf(10) ** -30}
            expected = [float(mp.diff(lambda u: loss(composition, u, t), mp.mpf(point), **steps)) for point in y]
            np.testing.assert_allclose(found, expected, rtol=2e-11, atol=1e-290)


@pytest.mark.parametrize(("made", "power", "factor"), [
    (Composition("sigmoid", "cross_entropy"), 1, 1), (Composition("sigmoid"), 2, 2), (Composition("softplus"), 2, 2),
    (Composition("tanh"), 4, 4),
])  # fmt: skip
def test_saturated_tails_keep_their_relative_precision(made, power, factor):
    y = np.array([-170.0, -40.0])
    for order, found in enumerate(parts(made, y, 0)):
        np.testing.assert_allclose(found, factor * power**order * np.exp(power * y), rtol=1e-12)


def test_algebraic_tails_keep_theirs_and_no_slope_overflows_far_away():
    np.testing.assert_allclose(Composition("arctan").slope(-1e8, 0), 2 / np.pi**2 * 1e-24, rtol=1e-14)
    np.testing.assert_allclose(Composition("softsign").slope(-1e8, 0), 0.5 * (1 + 1e8) ** -3, rtol=1e-14)
    squared = [made for made in ALL if made.loss == "squared"]
    assert all(np.all(np.isfinite(made.slope([-1e8, 1e8], t, order=2))) for made in squared for t in (0, 1))


@pytest.mark.parametrize(
    "composition",
    [Composition("sigmoid", "cross_entropy"), *map(Composition, ("sigmoid", "tanh", "erf", "arctan", "softsign"))],
    ids=str,
)
@settings(deadline=None, max_examples=20)
@given(y=st.floats(-40, 40))
def test_exchanging_the_labels_mirrors_what_rises_from_zero_to_one(composition, y):
    for here, there, sign in zip(parts(composition, y, 1), parts(composition, -y, 0), (-1, 1, -1)):
        np.testing.assert_allclose(here, sign * there, rtol=1e-12)


@pytest.mark.parametrize("t", [0, 1])
@pytest.mark.parametrize("composition", [*ALL, Composition("relu", "power", power=4)], ids=[*IDS, "relu-quartic"])
def test_kinks_are_all_places_where_a_slope_jumps_and_dead_means_zero(composition, t):
    grid = np.linspace(-3.0003, 3.0007, 997)
    above, below = (parts(composition, grid + shift, t) for shift in (1e-9, -1e-9))
    jumps = np.any(np.abs(np.subtract(above, below)) > 1e-5 * (1 + np.abs(parts(composition, grid, t))), axis=0)
    kinks = np.array(composition.kinks(t))
    assert not jumps[np.abs(grid[:, None] - kinks).min(axis=1, initial=np.inf) > 0.01].any()
    for kink in kinks:
        left, right = parts(composition, kink - 1e-7, t), parts(composition, kink + 1e-7, t)
        smooth = composition.power == 4 and t == 0  # y³ from 0 on: h''' jumps
        assert np.abs(np.subtract(left, right)).max() > 1e-4 or smooth
    inside = [(low <= grid) & (grid <= high) for low, high in composition.dead(t)]
    assert np.array_equal(composition.slope(grid, t) == 0, np.any([grid > np.inf, *inside], axis=0))


def test_a_power_of_two_is_squared_and_no_cut_leaves_the_poles():
    y = np.linspace(-1, 3, 41) + 1e-3
    for t in (0, 1):
        for one, other in zip(parts(Composition("relu", "power", power=2), y, t), parts(Composition("relu"), y, t)):
            np.testing.assert_allclose(one, other, rtol=1e-13)
        assert Composition("relu", "power", power=2).kinks(t) == Composition("relu").kinks(t) == (0.0,)
    uncut = Composition("clip", "cross_entropy", epsilon=0.0)
    np.testing.assert_allclose(uncut.slope([1e-12, 0.0, -1.0, 1.0], 1), [-1e12, 0, 0, 0], rtol=1e-12)
    assert Composition("clip", "cross_entropy").epsilon == 0.01 and Composition("linear", "exponential").rate == 1


def own(y):
    """The sigmoid of 2y by SymPy: f and three derivatives."""
    u = sympy.Symbol("u")
    f = 1 / (1 + sympy.exp(-2 * u))
    return sympy.lambdify(u, [f.diff(u, order) for order in range(4)])(y)


def test_a_function_of_ones_own_by_sympy_or_torch():
    y = np.linspace(-3, 3, 13)
    for t in (0, 1):
        for one, other in zip(parts(Composition(own), y, t), parts(Composition("tanh"), y, t)):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
        f, f1, f2, f3 = own(y)
        wrong, sign = np.where(t, f, 1 - f), 1 - 2 * t
        entropy = parts(Composition(own, "cross_entropy"), y, t)
        np.testing.assert_allclose(entropy[0], sign * f1 / wrong, rtol=1e-10)
        np.testing.assert_allclose(entropy[1], 4 * f * (1 - f), rtol=1e-9)  # softplus(2u) twice differentiated
        tilted = parts(Composition(own, "exponential", rate=0.7), y, t)[0]
        np.testing.assert_allclose(tilted, 0.7 * f1 * np.exp(0.7 * f), rtol=1e-12)

    def by_torch(y):
        orders = [torch.nn.functional.mish]
        for _ in range(3):
            orders.append(torch.func.grad(orders[-1]))
        flat = torch.as_tensor(np.ravel(y))
        return [torch.func.vmap(order)(flat).numpy().reshape(np.shape(y)) for order in orders]

    mish = Composition(by_torch, corners=[2.0, -1.0])
    with mp.workdps(50):
        exact = [float(mp.diff(lambda u: (u * mp.tanh(mp.log(1 + mp.exp(u))) - 1) ** 2, mp.mpf(v))) for v in y.tolist()]
    np.testing.assert_allclose(mish.slope(y, 1), exact, rtol=1e-10)
    assert mish.kinks(0) == (-1.0, 2.0) and mish.dead(0) == () and mish == Composition(by_torch, corners=(-1.0, 2.0))


def test_labels_broadcast_and_equal_compositions_are_equal():
    composition = Composition("sigmoid")
    y, t = np.linspace(-2, 2, 6), np.array([0, 1, 1, 0, 1, 0])
    assert np.array_equal(composition.slope(y, t), np.where(t, composition.slope(y, 1), composition.slope(y, 0)))
    assert composition.slope(0.3, [[0], [1]]).shape == (2, 1) and type(composition.slope(0.3, 1)) is float
    assert Composition("sigmoid") == composition and len({composition, Composition("sigmoid")}) == 1


@pytest.mark.parametrize(("bad", "message"), [
    ({"activation": "sigmoid", "loss": "power"}, "loss must be one of squared, cross_entropy"),
    ({"activation": "sigmoid", "epsilon": 0.1}, "epsilon must be left out"),
    ({"activation": "clip", "loss": "cross_entropy", "power": 4}, "power must be left out"),
    ({"activation": "relu", "loss": "power", "power": 3, "rate": 1}, "rate must be left out"),
    ({"activation": "relu", "loss": "power"}, "power must be one finite"),
    ({"activation": "linear", "loss": "exponential", "rate": 0}, "rate must be a number other"),
    ({"activation": own, "loss": "power", "power": 3}, "loss must be one of squared, cross_entropy, exponential"),
    ({"activation": "elu", "corners": (1.0,)}, "corners must be left out: elu has its own"),
])  # fmt: skip
def test_a_number_that_a_composition_does_not_have_is_refused(bad, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        Composition(**bad)


def test_labels_that_are_none_and_slopes_beyond_the_floating_point_range_are_refused():
    for call in (lambda: Composition("erf").slope([0.1, 2.0], [0, 0.5]), lambda: Composition("erf").kinks(2)):
        with pytest.raises(ValueError, match="^t must"):
            call()
    with pytest.raises(ValueError, match="^t must broadcast"):
        Composition("erf").slope([0.1, 2.0], [[0, 1, 1]])
    with pytest.raises(ValueError, match="^order must be 0, 1 or 2"):
        Composition("erf").slope(0.1, 1, order=3)
    steep, rough = Composition("linear", "exponential"), Composition("relu", "power", power=2.5)
    for call in (lambda: steep.slope(1000.0, 0), lambda: rough.slope([0.5, 1.0], 1, order=2)):
        with pytest.raises(ValueError, match="^y must keep the slope inside"):
            call()
