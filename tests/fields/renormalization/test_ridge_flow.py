"""ridge_flow against integrated differential equations, sums over modes, and the self-consistent ridge."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq

from lib.common.spectrum import Spectrum
from lib.fields.kernels.effective_ridge import RidgeTheory
from lib.fields.renormalization import decimation, ridge_flow

INDEX = st.floats(0.05, 2)


@settings(deadline=None, max_examples=25)
@given(delta=st.floats(-3, 3), ridge=st.floats(0.2, 5), variance=st.floats(0.05, 5))
def test_the_averaged_vertex_is_the_gaussian_integral(delta, ridge, variance):
    def weighted(eta):
        return np.exp(-((delta + eta) ** 2) / (2 * ridge) - eta**2 / (2 * variance)) / np.sqrt(2 * np.pi * variance)

    expected = quad(weighted, -40, 40, limit=400, points=[0, -delta], epsabs=0, epsrel=1e-10)[0]
    assert ridge_flow.averaged_vertex([delta], ridge, variance) == pytest.approx(expected, rel=1e-7)


def test_the_prefactor_of_the_vertex_goes_away_with_the_replicas():
    """Π over r replicas; the number of samples is multiplied by (T/(T+s))^{r/2}, which is 1 for r = 0."""
    one = ridge_flow.averaged_vertex([[0.3], [-1.2]], 0.5, 2.0)
    assert ridge_flow.averaged_vertex([0.3, -1.2], 0.5, 2.0) == pytest.approx(one.prod(), rel=1e-12)
    factors = [ridge_flow.averaged_vertex(np.zeros(r), 0.5, 2.0) for r in (0, 1, 2)]
    np.testing.assert_allclose(factors, 0.2 ** np.array([0, 0.5, 1]), rtol=1e-12)
    assert ridge_flow.averaged_vertex([0.7], 0.5, 0.0) == pytest.approx(np.exp(-0.49), rel=1e-12)


@settings(deadline=None, max_examples=50)
@given(alpha=INDEX)
def test_fixed_points_and_their_slopes(alpha):
    np.testing.assert_array_equal(ridge_flow.beta([0.0, alpha], alpha), [0, 0])
    step = 1e-6 * alpha
    slope = (ridge_flow.beta(alpha + step, alpha) - ridge_flow.beta(alpha - step, alpha)) / (2 * step)
    assert slope == pytest.approx(-alpha, rel=1e-8)
    assert ridge_flow.beta(step, alpha) / step == pytest.approx(alpha, rel=1e-5)  # unstable


@settings(deadline=None, max_examples=15)
@given(alpha=INDEX, ridge=st.floats(1e-3, 1), start=st.floats(50, 1e5), samples=st.floats(1, 100))
def test_the_flow_solves_its_differential_equations(alpha, ridge, start, samples):
    """d(ln τ)/dl = β(τ)/τ and d(ln p)/dl = 1 + α - τ from the bare theory at Λ₀."""
    cutoffs = start * np.exp(-np.linspace(1e-12, 8, 9))
    found = ridge_flow.flow(cutoffs, alpha, ridge, samples, start=start)

    def rates(_, logs):
        tau = np.exp(logs[0])
        return [ridge_flow.beta(tau, alpha) / tau, 1 + alpha - tau]

    shell = start**-alpha
    first = np.log([shell / ridge, samples * shell / start / ridge])
    logs = solve_ivp(rates, (0, 8), first, t_eval=np.linspace(0, 8, 9), rtol=1e-10, atol=1e-10, method="LSODA").y
    np.testing.assert_allclose(np.log([found.coupling, found.learnability]), logs, atol=1e-6)
    np.testing.assert_allclose(found.quartic, found.coupling / 4, rtol=1e-15)
    np.testing.assert_allclose(found.ridge[0], ridge, rtol=1e-8)


@pytest.mark.parametrize("alpha", [0.2, 0.5, 1.0])
def test_the_flow_is_the_sum_over_modes(alpha):
    """Modes k > Λ' fill Λ > Λ' + 1/2: the continuous ridge is the sum to 1e-3 for Λ' >= 20."""
    size, cuts = 10**6, np.array([20, 200, 2000, 20_000])
    summed = decimation.running_ridge(Spectrum.power_law(size, 1 + alpha), 1e-3, cuts)
    found = ridge_flow.flow(cuts + 0.5, alpha, 1e-3, 1.0, start=size + 0.5).ridge
    np.testing.assert_allclose(found, summed, rtol=1e-3)


def test_every_start_flows_to_the_self_made_ridge():
    """After five decades: τ → α, short of it by the tail beyond the first cutoff; without that tail τ = α at once."""
    for alpha, reached in ((0.2, 0.222), (0.5, 0.501), (1.0, 0.990)):
        assert ridge_flow.flow(10.0, alpha, 1e-3, 1.0, start=1e6).coupling == pytest.approx(reached, abs=6e-4)
        np.testing.assert_allclose(ridge_flow.flow([3.0, 3e4], alpha, 0.0, 1.0).coupling, alpha, rtol=1e-12)
    tail = 1 / (1 - 1e-5**0.2)
    assert ridge_flow.flow(10.0, 0.2, 0.0, 1.0, start=1e6).coupling == pytest.approx(0.2 * tail, rel=1e-12)
    weak = ridge_flow.flow([1e3, 1e2], 0.5, 1e4, 1.0, start=1e4).coupling
    assert weak[1] / weak[0] == pytest.approx(10**0.5, rel=1e-3)  # the bare ridge rules: τ grows as e^{αl}


def test_a_quarter_of_the_coupling_is_the_quartic_coefficient():
    """-Pe^{-δ²/2T} = -P + (P/2T)δ² - (P/8T²)δ⁴: the fourth derivative over the second one at δ = 0, times the shell."""
    found = ridge_flow.flow(30.0, 0.7, 0.02, 1.0)
    ridge, shell = found.ridge, 30.0**-0.7
    x, h = np.arange(-3, 4), 0.1 * np.sqrt(ridge)
    values = -ridge_flow.averaged_vertex((x * h)[:, None], ridge, 0.0)
    quadratic, quartic = np.polynomial.Polynomial.fit(x * h, values, 6).convert().coef[[2, 4]]
    assert found.quartic == pytest.approx(-quartic / quadratic * shell, rel=1e-3)


@settings(deadline=None, max_examples=10)
@given(ridge=st.floats(1e-3, 10), samples=st.floats(1, 300), second=st.floats(0.05, 1))
def test_the_dressed_ridge_solves_its_differential_equation(ridge, samples, second):
    lam, counts, value = np.array([1.0, second]), np.array([3, 40]), ridge
    found = ridge_flow.dressed_ridge(Spectrum([*lam, 0.0], [*counts, 1]), samples, ridge=ridge)
    assert found[2] == found[3] == ridge
    for k in (1, 0):
        way = (0, counts[k]), [value]
        run = solve_ivp(lambda _, t: lam[k] / (1 + samples * lam[k] / t), *way, rtol=1e-10, atol=1e-12)
        value = run.y[0, -1]
        assert found[k] == pytest.approx(value, rel=1e-7)
    split = ridge_flow.dressed_ridge(np.repeat(lam, counts), [samples, 2 * samples], ridge=ridge)
    np.testing.assert_allclose(split[[0, 3, 43], 0], found[:3], rtol=1e-10)


@settings(deadline=None, max_examples=40)
@given(
    values=st.lists(st.floats(1e-4, 10), min_size=2, max_size=10),
    samples=st.floats(0.5, 100),
    ridge=st.floats(1e-2, 10),
    data=st.data(),
)
def test_the_functional_flow_closes_at_every_cut_on_the_effective_ridge(values, samples, ridge, data):
    lam = np.sort(values)[::-1]
    counts = np.array(data.draw(st.lists(st.floats(0.5, 20), min_size=lam.size, max_size=lam.size)))
    spectrum = Spectrum(lam, counts)
    kappa = RidgeTheory(spectrum, samples, ridge=ridge).kappa
    for cut in range(lam.size + 1):

        def excess(log_kappa, cut=cut):
            k = np.exp(log_kappa)
            flowing = ridge_flow.functional_ridge(k, spectrum, ridge, [cut])[0]
            return flowing / k + (counts * lam / (lam + k))[:cut].sum() - samples

        root = brentq(excess, np.log(kappa) - 3, np.log(kappa) + 3, xtol=1e-13)
        assert np.exp(root) == pytest.approx(kappa, rel=1e-10)
    everything = ridge_flow.functional_ridge([kappa], spectrum, ridge, [0])[0, 0]
    assert everything == pytest.approx(samples * kappa, rel=1e-10)


def test_the_running_ridge_is_the_functional_one_for_large_kappa():
    """T(Λ) - T_Λ(κ) = Σ_> λ²/κ to first order; the rest falls as κ^{-2}."""
    lam, cuts = np.arange(1, 51) ** -1.5, np.array([0, 5, 20])
    kappa = np.array([1e2, 1e3])
    found = ridge_flow.functional_ridge(kappa, lam, 0.3, cuts)
    first = decimation.running_ridge(lam, 0.3, cuts) - np.array([(lam[c:] ** 2).sum() for c in cuts]) / kappa[:, None]
    rest = np.abs(found - first)
    np.testing.assert_allclose(rest[0] / rest[1], 100, rtol=0.05)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ridge_flow.averaged_vertex(0.1, 1.0, 0.5), "discrepancies must have one axis or more"),
        (lambda: ridge_flow.flow(1e300, 1.5, 0.0, 1.0), "cutoffs must keep the result"),
        (lambda: ridge_flow.flow([2.0, 100.0], 0.5, 0.1, 3, start=100.0), "cutoffs must have entries > 0 and < 100"),
        (lambda: ridge_flow.flow([1.0], 0.5, 0.1, 3, start=-np.inf), "start must be one finite number > 0"),
        (lambda: ridge_flow.dressed_ridge([1.0], 1.0, ridge=0.0), "ridge must be one finite number > 0"),
        (lambda: ridge_flow.dressed_ridge([1.0, 2.0], 1.0, ridge=1.0), "spectrum must have its eigenvalues in desc"),
        (lambda: ridge_flow.functional_ridge(1.0, [1.0, 2.0], 1.0, [0]), "spectrum must have its eigenvalues in desc"),
        (lambda: ridge_flow.functional_ridge(1.0, [2.0, 1.0], 1.0, [3]), "cuts must have entries >= 0 and <= 2"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()
