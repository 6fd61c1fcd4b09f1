"""lib.fields.patches.erf against its spectrum written out, the fully connected network, quadrature, the
linear patch network, and limits.
"""

import numpy as np
import pytest
from scipy.integrate import quad

from lib.common.spectrum import Spectrum
from lib.fields.kernels import effective_ridge
from lib.fields.overlaps import single_index, staircase
from lib.fields.patches import erf
from lib.fields.patches.shared_filters import PatchNetwork

SIZES = {"patches": 3, "patch_size": 15, "channels": 60, "ridge": 0.3, "mean_field": 10.0}
NET = PatchNetwork(**SIZES)


def test_the_effective_ridge_of_erf_patches_is_that_of_their_own_spectrum():
    net = erf.equivalent(PatchNetwork(**SIZES, readout_variance=1.4, weight_variance=0.8), [60.0, 120.0])
    mode = 4 / np.pi * 1.4 / (3 * 10) * (0.8 / 15) / 2.6
    rest = 1.4 / 10 * 2 / np.pi * np.arcsin(1.6 / 2.6) - 45 * mode
    theory = effective_ridge.RidgeTheory(Spectrum([mode], [45]), [60, 120], ridge=0.03 + rest)
    np.testing.assert_allclose(net.kappa, theory.kappa, rtol=1e-10)
    assert (net.dimension, net.width) == (15, 60) and net.readout_variance == pytest.approx(1.4 / 30)
    assert erf.equivalent(NET, 60, bare=True).kappa == pytest.approx(0.3 / 10 / 60)


def test_networks_that_do_not_exist_are_refused():
    bare = PatchNetwork(**SIZES | {"ridge": 0.0})
    assert erf.equivalent(bare, 60).kappa > 0
    with pytest.raises(ValueError, match="^ridge must be > 0 for"):
        erf.equivalent(bare, 60, bare=True)
    with pytest.raises(ValueError, match="^patch_size must be 2 or more"):
        erf.equivalent(PatchNetwork(1, 1, 60, 0.3), 60)
    for sizes in ({"channels": 1.5}, {"channels": [1, 2]}, {"ridge": [1.0]}):
        with pytest.raises(ValueError, match="^network must be one of whole numbers"):
            erf.equivalent(PatchNetwork(**SIZES | sizes), 60)


@pytest.mark.parametrize("kind", ["fixed", "free"])
def test_one_patch_is_the_fully_connected_network(kind):
    ways = {"readout_variance": 1.3}
    samples, y = 1 / single_index.ridge("erf", 20, 400, 0.1, **ways), single_index.staircase(-0.3)
    found = erf.solve(PatchNetwork(1, 20, 50, 0.1, **ways), 400, -0.3, perpendicular=kind)
    state = staircase.solve(single_index.SingleIndex("erf", y, 20, 50, samples, perpendicular=kind, **ways))
    np.testing.assert_array_equal(found.learnabilities, state.learnabilities)
    np.testing.assert_array_equal(
        [found.ratio, found.kurtosis, found.perpendicular, found.kappa],
        [20 * state.variance, state.kurtosis, state.perpendicular, 1 / samples],
    )


def test_filters_of_free_length_are_those_that_are_sampled():
    # Hamiltonian Monte Carlo of six sets at P = 120: ratio 4.31(4), R 0.908(11) and 0.502(10), |w_⊥|² S/(S-1) 0.849(5).
    found = erf.solve(NET, 120, -0.1, perpendicular="free")
    assert found.ratio == pytest.approx(4.31, abs=0.08)
    assert found.learnabilities == pytest.approx([0.908, 0.502], abs=0.02)
    assert 15 / 14 * found.perpendicular == pytest.approx(0.849, abs=0.025)


@pytest.mark.parametrize("epsilon", [-0.1, 0.1])
def test_the_saddle_is_self_consistent_by_quadrature_of_the_patch_networks_own_action(epsilon):
    found = erf.solve(PatchNetwork(**SIZES, readout_variance=1.4, weight_variance=0.8), 60, epsilon)
    b, c = (1 - found.learnabilities) * [1, epsilon]
    patch_kernel = 1.4 / (10 * 3) / found.kappa

    def unit(m):
        stretch = np.sqrt(1 + 2 * (0.8 + m * m))
        return np.array([2 / np.sqrt(np.pi) * m / stretch, -4 / np.sqrt(np.pi) * (m / stretch) ** 3])

    def density(m):
        pull = unit(m) @ [b, c] / np.sqrt(found.kappa)
        return np.exp(-15 * m * m / 1.6 + patch_kernel / (2 * 60) * pull**2)

    def mean(part):
        return quad(lambda m: part(m) * density(m), 0, 3, epsabs=0, epsrel=1e-11, limit=400)[0]

    total, square, fourth = mean(lambda m: 1), mean(lambda m: m**2), mean(lambda m: m**4)
    assert found.ratio == pytest.approx(15 / 0.8 * square / total, rel=1e-7)
    assert found.kurtosis == pytest.approx(fourth * total / square**2, rel=1e-7)
    # H_1 and H_3 weigh 1 and 6 in the residual's components:  (b, c) + strength <h h^T> (b, c)/(1, 6) summed as
    # functions = (1, epsilon).
    moments = np.array([[mean(lambda m: unit(m)[i] * unit(m)[j]) / total for j in range(2)] for i in range(2)])
    learned = patch_kernel * moments @ [b, c] / [1, 6]
    np.testing.assert_allclose(np.array([b, c]) + learned, [1, epsilon], rtol=1e-7)


@pytest.mark.parametrize("samples", [20, 200])
def test_small_weights_make_it_the_linear_patch_network(samples):
    # erf(u) = 2u/√π for small u, and the density is Gaussian
    curved = erf.solve(PatchNetwork(**SIZES, weight_variance=1e-4, readout_variance=1e4), samples, 0.0)
    straight = PatchNetwork(**SIZES, readout_variance=4 / np.pi).solve(samples)
    assert curved.kappa == pytest.approx(straight.kappa, rel=2e-3)
    assert curved.learnabilities[0] == pytest.approx(straight.learnability, rel=5e-3)
    assert curved.ratio == pytest.approx(straight.ratio, rel=5e-3)
    assert curved.kurtosis == pytest.approx(3, rel=1e-2) and np.isnan(curved.learnabilities[1])


@pytest.mark.parametrize("limit", [{"mean_field": 1e-8}, {"channels": 10**11}])
def test_without_mean_field_or_with_many_channels_the_filters_rest(limit):
    found = erf.solve(PatchNetwork(**SIZES | limit), [60, 120], -0.1)
    np.testing.assert_allclose(found.learnabilities, found.lazy_learnabilities, atol=1e-6)
    np.testing.assert_allclose(found.ratio, 1, atol=1e-6)
    np.testing.assert_allclose(found.kurtosis, 3, atol=1e-5)


def test_more_samples_teach_more_and_the_filters_gain_on_the_process():
    found = erf.solve(NET, np.geomspace(5, 1000, 12).reshape(12, 1), -0.1)
    assert found.learnabilities.shape == (12, 1, 2) and np.all(np.diff(found.learnabilities, axis=0) > 0)
    assert np.all(found.learnabilities > found.lazy_learnabilities)
    one = erf.solve(NET, 60, -0.1)
    assert one.learnabilities.shape == (2,)
    assert all(isinstance(value, float) for value in (one.ratio, one.kurtosis, one.perpendicular, one.kappa))
