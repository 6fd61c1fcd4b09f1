"""ridge_flow against integrated differential equations and sums over modes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from lib.common.spectrum import Spectrum
from lib.fields.renormalization.decimation import running_ridge
from lib.fields.renormalization.ridge_flow import flow


@settings(deadline=None, max_examples=15)
@given(alpha=st.floats(0.05, 2), ridge=st.floats(1e-3, 1), start=st.floats(50, 1e5), samples=st.floats(1, 100))
def test_the_flow_solves_its_differential_equations(alpha, ridge, start, samples):
    """d(ln τ)/dl = α - τ and d(ln p)/dl = 1 + α - τ from the bare theory at Λ₀."""
    cutoffs = start * np.exp(-np.linspace(1e-12, 8, 9))
    found = flow(cutoffs, decay=1 + alpha, ridge=ridge, samples=samples, start=start)
    first = np.log([start**-alpha / ridge, samples * start ** (-1 - alpha) / ridge])

    def rates(_, logs):
        return [alpha - np.exp(logs[0]), 1 + alpha - np.exp(logs[0])]

    logs = solve_ivp(rates, (0, 8), first, t_eval=np.linspace(0, 8, 9), rtol=1e-10, atol=1e-10, method="LSODA").y
    np.testing.assert_allclose(np.log([found.coupling, found.learnability]), logs, atol=1e-6)
    np.testing.assert_allclose(found.ridge[0], ridge, rtol=1e-8)


@pytest.mark.parametrize("decay", [1.2, 1.5, 2.0])
def test_the_flow_is_the_sum_over_modes(decay):
    """Modes k > Λ' fill Λ > Λ' + 1/2: the continuous ridge is the sum to 1e-3 for Λ' >= 20."""
    size, cuts = 10**6, np.array([20, 200, 2000, 20_000])
    found = flow(cuts + 0.5, decay=decay, ridge=1e-3, samples=1.0, start=size + 0.5).ridge
    np.testing.assert_allclose(found, running_ridge(Spectrum.power_law(size, decay), 1e-3, cuts), rtol=1e-3)


@pytest.mark.parametrize("alpha", [0.2, 0.5, 1.0])
def test_every_start_flows_to_the_self_made_ridge(alpha):
    """τ → α, short of it by the tail beyond the first cutoff; without that tail τ = α at once."""
    ways = {"decay": 1 + alpha, "samples": 1.0}
    np.testing.assert_allclose(flow([3.0, 3e4], ridge=0.0, **ways).coupling, alpha, rtol=1e-12)
    tailless = flow(10.0, ridge=0.0, start=1e6, **ways).coupling
    assert tailless == pytest.approx(alpha / (1 - 1e-5**alpha), rel=1e-12) and type(tailless) is float
    weak = flow([1e3, 1e2], ridge=1e6, start=1e4, **ways).coupling
    assert weak[1] / weak[0] == pytest.approx(10**alpha, rel=1e-4)  # the bare ridge rules: τ grows as e^{αl}


@pytest.mark.parametrize(
    ("cutoffs", "ways", "message"),
    [
        (1e300, {"decay": 2.5}, "cutoffs must keep the result"),
        ([2.0, 100.0], {"start": 100.0}, "cutoffs must have entries > 0 and < 100"),
        ([1.0], {"start": -np.inf}, "start must be one finite number > 0"),
    ],
)
def test_what_does_not_fit_is_refused(cutoffs, ways, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        flow(cutoffs, **{"decay": 1.5, "ridge": 0.0, "samples": 1.0} | ways)
