"""lib.fields.kernels.effective_ridge against roots one by one, closed forms, quadrature, and the annealed action."""

import numpy as np
import pytest
from bad_input import NUMBER, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq, minimize

from lib.fields.kernels import effective_ridge

spectra = st.lists(st.floats(1e-6, 10.0), min_size=1, max_size=12)


def power_law(modes, exponent):
    return np.arange(1.0, modes + 1) ** -exponent


def solved_alone(values, counts, p, t):
    """κ by a scalar root of the equation as it is printed."""

    def surplus(u):
        return t * np.exp(-u) + (counts * values / (values + np.exp(u))).sum() - p

    return np.exp(brentq(surplus, np.log(values.min()) - 40, np.log((t + counts @ values) / p) + 1e-9, xtol=1e-13))


# --- the root -------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(spectra, st.integers(0, 99), st.floats(0.5, 200), st.floats(1e-6, 10))
def test_kappa_solves_the_equation_in_both_its_forms(eigenvalues, seed, p, t):
    values, counts = np.array(eigenvalues), np.random.default_rng(seed).integers(1, 40, len(eigenvalues)).astype(float)
    kappa = effective_ridge.solve(values, p, ridge=t, multiplicities=counts)
    learned = values / (values + kappa)
    assert t / kappa + counts @ learned == pytest.approx(p, rel=1e-10)
    variance = counts @ effective_ridge.posterior_variance(values, kappa)
    assert p * kappa == pytest.approx(t + variance, rel=1e-10)
    assert kappa == pytest.approx(solved_alone(values, counts, p, t), rel=1e-9)
    np.testing.assert_allclose(effective_ridge.learnability(values, kappa), learned, rtol=1e-13)


@settings(deadline=None, max_examples=30)
@given(spectra, st.integers(0, 11), st.floats(1.0, 50), st.floats(1e-3, 10), st.floats(1e-8, 1e8))
def test_kappa_falls_with_samples_rises_with_ridge_and_eigenvalues_and_scales(eigenvalues, place, p, t, scale):
    values = np.array(eigenvalues)
    kappa = effective_ridge.solve(values, [p, 1.1 * p], ridge=t)
    assert kappa[1] < kappa[0] < effective_ridge.solve(values, p, ridge=1.1 * t)
    raised = values * np.where(np.arange(values.size) == place % values.size, 1.5, 1.0)
    assert effective_ridge.solve(raised, p, ridge=t) > kappa[0]
    np.testing.assert_allclose(
        effective_ridge.solve(scale * values, [p, 1.1 * p], ridge=scale * t), scale * kappa, rtol=1e-10
    )


def test_grouped_modes_zeros_and_order_change_nothing_and_shapes_broadcast():
    values, counts = np.array([0.2, 3.0, 0.0, 0.7]), np.array([3, 1, 4, 2])
    p, t = np.array([[2.0], [5.0], [40.0]]), np.array([1e-9, 0.1, 3.0, 50.0])
    kappa = effective_ridge.solve(values, p, ridge=t, multiplicities=counts)
    assert kappa.shape == (3, 4)
    np.testing.assert_allclose(kappa, effective_ridge.solve(np.repeat(values, counts), p, ridge=t), rtol=1e-12)
    each = [
        [effective_ridge.solve(values, p[i, 0], ridge=t[j], multiplicities=counts) for j in range(4)] for i in range(3)
    ]
    np.testing.assert_allclose(kappa, each, rtol=1e-13)
    assert np.ndim(each[0][0]) == 0


def test_without_a_ridge_kappa_is_zero_from_the_rank_on_and_only_there():
    values = np.array([1.0, 0.5, 0.0, 0.1])
    kappa = effective_ridge.solve(values, [1, 2, 2.999, 3, 4], ridge=0.0, multiplicities=[1, 1, 7, 1])
    assert np.all(kappa[:3] > 0) and np.all(kappa[3:] == 0)
    assert np.all(effective_ridge.solve(values, [3, 4, 400], ridge=1e-12) > 0)
    assert effective_ridge.learnability(values, 0.0).tolist() == [1, 1, 0, 1]


@pytest.mark.parametrize("t", [1e-6, 1e-14, 1e-30])
def test_at_the_rank_a_tiny_ridge_leaves_its_root(t):
    values = power_law(40, 2.0)
    expected = np.sqrt(t / (1 / values).sum())  # κ Σ 1/λ = T/κ, first order in κ
    assert effective_ridge.solve(values, 40, ridge=t) == pytest.approx(
        expected, rel=2 * expected * (1 / values**2).sum() / (1 / values).sum() + 1e-13
    )
    assert effective_ridge.solve(values, 50, ridge=t) == pytest.approx(t / 10, rel=t * (1 / values).sum() + 1e-13)


def test_two_plateaus_thirty_decades_apart():
    kappa = effective_ridge.solve([1.0, 1e-30], [60, 61, 1000], ridge=0.0, multiplicities=[60, 1000])
    # P = 60: 60κ = 1000·10⁻³⁰/κ;  beyond it the upper modes cost nothing and the lower plateau is alone
    np.testing.assert_allclose(kappa, [np.sqrt(1e-27 / 60), 999e-30, 1e-30 * 60 / 940], rtol=1e-12)


@settings(deadline=None, max_examples=40)
@given(st.floats(1e-3, 1e3), st.integers(1, 500), st.integers(1, 1000), st.one_of(st.just(0.0), st.floats(1e-12, 1e3)))
def test_one_eigenvalue_in_closed_form(value, count, p, t):
    closed = effective_ridge.degenerate(value, count, p, ridge=t)
    assert closed == pytest.approx(effective_ridge.solve([value], p, ridge=t, multiplicities=[count]), rel=1e-10)
    largest = max(p * closed**2, abs(p * value - count * value - t) * closed, t * value)
    assert abs(p * closed**2 + (p * value - count * value - t) * closed - t * value) <= 1e-12 * largest


@pytest.mark.parametrize(("exponent", "expected"), [(1.1, 0.0208), (1.2, 0.00994), (1.5, 0.00129)])
def test_ridgeless_power_laws_have_the_known_values(exponent, expected):
    assert effective_ridge.solve(power_law(200_000, exponent), 200, ridge=0.0) == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize("exponent", [1.1, 1.5, 2.0, 3.7])
def test_the_ridgeless_amplitude_is_the_integral_over_modes(exponent):
    integral = (
        quad(lambda x: 1 / (1 + x**exponent), 0, 1)[0]
        + quad(lambda x: x ** (exponent - 2) / (1 + x**exponent), 0, 1)[0]
    )
    assert effective_ridge.ridgeless_amplitude(exponent) == pytest.approx(integral**exponent, rel=1e-6)


@pytest.mark.parametrize("exponent", [1.5, 2.0])
def test_a_million_modes_approach_the_ridgeless_amplitude(exponent):
    p = np.array([100, 200])
    kappa = effective_ridge.solve(power_law(10**6, exponent), p, ridge=0.0)
    np.testing.assert_allclose(kappa * p**exponent, effective_ridge.ridgeless_amplitude(exponent), rtol=0.02)


@pytest.mark.parametrize("over", [10.0, 100.0, 1e4])
def test_a_large_ridge_leads_to_the_equivalent_kernel(over):
    values = power_law(500, 1.3)
    t = over * values.sum()
    bare, missing = effective_ridge.equivalent_kernel(values, 50, ridge=t)
    kappa = effective_ridge.solve(values, 50, ridge=t)
    assert bare == t / 50 and 0 < kappa / bare - 1 < values.sum() / t
    assert kappa / bare - 1 == pytest.approx(missing, rel=1 / over)


# --- the closures ---------------------------------------------------------------------------------

TARGET = np.where(np.arange(1000) == 9, 9.0, 0.0)


def test_closures_at_the_setting_where_regressions_were_measured():
    """Mode 10 of k^-1.3 with amplitude 3, P = 100, T = 0.05; regressions (test_feature_regression.py) gave 0.860."""
    found = [
        effective_ridge.closure_learnability(name, power_law(1000, 1.3), TARGET, 100, ridge=0.05)[9]
        for name in effective_ridge.CLOSURES
    ]
    np.testing.assert_allclose(found, [0.857, 0.776, 0.934], atol=6e-4)


def test_only_the_quenched_closure_ignores_the_targets_amplitude():
    values = power_law(1000, 1.3)
    kappa = effective_ridge.solve(values, 100, ridge=0.05)
    quenched = [
        effective_ridge.closure_learnability("quenched", values, scale * TARGET, 100, ridge=0.05)
        for scale in (0, 1, 100)
    ]
    np.testing.assert_allclose(quenched, [effective_ridge.learnability(values, kappa)] * 3, rtol=1e-10)
    for name, loud in (("annealed", 1), ("half", 10)):
        small, large = (
            effective_ridge.closure_learnability(name, values, scale * TARGET, 100, ridge=0.05)[9]
            for scale in (0.01, loud)
        )
        assert large < 0.95 * small
    # without a target nothing tells annealed from quenched
    np.testing.assert_allclose(
        effective_ridge.closure_learnability("annealed", values, 0 * TARGET, 100, ridge=0.05), quenched[0], rtol=1e-10
    )


def test_the_annealed_closure_is_the_saddle_of_its_action():
    values, v, p, t = np.array([1.0, 0.4, 0.1]), np.array([0.5, -1.0, 0.7]), 6.0, 0.8

    def action(z):
        mean, spread = z[:3], np.exp(z[3:])
        return ((mean**2 + spread) / values - z[3:]).sum() / 2 + p / 2 * np.log(t + ((mean - v) ** 2 + spread).sum())

    lowest = minimize(action, np.zeros(6), tol=1e-14, options={"gtol": 1e-10}, method="BFGS").x
    found = effective_ridge.closure_learnability("annealed", values, v**2, p, ridge=t)
    np.testing.assert_allclose(found, lowest[:3] / v, rtol=1e-6)


def test_closures_with_grouped_modes():
    values, counts, power = np.array([1.0, 0.1]), np.array([2, 30]), np.array([4.0, 1.0])
    split = np.repeat(power / counts, counts)
    for name in effective_ridge.CLOSURES:
        one = effective_ridge.closure_learnability(name, values, power, 20, ridge=0.1, multiplicities=counts)
        each = effective_ridge.closure_learnability(name, np.repeat(values, counts), split, 20, ridge=0.1)
        np.testing.assert_allclose(one, each[[0, -1]], rtol=1e-10)


# --- bad input: every public function, every argument ---------------------------------------------

CALLS = {
    effective_ridge.solve: {
        "eigenvalues": [1.0, 0.5],
        "samples": [3, 4],
        "ridge": [0.1, 1.0],
        "multiplicities": [1, 2],
    },
    effective_ridge.learnability: {"eigenvalues": [1.0, 0.5], "kappa": 0.1},
    effective_ridge.posterior_variance: {"eigenvalues": [1.0, 0.5], "kappa": [0.1]},
    effective_ridge.equivalent_kernel: {
        "eigenvalues": [1.0, 0.5],
        "samples": [3, 4],
        "ridge": 0.1,
        "multiplicities": [1, 2],
    },
    effective_ridge.degenerate: {"eigenvalue": 1.0, "multiplicity": 3, "samples": [3, 4], "ridge": 0.1},
    effective_ridge.ridgeless_amplitude: {"exponent": 1.5},
    effective_ridge.closure_learnability: {
        "closure": "half",
        "eigenvalues": [1.0, 0.5],
        "target_power": [1.0, 0.0],
        "samples": 3,
        "ridge": 0.1,
        "multiplicities": [1, 2],
    },
}
BAD = {
    "eigenvalues": [
        [],
        [0.0, 0.0],
        [1.0, -1e-9],
        [np.nan, 1.0],
        [1.0, 1e-120],
        1.0,
        [[1.0, 0.5]],
        "x",
        None,
        [1j, 1.0],
    ],
    "samples": [0, -1, [3, 0], np.nan, np.inf, "x", None, True, [1j, 2]],
    "ridge": [-1e-9, [0.1, -1], np.nan, np.inf, "x", None, True, np.ones(3)],
    "multiplicities": [[1], [1, 0], [1, -2], [1, np.nan], "x", 1.0],
    "kappa": [-1e-9, [0.1, -1], np.nan, np.inf, "x", None, True],
    "eigenvalue": NUMBER,
    "multiplicity": NUMBER,
    "exponent": [*NUMBER, 1.0],
    "closure": ["replica", "", None, 1, ["half"]],
    "target_power": [[1.0], [-1.0, 0.0], [np.nan, 0.0], 1.0, "x", None],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)


@pytest.mark.parametrize(
    "call",
    [
        lambda: effective_ridge.equivalent_kernel([1.0], 3, ridge=0.0),
        lambda: effective_ridge.closure_learnability("quenched", [1.0], [1.0], 3, ridge=0.0),
        lambda: effective_ridge.solve([1e-300], 3, ridge=1e300),
        lambda: effective_ridge.degenerate(1e-300, 1, 3, ridge=1e300),
    ],
)
def test_a_ridge_that_has_no_result_is_refused(call):
    with pytest.raises(ValueError, match="^ridge must "):
        call()
