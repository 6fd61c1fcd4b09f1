"""lib.fields.patches.gibbs against quadrature, the prior, the regression at fixed filters, and the theory
with its gap at finite size.
"""

import numpy as np
import pytest
from bad_input import NUMBER, SEED, exercised
from scipy.integrate import quad

from lib.common import hmc
from lib.fields.patches import gibbs, posterior, shared_filters

RNG = np.random.default_rng(5)
X, Y = RNG.standard_normal((6, 2, 3)), RNG.standard_normal(6)


def test_one_channel_on_one_component_has_the_moments_of_quadrature():
    x, y, ridge = np.array([0.5, -1.0, 2.0]), np.array([0.6, -0.8, 1.5]), 0.4
    readout, weight = 1.3 / 2.0, 0.8  # divided by the mean field, as the ridge is

    def density(w):
        # a integrated out:  A = v w² x xᵀ + T, by the matrix determinant lemma
        power = 1 + readout * w**2 * (x @ x) / (ridge / 2)
        return np.exp(
            -(w**2) / (2 * weight) + readout * w**2 * (x @ y) ** 2 / (2 * (ridge / 2) ** 2 * power)
        ) / np.sqrt(power)

    def product(w):
        return readout * w**2 * (x @ y) / (ridge / 2 + readout * w**2 * (x @ x))

    total, square, mean = (
        quad(lambda w: part(w) * density(w), 0, 9, epsabs=0)[0] for part in (lambda w: 1, lambda w: w * w, product)
    )
    net = {"mean_field": 2.0, "readout_variance": 1.3, "weight_variance": 0.8, "burn_in": 100}
    kept = gibbs.sample(
        x[:, None, None],
        y,
        ridge,
        1,
        100,
        1500,
        4,
        observable=lambda w, a: np.stack([w * w, a * w], axis=1)[..., 0, 0],
        **net,
    )
    found = hmc.summary(kept)
    assert np.all(np.abs(found.mean - np.array([square, mean]) / total) < 4 * found.error)
    assert np.all(found.error < 0.01)


def test_without_data_both_have_their_prior():
    def kept(w, a):
        return np.stack(
            [3 * (w**2).mean(axis=(1, 2)), 2 * 4 * (a**2).mean(axis=(1, 2)), (a[:, 0] * a[:, 1]).mean(axis=1)], axis=1
        )

    net = {"mean_field": 5.0, "readout_variance": 1.5, "weight_variance": 0.6}
    found = hmc.summary(gibbs.sample(np.zeros((0, 2, 3)), [], 0.1, 4, 50, 300, 6, observable=kept, **net))
    assert np.all(np.abs(found.mean - [0.6, 0.3, 0]) < 4 * found.error) and np.all(found.error < 0.01)


def test_an_observable_may_change_what_it_is_given():
    def spoiled(w, a):
        value = a @ w
        w[:], a[:] = 0, 0
        return value

    given = X, Y, 0.5, 2, 1, 5, 3
    np.testing.assert_array_equal(gibbs.sample(*given, observable=spoiled), gibbs.sample(*given))


def test_readouts_given_filters_are_those_of_the_regression():
    # A sweep draws the readouts at the filters that the sweep before it left.
    pairs = gibbs.sample(
        X, Y, 0.5, 2, 1, 3000, 3, burn_in=100, observable=lambda w, a: np.concatenate([w.ravel(), a.ravel()])[None]
    )
    w, a = (
        pairs[:-1, 0, :6].reshape(-1, 1, 2, 3),
        pairs[1:, 0, 6:].reshape(-1, 2, 2),
    )  # filters, and the readouts drawn next
    means = np.concatenate([posterior.mean_readouts(one, "linear", X, Y, 0.5) for one in w])
    off = a - means
    assert np.all(np.abs(off.mean(axis=0)) < 4.5 * off.std(axis=0) / np.sqrt(len(off)))
    # and the deviations have the posterior's covariance  (ΦᵀΦ/T + 1/v)⁻¹  on average
    expected = np.zeros((4, 4))
    for one in w[:, 0]:
        f = np.einsum("pis,cs->pic", X, one).reshape(6, 4)
        expected += np.linalg.inv(f.T @ f / 0.5 + 4 * np.eye(4)) / len(w)
    flat = off.reshape(-1, 4)
    np.testing.assert_allclose(flat.T @ flat / len(flat), expected, atol=0.08 * expected.max())


def learned(samples, size, channels, sets, sweeps):
    """Ratio and learnability of data sets of their own, (sets, 2)."""
    found = []
    for seed in range(sets):
        data = posterior.draw(samples, 4, size, seed)
        run = {
            "mean_field": 30.0,
            "burn_in": sweeps // 3,
            "observable": lambda w, a: posterior.measure(w, a, "linear", data),
        }
        found.append(gibbs.sample(data.inputs, data.targets, 1.0, channels, 1, sweeps, seed, **run).mean(axis=(0, 1)))
    return np.array(found)


def test_the_theory_holds_within_a_gap_that_shrinks_with_the_size():
    gaps = []
    for size, channels, sets in ((3, 12, 120), (25, 100, 12)):
        samples = round(float(shared_filters.samples_needed(0.55, 4, size, channels, 1.0, mean_field=30.0)))
        theory = shared_filters.solve(samples, 4, size, channels, 1.0, mean_field=30.0)
        found = learned(samples, size, channels, sets, 150)
        gap, error = theory.learnability - found[:, 1].mean(), found[:, 1].std(ddof=1) / np.sqrt(sets)
        gaps.append(gap)
        assert abs(found[:, 0].mean() - theory.ratio) < 0.25 * theory.ratio and error < 0.04
        assert found[:, 1].mean() > theory.lazy_learnability + 5 * error
    assert abs(gaps[1]) < 0.12 and gaps[1] < gaps[0] - 0.03


# --- bad input ----------------------------------------------------------------------------------------------

CALL = {
    "inputs": X,
    "targets": Y,
    "ridge": 0.1,
    "channels": 4,
    "chains": 3,
    "steps": 2,
    "rng": 0,
    "burn_in": 1,
    "observable": lambda w, a: a @ w,
}
COUNT = [0, -1, 2.0, "2", None, True]
BAD = {
    "inputs": [[], Y, X[0], np.zeros((6, 0, 3)), np.zeros((6, 2, 0)), np.full((6, 2, 3), np.inf), "x", None, X[:5]],
    "targets": [[], X, Y[:5], np.full(6, np.nan), "y", None, 1.0],
    **dict.fromkeys(("ridge", "mean_field", "readout_variance", "weight_variance"), NUMBER),
    **dict.fromkeys(("channels", "chains", "steps"), COUNT),
    "rng": SEED,
    "burn_in": [-1, 1.0, "1"],
    "observable": [1.0, "x", lambda w, a: w[0], lambda w, a: w * np.nan],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(
    {gibbs.sample: CALL | {"mean_field": 2.0, "readout_variance": 1.0, "weight_variance": 1.0}},
    BAD,
    {"inputs": "inputs|targets"},
)


def test_a_ridge_lost_in_rounding_is_refused():
    data = posterior.draw(12, 2, 3, rng=1)
    with pytest.raises(ValueError, match="^ridge must be large enough"):
        gibbs.sample(data.inputs, data.targets, 1e-15, 5, 2, 3, rng=1)  # twelve examples, six weights
