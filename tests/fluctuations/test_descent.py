"""lib.fluctuations.descent: its covariances against exact fractions, all minibatches and dense solutions, its
simulations against the recursion in plain NumPy and these covariances.
"""

import re

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_data import (
    chain_matrices,
    digits,
    every_batch,
    listed_moments,
    listed_second_moment,
    small,
    spectral_radius,
)

from lib.common.estimate import Estimate
from lib.fluctuations import minibatches, regression, relations
from lib.fluctuations.descent import Descent

DIGITS = regression.fit(*digits())
LIMIT = DIGITS.learning_rate_threshold(5)
SMALL = regression.fit(*small(40, 3, 2, seed=1))
X, Y = small(6, 3, 2, seed=3)
SIX = regression.fit(X, Y)
SAMPLING = [(batch, replacement) for batch in (1, 2, 3) for replacement in (False, True)]
P = np.array([[1.0, 0.3, -0.2], [0.3, 0.8, 0.1], [-0.2, 0.1, 2.0]])


def close(value, expected, tolerance):
    assert np.linalg.norm(value - expected) < tolerance * np.linalg.norm(expected)


def rms(values):
    return np.sqrt(np.mean(values**2))


def sigmas(blocks, expected):
    return Estimate.of(blocks).sigmas(expected)


# --- the stationary law ---------------------------------------------------------------------------


@pytest.mark.parametrize("batch, replacement", [(1, False), (2, False), (2, True), (3, False)])
def test_four_rational_samples_give_the_fractions_of_all_their_minibatches(batch, replacement):
    x = sympy.Matrix([[1, 0], [1, 1], [0, 2], [-1, 1]])
    y = sympy.Matrix([1, 0, 2, 3])
    residual = y - x * (x.T * x).LUsolve(x.T * y)
    rate = sympy.Rational(1, 5)
    entries = sympy.symbols("a b c")
    g = sympy.Matrix([[entries[0], entries[1]], [entries[1], entries[2]]])
    after, batches = sympy.zeros(2, 2), every_batch(4, batch, replacement)
    for chosen in batches:
        s = sum((x[i, :].T * x[i, :] for i in map(int, chosen)), sympy.zeros(2, 2)) / batch
        xi = sum((residual[i] * x[i, :] for i in map(int, chosen)), sympy.zeros(1, 2)) / batch
        step = sympy.eye(2) - rate * s
        after += (step * g * step + rate**2 * xi.T * xi) / len(batches)
    fractions = g.subs(sympy.solve(list(after - g), entries))
    problem = regression.fit(np.array(x, dtype=float), np.array(y, dtype=float))
    solved = Descent(problem, 0.2, batch, replacement=replacement).stationary_covariance()
    close(problem.in_input_basis(solved), np.array(fractions, dtype=float), 1e-12)


@pytest.mark.parametrize("batch, replacement", SAMPLING)
@pytest.mark.parametrize("fraction", [0.05, 0.9])
def test_outputs_and_their_pairs_by_listing_all_minibatches(batch, replacement, fraction):
    rate = fraction * SIX.learning_rate_threshold(batch, replacement=replacement)
    descent = Descent(SIX, rate, batch, replacement=replacement)
    second, noise = listed_moments(X, Y, every_batch(6, batch, replacement))
    steps = [chain_matrices(second, noise[:, i], rate) for i in range(2)]

    def solved(pair):
        return SIX.in_input_basis(descent.stationary_covariance(pair))

    listed = {pair: listed_second_moment(steps[pair[0]], steps[pair[1]]) for pair in ((0, 0), (0, 1), (1, 1))}
    size = np.sqrt(np.trace(listed[0, 0][:3, :3] + listed[1, 1][:3, :3]))
    for pair, moment in listed.items():
        close(solved(pair), moment[:3, :3], 1e-11)
        assert np.abs(moment[-1, :3]).max() < 1e-11 * size  # E[V] = 0
    close(solved(None), listed[0, 0][:3, :3] + listed[1, 1][:3, :3], 1e-11)
    close(solved((1, 0)), solved((0, 1)), 1e-12)


@pytest.mark.parametrize("batch, replacement", SAMPLING)
@pytest.mark.parametrize("extension", [{}, {"momentum": 0.6}, {"preconditioner": P}], ids=["plain", "heavy", "turned"])
def test_all_minibatches_of_six_samples_up_to_the_threshold(batch, replacement, extension):
    second, noise = listed_moments(X, Y, every_batch(6, batch, replacement))
    momentum = extension.get("momentum", 0.0)

    def solve(rate):
        descent = Descent(SIX, rate, batch, replacement=replacement, momentum=momentum)
        if "preconditioner" in extension:
            return descent.preconditioned_covariance(SIX.basis.T @ P @ SIX.basis)
        return descent.stationary_covariance()

    low, high = 0.0, 8 / SIX.eigenvalues[0]
    for _ in range(45):  # the rate at which the spectral radius of the listed map of second moments passes one
        middle = (low + high) / 2
        low, high = (middle, high) if spectral_radius(second, middle, **extension) < 1 else (low, middle)
    for fraction in (0.05, 0.9):
        steps = [chain_matrices(second, noise[:, i], fraction * low, **extension) for i in range(2)]
        listed = sum(listed_second_moment(each, each)[:3, :3] for each in steps)
        close(SIX.in_input_basis(solve(fraction * low)), listed, 1e-10)
    solve(low * (1 - 1e-6))
    for beyond in (1 + 1e-6, 40):
        with pytest.raises(ValueError, match="^learning_rate must be "):
            solve(low * beyond)


def test_dense_solution_and_conjugate_gradients_agree():
    rate, lam, n = 0.5 * LIMIT, DIGITS.eigenvalues, len(DIGITS.eigenvalues)
    z, c = DIGITS.inputs, DIGITS.batch_variance(5)
    products = (z[:, :, None] * z[:, None, :]).reshape(len(z), -1)  # (N, n²)
    first = np.kron(np.diag(lam), np.eye(n)) + np.kron(np.eye(n), np.diag(lam))
    second = (1 - c) * np.kron(np.diag(lam), np.diag(lam)) + c * products.T @ products / len(z)
    dense = np.linalg.solve(first - rate * second, rate * DIGITS.noise_moment(5).ravel()).reshape(n, n)
    close(Descent(DIGITS, rate, 5).stationary_covariance(), dense, 1e-9)


@pytest.mark.parametrize("fraction", [0.02, 0.99])
def test_solution_satisfies_its_equation_is_a_covariance_and_the_sum_of_those_of_its_outputs(fraction):
    descent, lam = Descent(DIGITS, fraction * LIMIT, 5), DIGITS.eigenvalues
    g = descent.stationary_covariance()
    right = fraction * LIMIT * (DIGITS.sandwich_moment(g, 5) + DIGITS.noise_moment(5))
    close(lam[:, None] * g + g * lam, right, 1e-10)
    np.testing.assert_array_equal(g, g.T)
    assert np.linalg.eigvalsh(g)[0] > 0
    close(sum(descent.stationary_covariance((i, i)) for i in range(10)), g, 1e-9)
    g[:] = 0  # a caller may do as he likes with his
    assert descent.stationary_covariance().any()


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_leading_order_is_approached_linearly(momentum):
    def error(fraction):
        descent = Descent(DIGITS, fraction * (1 - momentum) * LIMIT, 5, momentum=momentum)
        g = descent.stationary_covariance()
        return np.linalg.norm(g - descent.leading_order_covariance()) / np.linalg.norm(g)

    assert error(0.002) / error(0.004) == pytest.approx(0.5, abs=0.02)
    assert error(0.0005) < 0.001


def test_leading_order_of_a_pair_is_elementwise_in_the_basis_of_the_inputs_too():
    g = SMALL.in_input_basis(Descent(SMALL, 0.1, 2).leading_order_covariance((0, 1)))
    noise = SMALL.in_input_basis(SMALL.noise_moment(2, pair=(0, 1)))
    close(SMALL.moment @ g + g @ SMALL.moment, 0.1 * noise, 1e-12)


def test_covariance_grows_with_the_noise_factor_and_the_learning_rate_and_vanishes_for_the_full_batch():
    assert not Descent(DIGITS, 0.9 * LIMIT, 1797).stationary_covariance().any()
    by_batch = [Descent(DIGITS, 0.3 * LIMIT, m).stationary_covariance() for m in (100, 20, 5, 1)]
    by_rate = [Descent(DIGITS, f * LIMIT, 5).stationary_covariance() for f in (0.05, 0.2, 0.5, 0.9)]
    for small_one, large in [*zip(by_batch, by_batch[1:]), *zip(by_rate, by_rate[1:])]:
        assert np.linalg.eigvalsh(large - small_one)[0] > 0


def test_momentum_sets_a_higher_limit_on_the_mean():
    beyond = 3 / SIX.eigenvalues[0]  # above 2, below 2 (1 + μ) = 3.2
    assert not Descent(SIX, beyond, 6, momentum=0.6).stationary_covariance().any()
    with pytest.raises(ValueError, match="^learning_rate must be below .* mean diverges"):
        Descent(SIX, 3.3 / SIX.eigenvalues[0], 6, momentum=0.6).stationary_covariance()


def test_the_threshold_in_the_message_is_that_of_the_momentum():
    with pytest.raises(ValueError) as caught:
        Descent(SIX, 3 / SIX.eigenvalues[0], 1, momentum=0.6).stationary_covariance()
    edge = float(re.search("below ([0-9.]+), where the stationary", str(caught.value))[1])
    Descent(SIX, 0.99 * edge, 1, momentum=0.6).stationary_covariance()
    with pytest.raises(ValueError, match=f"below {edge}"):
        Descent(SIX, 1.01 * edge, 1, momentum=0.6).stationary_covariance()


RATE = 0.4 * SMALL.learning_rate_threshold(3)


def covariance(x, y, rate, **how):
    problem = regression.fit(x, y)
    return problem.in_input_basis(Descent(problem, rate, 3, **how).stationary_covariance())


@settings(max_examples=20)
@given(
    decades=st.floats(-25, 25), target_decades=st.floats(-25, 25), seed=st.integers(0, 100), replacement=st.booleans()
)
def test_scaling_and_rotation_of_the_data(decades, target_decades, seed, replacement):
    x, y, how = *small(40, 3, 2, seed=1), {"replacement": replacement}
    scale, target_scale = 10.0**decades, 10.0**target_decades
    g = covariance(x, y, RATE, **how)
    close(covariance(scale * x, y, RATE / scale**2, **how), g / scale**2, 1e-10)
    close(covariance(x, target_scale * y, RATE, **how), g * target_scale**2, 1e-10)
    rotation = np.linalg.qr(np.random.default_rng(seed).standard_normal((3, 3)))[0]
    close(covariance(x @ rotation.T, y, RATE, **how), rotation @ g @ rotation.T, 1e-10)


def test_duplicated_data_matter_only_without_replacement():
    x, y = small(40, 3, 2, seed=1)
    twice = np.tile(x, (2, 1)), np.tile(y, (2, 1))
    close(covariance(*twice, RATE, replacement=True), covariance(x, y, RATE, replacement=True), 1e-10)
    once, doubled = covariance(x, y, RATE), covariance(*twice, RATE)
    assert np.linalg.norm(doubled - once) > 0.01 * np.linalg.norm(once)


def test_tiny_learning_rates():
    tiny = Descent(SMALL, 1e-250, 2)
    close(1e200 * tiny.stationary_covariance(), 1e200 * tiny.leading_order_covariance(), 1e-12)


def test_preconditioners_that_scale_hide_or_nearly_hide_a_direction():
    plain = Descent(SIX, 0.02, 2)
    close(plain.preconditioned_covariance(np.eye(3)), plain.stationary_covariance(), 1e-10)
    close(plain.preconditioned_covariance(0.5 * np.eye(3)), Descent(SIX, 0.01, 2).stationary_covariance(), 1e-10)
    weak, weaker = (plain.preconditioned_covariance(np.diag([1.0, 1.0, part])) for part in (1e-9, 1e-12))
    assert weaker[2, 2] == pytest.approx(1e-3 * weak[2, 2], rel=1e-9)  # its variance falls in proportion
    close(weaker[:2, :2], weak[:2, :2], 1e-9)
    narrow = regression.fit(X * [1.0, 1.0, 1e-5], Y)
    with pytest.raises(ValueError, match="^preconditioner must leave no direction"):
        Descent(narrow, 0.01, 2).preconditioned_covariance(np.diag([1.0, 1.0, 1e-12]))


def test_inverse_moment_as_preconditioner_leaves_no_circulation_at_leading_order():
    lam, noise = SMALL.eigenvalues, SMALL.noise_moment(2)

    def error(rate):
        g = Descent(SMALL, rate, 2).preconditioned_covariance(np.diag(1 / lam))
        expected = rate / 2 * noise / np.outer(lam, lam)
        return np.linalg.norm(g - expected) / np.linalg.norm(expected)  # G symmetric, PA = 1: GPA - PAG is G - G = 0

    assert error(1e-5) < 1e-4
    assert error(1e-5) / error(2e-5) == pytest.approx(0.5, abs=0.02)


# --- simulations ----------------------------------------------------------------------------------


def plain_path(problem, start, rate, series, momentum=0.0):
    """V of the recursion in matrix form, for one series of minibatches."""
    path, previous = [start], start
    for chosen in series:
        z, r, now = problem.inputs[chosen], problem.residuals[chosen], path[-1]
        pull = now @ z.T @ z - r.T @ z
        path.append(now - rate / len(chosen) * pull + momentum * (now - previous))
        previous = now
    return np.array(path)


@pytest.mark.parametrize("how", [{}, {"replacement": True}, {"epochs": True}, {"momentum": 0.8}, {"momentum": 1e-300}])
def test_a_replica_is_the_recursion_on_the_minibatches_of_its_stream(how):
    descent, steps = Descent(SMALL, 0.3 * SMALL.learning_rate_threshold(7), 7, **how), 60
    start = np.random.default_rng(0).standard_normal((2, 3))
    run = {"steps": steps, "replicas": 1, "rng": 5, "start": start, "record_every": 3, "blocks": 1}
    stream = np.random.Generator(np.random.SFC64(np.random.SeedSequence(5).spawn(1)[0]))
    drawn = {name: flag for name, flag in how.items() if name != "momentum"}
    series = minibatches.draw(40, 7, steps, stream, **drawn)
    path = plain_path(SMALL, start, descent.learning_rate, series, descent.momentum)
    seen, after, tight = path[:-1:3], path[1::3], {"rtol": 1e-11, "atol": 1e-13}
    found = descent.simulate(**run)
    np.testing.assert_allclose(found.last[0], path[-1], **tight)
    np.testing.assert_allclose(found.second_moment[0], np.einsum("nik,nil->kl", seen, seen) / 20, **tight)
    np.testing.assert_allclose(found.lagged[0], np.einsum("nik,nil->kl", seen, after) / 20, **tight)
    np.testing.assert_allclose(found.mean[0], seen.mean(axis=0), **tight)
    turned = found.lagged - np.swapaxes(found.lagged, 1, 2)
    np.testing.assert_allclose(found.circulation(), turned / (2 * descent.learning_rate), rtol=1e-9, atol=1e-11)
    later = descent.simulate(**run | {"burn_in": 17, "steps": 43, "record_every": 1})
    np.testing.assert_allclose(later.second_moment[0], np.einsum("nik,nil->kl", path[17:-1], path[17:-1]) / 43, **tight)
    np.testing.assert_array_equal(later.last, found.last)
    short = descent.simulate(lagged=False, **run)
    np.testing.assert_array_equal(short.second_moment, found.second_moment)
    with pytest.raises(ValueError, match="^lagged must be kept in the run"):
        short.circulation()
    one = descent.simulate(pair=(0, 1), **run)
    np.testing.assert_allclose(one.second_moment[0], seen[:, 0].T @ seen[:, 1] / 20, **tight)
    np.testing.assert_allclose(one.lagged[0], seen[:, 0].T @ after[:, 1] / 20, **tight)


def circulating(run, covariance):
    """Slope of the measured circulation on that of a covariance, with its error, and the deviations of the elements."""
    above = np.triu_indices(36, 1)
    expected = relations.split(DIGITS, covariance)[1][above]
    turning = run.circulation()[:, *above]
    weight = 1 / Estimate.of(turning).error ** 2
    slope, error = Estimate.of((turning * expected * weight).sum(axis=1) / (expected**2 * weight).sum())
    return slope, error, rms(sigmas(turning, expected))


@pytest.mark.parametrize("fraction", [0.5, pytest.param(0.1, marks=pytest.mark.slow)])
def test_digits_have_the_exact_covariance_its_circulation_and_no_mean(fraction):
    descent = Descent(DIGITS, fraction * LIMIT, 5)
    run = descent.simulate(steps=4000, replicas=200, rng=21, record_every=10, blocks=40)
    exact = descent.stationary_covariance()
    assert rms(sigmas(run.second_moment, exact)) < 1.3  # 1.03 for 40 blocks
    assert rms(np.diag(sigmas(run.second_moment, descent.leading_order_covariance()))) > 8
    measured = run.second_moment.mean(axis=0)
    errors = relations.relation_errors(descent, measured)
    assert errors.exact < 0.015 < errors.leading / 6
    np.testing.assert_allclose(relations.yaida_ratios(descent, measured), 1, atol=0.008)
    centre = sigmas(run.mean, 0)
    assert rms(centre) < 1.25 and np.abs(centre).max() < 4.5
    slope, error, spread = circulating(run, exact)
    assert abs(slope - 1) < 4.5 * error and slope > 8 * error and spread < 1.3


@pytest.mark.parametrize("pair", [(3, 8), pytest.param((8, 3), marks=pytest.mark.slow), (4, 4)])
def test_pairs_of_outputs(pair):
    descent = Descent(DIGITS, 0.26 * LIMIT, 5)
    run = descent.simulate(steps=1500, replicas=200, rng=15, pair=pair, record_every=1, blocks=40)
    exact = descent.stationary_covariance(pair)
    assert rms(sigmas(run.second_moment, exact)) < 1.3
    assert abs(sigmas(run.second_moment, descent.leading_order_covariance(pair))[0, 0]) > 5  # the top mode
    slope, error, _ = circulating(run, exact)
    assert abs(slope - 1) < 4.5 * error and error < 0.03
    assert run.last.shape == (200, len(set(pair)), 36)


@pytest.mark.parametrize("replacement", [False, True])
def test_large_batches_know_how_they_were_drawn(replacement):
    rate = 0.3 * SMALL.learning_rate_threshold(10, replacement=replacement)
    descents = {each: Descent(SMALL, rate, 10, replacement=each) for each in (True, False)}
    run = descents[replacement].simulate(steps=4000, replicas=200, rng=3, blocks=40)
    right, wrong = (descents[each].stationary_covariance() for each in (replacement, not replacement))
    assert np.abs(sigmas(run.second_moment, right)).max() < 4.5
    assert np.abs(sigmas(run.second_moment, wrong)).max() > 20


def test_short_windows_of_one_replica_scatter_as_the_floor_says():
    descent, steps, lam = Descent(DIGITS, 0.26 * LIMIT, 5), 1000, DIGITS.eigenvalues
    run = descent.simulate(steps=steps, replicas=40, rng=6, record_every=1, blocks=40)
    factor, g = np.add.outer(lam, lam), descent.stationary_covariance()
    scatter = rms(np.linalg.norm(factor * (run.second_moment - g), axis=(1, 2))) / np.linalg.norm(factor * g)
    floor = relations.relation_floor(descent, steps)
    assert floor / 1.6 < scatter < 1.6 * floor


def test_shuffling_in_epochs_collapses_the_covariance_that_is_only_for_independent_minibatches():
    rate = 0.05 * SMALL.learning_rate_threshold(10)
    descent = Descent(SMALL, rate, 10, epochs=True)
    settle = round(4 / (rate * SMALL.eigenvalues[-1]) / 4) * 4  # four relaxation times of the slowest mode
    first = descent.simulate(steps=settle, replicas=40, rng=9, record_every=4)
    then = descent.simulate(steps=4000, replicas=40, rng=10, record_every=4, start=first.last)
    free = Descent(SMALL, rate, 10).stationary_covariance()
    assert np.trace(then.second_moment.mean(axis=0)) < 0.05 * np.trace(free)
    with pytest.raises(ValueError, match="^epochs must be False for the law of independent minibatches"):
        descent.stationary_covariance()


def test_default_start_is_stationary_from_the_first_step():
    descent, lam = Descent(DIGITS, 0.5 * LIMIT, 5), DIGITS.eigenvalues
    run = descent.simulate(steps=1, replicas=4000, rng=11, record_every=1, blocks=40)
    g = descent.stationary_covariance()
    assert rms(sigmas(run.second_moment, g)) < 1.2
    assert rms(sigmas(run.lagged, g * (1 - descent.learning_rate * lam))) < 1.2
    pair = (8, 3)
    run = descent.simulate(steps=1, replicas=4000, rng=12, record_every=1, blocks=40, pair=pair)
    last = run.last.reshape(40, 100, 2, 36)
    for i, k in ((0, 0), (0, 1), (1, 1)):
        g = descent.stationary_covariance((pair[i], pair[k]))
        assert rms(sigmas(np.einsum("bcm,bcn->bmn", last[:, :, i], last[:, :, k]) / 100, g)) < 1.2
    assert rms(sigmas(run.second_moment, descent.stationary_covariance(pair))) < 1.2


@pytest.mark.parametrize("momentum", [0.5, 0.9])
def test_default_start_with_momentum_is_stationary_from_the_first_step(momentum):
    """Against E[VᵀV] and E[VᵀB] by listing every minibatch; after the step, E[V'ᵀV'] depends on E[BᵀB] too."""
    rate = 0.4 * (1 - momentum) * SIX.learning_rate_threshold(2)
    second, noise = listed_moments(X, Y, every_batch(6, 2, False))
    steps = [chain_matrices(second, noise[:, i], rate, momentum=momentum) for i in range(2)]
    listed = sum(listed_second_moment(each, each) for each in steps)[:6, :6]  # of (V, B)
    inside = np.kron(np.eye(2), SIX.basis)
    joint = inside.T @ listed @ inside
    g, cross = joint[:3, :3], joint[:3, 3:]
    run = Descent(SIX, rate, 2, momentum=momentum).simulate(steps=1, replicas=80_000, rng=13, blocks=80)
    after = run.last.reshape(80, 1000, 2, 3)
    assert np.abs(sigmas(run.second_moment, g)).max() < 4.5
    assert np.abs(sigmas(run.lagged, g * (1 - rate * SIX.eigenvalues) + momentum * cross)).max() < 4.5
    assert np.abs(sigmas(np.einsum("bcim,bcin->bmn", after, after) / 1000, g)).max() < 4.5
    assert np.abs(sigmas(run.lagged, g * (1 - rate * SIX.eigenvalues))).max() > 6  # without the velocity


@pytest.mark.slow
def test_digits_with_momentum_have_the_exact_covariance_and_its_circulation():
    mu = 0.9
    descent = Descent(DIGITS, 0.26 * (1 - mu) * LIMIT, 5, momentum=mu)
    run = descent.simulate(steps=3000, replicas=200, rng=14, record_every=10, blocks=40)
    g, plain = descent.stationary_covariance(), Descent(DIGITS, 0.26 * LIMIT, 5).stationary_covariance()
    assert rms(sigmas(run.second_moment, g)) < 1.3 < 3 < rms(np.diag(sigmas(run.second_moment, plain)))
    slope, error, _ = circulating(run, g / (1 - mu))
    assert abs(slope - 1) < 4.5 * error and error < 0.06


def test_runs_repeat_with_their_seed_do_not_depend_on_workers_and_have_defaults_that_divide():
    plain, many = Descent(SMALL, 0.01, 3), {"steps": 20, "replicas": 8, "blocks": 4}
    sequence = np.random.SeedSequence(1)
    first, second = (plain.simulate(rng=sequence, workers=w, **many) for w in (1, 2))
    np.testing.assert_array_equal(first.last, second.last)
    np.testing.assert_array_equal(first.lagged, second.lagged)
    assert np.abs(first.last - plain.simulate(rng=2, **many).last).max() > 1e-6
    given_ = plain.simulate(steps=9, replicas=12, rng=1, blocks=6, record_every=3)
    default = plain.simulate(steps=9, replicas=12, rng=1)
    np.testing.assert_array_equal(default.second_moment, given_.second_moment)
    assert plain.simulate(steps=7, replicas=1, rng=1).mean.shape == (1, 2, 3)


def test_an_unstable_replica_grows_and_then_refuses():
    rate, run = 4 / SMALL.eigenvalues[0], {"replicas": 2, "rng": 1, "blocks": 1, "record_every": 1}
    full = Descent(SMALL, rate, 40)  # the full batch: the top mode is multiplied by -3
    grown = full.simulate(steps=30, start=np.ones((2, 3)), **run)
    np.testing.assert_allclose(np.abs(grown.last[:, :, 0]), 3.0**30, rtol=1e-6)
    with pytest.raises(ValueError, match="^learning_rate must keep the replicas inside the floating-point range"):
        full.simulate(steps=3000, start=np.ones((2, 3)), **run)
    with pytest.raises(ValueError, match="^learning_rate must be "):
        Descent(SMALL, rate, 3).simulate(steps=5, **run)


@pytest.mark.parametrize(
    "name, wrong",
    [
        *(("start", bad) for bad in (np.zeros(3), np.zeros((3, 3)), np.zeros((3, 2, 3)), "origin", None)),
        *(("pair", bad) for bad in ((0,), (0, 2), "01")),
        ("record_every", 3),
        ("blocks", 3),
    ],
)
def test_what_does_not_fit_a_run_is_refused(name, wrong):
    with pytest.raises(ValueError, match=f"^{name} must "):
        Descent(SMALL, 0.01, 3).simulate(**{"steps": 4, "replicas": 4, "rng": 1, name: wrong})


def test_what_does_not_fit_a_descent_is_refused():
    with pytest.raises(ValueError, match="^epochs must be False with replacement"):
        Descent(SMALL, 0.01, 3, replacement=True, epochs=True)
    with pytest.raises(ValueError, match="^batch must be at most N = 40"):
        Descent(SMALL, 0.01, 41)
    heavy, run = Descent(SMALL, 0.01, 3, momentum=0.5), {"steps": 2, "replicas": 4, "rng": 1, "pair": (0, 1)}
    with pytest.raises(ValueError, match="^start must be an array where a pair of outputs has momentum"):
        heavy.simulate(**run)
    assert heavy.simulate(start=np.zeros((2, 3)), **run).last.shape == (4, 2, 3)
