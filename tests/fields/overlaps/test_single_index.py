"""lib.fields.overlaps.single_index against quadrature over the inputs, Monte Carlo, series and closed forms, roots
by hand, and regressions on drawn data.
"""

import numpy as np
import pytest
from bad_input import NUMBER, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.hermite_e import hermegauss, hermeval
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import erf, roots_genlaguerre
from scipy.stats import norm

from lib.fields.networks import nngp
from lib.fields.overlaps import single_index

ERF, RELU = single_index.DEGREES["erf"], single_index.DEGREES["relu"]
FIXED = {"perpendicular": "fixed"}  # |w_⊥|² = σ_w², as the source has it
X, WEIGHTS = hermegauss(120)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
MEAN_ACTIVATION = {  # over the part of x across the teacher, which is normal of variance s
    "erf": lambda u, s: erf(u / np.sqrt(1 + 2 * s)),
    "relu": lambda u, s: u * norm.cdf(u / np.sqrt(s)) + np.sqrt(s) * norm.pdf(u / np.sqrt(s)),
}


def normalized(n, v):
    return hermeval(v, np.eye(n + 1)[n]) / np.sqrt(float(np.prod(np.arange(1, n + 1))))


# --- projections --------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(st.sampled_from(["erf", "relu"]), st.floats(-1.5, 1.5), st.floats(0.3, 2), st.integers(0, 7))
def test_projections_are_averages_over_the_inputs(activation, m, s, n):
    expected = quad(
        lambda v: norm.pdf(v) * MEAN_ACTIVATION[activation](m * v, s) * normalized(n, v),
        -12,
        12,
        epsabs=1e-13,
        limit=200,
    )[0]
    assert single_index.projections(activation, m, s, degrees=[n])[0] == pytest.approx(expected, abs=1e-11)


def test_the_defaults_are_the_closed_forms():
    m, s = np.linspace(-2, 2, 9), 0.7
    q = s + m**2
    h1, h3, h5 = (c / np.sqrt(np.pi) * (m / np.sqrt(1 + 2 * q)) ** n for n, c in ((1, 2), (3, -4), (5, 24)))
    found = single_index.projections("erf", m, s, degrees=(1, 3, 5)) * np.sqrt([1, 6, 120])
    np.testing.assert_allclose(found, np.stack([h1, h3, h5], axis=-1), rtol=1e-13, atol=1e-16)
    assert np.array_equal(single_index.projections("erf", m, s), single_index.projections("erf", m, s, degrees=[1, 3]))
    two = m**2 / np.sqrt(4 * np.pi * q)
    expected = np.stack([np.sqrt(q / (2 * np.pi)), m / 2, two, -(m**4) / np.sqrt(48 * np.pi * q**3)], axis=-1)
    np.testing.assert_allclose(single_index.projections("relu", m, s), expected, rtol=1e-13, atol=1e-16)


def test_projections_by_monte_carlo():
    rng = np.random.default_rng(5)
    d, m, s = 6, 0.8, 0.9
    x = rng.standard_normal((400_000, d))
    w = np.array([m, np.sqrt(s), 0, 0, 0, 0])
    for activation, unit in (("erf", erf), ("relu", lambda u: np.maximum(u, 0))):
        for n, expected in zip(single_index.DEGREES[activation], single_index.projections(activation, m, s)):
            draws = unit(x @ w) * normalized(n, x[:, 0])
            assert abs(draws.mean() - expected) < 5 * draws.std() / np.sqrt(len(x))


@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_all_degrees_together_are_the_kernel_of_two_units_that_share_the_overlap(activation):
    m, s = 0.5, 1.0
    seen = single_index.projections(activation, m, s, degrees=range(21))
    pair = np.array([[m, np.sqrt(s), 0], [m, 0, np.sqrt(s)]])
    expected = nngp.kernel(activation, pair[:1], pair[1:], weight_covariance=np.eye(3))[0, 0]
    np.testing.assert_allclose((seen**2).sum(), expected, rtol=1e-8)


@settings(deadline=None, max_examples=25)
@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.floats(0.01, 100))
def test_parity_bounds_and_homogeneity(m, s, c):
    for activation, degrees in (("erf", range(8)), ("relu", range(8))):
        seen = single_index.projections(activation, m, s, degrees=degrees)
        signs = (-1.0) ** np.arange(8)
        np.testing.assert_allclose(
            single_index.projections(activation, -m, s, degrees=degrees), signs * seen, rtol=1e-13
        )
        most = 1 if activation == "erf" else (s + m**2) / 2  # ⟨φ²⟩
        assert (seen**2).sum() <= most * (1 + 1e-12)
    np.testing.assert_allclose(
        single_index.projections("relu", c * m, c**2 * s),
        c * single_index.projections("relu", m, s),
        rtol=1e-11,
        atol=1e-300,
    )


def test_teachers_are_their_components():
    np.testing.assert_allclose(
        single_index.staircase(0.3),
        [WEIGHTS @ ((X + 0.3 * (X**3 - 3 * X)) * normalized(n, X)) for n in ERF],
        rtol=1e-12,
    )
    for n, found in zip(RELU, single_index.relu_teacher(0.3)):

        def integrand(v, n=n):
            return norm.pdf(v) * (v + 0.3 * (abs(v) - np.sqrt(2 / np.pi))) * normalized(n, v)

        assert found == pytest.approx(quad(integrand, -12, 0)[0] + quad(integrand, 0, 12)[0], abs=1e-9)


# --- moments ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["erf", "relu"])
@pytest.mark.parametrize("variance", [0.02, 1.0, 50.0, 1e6])
def test_moments_by_adaptive_quadrature(activation, variance):
    degrees = single_index.DEGREES[activation]
    found = single_index.moments(activation, variance, 0.8)
    for i, n in enumerate(degrees):
        for j, k in enumerate(degrees):

            def integrand(x, i=i, j=j):
                seen = single_index.projections(activation, np.sqrt(variance) * x, 0.8)
                return norm.pdf(x) * seen[i] * seen[j]

            points = [p for p in np.array([0.3, 1, 3]) / np.sqrt(variance) if p < 10]
            expected = 2 * quad(integrand, 0, 10, epsrel=1e-11, points=points, limit=200)[0] if (n + k) % 2 == 0 else 0
            assert found[i, j] == pytest.approx(expected, rel=1e-8, abs=1e-13 * max(1, variance))


def test_moments_by_gauss_hermite_and_at_no_variance():
    for activation in ("erf", "relu"):
        for variance in (0.0, 1e-9, 0.01, 0.1):
            seen = single_index.projections(activation, np.sqrt(variance) * X)
            np.testing.assert_allclose(
                single_index.moments(activation, variance), (seen.T * WEIGHTS) @ seen, rtol=1e-11, atol=1e-14
            )
    stacked = single_index.moments("erf", [[0.1, 0.2]])
    np.testing.assert_allclose(stacked[0, 1], single_index.moments("erf", 0.2), rtol=1e-12)


def test_what_the_lazy_linear_mode_leaves_of_the_cubic_is_the_cubic_eigenvalue():
    d = np.array([1e4, 2e4])
    m = single_index.moments("erf", 1 / d)
    schur = m[:, 1, 1] - m[:, 0, 1] ** 2 / m[:, 0, 0]
    eigenvalue = 16 / np.pi / (3 * d) ** 3
    np.testing.assert_allclose(schur / eigenvalue, 1, atol=3e-3)
    np.testing.assert_allclose(m[:, 0, 0], 4 / (3 * np.pi * d), rtol=1e-3)


# --- effective ridge ----------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=20)
@given(st.integers(2, 300), st.floats(1, 1e4), st.floats(1e-3, 10), st.floats(0.2, 3), st.floats(0.01, 10))
def test_ridge_is_the_root_written_out(d, samples, bare, s, readout):
    root = {"weight_variance": s, "readout_variance": readout}
    z = 2 * s / (1 + 2 * s)
    linear = 4 * readout / np.pi * s / d / (1 + 2 * s)
    tail = readout * 2 / np.pi * np.arcsin(z) - d * linear
    kappa = single_index.ridge("erf", d, samples, bare, **root)
    assert (bare + tail) / kappa + d * linear / (linear + kappa) == pytest.approx(samples, rel=1e-9)
    kappa = single_index.ridge("relu", d, samples, bare, **root)
    modes = readout * s * np.array([1 / (2 * np.pi), 1 / (4 * d), 1 / (2 * np.pi * d**2)])
    counts = np.array([1, d, (d - 1) * (d + 2) / 2])
    total = bare + readout * s / 2 - counts @ modes + (counts * modes * kappa / (modes + kappa)).sum()
    assert samples * kappa == pytest.approx(total, rel=1e-9)


def test_ridge_limits_and_scaling():
    for activation in ("erf", "relu"):
        assert single_index.ridge(activation, 20, 100, 1e6) == pytest.approx(1e4, rel=1e-6)
        one = single_index.ridge(activation, 20, [50, 100, 200], 0.1)
        assert np.all(np.diff(one) < 0) and np.all(one > 0.1 / np.array([50, 100, 200]))
        np.testing.assert_allclose(
            single_index.ridge(activation, 20, [50, 100, 200], 0.3, readout_variance=3.0), 3 * one, rtol=1e-10
        )


@pytest.mark.parametrize(("activation", "d", "samples", "bare"), [("erf", 20, 100, 0.1), ("relu", 12, 150, 0.05)])
def test_ridge_on_drawn_data(activation, d, samples, bare):
    rng, measured = np.random.default_rng(1), []
    for _ in range(3):
        kernel = nngp.kernel(activation, rng.standard_normal((samples, d)))
        measured.append(1 / np.trace(np.linalg.inv(kernel + bare * np.eye(samples))))
    assert np.ptp(measured) < 0.05 * measured[0]
    assert single_index.ridge(activation, d, samples, bare) == pytest.approx(np.mean(measured), rel=0.07)
    assert bare / samples < 0.65 * measured[0]  # the bare equivalent kernel


# --- the lazy limit -----------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=20)
@given(st.sampled_from(["erf", "relu"]), st.floats(0, 1e5), st.floats(-1, 1), st.sampled_from(["fixed", "sphere"]))
def test_lazy_solves_the_linear_equations(activation, strength, epsilon, kind):
    epsilon = round(epsilon, 6)
    target = single_index.staircase(epsilon) if activation == "erf" else single_index.relu_teacher(epsilon)
    d, s, readout = 30, 0.8, 1.7
    residuals, learned = single_index.lazy(
        activation, target, d, [strength], weight_variance=s, readout_variance=readout, perpendicular=kind
    )
    m = np.sqrt(s / d) * X
    if activation == "erf":
        u = m / np.sqrt(0.5 + s + (0 if kind == "sphere" else m**2))
        seen = np.stack([np.sqrt(2 / np.pi) * u, -np.sqrt(1 / (3 * np.pi)) * u**3])
    else:
        q = s + (0 * m if kind == "sphere" else m**2)
        seen = np.stack(
            [np.sqrt(q), m * np.sqrt(np.pi / 2), m**2 / np.sqrt(2 * q), -(m**4) / np.sqrt(24 * q**3)]
        ) / np.sqrt(2 * np.pi)
    kernel = readout * (seen * WEIGHTS) @ seen.T
    np.testing.assert_allclose(residuals[0] + strength * kernel @ residuals[0], target, atol=1e-9)
    known = target != 0
    np.testing.assert_allclose(learned[0][known], 1 - residuals[0][known] / target[known], atol=1e-12)
    assert np.all(np.isnan(learned[0][~known]))


def test_the_cubic_component_mixes_with_the_linear_one():
    def ratio(d, epsilon, **options):
        strength = 0.877 / 0.123 * 3 * np.pi * d / 4
        learned = single_index.lazy("erf", single_index.staircase(epsilon), d, strength, **options)[1]
        return learned[1] / (-1 / d / 3 / epsilon * learned[0])

    positive, negative = (
        single_index.lazy("erf", single_index.staircase(epsilon), 50, 840.0, **FIXED)[1][1] for epsilon in (0.3, -0.3)
    )
    assert positive < 0 and negative == pytest.approx(0.019, abs=5e-4)
    for epsilon in (-0.3, 0.3):
        error = [abs(ratio(d, epsilon, **FIXED) - 1) for d in (400, 800, 1600)]
        np.testing.assert_allclose(
            np.log2([error[0] / error[1], error[1] / error[2]]), 1, atol=0.1
        )  # it is the leading order in 1/d


def half(d, **options):
    """P_e d^{-3} at which R_3 = ½, for ε = -0.3."""
    target = single_index.staircase(-0.3)
    return np.exp(brentq(lambda u: single_index.lazy("erf", target, d, d**3 * np.exp(u), **options)[1][1] - 0.5, -3, 4))


def test_sample_complexity_of_the_wide_network():
    fixed = [half(d, perpendicular="sphere") for d in (25, 50, 100)]
    np.testing.assert_allclose(fixed, [4.82, 5.06, 5.18], atol=0.006)
    limit = 27 * np.pi / 16
    for kind in ("free", "fixed", "sphere"):
        assert half(20_000, perpendicular=kind) == pytest.approx(limit, rel=2e-3)
    dimensions = np.array([50, 100, 200, 400])
    samples = [half(d, perpendicular="sphere") * d**3 for d in dimensions.tolist()]
    assert np.polyfit(np.log(dimensions), np.log(samples), 1)[0] == pytest.approx(3, abs=0.05)
    # Averaged over |w|² too, which is chi-squared across the teacher, it lies between the two.
    for d in (25, 50, 100):
        radii, weights = roots_genlaguerre(40, (d - 3) / 2)
        seen = np.array([single_index.projections("erf", X / np.sqrt(d), 2 * r / d) for r in radii])
        kernel = np.einsum("rki,rkj,r,k->ij", seen, seen, weights / weights.sum(), WEIGHTS)
        target = single_index.staircase(-0.3)
        exact = np.exp(
            brentq(lambda u: np.linalg.solve(np.eye(2) + d**3 * np.exp(u) * kernel, target)[1] / target[1] - 0.5, -3, 4)
        )
        assert half(d, perpendicular="sphere") < exact < half(d, **FIXED)
        assert half(d) == half(d, perpendicular="free") == pytest.approx(exact, rel=1e-7)


def test_lazy_is_regression_on_drawn_data():
    rng, d, samples, bare, epsilon = np.random.default_rng(2), 20, 100, 0.1, 0.3
    target, found = single_index.staircase(epsilon), []
    for _ in range(80):
        x, z = rng.standard_normal((samples, d)), rng.standard_normal((6000, d))
        y = x[:, 0] + epsilon * (x[:, 0] ** 3 - 3 * x[:, 0])
        mean = nngp.kernel("erf", z, x) @ np.linalg.solve(nngp.kernel("erf", x) + bare * np.eye(samples), y)
        found.append([(mean * normalized(n, z[:, 0])).mean() for n in ERF] / target)
    measured, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    learned = single_index.lazy("erf", target, d, 1 / single_index.ridge("erf", d, samples, bare), **FIXED)[1]
    assert np.all(np.abs(measured - learned) < 3 * error + 5 / samples * np.abs(learned))
    assert measured[1] < -3 * error[1]  # negative, as predicted


# --- bad input: every public function, every argument -------------------------------------------------------

WEIGHT = {"weight_variance": 1.0, "readout_variance": 1.0}
CALLS = {
    single_index.projections: {"activation": "erf", "overlap": [0.1, 0.2], "weight_variance": 1.0, "degrees": (1, 3)},
    single_index.moments: {"activation": "relu", "variance": 0.1, "weight_variance": 1.0, "degrees": (1, 3)},
    single_index.staircase: {"epsilon": 0.1},
    single_index.relu_teacher: {"epsilon": 0.1},
    single_index.ridge: {"activation": "erf", "dimension": 20, "samples": 10.0, "ridge": 0.1, **WEIGHT},
    single_index.lazy: {"activation": "erf", "target": [1.0, 2.0], "dimension": 20, "effective_samples": 9.0, **WEIGHT}
    | {"degrees": (1, 3), "perpendicular": "sphere"},
}
NOT_ARRAYS = ["x", None, np.nan, [np.inf], 1j, [True]]
BAD = {
    "activation": ["tanh", "linear", 1, None, ["erf"]],
    "overlap": NOT_ARRAYS,
    "variance": [*NOT_ARRAYS, -1.0, [-1.0, 1.0]],
    "weight_variance": [*NUMBER, 1e-60, 1e60],
    "readout_variance": [*NUMBER, 1e-60, 1e60],
    "degrees": [[], [1.5], [-1], [1, 1], 3, "13", [[1]], [21], [np.nan]],
    "epsilon": [bad for bad in NUMBER if bad is True or bad not in (0, -1.0)],
    "dimension": [0, -2, 2.0, "2", None, True],
    "samples": [*NOT_ARRAYS, 0.0, -1.0],
    "ridge": [*NOT_ARRAYS, -1.0],
    "target": [
        [0.0, 0.0],
        [1.0],
        [1.0, 2.0, 3.0],
        [1.0, np.nan],
        "y",
        None,
        1.0,
        [[1.0, 2.0]],
        [1e60, 0.0],
        [1.0, 1e-60],
    ],
    "effective_samples": [*NOT_ARRAYS, -1.0],
    "perpendicular": ["other", True, None, 1.0],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)
