"""lib.fields.overlaps.gaussian_adaptation against its equations written out by other quadratures, limits, and the
numbers of the talk's settings.
"""

import numpy as np
import pytest
from bad_input import exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.hermite_e import hermegauss
from scipy.optimize import brentq, minimize_scalar

from lib.fields.overlaps import gaussian_adaptation, single_index

FIXED = {"perpendicular": "fixed"}  # |w_⊥|² = σ_w², as the source has it
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
    return np.stack(
        [np.sqrt(q), m * np.sqrt(np.pi / 2), m**2 / np.sqrt(2 * q), -(m**4) / np.sqrt(24 * q**3)]
    ) / np.sqrt(2 * np.pi)


def state(activation, y, s, readout, samples, variance, inner=None):
    """Overlaps at the nodes, ĥ there, and the residuals, for m ~ N(0, variance)."""
    m = np.sqrt(variance) * X
    h = seen(activation, m, s if inner is None else inner)
    return m, h, np.linalg.solve(np.eye(len(y)) + samples * readout * (h * WEIGHTS) @ h.T, y)


def improved(activation, d, samples, ridge, chi=1.0):
    """P_e of the effective ridge under mean-field scaling by χ."""
    return 1 / single_index.ridge(activation, d, samples, ridge / chi, readout_variance=1 / chi)


FIRST_ORDER = ("erf", single_index.staircase(1.0), 200, 1000, 6930.0)  # three solutions
FIRST_ORDER_READOUT = {"readout_variance": 300 * 200 / 6930}


# --- the equations ------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(
    ACTIVATION,
    EPSILON,
    st.integers(20, 400),
    st.floats(0.5, 2),
    st.floats(0.1, 3),
    st.floats(0.1, 20),
    st.floats(0.1, 20),
)
def test_every_solution_solves_the_closure_written_out(activation, epsilon, d, s, readout, strength, pull):
    samples, y = strength * d / readout, teacher(activation, epsilon)
    width = int(np.ceil(samples / pull))
    found = gaussian_adaptation.solve(activation, y, d, width, samples, weight_variance=s, readout_variance=readout)
    assert found.ratio.size % 2 == 1 and np.array_equal(found.stable, np.arange(found.ratio.size) % 2 == 0)
    np.testing.assert_allclose(found.variance, found.ratio * s / d, rtol=1e-13)
    for variance, ratio, residuals, energy in zip(found.variance, found.ratio, found.residuals, found.free_energy):
        m, h, r = state(activation, y, s, readout, samples, variance)
        np.testing.assert_allclose(residuals, r, atol=1e-9)
        g = readout * samples**2 / (2 * width) * (r @ h) ** 2
        curvature = WEIGHTS @ (g * (m**2 / variance - 1)) / variance
        assert 1 / variance == pytest.approx(d / s - curvature, abs=1e-8 * d / s)
        assert energy == pytest.approx(0.5 * (ratio - 1 - np.log(ratio)) + samples / (2 * width) * y @ r, rel=1e-8)


@pytest.mark.parametrize(("activation", "pull"), [("erf", 3.0), ("erf", 40.0), ("relu", 3.0)])
def test_the_divergence_from_the_density_of_the_action_is_stationary(activation, pull):
    d, s, readout, samples = 100, 1.0, 1.0, 2000.0
    width = int(samples / pull)
    found = gaussian_adaptation.solve(activation, teacher(activation, -0.2), d, width, samples)

    def divergence(log_ratio, residuals):  # of N(0, B) from e^{-S}, up to a constant
        m = np.sqrt(np.exp(log_ratio) * s / d) * X
        g = readout * samples**2 / (2 * width) * (residuals @ seen(activation, m, s)) ** 2
        return -0.5 * log_ratio + 0.5 * np.exp(log_ratio) - WEIGHTS @ g

    for at, residuals in zip(np.log(found.ratio), found.residuals):
        assert divergence(at + 1e-4, residuals) - divergence(at - 1e-4, residuals) == pytest.approx(0, abs=2e-4 * 1e-6)
    if pull == 3.0 and activation == "erf":
        assert minimize_scalar(divergence, args=(found.residuals[0],), bracket=(-1, 2)).x == pytest.approx(
            np.log(found.ratio[0]), abs=1e-6
        )


def energies(arguments, readout, log_ratio):
    activation, y, d, width, samples = arguments
    r = state(activation, y, 1.0, readout, samples, np.exp(log_ratio) / d)[2]
    return 0.5 * (np.expm1(log_ratio) - log_ratio) + samples / (2 * width) * y @ r


def test_all_solutions_are_found_and_named_stable_where_the_free_energy_has_a_minimum():
    found = gaussian_adaptation.solve(*FIRST_ORDER, **FIRST_ORDER_READOUT)
    np.testing.assert_allclose(found.ratio, [1.119, 2.207, 18.505], rtol=1e-3)
    assert found.stable.tolist() == [True, False, True] and found.equilibrium == 2
    grid = np.linspace(-3, 5, 4001)
    gamma = np.array([energies(FIRST_ORDER, FIRST_ORDER_READOUT["readout_variance"], u) for u in grid])
    turning = 1 + np.flatnonzero(np.diff(np.sign(np.diff(gamma))))
    np.testing.assert_allclose(np.log(found.ratio), grid[turning], atol=0.002)
    np.testing.assert_allclose(found.free_energy, gamma[turning], rtol=1e-6)
    assert np.array_equal(found.stable, np.diff(np.diff(gamma))[turning - 1] > 0)


def test_equilibrium_jumps_to_the_learned_solution_and_both_persist_around_the_jump():
    def at(pull):
        return gaussian_adaptation.solve(
            "erf", single_index.staircase(1.0), 200, 1000, 1000 * pull, readout_variance=60 / pull
        )

    assert [at(pull).ratio.size for pull in (2.0, 2.5, 10.0, 15.0)] == [1, 3, 3, 1]
    jump = brentq(lambda pull: at(pull).free_energy[2] - at(pull).free_energy[0], 2.5, 3, xtol=1e-6)
    below, above = at(jump - 1e-3), at(jump + 1e-3)
    assert (below.equilibrium, above.equilibrium) == (0, 2)
    assert above.ratio[2] > 8 * below.ratio[0]


@settings(deadline=None, max_examples=10)
@given(st.sampled_from(["erf", "relu"]), st.floats(0.01, 100), st.integers(1, 30))
def test_units_that_cannot_be_told_apart(activation, strength, factor):
    y, d, width = teacher(activation, 0.3), 40, 500
    samples = strength * d
    one = gaussian_adaptation.solve(activation, y, d, width, samples)
    for other in (
        gaussian_adaptation.solve(
            activation, y, d, width * factor, samples * factor, readout_variance=1 / factor
        ),  # mean-field scaling
        gaussian_adaptation.solve(activation, -y, d, width, samples),
    ):
        np.testing.assert_allclose(other.ratio, one.ratio, rtol=1e-9)
        np.testing.assert_allclose(np.abs(other.residuals), np.abs(one.residuals), atol=1e-9)


# --- limits -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["erf", "relu"])
@pytest.mark.parametrize("approach", [gaussian_adaptation.solve, gaussian_adaptation.scaling])
def test_the_wide_network_is_lazy_at_the_rate_of_its_width(activation, approach):
    y, d, samples = teacher(activation, -0.3), 50, 400.0
    lazy = single_index.lazy(activation, y, d, samples, **FIXED)[0]
    far = [approach(activation, y, d, width, samples) for width in (10**6, 10**7, 10**10)]
    shift = [found.ratio.item() - 1 for found in far]
    assert shift[0] / shift[1] == pytest.approx(10, rel=1e-2)
    np.testing.assert_allclose(far[2].residuals[0], lazy, atol=1e-6)
    none = approach(activation, y, d, 10, 0.0)
    np.testing.assert_allclose(none.residuals[0], y, atol=1e-15)
    np.testing.assert_allclose([none.ratio[0] - 1, none.free_energy[0]], 0, atol=1e-12)


def test_in_many_dimensions_the_lazy_solution_is_a_single_root():
    coupling, pull, s, epsilon, error = 30.0, 1.5, 1.0, -0.3, []

    def excess(b):
        v = s / (1 - 4 / np.pi * coupling * pull * s / (1 + 2 * s) * b**2)
        return b * (1 + coupling * 4 / np.pi * v / (1 + 2 * s)) - 1

    b = brentq(excess, 1e-6, 0.999 * np.sqrt(np.pi * (1 + 2 * s) / (4 * coupling * pull * s)))
    for d in (1000, 4000, 16000):
        samples = coupling * d
        found = gaussian_adaptation.solve("erf", single_index.staircase(epsilon), d, round(samples / pull), samples)
        error.append(abs(found.residuals[0, 0] - b))
        assert abs(found.learnabilities[0, 1]) < 30 / d
    np.testing.assert_allclose(np.divide(error[:-1], error[1:]), 4, rtol=0.1)


# --- the scaling approach -----------------------------------------------------------------------------------


@settings(deadline=None, max_examples=15)
@given(ACTIVATION, EPSILON, st.floats(0.1, 20), st.floats(0.1, 50), st.floats(0.5, 2))
def test_scaling_is_stationary_and_keeps_the_shape_of_the_prior(activation, epsilon, strength, pull, s):
    y, d = teacher(activation, epsilon), 60
    samples = strength * d
    width = int(np.ceil(samples / pull))
    found = gaussian_adaptation.scaling(activation, y, d, width, samples, weight_variance=s)

    def energy(log_ratio):
        u = np.exp(log_ratio)
        r = state(activation, y, s, 1.0, samples, u * s / d, inner=u * s)[2]
        return d / 2 * (u - 1 - log_ratio) + samples / (2 * width) * y @ r

    at = np.log(found.ratio[found.equilibrium])
    assert found.free_energy[found.equilibrium] == pytest.approx(energy(at), rel=1e-8, abs=1e-8)
    step = 1e-3
    slope, curvature = (
        (energy(at + step) - energy(at - step)) / (2 * step),
        (energy(at + step) - 2 * energy(at) + energy(at - step)) / step**2,
    )
    assert curvature > 0 and abs(slope) < 1e-5 * curvature
    np.testing.assert_allclose(found.variance, found.ratio * s / d, rtol=1e-13)
    if activation == "relu":
        lazy = single_index.lazy(activation, y, d, found.ratio * samples, weight_variance=s, **FIXED)[0]
        np.testing.assert_allclose(found.residuals, lazy, atol=1e-10)


# --- numbers of the talk's settings -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("readout", "width", "ratio", "sampled"),
    [(1.0, 100, 1.391, 1.383), (0.2, 100, 2.458, 2.233), (0.2, 400, 1.474, 1.425)],
)
def test_erf_network_of_twenty_inputs(readout, width, ratio, sampled):
    samples = 1 / single_index.ridge("erf", 20, 100, 0.1 * readout, readout_variance=readout)
    y = single_index.staircase(-0.1)
    found = gaussian_adaptation.solve("erf", y, 20, width, samples, readout_variance=readout)
    assert found.ratio.item() == pytest.approx(ratio, rel=2e-3)
    assert found.ratio.item() == pytest.approx(sampled, rel=0.11)  # Hamiltonian Monte Carlo on one data set
    bare = gaussian_adaptation.solve("erf", y, 20, width, 100 / (0.1 * readout), readout_variance=readout)
    assert bare.ratio.item() > found.ratio.item()
    more = gaussian_adaptation.solve(
        "erf", np.append(y, 0.0), 20, width, samples, readout_variance=readout, degrees=(1, 3, 5)
    )
    np.testing.assert_allclose(more.learnabilities[0, :2], found.learnabilities[0], rtol=0.01)
    assert more.ratio.item() == pytest.approx(found.ratio.item(), rel=0.01) and more.residuals[0, 2] != 0


def test_relu_networks_in_mean_field_scaling_learn_the_quadratic_part_at_samples_of_the_order_of_the_dimension():
    def branch(beta, multiple, approach=gaussian_adaptation.solve):
        d, width = 96 * beta, 750 * beta
        samples = improved("relu", d, multiple * d, 0.1, width)
        found = approach("relu", single_index.relu_teacher(0.3), d, width, samples, readout_variance=1 / width)
        return found.ratio[found.equilibrium], found.learnabilities[found.equilibrium], samples, found.free_energy.min()

    beta = [1, 2, 4, 8, 16]
    adaptive = [branch(b, 4) for b in beta]
    np.testing.assert_allclose([found[1][2] for found in adaptive], [0.870, 0.905, 0.931, 0.950, 0.964], atol=1.5e-3)
    ratio = np.array([found[0] for found in adaptive])
    np.testing.assert_allclose(ratio, [24.7, 36.7, 55, 84, 128], rtol=5e-3)
    y = single_index.relu_teacher(0.3)
    lazy = [
        single_index.lazy("relu", y, 96 * b, found[2], readout_variance=1 / (750 * b), **FIXED)[1][2]
        for b, found in zip(beta, adaptive)
    ]
    np.testing.assert_allclose(lazy, [0.025, 0.013, 0.0068, 0.0034, 0.0017], rtol=0.025)
    large = branch(256, 4)[0]
    assert np.log(ratio[4] / ratio[0]) / np.log(16) == pytest.approx(0.59, abs=0.006)
    assert np.log(large / ratio[4]) / np.log(16) == pytest.approx(0.65, abs=0.006)
    np.testing.assert_allclose([branch(b, 2)[1][2] for b in (1, 16)], [0.708, 0.887], atol=1.2e-3)
    assert branch(2 * 10**4, 4)[1][2] > 1  # where the teacher's higher components are missed
    # The scaling approach leaves the quadratic part unlearned, and has the higher free energy.
    scaled = [branch(b, 4, gaussian_adaptation.scaling) for b in beta]
    quadratic = np.array([found[1][2] for found in scaled])
    assert np.all(quadratic < 0.06) and np.all(np.diff(np.log(quadratic)) < -0.6)
    assert all(one[3] > 4 * other[3] for one, other in zip(scaled, adaptive))


def test_one_gaussian_misses_the_jump_of_a_positive_cubic_part():
    for width in (1000, 10_000):
        samples = improved("erf", 50, 2000, 1.0, width)
        found = gaussian_adaptation.solve(
            "erf", single_index.staircase(0.05), 50, width, samples, readout_variance=1 / width
        )
        assert found.ratio.size == 1 and found.learnabilities[0, 1] == pytest.approx(
            -0.33, abs=0.005
        )  # +0.31 beyond the closure
    samples = improved("erf", 50, 200, 1.0, 1000)
    found = gaussian_adaptation.solve("erf", single_index.staircase(-0.05), 50, 1000, samples, readout_variance=1e-3)
    assert found.ratio.item() == pytest.approx(11, abs=0.05)
    lazy = single_index.lazy("erf", single_index.staircase(-0.05), 50, samples, readout_variance=1e-3, **FIXED)[1]
    np.testing.assert_allclose(lazy, [0.57, 0.07], atol=0.005)


# --- bad input: both public functions, every argument -------------------------------------------------------

GOOD = {
    "activation": "erf",
    "target": [1.0, 2.0],
    "dimension": 20,
    "width": 10,
    "effective_samples": 9.0,
    "weight_variance": 1.0,
}
GOOD |= {"readout_variance": 1.0, "degrees": (1, 3)}
CALLS = {gaussian_adaptation.solve: GOOD, gaussian_adaptation.scaling: GOOD}
COUNT = [0, -2, 2.0, "2", None, True]
SCALE = [0, -1.0, np.nan, np.inf, "1", None, [0.1], True, 1j, 1e-60, 1e60]
BAD = {
    "activation": ["tanh", "linear", 1, None],
    "target": [[0.0, 0.0], [1.0], [1.0, np.nan], "y", None, 1.0, [[1.0, 2.0]], [1e60, 0.0], [1e-60, 0.0]],
    "dimension": COUNT,
    "width": COUNT,
    "effective_samples": [-1.0, np.nan, np.inf, "1", None, [0.1], True, 1e13, 1e300],
    "weight_variance": SCALE,
    "readout_variance": SCALE,
    "degrees": [[], [1.5], [-1, 1], [1, 1], 3, "13", [[1]], [21, 1]],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)
