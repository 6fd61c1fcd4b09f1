"""lib.fields.patches.erf against its spectrum written out, the fully connected network, quadrature, the
linear patch network, and limits.
"""

import numpy as np
import pytest
from bad_input import exercised
from scipy.integrate import quad

from lib.common.spectrum import Spectrum
from lib.fields.kernels import effective_ridge
from lib.fields.overlaps import single_index, staircase
from lib.fields.patches import erf, shared_filters

FIXED = {"perpendicular": "fixed"}  # |w_⊥|² = σ_w², as the source has it
NET = {"patches": 3, "patch_size": 15, "channels": 60, "ridge": 0.3, "mean_field": 10.0}


def test_the_effective_ridge_of_erf_patches_is_that_of_their_own_spectrum():
    net = erf.equivalent([60.0, 120.0], 3, 15, 60, 0.3, mean_field=10.0, readout_variance=1.4, weight_variance=0.8)
    mode = 4 / np.pi * 1.4 / (3 * 10) * (0.8 / 15) / 2.6
    rest = 1.4 / 10 * 2 / np.pi * np.arcsin(1.6 / 2.6) - 45 * mode
    np.testing.assert_allclose(
        net.kappa, effective_ridge.RidgeTheory(Spectrum([mode], [45]), [60, 120], ridge=0.03 + rest).kappa, rtol=1e-10
    )
    assert (net.dimension, net.width) == (15, 60) and net.readout_variance == pytest.approx(1.4 / 30)
    bare = erf.equivalent(60, 3, 15, 60, 0.3, mean_field=10.0, bare=True)
    assert bare.kappa == pytest.approx(0.3 / 10 / 60)


def test_one_patch_is_the_fully_connected_network():
    net = erf.equivalent(100, 1, 20, 50, 0.1, readout_variance=1.3)
    assert net.kappa == single_index.ridge("erf", 20, 100, 0.1, readout_variance=1.3)
    assert (net.dimension, net.width, net.readout_variance) == (20, 50, 1.3)


def test_no_ridge_is_possible_with_the_competing_modes_alone():
    assert erf.equivalent(60, **NET | {"ridge": 0.0}).kappa > 0
    with pytest.raises(ValueError, match="^ridge must be > 0 for"):
        erf.equivalent(60, **NET | {"ridge": 0.0}, bare=True)
    with pytest.raises(ValueError, match="^patch_size must be 2 or more"):
        erf.equivalent(60, **NET | {"patches": 1, "patch_size": 1})


def test_the_specified_network_and_its_gaussian_process():
    found = erf.solve([60, 120], **NET, epsilon=-0.1, **FIXED)
    assert found.ratio.round(2).tolist() == [3.97, 4.86]
    assert found.learnabilities.round(3).tolist() == [[0.765, 0.31], [0.907, 0.428]]
    assert found.lazy_learnabilities.round(2).tolist() == [[0.48, 0.08], [0.69, 0.12]]


def test_filters_of_free_length_are_those_that_are_sampled():
    # Hamiltonian Monte Carlo of six sets at P = 120: ratio 4.31(4), R 0.908(11) and 0.502(10), |w_⊥|² S/(S-1) 0.849(5).
    found = erf.solve([60, 120], **NET, epsilon=-0.1, perpendicular="free")
    assert found.ratio[1] == pytest.approx(4.31, abs=0.08)
    assert found.learnabilities[1] == pytest.approx([0.908, 0.502], abs=0.02)
    assert 15 / 14 * found.perpendicular[1] == pytest.approx(0.849, abs=0.025)
    assert erf.solve([60, 120], **NET, epsilon=-0.1, **FIXED).perpendicular == pytest.approx(
        1, rel=1e-14
    )  # rounded on some machines
    net = erf.equivalent(60, **NET)
    state = staircase.solve(15, 60, 1 / net.kappa, -0.1, readout_variance=net.readout_variance, perpendicular="free")
    assert found.ratio[0] == pytest.approx(15 * state.variance, rel=1e-9) and found.perpendicular[0] == pytest.approx(
        state.perpendicular, rel=1e-9
    )


@pytest.mark.parametrize("epsilon", [-0.1, 0.1])
def test_the_saddle_is_self_consistent_by_quadrature_of_the_patch_networks_own_action(epsilon):
    found = erf.solve(60, **NET, epsilon=epsilon, readout_variance=1.4, weight_variance=0.8, **FIXED)
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


def test_small_weights_make_it_the_linear_patch_network():
    # erf(u) = 2u/√π for small u, and the density is Gaussian
    small, gain = {"weight_variance": 1e-4, "readout_variance": 1e4}, {"readout_variance": 4 / np.pi}
    for samples in (20, 60, 200):
        curved, straight = (
            erf.solve(samples, **NET, epsilon=0.0, **small, **FIXED),
            shared_filters.solve(samples, **NET, **gain),
        )
        assert curved.kappa == pytest.approx(straight.kappa, rel=2e-3)
        assert curved.learnabilities[0] == pytest.approx(straight.learnability, rel=5e-3)
        assert curved.ratio == pytest.approx(straight.ratio, rel=5e-3)
        assert curved.kurtosis == pytest.approx(3, rel=1e-2) and np.isnan(curved.learnabilities[1])


@pytest.mark.parametrize("limit", [{"mean_field": 1e-8}, {"channels": 10**11}])
def test_without_mean_field_or_with_many_channels_the_filters_rest(limit):
    found = erf.solve([60, 120], **NET | limit, epsilon=-0.1, **FIXED)
    np.testing.assert_allclose(found.learnabilities, found.lazy_learnabilities, atol=1e-6)
    np.testing.assert_allclose(found.ratio, 1, atol=1e-6)
    np.testing.assert_allclose(found.kurtosis, 3, atol=1e-5)


def test_more_samples_teach_more_and_the_filters_gain_on_the_process():
    found = erf.solve(np.geomspace(5, 1000, 12), **NET, epsilon=-0.1, **FIXED)
    assert np.all(np.diff(found.learnabilities, axis=0) > 0)
    assert np.all(found.learnabilities > found.lazy_learnabilities)
    one = erf.solve(60, **NET, epsilon=-0.1, **FIXED)
    assert one.learnabilities.shape == (2,) and np.ndim(one.ratio) == np.ndim(one.kurtosis) == np.ndim(one.kappa) == 0
    assert erf.solve([[60.0], [120.0]], **NET, epsilon=-0.1, **FIXED).learnabilities.shape == (2, 1, 2)


def test_one_patch_is_the_staircase():
    found = erf.solve(400, 1, 20, 50, 0.1, -0.3, readout_variance=1.3, **FIXED)
    state = staircase.solve(
        20, 50, 1 / single_index.ridge("erf", 20, 400, 0.1, readout_variance=1.3), -0.3, readout_variance=1.3, **FIXED
    )
    np.testing.assert_array_equal(found.learnabilities, state.learnabilities)


# --- bad input ----------------------------------------------------------------------------------------------

NUMBERS = [-1.0, np.nan, np.inf, "1", None, [0.1], True, 1j, 10**400]
COUNTS = [0, -2, 2.0, "2", None, True, [3]]
BAD = {
    "samples": [0, -1.0, np.nan, "1", None, [1.0, -1.0]],
    **dict.fromkeys(("patches", "patch_size", "channels"), COUNTS),
    **dict.fromkeys(("ridge", "mean_field", "readout_variance", "weight_variance"), NUMBERS),
    "epsilon": [np.nan, "1", None, [0.1], True, 1j, 10**400],
    "bare": [0, 1, "yes", None],
    "perpendicular": ["other", "", True, None, 1.0, ["free"]],
}
WHOLE = {"samples": 60, **NET, "readout_variance": 1.0, "weight_variance": 1.0, "bare": True}
CALLS = {erf.equivalent: WHOLE, erf.solve: WHOLE | {"epsilon": -0.1, "perpendicular": "free"}}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)
