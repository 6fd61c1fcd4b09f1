"""lib.fields.patches.shared_filters against its equations, the roots of the cubic, lib.fields.kernels.effective_ridge,
quadrature, limits, and exponents in the dimension.
"""

import numpy as np
import pytest
from bad_input import exercised
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.common.spectrum import Spectrum
from lib.fields.kernels import effective_ridge
from lib.fields.patches import shared_filters

SMALL = {"patches": 4, "patch_size": 25, "channels": 100, "ridge": 1.0, "mean_field": 30.0}
logs = st.floats(-3, 3)


def setting(values):
    """A network of many sizes from numbers in -3 .. 3."""
    names = ("patches", "patch_size", "channels", "ridge", "mean_field", "readout_variance", "weight_variance")
    return {name: float(10**value) for name, value in zip(names, values)} | {
        "patches": 1 + abs(values[0]),
        "patch_size": 2 + 10 ** abs(values[1]),
    }


def constants(samples, net, kappa):
    """λ_0P_e, g, d and λ_0, written out."""
    d = net["patches"] * net["patch_size"]
    prior, chi = net.get("readout_variance", 1) * net.get("weight_variance", 1), net.get("mean_field", 1)
    return prior / (chi * d * kappa), prior / (kappa**2 * chi * d * net["channels"]), d, prior / (chi * d)


# --- the linear network -------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(logs, st.tuples(*[logs] * 7), st.booleans())
def test_the_solution_solves_the_equations_and_stays_in_its_bounds(log_samples, values, bare):
    net, samples = setting(values), 10 ** (log_samples + 1)
    found = shared_filters.solve(samples, **net, bare=bare)
    lazy, g, d, mode = constants(samples, net, found.kappa)
    assert found.residual * (1 + lazy * found.ratio) == pytest.approx(1, rel=1e-11)
    assert found.attraction == pytest.approx(g * found.residual**2, rel=1e-11)
    assert found.learnability == pytest.approx(lazy * found.ratio * found.residual, rel=1e-10)
    assert found.learnability == pytest.approx(1 - found.residual, abs=1e-13)
    assert 0 < found.attraction < 1 or found.ratio > 1e12
    assert 0 < found.residual < 1 and found.ratio >= 1
    assert found.learnability >= found.lazy_learnability * (1 - 1e-12)
    ridge = net["ridge"] / net["mean_field"]
    expected = (
        ridge / samples if bare else effective_ridge.RidgeTheory(Spectrum([mode], [d]), samples, ridge=ridge).kappa
    )
    assert found.kappa == pytest.approx(expected, rel=1e-11)


@settings(max_examples=30)
@given(st.floats(0, 3), st.floats(-1, 3), st.floats(-1, 3))
def test_the_residual_is_the_one_root_of_the_cubic_below_its_bound(log_samples, log_channels, log_chi):
    net = SMALL | {"channels": 10**log_channels, "mean_field": 10**log_chi}
    found = shared_filters.solve(10**log_samples, **net)
    lazy, g, _, _ = constants(10**log_samples, net, found.kappa)
    roots = np.roots([g, -g, -(1 + lazy), 1])
    inside = roots.real[(np.abs(roots.imag) < 1e-9) & (roots.real > 0) & (roots.real < min(1, g**-0.5))]
    assert inside.size == 1 and found.residual == pytest.approx(inside[0], rel=1e-8)


def test_the_overlap_has_the_moments_of_the_action_by_quadrature():
    found = shared_filters.solve(60, **SMALL)
    m = np.linspace(-6, 6, 40001)
    strength = 1 / (4 * 30) / found.kappa  # of one filter's kernel, in units of κ
    action = 25 * m**2 / 2 - strength / found.kappa / (2 * 100) * (found.residual * m) ** 2
    density = np.exp(action.min() - action)
    variance = (m**2 * density).sum() / density.sum()
    assert found.ratio == pytest.approx(25 * variance, rel=1e-9)
    assert found.residual == pytest.approx(1 / (1 + strength * variance), rel=1e-9)


def test_the_table_of_the_specified_network():
    improved = shared_filters.solve([10, 20, 40, 60, 80, 100, 150], **SMALL)
    bare = shared_filters.solve([10, 20, 40, 60, 100, 150], **SMALL, bare=True)
    assert improved.learnability.round(3).tolist() == [0.052, 0.123, 0.356, 0.55, 0.666, 0.739, 0.836]
    assert bare.learnability.round(3).tolist() == [0.116, 0.314, 0.607, 0.731, 0.836, 0.89]
    assert improved.lazy_learnability[[0, 1, 2, 3, 5, 6]].round(3).tolist() == [0.049, 0.095, 0.18, 0.256, 0.382, 0.5]
    assert improved.ratio[[0, 1, 2, 3, 5, 6]].round(2).tolist() == [1.08, 1.34, 2.51, 3.55, 4.58, 5.11]


def test_more_samples_and_more_mean_field_teach_more_and_more_channels_less():
    learned = shared_filters.solve(np.geomspace(1, 1e4, 200), **SMALL)
    assert np.all(np.diff(learned.learnability) > 0) and np.all(np.diff(learned.kappa) < 0)
    for name, sign in (("mean_field", 1), ("channels", -1)):
        varied = shared_filters.solve(60, **SMALL | {name: np.geomspace(1, 1e4, 30)})
        assert np.all(sign * np.diff(varied.learnability) > 0) and np.all(sign * np.diff(varied.ratio) > 0)


@pytest.mark.parametrize("limit", [{"mean_field": 1e-6}, {"channels": 1e10}])
def test_without_mean_field_or_with_many_channels_the_filters_rest(limit):
    found = shared_filters.solve([10, 60, 300], **SMALL | limit)
    np.testing.assert_allclose(found.learnability, found.lazy_learnability, atol=1e-6)
    np.testing.assert_allclose(found.ratio, 1, atol=1e-5)


def test_far_fewer_samples_than_inputs_show_the_transition():
    net = {
        "patches": 1e5,
        "patch_size": 1e5,
        "channels": 100.0,
        "ridge": 0.5,
        "mean_field": 30.0,
        "readout_variance": 2.0,
        "weight_variance": 0.7,
    }
    critical = shared_filters.critical_samples(**net)
    over = np.array([0.1, 0.5, 0.9, 1.1, 1.5, 2.0, 5.0])
    found = shared_filters.solve(over * critical, **net)
    np.testing.assert_allclose(found.learnability, np.maximum(0, 1 - 1 / over), atol=1e-3)
    np.testing.assert_allclose(found.ratio[:3], 1 / (1 - over[:3] ** 2), rtol=1e-3)
    # Rounded by λ_0P_e: at P_c the learnability is the root of (1 - b)(1 - b²) = λ_0P_e b, of order √(λ_0P_e/2).
    sizes = 10.0 ** np.arange(3, 7)
    at = shared_filters.solve(shared_filters.critical_samples(sizes, sizes, 100, 0.5), sizes, sizes, 100, 0.5)
    np.testing.assert_allclose(at.learnability[-1], np.sqrt(at.lazy_learnability[-1] / 2), rtol=0.01)


@settings(max_examples=40)
@given(st.floats(0.02, 0.98), st.tuples(*[logs] * 7), st.booleans())
def test_the_samples_needed_are_the_inverse(learnability, values, bare):
    net = setting(values)
    needed = shared_filters.samples_needed(learnability, **net, bare=bare)
    assert shared_filters.solve(needed, **net, bare=bare).learnability == pytest.approx(learnability, rel=1e-8)
    lazy = shared_filters.samples_needed(learnability, **net, bare=bare, lazy=True)
    assert shared_filters.solve(lazy, **net, bare=bare).lazy_learnability == pytest.approx(learnability, rel=1e-8)
    assert lazy >= needed * (1 - 1e-12)


def exponents(growth, **kinds):
    """Local exponents of P(R = ½) in d for patches and their size ∝ α, channels ∝ α^growth."""
    at = 4.0 ** np.arange(5)
    halves = shared_filters.samples_needed(0.5, 10 * at, 50 * at, 1000 * at**growth, 1.0, mean_field=100.0, **kinds)
    return np.diff(np.log(halves)) / np.diff(np.log(at**2))


def test_the_exponent_of_the_dimension_is_that_of_the_channels():
    assert exponents(1).round(3).tolist() == [0.791, 0.773, 0.762, 0.756]
    np.testing.assert_allclose(exponents(1)[2:], 0.76, atol=0.01)
    np.testing.assert_allclose(exponents(1, lazy=True), 1, atol=1e-12)
    assert [exponents(2 * gamma)[-1].round(3) for gamma in (0, 0.5, 1)] == [0.501, 0.756, 1.0]


def test_channels_alone_and_mean_field_alone_move_the_half_point_by_their_square_roots():
    huge = {"patches": 1e6, "patch_size": 1e6, "channels": 100.0, "ridge": 1.0, "mean_field": 1.0}
    halves = shared_filters.samples_needed(0.5, **huge | {"channels": np.array([100.0, 400.0])})
    assert halves[1] / halves[0] == pytest.approx(2, rel=1e-3)
    halves = shared_filters.samples_needed(0.5, **huge | {"mean_field": np.array([1.0, 4.0])})
    assert halves[1] / halves[0] == pytest.approx(0.5, rel=1e-3)
    assert shared_filters.samples_needed(0.5, **huge) == pytest.approx(
        2 * shared_filters.critical_samples(**huge), rel=1e-3
    )


def test_a_number_gives_numbers_and_arrays_their_common_shape():
    one = shared_filters.solve(60, **SMALL)
    assert all(np.ndim(value) == 0 for value in vars(one).values())
    many = shared_filters.solve([[10], [60]], **SMALL | {"channels": [100, 200, 300]})
    assert many.learnability.shape == (2, 3) and many.learnability[1, 0] == pytest.approx(one.learnability, rel=1e-14)
    assert (
        np.ndim(shared_filters.critical_samples(**SMALL)) == np.ndim(shared_filters.samples_needed(0.5, **SMALL)) == 0
    )


def test_no_ridge_is_possible_below_the_number_of_inputs_alone():
    found = shared_filters.solve(50, **SMALL | {"ridge": 0.0})
    assert found.lazy_learnability == pytest.approx(0.5, rel=1e-12)  # P/d, by P = dL
    for samples, bare in ((100, False), (200, False), (50, True)):
        with pytest.raises(ValueError, match="^ridge must be > 0, where"):
            shared_filters.solve(samples, **SMALL | {"ridge": 0.0}, bare=bare)
    with pytest.raises(ValueError, match="^ridge must be > 0 for"):
        shared_filters.samples_needed(0.5, **SMALL | {"ridge": 0.0}, bare=True)


# --- bad input ----------------------------------------------------------------------------------------------

VARIANCES = {"mean_field": 30.0, "readout_variance": 1.0, "weight_variance": 1.0}
NET = {"patches": [4, 5], "patch_size": 25, "channels": 100, "ridge": 1.0, **VARIANCES}
ARRAYS = [0, -1.0, np.nan, np.inf, "1", None, True, 1j, 10**400, [[1], [1, 2]], np.ones(3), [1.0, 0.0]]
CALLS = {
    shared_filters.solve: {"samples": 60, **NET, "bare": True},
    shared_filters.critical_samples: NET,
    shared_filters.samples_needed: {"learnability": 0.5, **NET, "bare": True, "lazy": False},
}
BAD = {
    "samples": ARRAYS,
    "learnability": [*ARRAYS, 1.0, [0.5, 1.5]],
    **dict.fromkeys(("patch_size", "channels", *VARIANCES), ARRAYS),
    "ridge": ARRAYS[1:-1],
    "patches": ARRAYS[:-2],
    **{name: [0, 1, "yes", None] for name in ("bare", "lazy")},
}
ANY = "samples|learnability|patches|patch_size|channels|ridge|mean_field|readout_variance|weight_variance"
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD, dict.fromkeys(ANY.split("|"), ANY))
