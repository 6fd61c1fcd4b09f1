"""lib.criticality.step_laws against the general density by inversion, quadrature, and the approach to folds and poles."""

import numpy as np
import pytest
from bad_input import exercised
from scipy.integrate import quad
from scipy.special import logit
from scipy.stats import norm
from step_cases import NAMES, figure

from lib.criticality import amplitude, branches, compositions, step_density, step_laws, step_probabilities

VALUES = np.array([1e-7, 1e-3, 0.02, 0.15, 0.29, 0.31, 0.7, 0.95, 1.3, 2.5, 7.0, 40.0, 300.0])


def near_an_edge(v, m):
    """Where a branch ends the roots of the two routes differ by rounding, which the divergence enlarges."""
    found = branches.find(m)
    ends = np.abs(np.concatenate([found.at_left, found.at_right]))
    return np.abs(v[:, None] / ends[ends > 0] - 1).min(axis=1) < 1e-3


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_closed_forms_of_the_bias_step_are_the_general_density(name, label):
    m = figure(name, label, observable="bias")
    v = VALUES[~near_an_edge(VALUES, m)]
    general, closed = (
        step_density.magnitude_density(v, m),
        step_laws.bias_density(v, figure(name, label, learning_rate=5.0)),
    )
    assert np.count_nonzero(closed > 1e-250) >= 3
    seen = general > 0  # the general one ends fourteen deviations out
    np.testing.assert_allclose(closed[seen], general[seen], rtol=1e-10)
    assert np.all(closed[~seen] < 1e-35)


@pytest.mark.parametrize("power", [2.0, 3.0, 5.5])
@pytest.mark.parametrize(("w", "label"), [(1.3, 0), (-0.8, 1), (0.4, 1)])
def test_powers_and_weights_of_either_sign(power, w, label):
    m = amplitude.step_map(compositions.named("ReLU + power", power=power), w, 0.3, label, mean=0.1, observable="bias")
    v = np.array([0.01, 0.3, 1.0, 2.0])
    general, closed = step_density.magnitude_density(v, m), step_laws.bias_density(v, m)
    seen = general > 0  # the general one ends fourteen deviations out
    assert np.count_nonzero(seen) >= 3 and np.all(closed[~seen] < 1e-35)
    np.testing.assert_allclose(closed[seen], general[seen], rtol=1e-10)


def test_the_laws_written_out():
    v = np.array([0.1, 0.4, 0.8])
    m, t = figure("sigmoid + cross-entropy", 1), 4.0  # τ = 16 · 0.25, m = 8
    np.testing.assert_allclose(
        step_laws.bias_density(v, m), norm.pdf((logit(v) + 8) / t) / (t * v * (1 - v)), rtol=1e-12
    )
    line = figure("ReLU + squared", 0)
    np.testing.assert_allclose(
        step_laws.bias_density(v, line), norm.pdf(v / 2, line.bias, line.weight / 4) / 2, rtol=1e-12
    )
    clip = figure("clip + cross-entropy", 1)
    u = np.array([1.2, 5.0, 900.0])
    np.testing.assert_allclose(
        step_laws.bias_density(u, clip), norm.pdf(1 / u, clip.weight + clip.bias, clip.weight / 4) / u**2, rtol=1e-12
    )


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_closed_forms_integrate_to_one_less_the_atom(name, label):
    m = figure(name, label)
    edges = {
        "sigmoid + cross-entropy": [-60, 0],
        "sigmoid + squared": [-90, np.log(8 / 27)],
        "clip + cross-entropy": [np.log(1 / 0.999), np.log(1000)],
    }
    low, high = edges.get(name, [-60, 8])

    def in_logarithm(depth):  # from the upper edge down, geometrically, where the law may diverge
        v = np.exp(high - depth)
        return float(step_laws.bias_density(v, m) * v)

    total = sum(
        quad(in_logarithm, a, b, limit=200)[0] for a, b in zip([1e-14, 1e-9, 1e-5, 0.01, 1], [1e-9, 1e-5, 0.01, 1, 3])
    )
    total += sum(quad(in_logarithm, a, min(a + 3, high - low), limit=200)[0] for a in np.arange(3, high - low, 3))
    assert total == pytest.approx(1 - step_probabilities.atom(m), abs=2e-7)


@pytest.mark.parametrize(
    ("name", "label"), [("sigmoid + squared", 0), ("sigmoid + squared", 1), ("sigmoid + cross-entropy", 1)]
)
def test_the_density_at_a_fold_is_an_inverse_root_with_the_stated_constant(name, label):
    m = figure(name, label, learning_rate=0.4)
    x, edge, constant, side = step_laws.fold_edges(m)
    assert x.size == (2 if "cross" in name else 1)
    for e, c, sign in zip(edge, constant, side):
        gap = abs(e) * np.array([1e-6, 1e-7])
        inside, outside = step_density.density(e + sign * gap, m), step_density.density(e - sign * gap, m)
        two_more = inside - outside.mean() if outside.any() else inside  # what other branches add is smooth
        exponent = np.diff(np.log(two_more))[0] / np.diff(np.log(gap))[0]
        assert exponent == pytest.approx(-0.5, abs=0.01)
        np.testing.assert_allclose(two_more * np.sqrt(gap), c, rtol=0.02)


@pytest.mark.parametrize("observable", ["step", "bias", "weight"])
@pytest.mark.parametrize("label", [0, 1])
def test_the_tail_of_a_pole(label, observable):
    clip = compositions.named("clip + cross-entropy", epsilon=1e-9)
    m = amplitude.step_map(clip, 2.25, -0.625, label, learning_rate=0.3, observable=observable)
    constant = step_laws.pole_constant(m)
    sign = -1 if label == 0 else 1
    s = sign * 0.3 * np.array([1e4, 1e5])
    wrong = np.abs(s**2 * step_density.density(s, m) / constant - 1)
    assert wrong[1] < 1e-3 and wrong[1] == pytest.approx(0.1 * wrong[0], rel=0.05)
    beyond = step_probabilities.cumulative(s[1], m)
    assert (beyond if label == 0 else 1 - beyond) * abs(s[1]) == pytest.approx(constant, rel=1e-3)


def test_the_tail_is_cut_where_the_gradient_is():
    m = figure("clip + cross-entropy", 0)
    pole = (1 - m.bias) / m.weight
    far = np.sqrt(1 + pole**2) / 1e-3
    assert step_density.density(-0.99 * far, m) > 0 == step_density.density(-1.01 * far, m)


M = figure("sigmoid + squared", 0)
LINE = figure("clip + cross-entropy", 0)
CALLS = {
    step_laws.bias_density: {"v": [0.1, 0.2], "step_map": M},
    step_laws.fold_edges: {"step_map": M},
    step_laws.pole_constant: {"step_map": LINE},
}
BAD = {"step_map": ["step", None, 1.0], "v": [[0.0], -1.0, [np.nan], "v", None]}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)


def test_compositions_without_a_closed_form_or_a_pole_are_refused():
    other = amplitude.step_map(compositions.named("GELU + squared"), 1.0, 0.0, 0)
    for function, call in ((step_laws.bias_density, {"v": 0.1}), (step_laws.pole_constant, {})):
        with pytest.raises(ValueError, match="^step_map must have"):
            function(**call, step_map=other)
