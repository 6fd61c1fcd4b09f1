"""lib.fields.overlaps.single_index against quadrature over the inputs, roots written out, and drawn data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.hermite_e import hermegauss, hermeval
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import erf, roots_genlaguerre
from scipy.stats import norm

from lib.fields.networks.prior import Prior
from lib.fields.overlaps import single_index

DEGREES = {"erf": (1, 3), "relu": (0, 1, 2, 4)}
X, WEIGHTS = hermegauss(120)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
MEAN_ACTIVATION = {  # over the part of x across the teacher, which is normal of variance s
    "erf": lambda u, s: erf(u / np.sqrt(1 + 2 * s)),
    "relu": lambda u, s: u * norm.cdf(u / np.sqrt(s)) + np.sqrt(s) * norm.pdf(u / np.sqrt(s)),
}
activations = pytest.mark.parametrize("activation", DEGREES)


def normalized(n, v):
    return hermeval(v, np.eye(n + 1)[n]) / np.sqrt(float(np.prod(np.arange(1, n + 1))))


# --- the network ----------------------------------------------------------------------------------------------


def test_a_network_knows_its_degrees_and_its_coupling():
    bases = {"erf": ((1, 3), (1, 3, 5)), "relu": ((0, 1, 2, 4),)}
    for activation, listed in bases.items():
        for basis in listed:
            network = single_index.SingleIndex(activation, np.ones(len(basis)), 5, 4, 3.0, perpendicular="fixed")
            assert network.degrees.tolist() == list(basis)
    network = single_index.SingleIndex("erf", [1, 2], 5, 4, 3.0, readout_variance=1.7, perpendicular="fixed")
    m, b = 0.4, 0.3  # S for c = 0 is written with A and with ĥ
    pull = 1.7 / 8 * (3.0 * b * single_index.projections("erf", m)[0]) ** 2
    assert 5 * network.coupling * m**2 / (3 + 2 * m**2) * b**2 == pytest.approx(pull, rel=1e-13)


@pytest.mark.parametrize("target", [[1.0], [0.0, 0.0], [1.0] * 4, [1.0, 1e-60], [1e60, 0.0]])
def test_targets_that_no_basis_has_are_refused(target):
    with pytest.raises(ValueError, match="^target must "):
        single_index.SingleIndex("erf", target, 5, 4, 3.0, perpendicular="fixed")


def test_one_direction_leaves_nothing_that_could_be_free():
    for call in (single_index.lazy, lambda *given, **ways: single_index.SingleIndex(*given[:3], 4, given[3], **ways)):
        call("erf", [1, 1], 1, 10.0, perpendicular="fixed")
        with pytest.raises(ValueError, match="^dimension must be 2 or more if"):
            call("erf", [1, 1], 1, 10.0)


# --- projections ----------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(st.sampled_from(sorted(DEGREES)), st.floats(-1.5, 1.5), st.floats(0.3, 2), st.integers(0, 7))
def test_projections_are_averages_over_the_inputs(activation, m, s, n):
    def integrand(v):
        return norm.pdf(v) * MEAN_ACTIVATION[activation](m * v, s) * normalized(n, v)

    expected = quad(integrand, -12, 12, epsabs=1e-13, limit=200)[0]
    assert single_index.projections(activation, m, s, degrees=[n])[0] == pytest.approx(expected, abs=1e-11)


@activations
def test_all_degrees_together_are_the_kernel_of_two_units_that_share_the_overlap(activation):
    seen = single_index.projections(activation, 0.5, degrees=range(21))
    pair = np.array([[0.5, 1, 0], [0.5, 0, 1]])
    expected = Prior(activation, weight_covariance=np.eye(3)).kernel(pair[:1], pair[1:])[0, 0]
    np.testing.assert_allclose((seen**2).sum(), expected, rtol=1e-8)
    own = single_index.projections(activation, 0.5, degrees=DEGREES[activation])
    assert np.array_equal(single_index.projections(activation, 0.5), own)


@settings(deadline=None, max_examples=25)
@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.floats(0.01, 100))
def test_parity_bounds_and_homogeneity(m, s, c):
    for activation in DEGREES:
        seen, other = (single_index.projections(activation, x, s, degrees=range(8)) for x in (m, -m))
        np.testing.assert_allclose(other, (-1.0) ** np.arange(8) * seen, rtol=1e-13)
        most = 1 if activation == "erf" else (s + m**2) / 2  # ⟨φ²⟩
        assert (seen**2).sum() <= most * (1 + 1e-12)
    scaled = single_index.projections("relu", c * m, c**2 * s)
    np.testing.assert_allclose(scaled, c * single_index.projections("relu", m, s), rtol=1e-11, atol=1e-300)


def test_teachers_are_their_components():
    expected = [WEIGHTS @ ((X + 0.3 * (X**3 - 3 * X)) * normalized(n, X)) for n in DEGREES["erf"]]
    np.testing.assert_allclose(single_index.staircase(0.3), expected, rtol=1e-12)
    for n, found in zip(DEGREES["relu"], single_index.relu_teacher(0.3)):

        def integrand(v, n=n):
            return norm.pdf(v) * (v + 0.3 * (abs(v) - np.sqrt(2 / np.pi))) * normalized(n, v)

        assert found == pytest.approx(quad(integrand, -12, 0)[0] + quad(integrand, 0, 12)[0], abs=1e-9)


# --- effective ridge ------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=20)
@given(st.integers(2, 300), st.floats(1, 1e4), st.floats(1e-3, 10), st.floats(0.2, 3), st.floats(0.01, 10))
def test_ridge_is_the_root_written_out(d, samples, bare, s, readout):
    scales = {"weight_variance": s, "readout_variance": readout}
    linear = 4 * readout / np.pi * s / d / (1 + 2 * s)
    tail = readout * 2 / np.pi * np.arcsin(2 * s / (1 + 2 * s)) - d * linear
    kappa = single_index.ridge("erf", d, samples, bare, **scales)
    assert (bare + tail) / kappa + d * linear / (linear + kappa) == pytest.approx(samples, rel=1e-9)
    kappa = single_index.ridge("relu", d, samples, bare, **scales)
    modes = readout * s * np.array([1 / (2 * np.pi), 1 / (4 * d), 1 / (2 * np.pi * d**2)])
    counts = np.array([1, d, (d - 1) * (d + 2) / 2])
    total = bare + readout * s / 2 - counts @ modes + (counts * modes * kappa / (modes + kappa)).sum()
    assert samples * kappa == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize(("activation", "d", "samples", "bare"), [("erf", 20, 100, 0.1), ("relu", 12, 150, 0.05)])
def test_ridge_on_drawn_data(activation, d, samples, bare):
    rng, measured = np.random.default_rng(1), []
    for _ in range(3):
        kernel = Prior(activation).kernel(rng.standard_normal((samples, d)))
        measured.append(1 / np.trace(np.linalg.inv(kernel + bare * np.eye(samples))))
    assert np.ptp(measured) < 0.05 * measured[0]
    assert single_index.ridge(activation, d, samples, bare) == pytest.approx(np.mean(measured), rel=0.07)
    assert single_index.ridge(activation, d, samples, 1e6) == pytest.approx(1e6 / samples, rel=1e-6)


# --- the lazy limit -------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=20)
@given(st.sampled_from(sorted(DEGREES)), st.floats(0, 1e5), st.floats(-1, 1), st.sampled_from(["fixed", "sphere"]))
def test_lazy_solves_the_linear_equations(activation, strength, epsilon, kind):
    teacher = single_index.staircase if activation == "erf" else single_index.relu_teacher
    target, d, s, ways = teacher(round(epsilon, 6)), 30, 0.8, {"readout_variance": 1.7, "perpendicular": kind}
    (residuals,), (learned,) = single_index.lazy(activation, target, d, [strength], weight_variance=s, **ways)
    m = np.sqrt(s / d) * X
    q = s + (0 if kind == "sphere" else m**2) + 0 * m
    if activation == "erf":
        u = m / np.sqrt(0.5 + q)
        seen = np.stack([np.sqrt(2 / np.pi) * u, -np.sqrt(1 / (3 * np.pi)) * u**3])
    else:
        seen = np.stack([np.sqrt(q), m * np.sqrt(np.pi / 2), m**2 / np.sqrt(2 * q), -(m**4) / np.sqrt(24 * q**3)])
        seen /= np.sqrt(2 * np.pi)
    kernel = 1.7 * (seen * WEIGHTS) @ seen.T
    np.testing.assert_allclose(residuals + strength * kernel @ residuals, target, atol=1e-9)
    known = target != 0
    np.testing.assert_allclose(learned[known], 1 - residuals[known] / target[known], atol=1e-12)
    assert np.all(np.isnan(learned[~known]))


@pytest.mark.parametrize("epsilon", [-0.3, 0.3])
def test_the_cubic_component_mixes_with_the_linear_one(epsilon):
    d, target = np.array([400, 800, 1600]), single_index.staircase(epsilon)
    learned = [
        single_index.lazy("erf", target, k, 0.877 / 0.123 * 3 * np.pi * k / 4, perpendicular="fixed")[1]
        for k in d.tolist()
    ]
    error = np.abs([third / (-1 / k / 3 / epsilon * first) - 1 for k, (first, third) in zip(d, learned)])
    np.testing.assert_allclose(np.log2(error[:-1] / error[1:]), 1, atol=0.1)  # it is the leading order in 1/d


def half(d, kind):
    """P_e d^{-3} at which R_3 = ½, for ε = -0.3."""
    given = "erf", single_index.staircase(-0.3), d
    return np.exp(brentq(lambda u: single_index.lazy(*given, d**3 * np.exp(u), perpendicular=kind)[1][1] - 0.5, -3, 4))


@pytest.mark.parametrize("d", [25, 100])
def test_free_lengths_are_averaged_over_and_lie_between_the_other_two(d):
    radii, weights = roots_genlaguerre(40, (d - 3) / 2)  # |w|² is chi-squared across the teacher
    seen = np.array([single_index.projections("erf", X / np.sqrt(d), 2 * r / d) for r in radii])
    kernel = np.einsum("rki,rkj,r,k->ij", seen, seen, weights / weights.sum(), WEIGHTS)
    y = single_index.staircase(-0.3)

    def short(u):
        return np.linalg.solve(np.eye(2) + d**3 * np.exp(u) * kernel, y)[1] / y[1] - 0.5

    exact = np.exp(brentq(short, -3, 4))
    assert half(d, "sphere") < exact < half(d, "fixed") and half(d, "free") == pytest.approx(exact, rel=1e-7)
    for kind in ("free", "fixed", "sphere"):
        assert half(20_000, kind) == pytest.approx(27 * np.pi / 16, rel=2e-3)
