"""lib.scaling.power_law against quadrature, sums, the zeta function, minimization, limits."""

import numpy as np
import pytest
from power_law import power_law
from scipy.integrate import quad
from scipy.special import gamma, zeta

from lib.scaling.linear_student import LinearStudent
from lib.scaling.power_law import PowerLaw


@pytest.mark.parametrize("ends, first, last", [("midpoint", 0.5, 256.5), ("endpoint", 1.0, 256.0)])
def test_error_is_the_integral(ends, first, last):
    lam = power_law(256, 0.75)
    for time in (0.5, 20.0, 2000.0):
        integral = quad(
            lambda u: np.exp(u - 1.75 * u - 0.2 * lam[0] * time * np.exp(-1.75 * u)),
            *np.log([first, last]), epsabs=0, epsrel=1e-11, limit=200,
        )[0]  # fmt: skip
        got = PowerLaw(256, 0.75).flow_error(time, 0.1, ends=ends)
        assert got == pytest.approx(lam[0] / 512 * integral, rel=1e-9)


def test_frozen_modes_are_counted_once():
    law, times = PowerLaw(256, 0.75), np.geomspace(0.3, 1e4, 9)
    exact = LinearStudent(law.spectrum, 0.1, trained=50).flow_error(times)
    np.testing.assert_allclose(law.flow_error(times, 0.1, trained=50)[1:], exact[1:], rtol=0.01)
    late = law.flow_error(1e9, 0.1, trained=50, ends="endpoint")
    assert late == pytest.approx(law.tail(50, ends="endpoint"), rel=1e-9)
    assert ((law.flow_error(times, 0.1) + law.tail(50)) / exact).max() > 1.3  # the printed range counts them twice


def test_window_is_where_the_printed_power_law_holds():
    """Its begin is one step of the first mode; deep inside the error is the leading power less the part (α/α_hi)^s."""
    levels, rate = 200_000, 0.1
    for beta in (0.5, 1.0):
        s, law = beta / (1 + beta), PowerLaw(levels, beta)
        begin, end = law.window(rate)
        assert 2 * rate * law.top * begin == pytest.approx(1, rel=1e-14)
        times = begin * np.array([30.0, 100.0, 300.0])
        power = law.top / (2 * levels) * gamma(s) / (1 + beta) * (times / begin) ** -s
        error = LinearStudent(law.spectrum, rate).flow_error(times)
        np.testing.assert_allclose(error / power, 1 - (times / end) ** s, rtol=2e-4)
    assert 0 < law.flow_error(end, rate) < 0.5 * power[0] * (end / times[0]) ** -s


def test_the_effective_rank_has_the_missing_tail_of_the_error():
    levels, rate = 200_000, 0.1
    for beta in (0.5, 1.0):
        s, law = beta / (1 + beta), PowerLaw(levels, beta)
        times = law.window(rate)[0] * np.array([1e2, 1e4])
        rank = law.effective_rank(times, rate)
        c = 2 * rate * law.top * times
        np.testing.assert_allclose(rank, c ** (1 / (1 + beta)) * gamma(1 + s) ** (-1 / beta), rtol=1e-12)
        whole = law.top / (2 * beta * levels) * rank**-beta  # of a power law without end
        np.testing.assert_allclose(law.flow_error(times, rate) + law.missing_tail, whole, rtol=1e-5)
        beyond = law.top / (2 * levels) * zeta(1 + beta, levels + 1)
        assert law.missing_tail == pytest.approx(beyond, rel=1e-9)
        assert law.effective_rank(law.window(rate)[1], rate) == pytest.approx(levels, rel=1e-12)


def test_limits_of_the_power_law_keep_their_digits():
    flat = PowerLaw(1000, 1e-16)
    begin, end = flat.window(0.1)
    assert end / begin == pytest.approx(1000 * np.exp(-np.euler_gamma), rel=1e-13)  # Γ(1+s)^{1/s} for s → 0
    assert flat.effective_rank(7 * begin, 0.1) == pytest.approx(7 * np.exp(np.euler_gamma), rel=1e-13)
    assert flat.tail(50) == pytest.approx(np.log(1000.5 / 50.5) / (2 * (1 / np.arange(1, 1001)).sum()), rel=1e-13)
    early = power_law(1000, 5.0)[0] / 2000 / 5 * (0.5**-5 - 1000.5**-5)  # ½ Σ λ_k/L as an integral, at α = 0
    assert PowerLaw(1000, 5.0).flow_error(1e-14, 0.1) == pytest.approx(early, rel=1e-10)
    tiny, small = (PowerLaw(20_000, beta).best_split(1e4, 0.01)[1] for beta in (1e-15, 1e-9))
    assert tiny == pytest.approx(small, rel=1e-8)


def test_the_tail_as_an_integral_is_close_to_its_sum():
    trained, law = np.array([50, 200]), PowerLaw(256, 0.75)
    exact = np.array([law.spectrum.eigenvalues[n:].sum() for n in trained]) / 512
    np.testing.assert_allclose(law.tail(trained), exact, rtol=2e-4)
    printed = np.abs(law.tail(trained, ends="endpoint") / exact - 1)
    assert (printed > 2e-3).all() and (printed < 0.05).all()


def test_split_is_the_best_of_all_sizes_and_its_error_the_least():
    budget, rate = np.array([1e4, 1e5]), 0.01
    for beta in (0.5, 1.0):
        law = PowerLaw(20_000, beta)
        for one, size, error in zip(budget, *law.best_split(budget, rate)):
            kept = np.arange(int(0.8 * size), int(1.2 * size))
            errors = [LinearStudent(law.spectrum, rate, trained=n).flow_error(one / n) for n in kept]
            assert abs(kept[np.argmin(errors)] + 0.5 - size) < 0.01 * size + 1
            assert error == pytest.approx(min(errors), rel=3e-3)


def test_what_does_not_fit_together_is_refused():
    for trained, levels, name in ((None, 1, "levels"), (1, 3, "trained")):
        with pytest.raises(ValueError, match=f"^{name} must be at least 2"):
            PowerLaw(levels, 0.5).flow_error([1.0], 0.1, trained=trained, ends="endpoint")
    for wrong, call in {
        "times must be > 0": lambda: PowerLaw(3, 0.5).flow_error([0.0, 1.0], 0.1),
        "budget must ask for no more than the 100 weights": lambda: PowerLaw(100, 0.5).best_split(1e7, 0.1),
        "trained must ": lambda: PowerLaw(2, 0.5).tail(3),
    }.items():
        with pytest.raises(ValueError, match=f"^{wrong}"):
            call()
