"""lib.fields.patches.shared_filters against its equations, the roots of the cubic, lib.fields.kernels.effective_ridge,
quadrature, limits, and exponents in the dimension.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.common.spectrum import Spectrum
from lib.fields.kernels import effective_ridge
from lib.fields.patches.shared_filters import PatchNetwork

SMALL = {"patches": 4, "patch_size": 25, "channels": 100, "ridge": 1.0, "mean_field": 30.0}
logs = st.floats(-3, 3)


def network(values):
    """A network of many sizes from numbers in -3 .. 3."""
    ridge, channels, *scales = (10.0**value for value in values[2:])
    names = ("mean_field", "readout_variance", "weight_variance")
    return PatchNetwork(1 + abs(values[0]), 2 + 10 ** abs(values[1]), channels, ridge, **dict(zip(names, scales)))


def constants(net, kappa):
    """λ_0P_e, g, d and λ_0, written out."""
    d, prior, chi = net.patches * net.patch_size, net.readout_variance * net.weight_variance, net.mean_field
    return prior / (chi * d * kappa), prior / (kappa**2 * chi * d * net.channels), d, prior / (chi * d)


@settings(max_examples=60)
@given(logs, st.tuples(*[logs] * 7), st.booleans())
def test_the_solution_solves_the_equations_and_stays_in_its_bounds(log_samples, values, bare):
    net, samples = network(values), 10 ** (log_samples + 1)
    found = net.solve(samples, bare=bare)
    lazy, g, d, mode = constants(net, found.kappa)
    assert found.residual * (1 + lazy * found.ratio) == pytest.approx(1, rel=1e-11)
    assert found.attraction == pytest.approx(g * found.residual**2, rel=1e-11)
    assert found.learnability == pytest.approx(lazy * found.ratio * found.residual, rel=1e-10)
    assert found.learnability == pytest.approx(1 - found.residual, abs=1e-13)
    assert 0 < found.attraction < 1 or found.ratio > 1e12
    assert 0 < found.residual < 1 and found.ratio >= 1
    assert found.lazy_learnability == pytest.approx(lazy / (1 + lazy), rel=1e-12)
    assert found.learnability >= found.lazy_learnability * (1 - 1e-12)
    ridge = net.ridge / net.mean_field
    theory = effective_ridge.RidgeTheory(Spectrum([mode], [d]), samples, ridge=ridge)
    assert found.kappa == pytest.approx(ridge / samples if bare else theory.kappa, rel=1e-11)


@settings(max_examples=30)
@given(st.floats(0, 3), st.floats(-1, 3), st.floats(-1, 3))
def test_the_residual_is_the_one_root_of_the_cubic_below_its_bound(log_samples, log_channels, log_chi):
    net = PatchNetwork(**SMALL | {"channels": 10**log_channels, "mean_field": 10**log_chi})
    found = net.solve(10**log_samples)
    lazy, g, _, _ = constants(net, found.kappa)
    roots = np.roots([g, -g, -(1 + lazy), 1])
    inside = roots.real[(np.abs(roots.imag) < 1e-9) & (roots.real > 0) & (roots.real < min(1, g**-0.5))]
    assert inside.size == 1 and found.residual == pytest.approx(inside[0], rel=1e-8)


def test_the_overlap_has_the_moments_of_the_action_by_quadrature():
    found = PatchNetwork(**SMALL).solve(60)
    m = np.linspace(-6, 6, 40001)
    strength = 1 / (4 * 30) / found.kappa  # of one filter's kernel, in units of κ
    action = 25 * m**2 / 2 - strength / found.kappa / (2 * 100) * (found.residual * m) ** 2
    density = np.exp(action.min() - action)
    variance = (m**2 * density).sum() / density.sum()
    assert found.ratio == pytest.approx(25 * variance, rel=1e-9)
    assert found.residual == pytest.approx(1 / (1 + strength * variance), rel=1e-9)


def test_more_samples_and_more_mean_field_teach_more_and_more_channels_less():
    learned = PatchNetwork(**SMALL).solve(np.geomspace(1, 1e4, 200))
    assert np.all(np.diff(learned.learnability) > 0) and np.all(np.diff(learned.kappa) < 0)
    for name, sign in (("mean_field", 1), ("channels", -1)):
        varied = PatchNetwork(**SMALL | {name: np.geomspace(1, 1e4, 30)}).solve(60)
        assert np.all(sign * np.diff(varied.learnability) > 0) and np.all(sign * np.diff(varied.ratio) > 0)


@pytest.mark.parametrize("limit", [{"mean_field": 1e-6}, {"channels": 1e10}])
def test_without_mean_field_or_with_many_channels_the_filters_rest(limit):
    found = PatchNetwork(**SMALL | limit).solve([10, 60, 300])
    np.testing.assert_allclose(found.learnability, found.lazy_learnability, atol=1e-6)
    np.testing.assert_allclose(found.ratio, 1, atol=1e-5)


def test_far_fewer_samples_than_inputs_show_the_transition():
    net = PatchNetwork(1e5, 1e5, 100.0, 0.5, mean_field=30.0, readout_variance=2.0, weight_variance=0.7)
    critical, over = net.critical_samples(), np.array([0.1, 0.5, 0.9, 1.1, 1.5, 2.0, 5.0])
    found = net.solve(over * critical)
    np.testing.assert_allclose(found.learnability, np.maximum(0, 1 - 1 / over), atol=1e-3)
    np.testing.assert_allclose(found.ratio[:3], 1 / (1 - over[:3] ** 2), rtol=1e-3)
    assert net.samples_needed(0.5) == pytest.approx(2 * critical, rel=1e-3)
    # Rounded by λ_0P_e: at P_c the learnability is the root of (1 - b)(1 - b²) = λ_0P_e b, of order √(λ_0P_e/2).
    sizes = PatchNetwork(1e6, 1e6, 100, 0.5)
    at = sizes.solve(sizes.critical_samples())
    np.testing.assert_allclose(at.learnability, np.sqrt(at.lazy_learnability / 2), rtol=0.01)


@settings(max_examples=40)
@given(st.floats(0.02, 0.98), st.tuples(*[logs] * 7), st.booleans())
def test_the_samples_needed_are_the_inverse(learnability, values, bare):
    net = network(values)
    needed, lazy = (net.samples_needed(learnability, bare=bare, lazy=kind) for kind in (False, True))
    assert net.solve(needed, bare=bare).learnability == pytest.approx(learnability, rel=1e-8)
    assert net.solve(lazy, bare=bare).lazy_learnability == pytest.approx(learnability, rel=1e-8)
    assert lazy >= needed * (1 - 1e-12)


@pytest.mark.parametrize(
    ("growth", "lazy", "exponent", "tolerance"), [(0, False, 0.5, 0.01), (1, False, 0.75, 0.01), (1, True, 1, 1e-12)]
)
def test_the_exponent_of_the_dimension_is_that_of_the_channels(growth, lazy, exponent, tolerance):
    at = 4.0 ** np.arange(5)  # patches and their size ∝ α, channels ∝ α^growth
    halves = PatchNetwork(10 * at, 50 * at, 1000 * at**growth, 1.0, mean_field=100.0).samples_needed(0.5, lazy=lazy)
    assert np.log(halves[4] / halves[3]) / np.log(16) == pytest.approx(exponent, abs=tolerance)


def test_a_number_gives_numbers_and_arrays_their_common_shape():
    one, many = PatchNetwork(**SMALL), PatchNetwork(**SMALL | {"channels": [100, 200, 300]})
    assert all(isinstance(value, float) for value in vars(one.solve(60)).values())
    found = many.solve([[10], [60]])
    assert found.learnability.shape == (2, 3)
    assert found.learnability[1, 0] == pytest.approx(one.solve(60).learnability, rel=1e-14)
    for call in (many.solve, many.samples_needed):
        with pytest.raises(ValueError, match="must broadcast"):
            call([0.5, 0.6])
    with pytest.raises(ValueError, match="must broadcast"):
        PatchNetwork([1.0, 2.0], 25, [1.0, 2.0, 3.0], 1.0)


def test_no_ridge_is_possible_below_the_number_of_inputs_alone():
    net = PatchNetwork(**SMALL | {"ridge": 0.0})
    assert net.solve(50).lazy_learnability == pytest.approx(0.5, rel=1e-12)  # P/d, by P = dL
    for samples, bare in ((100, False), (200, False), (50, True)):
        with pytest.raises(ValueError, match="^ridge must be > 0, where"):
            net.solve(samples, bare=bare)
    with pytest.raises(ValueError, match="^ridge must be > 0 for"):
        net.samples_needed(0.5, bare=True)
