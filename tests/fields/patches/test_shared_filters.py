"""lib.fields.patches.shared_filters against its equations, the roots of the cubic, lib.fields.kernels.effective_ridge,
quadrature, limits, and exponents in the dimension.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.common.spectrum import Spectrum
from lib.fields.kernels import effective_ridge
from lib.fields.overlaps import single_index
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
@given(logs, st.tuples(*[logs] * 7))
def test_the_solution_solves_the_equations_and_stays_in_its_bounds(log_samples, values):
    net, samples = network(values), 10 ** (log_samples + 1)
    found = net.solve(samples)
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
    assert found.kappa == pytest.approx(theory.kappa, rel=1e-11)


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
def test_the_samples_needed_are_the_inverse(learnability, values, grown):
    net = network(values)
    needed, lazy = (net.samples_needed(learnability, grown=grown, lazy=kind) for kind in (False, True))
    assert net.solve(needed, grown=grown).learnability == pytest.approx(learnability, rel=1e-8)
    assert net.solve(lazy).lazy_learnability == pytest.approx(learnability, rel=1e-8)
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
    for samples in (100, 200):
        with pytest.raises(ValueError, match="^ridge must be > 0, where"):
            net.solve(samples)


# --- own filters, grown modes -------------------------------------------------------------------------------------


def test_own_filters_are_a_network_of_as_many_channels_in_all_and_one_patch_has_nothing_to_share():
    own = PatchNetwork(**SMALL, shared=False)
    more = PatchNetwork(**SMALL | {"channels": 400})
    np.testing.assert_allclose(own.solve([20, 60]).learnability, more.solve([20, 60]).learnability, rtol=1e-13)
    assert own.critical_samples() == pytest.approx(2 * PatchNetwork(**SMALL).critical_samples(), rel=1e-13)
    one, other = (PatchNetwork(1, 100, 100, 1.0, mean_field=30.0, shared=kind) for kind in (True, False))
    assert one.solve(60, grown=True).learnability == other.solve(60, grown=True).learnability


def test_grown_modes_are_counted_in_the_samples():
    for shared, many in ((True, 28), (False, 100)):
        net = PatchNetwork(**SMALL, shared=shared)
        found = net.solve(60, grown=True)
        mode, kappa = 1 / (30 * 100), found.kappa
        parts = [size / (size + kappa) for size in (mode, mode * found.ratio)]
        assert 1 / (30 * kappa) + (100 - many) * parts[0] + many * parts[1] == pytest.approx(60, rel=1e-10)
        assert found.learnability < net.solve(60).learnability


# --- erf filters --------------------------------------------------------------------------------------------------

ERF = {"patches": 3, "patch_size": 15, "channels": 60, "ridge": 0.3, "mean_field": 10.0}


def test_the_effective_ridge_of_erf_patches_is_that_of_their_own_spectrum():
    net = PatchNetwork(**ERF, readout_variance=1.4, weight_variance=0.8).equivalent(60, -0.1)
    mode = 4 / np.pi * 1.4 / (3 * 10) * (0.8 / 15) / 2.6
    rest = 1.4 / 10 * 2 / np.pi * np.arcsin(1.6 / 2.6) - 45 * mode
    theory = effective_ridge.RidgeTheory(Spectrum([mode], [45]), 60, ridge=0.03 + rest)
    assert net.effective_samples == pytest.approx(1 / theory.kappa, rel=1e-10)
    assert (net.dimension, net.width) == (15, 60) and net.readout_variance == pytest.approx(1.4 / 30)


def test_one_patch_is_the_fully_connected_network():
    net = PatchNetwork(1, 20, 50, 0.1, readout_variance=1.3).equivalent(400, -0.3, perpendicular="fixed")
    assert 1 / net.effective_samples == pytest.approx(single_index.ridge("erf", 20, 400, 0.1, readout_variance=1.3))
    assert (net.dimension, net.width, net.readout_variance, net.perpendicular) == (20, 50, 1.3, "fixed")


@pytest.mark.parametrize("samples", [20, 200])
def test_small_weights_make_it_the_linear_patch_network(samples):
    # erf(u) = 2u/√π for small u, and the density is Gaussian
    curved = PatchNetwork(**ERF, weight_variance=1e-4, readout_variance=1e4).equivalent(samples, 0.0).saddle()
    straight = PatchNetwork(**ERF, readout_variance=4 / np.pi).solve(samples)
    assert curved.learnabilities[0] == pytest.approx(straight.learnability, rel=5e-3)
    assert 15 * curved.variance / 1e-4 == pytest.approx(straight.ratio, rel=5e-3)


def test_networks_that_do_not_exist_are_refused():
    with pytest.raises(ValueError, match="^patch_size must be 2 or more"):
        PatchNetwork(1, 1, 60, 0.3).equivalent(60, 0.1)
    with pytest.raises(ValueError, match="^shared must be True"):
        PatchNetwork(**ERF, shared=False).equivalent(60, 0.1)
    for sizes in ({"channels": 1.5}, {"channels": [1, 2]}, {"ridge": [1.0]}):
        with pytest.raises(ValueError, match="^network must be one of whole numbers"):
            PatchNetwork(**ERF | sizes).equivalent(60, 0.1)
