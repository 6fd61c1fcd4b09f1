"""Hamiltonian Monte Carlo against Gaussian covariances, quadrature, and autoregressive chains of known time."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.signal import lfilter

from lib.common import hmc

SPREAD = np.array([[2.0, 0.9], [0.9, 0.5]])


def quadratic(x, stiffness=np.linalg.inv(SPREAD)):  # noqa: B008
    gradient = x @ stiffness
    return (x * gradient).sum(axis=1) / 2, gradient


def quartic(x):
    return (x**4 - x**2).sum(axis=1), 4 * x**3 - 2 * x


def wall(x):
    """A half of a Gaussian: no density below zero."""
    return np.where(x < 0, np.inf, x**2 / 2), x


def normal(x):
    return (x**2).reshape(len(x), -1).sum(axis=1) / 2, x


def agrees(series, expected, sigmas=5):
    found = hmc.summary(series)
    assert np.all(np.abs(found.mean - expected) < sigmas * found.error) and np.all(np.abs(found.split_half) < sigmas)
    return found


def test_a_gaussian_has_its_mean_and_covariance():
    x = hmc.sample(quadratic, np.full((30, 2), 3.0), 1500, rng=1).samples
    agrees(x, 0)
    assert np.all(agrees(x[..., :, None] * x[..., None, :], SPREAD).error < 0.03)


@pytest.mark.parametrize(("step", "leapfrog"), [(0.1, 10), (0.45, 1), (0.6, 3)])
def test_a_double_well_has_the_moments_of_quadrature_at_any_step(step, leapfrog):
    weight = [quad(lambda x: x**power * np.exp(x**2 - x**4), -6, 6)[0] for power in (0, 2, 4)]
    chains = hmc.sample(quartic, np.zeros((40, 1)), 2000, rng=2, burn_in=0, step=step, leapfrog=leapfrog)
    assert chains.step == pytest.approx(step, rel=1e-14)
    agrees(chains.samples[200:, :, 0, None] ** [1, 2, 4], [0, weight[1] / weight[0], weight[2] / weight[0]])
    if step == 0.6:  # it matters: without the test of acceptance the moments would be wrong
        assert chains.acceptance.mean() < 0.85


def test_a_hard_wall_is_kept_out():
    x = hmc.sample(wall, np.ones(50), 3000, rng=3).samples
    assert x.min() >= 0
    agrees(x, np.sqrt(2 / np.pi))


def test_rejections_fall_as_the_square_of_the_step():
    start, rejected = np.random.default_rng(4).standard_normal((200, 30)), []
    for step in (0.4, 0.2):  # at one length of the trajectory
        chains = hmc.sample(normal, start, 100, rng=5, burn_in=0, step=step, leapfrog=round(4 / step))
        rejected.append(1 - chains.acceptance.mean())
    assert 3.5 < rejected[0] / rejected[1] < 4.5 and rejected[1] > 5e-3


@pytest.mark.parametrize("wanted", [0.6, 0.8, 0.9])
@pytest.mark.parametrize("step", [1e-4, 0.1, 1e8])
def test_the_step_finds_the_wanted_acceptance_from_anywhere(wanted, step):
    chains = hmc.sample(normal, np.ones((20, 10)), 400, rng=6, acceptance=wanted, burn_in=1000, step=step)
    assert chains.acceptance.mean() == pytest.approx(wanted, abs=0.05)


@settings(max_examples=15)
@given(st.integers(-30, 30).map(lambda power: 2.0**power), st.integers(0, 99))
def test_a_change_of_unit_changes_nothing_but_the_unit(unit, seed):
    def measured(x):
        value, gradient = quartic(x / unit)
        return value, gradient / unit

    start = np.ones((3, 2))
    one = hmc.sample(quartic, start, 20, seed, burn_in=30)
    other = hmc.sample(measured, unit * start, 20, seed, burn_in=30, scale=unit)
    assert np.array_equal(other.samples, unit * one.samples) and other.step == one.step  # powers of two: no rounding


def test_a_scale_for_each_coordinate_evens_out_the_stiffness():
    stiffness = np.array([1.0, 1e6])
    stiff = functools.partial(quadratic, stiffness=np.diag(stiffness))
    chains = hmc.sample(stiff, np.zeros((10, 2)), 800, rng=7, scale=stiffness**-0.5)
    assert chains.step > 0.1
    agrees(chains.samples**2 * stiffness, 1)


def test_a_run_can_be_repeated_and_continued_and_keeps_what_is_asked_for():
    full = hmc.sample(quartic, np.ones((4, 3)), 25, rng=8, burn_in=10)
    kept = hmc.sample(quartic, np.ones((4, 3)), 25, rng=8, burn_in=10, observable=lambda x: x[:, :2].sum(axis=1))
    assert np.array_equal(kept.samples, full.samples[:, :, :2].sum(axis=2))
    assert np.array_equal(kept.last, full.samples[-1])
    random = np.random.default_rng(9)
    one = hmc.sample(quartic, np.ones((4, 3)), 10, random, burn_in=0)
    two = hmc.sample(quartic, one.last, 15, random, burn_in=0)
    whole = hmc.sample(quartic, np.ones((4, 3)), 25, np.random.default_rng(9), burn_in=0)
    assert np.array_equal(np.concatenate([one.samples, two.samples]), whole.samples)
    short, long = (hmc.sample(quartic, np.ones((4, 3)), steps, rng=8, burn_in=100).step for steps in (3, 5))
    assert short == long
    for steps, burn_in in ((3, 100), (110, 110)):  # by default
        left, said = (hmc.sample(quartic, np.ones((4, 3)), steps, rng=8, burn_in=n).step for n in (None, burn_in))
        assert left == said


@pytest.mark.parametrize(("leapfrog", "most"), [(1, 1), (3, 5)])
def test_trajectories_have_from_one_to_twice_the_mean_less_one_steps(leapfrog, most):
    sizes = []

    def counted(x):
        sizes[-1] += 1
        return quartic(x)

    for seed in range(60):
        sizes.append(-1)  # the first evaluation is that of the start
        hmc.sample(counted, np.ones((2, 1)), 1, seed, leapfrog=leapfrog, burn_in=0)
    assert set(sizes) == set(range(1, most + 1))


def test_functions_may_reuse_their_arrays_and_change_what_they_are_given():
    value, gradient = np.empty(4), np.empty((4, 3))

    def reusing(x):
        value[:], gradient[:] = quartic(x)
        x[:] = np.nan
        return value, gradient

    def observable(x):
        x += 1
        return x

    plain = hmc.sample(quartic, np.ones((4, 3)), 25, rng=8, burn_in=10)
    same = hmc.sample(reusing, np.ones((4, 3)), 25, rng=8, burn_in=10, observable=observable)
    np.testing.assert_array_equal(same.samples, plain.samples + 1)


def autoregressive(memory, steps, chains, seed):
    noise = np.random.default_rng(seed).standard_normal((steps + 300, chains))
    return lfilter([1], [1, -memory], noise, axis=0)[300:]


@pytest.mark.parametrize("memory", [0.9, 0.5, 0.0, -0.5])
def test_autoregressive_chains_have_their_time_and_their_error(memory):
    found = [hmc.summary(autoregressive(memory, 3000, 8, seed)) for seed in range(200)]
    times = [one.time for one in found]
    assert np.mean(times) == pytest.approx((1 + memory) / (1 - memory), rel=0.03)
    assert np.std(times) < 0.12 * np.mean(times)
    # Means over their errors are standard normal numbers; 0.05 is the deviation of the spread of 200 of them.
    for ratio in ([one.mean / one.error for one in found], [one.split_half for one in found]):
        assert abs(np.std(ratio) - 1) < 0.2 and abs(np.mean(ratio)) < 0.35


def test_entries_are_summed_up_one_by_one():
    several = np.stack([autoregressive(memory, 500, 3, 1) for memory in (0.0, 0.7)], axis=2)
    found = hmc.summary(several)
    for i in range(2):
        alone = hmc.summary(several[..., i])
        for name in ("mean", "error", "time", "split_half", "r_hat"):
            assert getattr(found, name)[i] == pytest.approx(getattr(alone, name), rel=1e-10)
    drifting = np.linspace(0, 3, 500)[:, None] + 3 * several[..., 0]
    assert hmc.summary(drifting).split_half > 3


def test_r_hat_is_the_ratio_of_variances_of_half_chains():
    """One chain higher than three others by a: half chains have the variance 1, and all samples 1 + 3a²/16."""
    series = autoregressive(0.0, 4000, 4, 1)
    assert hmc.summary(series).r_hat == pytest.approx(1, abs=1e-3)
    halves = [part for chain in series.T for part in (chain[:2000], chain[2000:])]
    within, between = np.mean([part.var(ddof=1) for part in halves]), np.var([part.mean() for part in halves], ddof=1)
    assert hmc.summary(series).r_hat == pytest.approx(np.sqrt(1 - 1 / 2000 + between / within), rel=1e-12)
    with pytest.raises(hmc.ShortChains) as caught:
        hmc.summary(series + [0.0, 0.0, 0.0, 2.0])
    assert caught.value.summary.r_hat == pytest.approx(np.sqrt(1 + 4 * 3 / 16 * 8 / 7), rel=0.01)
    with pytest.raises(hmc.ShortChains) as caught:
        hmc.summary(np.zeros((100, 2)) + [0.0, 1.0])  # nothing moves within a chain
    assert caught.value.summary.r_hat == np.inf


def test_a_constant_has_no_error():
    still = hmc.summary(np.full((20, 3), 0.1))
    assert (still.mean, still.error, still.time, still.split_half) == (pytest.approx(0.1), 0, 1, 0)
    assert still.r_hat == 1


def test_chains_too_short_or_apart_are_refused_with_what_was_found():
    with pytest.raises(ValueError, match="^series must hold ten autocorrelation times or more, .* got 500 steps"):
        hmc.summary(autoregressive(0.0, 500, 2, 3) + [0.0, 5.0])
    with pytest.raises(hmc.ShortChains) as caught:
        hmc.summary(autoregressive(0.99, 500, 2, 3))
    assert 50 < caught.value.summary.time < 400 and f"{10 * caught.value.summary.time:.0f} steps" in str(caught.value)
    series, refused = autoregressive(0.9, 400, 1, 3), []
    for steps in range(100, 400):
        try:
            found = hmc.summary(series[:steps])
        except hmc.ShortChains as short:
            found = short.summary
            refused.append(steps)
        assert (steps in refused) == (10 * found.time > steps)
    assert 20 < len(refused) < 280


NO_POTENTIAL = [None, "U", lambda x: x, lambda x: (x, x), lambda x: (x[:, 0], x[:1]), lambda x: 1.0]
NO_ROWS = [1.0, "x", lambda x: 1.0, lambda x: x[:2], lambda x: x * np.nan, lambda x: "x"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("potential", value) for value in [*NO_POTENTIAL, lambda x: ("a", x), lambda x: (x[:, 0] * 1j, x)]),
        *(("observable", value) for value in NO_ROWS),
        *(("start", value) for value in (1.0, np.zeros((0, 2)), np.zeros((3, 0)), np.full((3, 2), 1e200))),
        *(("scale", value) for value in (np.ones(3), np.ones((2, 3, 2)))),
    ],
)
def test_what_does_not_fit_the_chains_is_refused(name, value):
    with pytest.raises(ValueError, match=f"^{name} must"):
        hmc.sample(**{"potential": quadratic, "start": np.zeros((3, 2)), "steps": 3, "rng": 0} | {name: value})


@pytest.mark.parametrize("series", [1.0, np.zeros(20), np.zeros((7, 3)), np.zeros((20, 0))])
def test_a_series_has_steps_and_chains(series):
    with pytest.raises(ValueError, match="^series must"):
        hmc.summary(series)
