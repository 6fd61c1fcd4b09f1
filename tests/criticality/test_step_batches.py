"""lib.criticality.step_batches against the sandwich of the largest, samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gamma
from scipy.stats import lognorm, pareto

from lib.criticality import step_batches

RNG = np.random.default_rng(3)


# --- by the largest step --------------------------------------------------------------------------


@given(st.floats(0.2, 4), st.integers(1, 50), st.integers(0, 99))
def test_no_batch_of_any_sample_leaves_the_sandwich_of_its_largest(width, batch, seed):
    steps = lognorm(width).rvs((200, batch), random_state=seed)
    means, largest = steps.mean(axis=1), steps.max(axis=1)
    assert np.all(largest <= means * batch * (1 + 1e-12)) and np.all(means <= largest * (1 + 1e-12))
    law = lognorm(width)
    shares = np.array([0.05, 0.5, 0.95])
    quantiles = step_batches.largest_quantile(law.ppf, shares, batch)
    np.testing.assert_allclose(law.cdf(batch * quantiles) ** batch, shares, rtol=1e-9)  # all M steps below M times it


@pytest.mark.parametrize(("order", "batch"), [(3, 2), (3, 3), (5, 2)])
def test_near_a_zero_the_largest_has_the_exponent_and_misses_the_prefactor_by_gammas(order, batch):
    steps = RNG.uniform(size=(1_200_000, batch)) ** order  # F = s^{1/r}
    means, s = np.sort(steps.mean(axis=1)), np.array([1e-3, 1e-2])
    share = np.searchsorted(means, s) / len(means)
    missing = gamma(1 + 1 / order) ** batch / gamma(1 + batch / order)  # Dirichlet's integral, while Ms < 1
    expected = missing * (batch * s) ** (batch / order)
    assert np.all(np.abs(share - expected) < 4 * np.sqrt(expected / len(means)))


@pytest.mark.parametrize("batch", [4, 64])
def test_at_a_pole_the_tail_of_the_mean_is_that_of_its_largest(batch):
    law, s = pareto(0.7), 1e6
    tail = 1 - law.cdf(batch * s) ** batch
    assert tail == pytest.approx(batch**0.3 * s**-0.7, rel=1e-3)  # M^{1-α} K S^{-α}
    means = law.rvs((400_000 * 16 // batch, batch), random_state=5).mean(axis=1)
    beyond, s = np.mean(means > 2e3), 2e3
    predicted = 1 - law.cdf(batch * s) ** batch
    # the bulk adds less than M steps of E[s; s < Ms] ~ (Ms)^0.3, a share of some per cent here
    assert beyond == pytest.approx(predicted, rel=0.06 + 4 / np.sqrt(predicted * len(means)))


def test_the_crowd_takes_over_where_a_mean_is_as_wide_as_its_largest_says():
    assert step_batches.crowd(np.full(7, 1e-200)) == pytest.approx(1, rel=1e-12)
    u = (np.arange(1_000_000) + 0.5) / 1_000_000
    assert step_batches.crowd(lognorm(1.0).ppf(u)) == pytest.approx(np.e, rel=1e-3)
    steps = lognorm(1.5).rvs(400_000, random_state=1)
    batch = round(step_batches.crowd(steps))
    means = steps[: len(steps) // batch * batch].reshape(-1, batch).mean(axis=1)
    assert means.std() / means.mean() == pytest.approx(1, rel=0.1)  # Var/⟨s⟩² + 1 = M*: the spread of the mean is one


@pytest.mark.parametrize(("call", "message"), [
    (lambda: step_batches.crowd([0.0, 0.0]), "steps must hold one number above zero"),
])  # fmt: skip
def test_arguments_that_do_not_fit_are_refused(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()
