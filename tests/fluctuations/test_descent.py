"""lib.fluctuations.descent against the recursion in plain NumPy, its pathwise balance, and the theory of linear."""

import numpy as np
import pytest
from bad_input import COUNT, NUMBER, SEED, exercised
from linear_data import chain_matrices, digits, every_batch, listed_moments, listed_second_moment, small

from lib.fluctuations import descent, linear, minibatches, regression, relations

DIGITS = regression.fit(*digits())
LIMIT = linear.learning_rate_threshold(DIGITS, 5)
SMALL = regression.fit(*small(40, 3, 2, seed=1))


def rms(values):
    return np.sqrt(np.mean(values**2))


def sigmas(blocks, expected):
    mean, error = descent.over_blocks(blocks)
    return (mean - expected) / error


def plain_path(problem, start, rate, series, momentum=0.0):
    """V, S and ξ of the recursion in matrix form, for one series of minibatches; with momentum without B."""
    path, second, noise = [start], [], []
    previous = start
    for chosen in series:
        z, r = problem.inputs[chosen], problem.residuals[chosen]
        second.append(z.T @ z / len(chosen))
        noise.append(r.T @ z / len(chosen))
        now = path[-1]
        path.append(now @ (np.eye(z.shape[1]) - rate * second[-1]) + rate * noise[-1] + momentum * (now - previous))
        previous = now
    return np.array(path), np.array(second), np.array(noise)


@pytest.mark.parametrize("how", [{}, {"replacement": True}, {"epochs": True}, {"momentum": 0.8}, {"momentum": 1e-300}])
def test_a_chain_is_the_recursion_on_the_minibatches_of_its_stream(how):
    rate, steps = 0.3 * linear.learning_rate_threshold(SMALL, 7), 60
    start = np.random.default_rng(0).standard_normal((2, 3))
    run = descent.simulate(SMALL, rate, 7, steps=steps, chains=1, rng=5, start=start, record_every=3, blocks=1, **how)
    stream = np.random.Generator(np.random.SFC64(np.random.SeedSequence(5).spawn(1)[0]))
    drawn = {name: flag for name, flag in how.items() if name != "momentum"}
    path, _, _ = plain_path(
        SMALL, start, rate, minibatches.draw(40, 7, steps, stream, **drawn), how.get("momentum", 0.0)
    )
    seen, after = path[:-1:3], path[1::3]
    np.testing.assert_allclose(run.last[0], path[-1], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(run.second_moment[0], np.einsum("nik,nil->kl", seen, seen) / 20, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(run.lagged[0], np.einsum("nik,nil->kl", seen, after) / 20, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(run.mean[0], seen.mean(axis=0), rtol=1e-11, atol=1e-13)
    short = descent.simulate(
        SMALL, rate, 7, steps=steps, chains=1, rng=5, start=start, record_every=3, blocks=1, lagged=False, **how
    )
    np.testing.assert_array_equal(short.second_moment, run.second_moment)
    with pytest.raises(ValueError, match="averages must hold the lagged average"):
        descent.circulation(short, rate)
    one = descent.simulate(
        SMALL, rate, 7, steps=steps, chains=1, rng=5, start=start, record_every=3, blocks=1, pair=(0, 1), **how
    )
    np.testing.assert_allclose(one.second_moment[0], seen[:, 0].T @ seen[:, 1] / 20, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(one.lagged[0], seen[:, 0].T @ after[:, 1] / 20, rtol=1e-11, atol=1e-13)


def test_the_second_moment_of_every_path_balances_exactly():
    """What V gains over a path is the sum of friction, multiplicative, crossed and additive noise; no average."""
    rate, start = 0.5 * LIMIT, np.random.default_rng(2).standard_normal((10, 36))
    series = minibatches.draw(1797, 5, 500, 7)
    path, second, noise = plain_path(DIGITS, start, rate, series)
    gained = 0
    for v, s, xi in zip(path, second, noise):
        p, cross = v.T @ v, (np.eye(36) - rate * s) @ v.T @ xi
        gained = gained - rate * (p @ s + s @ p) + rate**2 * s @ p @ s + rate * (cross + cross.T) + rate**2 * xi.T @ xi
    last = descent.simulate(
        DIGITS, rate, 5, steps=500, chains=1, blocks=1, start=start, rng=np.random.SeedSequence(8)
    ).last[0]  # another series: the balance must not hold for it
    size = np.linalg.norm(start.T @ start)
    assert np.linalg.norm(path[-1].T @ path[-1] - start.T @ start - gained) < 1e-11 * size
    assert np.linalg.norm(last.T @ last - start.T @ start - gained) > 1e-5 * size


@pytest.fixture(scope="module", params=[0.1, 0.5])
def long_run(request):
    rate = request.param * LIMIT
    return rate, descent.simulate(DIGITS, rate, 5, steps=8000, chains=200, rng=21, record_every=10, blocks=40)


def test_digits_have_the_exact_covariance_and_not_the_leading_one(long_run):
    rate, run = long_run
    assert rms(sigmas(run.second_moment, linear.stationary_covariance(DIGITS, rate, 5))) < 1.3  # 1.03 for 40 blocks
    leading = sigmas(run.second_moment, linear.leading_order_covariance(DIGITS, rate, 5))
    assert rms(np.diag(leading)) > 10
    errors = relations.relation_errors(DIGITS, run.second_moment.mean(axis=0), rate, 5)
    assert errors.exact < 0.01 < errors.leading / 8


def test_digits_have_mean_zero(long_run):
    z = sigmas(long_run[1].mean, 0)
    assert rms(z) < 1.25 and np.abs(z).max() < 4.5


def test_digits_obey_both_relations_of_yaida(long_run):
    rate, run = long_run
    ratios = relations.yaida_ratios(DIGITS, run.second_moment.mean(axis=0), rate, 5)
    np.testing.assert_allclose(ratios, 1, atol=0.005)


def circulating(run, rate, covariance):
    """Slope of the measured circulation on that of a covariance, with its error, and the deviations of the elements."""
    above = np.triu_indices(36, 1)
    expected = relations.split(DIGITS, covariance)[1][above]
    turning = descent.circulation(run, rate)[:, *above]
    weight = 1 / descent.over_blocks(turning)[1] ** 2
    slope, error = descent.over_blocks((turning * expected * weight).sum(axis=1) / (expected**2 * weight).sum())
    return slope, error, rms(sigmas(turning, expected))


def test_circulation_is_seen_in_successive_states(long_run):
    rate, run = long_run
    slope, error, spread = circulating(run, rate, linear.stationary_covariance(DIGITS, rate, 5))
    assert abs(slope - 1) < 0.1 and abs(slope - 1) < 4.5 * error and slope > 15 * error
    assert spread < 1.3


def test_circulation_of_a_pair_of_outputs():
    rate = 0.26 * LIMIT
    run = descent.simulate(DIGITS, rate, 5, steps=3000, chains=200, rng=15, pair=(3, 8), record_every=1, blocks=40)
    slope, error, _ = circulating(run, rate, linear.stationary_covariance(DIGITS, rate, 5, pair=(3, 8)))
    assert abs(slope - 1) < 4.5 * error and error < 0.02


@pytest.mark.parametrize("replacement", [False, True])
def test_large_batches_know_how_they_were_drawn(replacement):
    rate = 0.3 * linear.learning_rate_threshold(SMALL, 10, replacement=replacement)
    run = descent.simulate(SMALL, rate, 10, steps=4000, chains=200, rng=3, replacement=replacement, blocks=40)
    right, wrong = (
        linear.stationary_covariance(SMALL, rate, 10, replacement=each) for each in (replacement, not replacement)
    )
    assert np.abs(sigmas(run.second_moment, right)).max() < 4.5
    assert np.abs(sigmas(run.second_moment, wrong)).max() > 20


@pytest.mark.parametrize("pair", [(0, 1), (8, 3), (4, 4)])
def test_pairs_of_outputs(pair):
    rate = 0.26 * LIMIT
    run = descent.simulate(DIGITS, rate, 5, steps=2000, chains=200, rng=4, pair=pair, blocks=40)
    assert rms(sigmas(run.second_moment, linear.stationary_covariance(DIGITS, rate, 5, pair=pair))) < 1.3
    assert (
        abs(sigmas(run.second_moment, linear.leading_order_covariance(DIGITS, rate, 5, pair=pair))[0, 0]) > 6
    )  # the top mode
    assert run.last.shape == (200, len(set(pair)), 36)


def test_short_windows_of_one_chain_scatter_as_the_floor_says():
    rate, steps, chains = 0.26 * LIMIT, 1000, 40
    run = descent.simulate(DIGITS, rate, 5, steps=steps, chains=chains, rng=6, record_every=1, blocks=chains)
    lam, g = DIGITS.eigenvalues, linear.stationary_covariance(DIGITS, rate, 5)
    factor = np.add.outer(lam, lam)
    scatter = rms(np.linalg.norm(factor * (run.second_moment - g), axis=(1, 2))) / np.linalg.norm(factor * g)
    floor = relations.relation_floor(DIGITS, rate, steps)
    assert floor / 1.6 < scatter < 1.6 * floor


def test_shuffling_in_epochs_collapses_the_covariance():
    rate = 0.05 * linear.learning_rate_threshold(SMALL, 10)
    g = linear.stationary_covariance(SMALL, rate, 10)
    settle = (
        round(4 / (rate * SMALL.eigenvalues[-1]) / 4) * 4
    )  # four relaxation times of the slowest mode, whole epochs
    run = {"chains": 40, "rng": 9, "epochs": True, "record_every": 4}
    first = descent.simulate(SMALL, rate, 10, steps=settle, **run)
    then = descent.simulate(SMALL, rate, 10, steps=4000, start=first.last, **run | {"rng": 10})
    assert np.trace(then.second_moment.mean(axis=0)) < 0.05 * np.trace(g)


def test_the_default_start_is_stationary_from_the_first_step():
    rate = 0.5 * LIMIT
    run = descent.simulate(DIGITS, rate, 5, steps=1, chains=4000, rng=11, record_every=1, blocks=40)
    g = linear.stationary_covariance(DIGITS, rate, 5)
    assert rms(sigmas(run.second_moment, g)) < 1.2
    assert rms(sigmas(run.lagged, g * (1 - rate * DIGITS.eigenvalues))) < 1.2


def test_the_default_start_of_a_pair_has_all_its_blocks():
    rate, pair = 0.5 * LIMIT, (8, 3)
    run = descent.simulate(DIGITS, rate, 5, steps=1, chains=4000, rng=12, record_every=1, blocks=40, pair=pair)
    last = run.last.reshape(40, 100, 2, 36)
    for i, k in ((0, 0), (0, 1), (1, 1)):
        g = linear.stationary_covariance(DIGITS, rate, 5, pair=(pair[i], pair[k]))
        assert rms(sigmas(np.einsum("bcm,bcn->bmn", last[:, :, i], last[:, :, k]) / 100, g)) < 1.2
        if i != k:
            assert rms(sigmas(run.second_moment, g)) < 1.2 < 2 < np.abs(sigmas(run.second_moment, 0 * g)).max()


@pytest.mark.parametrize("momentum", [0.5, 0.9])
def test_the_default_start_with_momentum_is_stationary_from_the_first_step(momentum):
    """Against E[VᵀV] and E[VᵀB] by listing every minibatch; after the step, E[V'ᵀV'] depends on E[BᵀB] too."""
    x, y = small(6, 3, 2, seed=3)
    problem = regression.fit(x, y)
    rate = 0.4 * (1 - momentum) * linear.learning_rate_threshold(problem, 2)
    second, noise = listed_moments(x, y, every_batch(6, 2, False))
    steps = [chain_matrices(second, noise[:, i], rate, momentum=momentum) for i in range(2)]
    listed = sum(listed_second_moment(each, each) for each in steps)[:6, :6]  # of (V, B)
    inside = np.kron(np.eye(2), problem.basis)
    joint = inside.T @ listed @ inside
    g, cross = joint[:3, :3], joint[:3, 3:]
    run = descent.simulate(
        problem, rate, 2, steps=1, chains=80_000, rng=13, momentum=momentum, record_every=1, blocks=80
    )
    after = run.last.reshape(80, 1000, 2, 3)
    assert np.abs(sigmas(run.second_moment, g)).max() < 4.5
    assert np.abs(sigmas(run.lagged, g * (1 - rate * problem.eigenvalues) + momentum * cross)).max() < 4.5
    assert np.abs(sigmas(np.einsum("bcim,bcin->bmn", after, after) / 1000, g)).max() < 4.5
    assert np.abs(sigmas(run.lagged, g * (1 - rate * problem.eigenvalues))).max() > 6  # without the velocity


def test_digits_with_momentum_have_the_exact_covariance_and_its_circulation():
    mu = 0.9
    rate = 0.26 * (1 - mu) * LIMIT
    run = descent.simulate(DIGITS, rate, 5, steps=3000, chains=200, rng=14, momentum=mu, record_every=10, blocks=40)
    g = linear.momentum_covariance(DIGITS, rate, mu, 5)
    assert rms(sigmas(run.second_moment, g)) < 1.3
    assert rms(np.diag(sigmas(run.second_moment, linear.stationary_covariance(DIGITS, rate / (1 - mu), 5)))) > 3
    slope, error, _ = circulating(run, rate, g / (1 - mu))
    assert abs(slope - 1) < 4.5 * error and error < 0.06


def test_momentum_of_a_pair_needs_a_start():
    run = {"steps": 2, "chains": 4, "rng": 1, "pair": (0, 1), "momentum": 0.5, "record_every": 1, "blocks": 2}
    with pytest.raises(ValueError, match="^start must be an array where a pair of outputs has momentum"):
        descent.simulate(SMALL, 0.01, 3, **run)
    assert descent.simulate(SMALL, 0.01, 3, start=np.zeros((2, 3)), **run).last.shape == (4, 2, 3)


def test_runs_repeat_with_their_seed_and_do_not_depend_on_workers():
    settings_ = {"steps": 20, "chains": 8, "blocks": 4}
    sequence = np.random.SeedSequence(1)
    first, second = (descent.simulate(SMALL, 0.01, 3, rng=sequence, workers=w, **settings_) for w in (1, 2))
    np.testing.assert_array_equal(first.last, second.last)
    np.testing.assert_array_equal(first.lagged, second.lagged)
    assert np.abs(first.last - descent.simulate(SMALL, 0.01, 3, rng=2, **settings_).last).max() > 1e-6


def test_blocks_and_records_fit_the_chains_and_steps_where_none_are_given():
    given_ = descent.simulate(SMALL, 0.01, 3, steps=9, chains=12, rng=1, blocks=6, record_every=3)
    default = descent.simulate(SMALL, 0.01, 3, steps=9, chains=12, rng=1)
    np.testing.assert_array_equal(default.second_moment, given_.second_moment)
    assert descent.simulate(SMALL, 0.01, 3, steps=7, chains=1, rng=1).mean.shape == (1, 2, 3)


def test_an_unstable_chain_grows_and_then_refuses():
    start = np.ones((2, 3))
    rate = 4 / SMALL.eigenvalues[0]
    run = {"chains": 2, "rng": 1, "start": start, "blocks": 1, "record_every": 1}
    grown = descent.simulate(SMALL, rate, 40, steps=30, **run)  # the full batch: the top mode is multiplied by -3
    np.testing.assert_allclose(np.abs(grown.last[:, :, 0]), 3.0**30, rtol=1e-6)
    with pytest.raises(ValueError, match="^learning_rate must keep the chains inside the floating-point range"):
        descent.simulate(SMALL, rate, 40, steps=3000, **run)
    with pytest.raises(ValueError, match="^learning_rate must be below"):
        descent.simulate(SMALL, rate, 3, steps=5, chains=10, rng=1)


# --- bad input: every public function, every argument ---------------------------------------------

AVERAGES = descent.simulate(SMALL, 0.01, 3, steps=2, chains=2, rng=1, record_every=1, blocks=2)
CALLS = {
    descent.simulate: {
        "problem": SMALL,
        "learning_rate": 0.01,
        "batch": 3,
        "steps": 4,
        "chains": 4,
        "rng": 1,
        "start": np.zeros((2, 3)),
        "momentum": 0.5,
        "replacement": False,
        "epochs": False,
        "pair": (0, 1),
        "record_every": 2,
        "blocks": 2,
        "workers": 1,
    },
    descent.over_blocks: {"values": [1.0, 2.0]},
    descent.circulation: {"averages": AVERAGES, "learning_rate": 0.1},
}
BAD = {
    "problem": [None, "problem", np.eye(2)],
    "learning_rate": NUMBER,
    "batch": [*COUNT, 41],
    "steps": COUNT,
    "chains": COUNT,
    "rng": SEED,
    "start": [np.zeros(3), np.zeros((3, 3)), np.zeros((3, 2, 3)), np.full((2, 3), np.nan), "origin", None],
    "momentum": [-0.1, 1.0, np.nan, np.inf, "1", None, [0.1], True],
    "replacement": [None, 0, 1, "yes"],
    "epochs": [None, 0, 1, "yes"],
    "pair": [(0,), (0, 2), (-1, 0), (0.0, 1), "01", 3],
    "record_every": [*COUNT[:-2], True, 3],
    "blocks": [*COUNT[:-2], True, 3],
    "workers": COUNT,
    "values": [[], [1.0], 1.0, [1.0, np.nan], np.ones((2, 0)), "values", None],
    "averages": [None, "averages", np.eye(2)],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)
