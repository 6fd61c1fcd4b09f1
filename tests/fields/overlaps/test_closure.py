"""The closure of a SingleIndex against its equations written out by other quadratures, and limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.hermite_e import hermegauss

from lib.fields.overlaps import single_index
from lib.fields.overlaps.single_index import SingleIndex

X, WEIGHTS = hermegauss(120)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
ACTIVATION, EPSILON = st.sampled_from(["erf", "relu"]), st.floats(-1, 1).map(lambda value: round(value, 6))


def teacher(activation, epsilon):
    return single_index.staircase(epsilon) if activation == "erf" else single_index.relu_teacher(epsilon)


def seen(activation, m, s):
    """ĥ (n, ...) as the talk writes it, made orthonormal."""
    q = s + m**2
    if activation == "erf":
        h1, h3 = 2 / np.sqrt(np.pi) * m / np.sqrt(1 + 2 * q), -4 / np.sqrt(np.pi) * (m / np.sqrt(1 + 2 * q)) ** 3
        return np.stack([h1, h3 / np.sqrt(6)])
    relu = [np.sqrt(q), m * np.sqrt(np.pi / 2), m**2 / np.sqrt(2 * q), -(m**4) / np.sqrt(24 * q**3)]
    return np.stack(relu) / np.sqrt(2 * np.pi)


def state(activation, y, s, strength, variance, inner=None):
    """Overlaps at the nodes, ĥ there, and the residuals at P_e s_a², for m ~ N(0, variance)."""
    m = np.sqrt(variance) * X
    h = seen(activation, m, s if inner is None else inner)
    return m, h, np.linalg.solve(np.eye(len(y)) + strength * (h * WEIGHTS) @ h.T, y)


@settings(deadline=None, max_examples=25)
@given(
    *(ACTIVATION, EPSILON, st.integers(20, 400), st.floats(0.5, 2)),
    *(st.floats(0.1, 3), st.floats(0.1, 20), st.floats(0.1, 20)),
)
def test_every_solution_solves_the_closure_written_out(activation, epsilon, d, s, readout, strength, pull):
    samples, y = strength * d / readout, teacher(activation, epsilon)
    width = int(np.ceil(samples / pull))
    network = SingleIndex(
        activation, y, d, width, samples, weight_variance=s, readout_variance=readout, perpendicular="fixed"
    )
    found = network.closure()
    assert found.ratio.size % 2 == 1 and np.array_equal(found.stable, np.arange(found.ratio.size) % 2 == 0)
    np.testing.assert_allclose(found.variance, found.ratio * s / d, rtol=1e-13)
    for variance, ratio, residuals, energy in zip(found.variance, found.ratio, found.residuals, found.free_energy):
        m, h, r = state(activation, y, s, readout * samples, variance)
        np.testing.assert_allclose(residuals, r, atol=1e-9)
        g = readout * samples**2 / (2 * width) * (r @ h) ** 2
        curvature = WEIGHTS @ (g * (m**2 / variance - 1)) / variance
        assert 1 / variance == pytest.approx(d / s - curvature, abs=1e-8 * d / s)
        assert energy == pytest.approx(0.5 * (ratio - 1 - np.log(ratio)) + samples / (2 * width) * y @ r, rel=1e-8)


def test_all_solutions_are_found_and_named_stable_where_the_free_energy_has_a_minimum():
    y, d, width, samples, readout = single_index.staircase(1.0), 200, 1000, 6930.0, 300 * 200 / 6930
    found = SingleIndex("erf", y, d, width, samples, readout_variance=readout, perpendicular="fixed").closure()
    assert found.stable.tolist() == [True, False, True] and found.equilibrium == 2
    grid = np.linspace(-3, 5, 4001)
    residuals = [state("erf", y, 1.0, readout * samples, np.exp(u) / d)[2] for u in grid]
    gamma = 0.5 * (np.expm1(grid) - grid) + samples / (2 * width) * np.array(residuals) @ y
    turning = 1 + np.flatnonzero(np.diff(np.sign(np.diff(gamma))))
    np.testing.assert_allclose(np.log(found.ratio), grid[turning], atol=0.002)
    np.testing.assert_allclose(found.free_energy, gamma[turning], rtol=1e-6)
    assert np.array_equal(found.stable, np.diff(np.diff(gamma))[turning - 1] > 0)


@settings(deadline=None, max_examples=10)
@given(ACTIVATION, st.floats(0.01, 100), st.integers(1, 30))
def test_units_that_cannot_be_told_apart(activation, strength, factor):
    y, d, width, samples = teacher(activation, 0.3), 40, 500, strength * 40
    one, scaled, mirrored = (  # mean-field scaling, and the other sign
        SingleIndex(
            activation, sign * y, d, width * k, samples * k, readout_variance=1 / k, perpendicular="fixed"
        ).closure()
        for sign, k in ((1, 1), (1, factor), (-1, 1))
    )
    for other in (scaled, mirrored):
        np.testing.assert_allclose(other.ratio, one.ratio, rtol=1e-9)
        np.testing.assert_allclose(np.abs(other.residuals), np.abs(one.residuals), atol=1e-9)


@pytest.mark.parametrize("activation", ["erf", "relu"])
@pytest.mark.parametrize("isotropic", [False, True])
def test_the_wide_network_is_lazy_at_the_rate_of_its_width(activation, isotropic):
    y, d, samples = teacher(activation, -0.3), 50, 400.0
    lazy = single_index.lazy(activation, y, d, samples, perpendicular="fixed")[0]
    near, far, end, none = (
        SingleIndex(activation, y, d, width, strength, perpendicular="fixed").closure(isotropic=isotropic)
        for width, strength in ((10**6, samples), (10**7, samples), (10**10, samples), (10, 0.0))
    )
    assert (near.ratio[0] - 1) / (far.ratio[0] - 1) == pytest.approx(10, rel=1e-2)
    np.testing.assert_allclose(end.residuals[0], lazy, atol=1e-6)
    np.testing.assert_allclose(none.residuals[0], y, atol=1e-15)
    np.testing.assert_allclose([none.ratio[0] - 1, none.free_energy[0]], 0, atol=1e-12)


@settings(deadline=None, max_examples=15)
@given(ACTIVATION, EPSILON, st.floats(0.1, 20), st.floats(0.1, 50), st.floats(0.5, 2))
def test_the_isotropic_scale_is_stationary_and_keeps_the_shape_of_the_prior(activation, epsilon, strength, pull, s):
    y, d = teacher(activation, epsilon), 60
    samples = strength * d
    width = int(np.ceil(samples / pull))
    network = SingleIndex(activation, y, d, width, samples, weight_variance=s, perpendicular="fixed")
    found = network.closure(isotropic=True)

    def energy(log_ratio):
        u = np.exp(log_ratio)
        r = state(activation, y, s, samples, u * s / d, inner=u * s)[2]
        return d / 2 * (u - 1 - log_ratio) + samples / (2 * width) * y @ r

    at, step = np.log(found.ratio[found.equilibrium]), 1e-3
    low, middle, high = (energy(at + move) for move in (-step, 0, step))
    assert found.free_energy[found.equilibrium] == pytest.approx(middle, rel=1e-8, abs=1e-8)
    curvature = (high - 2 * middle + low) / step**2
    assert curvature > 0 and abs(high - low) / (2 * step) < 1e-5 * curvature
    np.testing.assert_allclose(found.variance, found.ratio * s / d, rtol=1e-13)
    if activation == "relu":
        lazy = single_index.lazy(activation, y, d, found.ratio * samples, weight_variance=s, perpendicular="fixed")[0]
        np.testing.assert_allclose(found.residuals, lazy, atol=1e-10)


@pytest.mark.parametrize("isotropic", [False, True])
def test_free_lengths_are_those_of_gaussian_weights(isotropic):
    """The state solves its equations, with averages over drawn weights of variance B along w_* and σ_w²/d across."""
    y, d, width, samples, s = single_index.staircase(-0.2), 6, 40, 300.0, 1.3
    network = SingleIndex("erf", y, d, width, samples, weight_variance=s, readout_variance=0.5)
    found = network.closure(isotropic=isotropic)
    (variance,), (ratio,), (residuals,) = found.variance, found.ratio, found.residuals
    random = np.random.default_rng(3)
    q = (ratio if isotropic else 1) * s / d * random.chisquare(d - 1, 200_000)
    m = np.sqrt(variance) * random.standard_normal(200_000)
    h = np.stack([2 / np.sqrt(np.pi) * m / np.sqrt(1 + 2 * (q + m**2)),
                  -4 / np.sqrt(6 * np.pi) * (m / np.sqrt(1 + 2 * (q + m**2))) ** 3])  # fmt: skip
    expected = np.linalg.solve(np.eye(2) + 0.5 * samples * h @ h.T / 200_000, y)
    np.testing.assert_allclose(residuals, expected, rtol=0.02)
    if not isotropic:
        g = 0.5 * samples**2 / (2 * width) * (residuals @ h) ** 2
        curvature = (g * (m**2 / variance - 1)).mean() / variance
        assert 1 / variance == pytest.approx(d / s - curvature, rel=0.05) and ratio > 1.5


def test_what_is_not_of_the_closure_is_refused():
    y = [1.0, 2.0]
    for network, name in (
        (SingleIndex("erf", y, 20, 10, 1e13, perpendicular="fixed"), "effective_samples"),
        (SingleIndex("erf", y, 20, 10**60, 9e52, readout_variance=1e49, perpendicular="fixed"), "effective_samples"),
    ):
        with pytest.raises(ValueError, match=f"^{name} must"):
            network.closure()
