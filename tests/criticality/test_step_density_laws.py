"""lib.criticality.step_density by the approach to folds and poles, and the general density against laws written out."""

import numpy as np
import pytest
from bad_input import exercised
from scipy.special import logit
from scipy.stats import norm
from step_cases import figure

from lib.criticality import amplitude, compositions, step_density


def test_three_laws_of_the_bias_step_written_out():
    """The logit is normal with deviation |w|/4; |ḃ|/γ = |h| is a change of variable with one branch each."""
    v, t = np.array([0.1, 0.4, 0.8]), 4.0
    density = step_density.magnitude_density(v, figure("sigmoid + cross-entropy", 1, observable="bias"))
    np.testing.assert_allclose(density, norm.pdf((logit(v) + 8) / t) / (t * v * (1 - v)), rtol=1e-10)
    line = figure("ReLU + squared", 0, observable="bias")
    expected = norm.pdf(v / 2, line.bias, line.weight / 4) / 2
    np.testing.assert_allclose(step_density.magnitude_density(v, line), expected, rtol=1e-10)
    clip, u = figure("clip + cross-entropy", 1, observable="bias"), np.array([1.2, 5.0, 900.0])
    expected = norm.pdf(1 / u, clip.weight + clip.bias, clip.weight / 4) / u**2
    np.testing.assert_allclose(step_density.magnitude_density(u, clip), expected, rtol=1e-10)


@pytest.mark.parametrize("power", [2.0, 3.0, 5.5])
@pytest.mark.parametrize(("w", "label"), [(1.3, 0), (-0.8, 1), (0.4, 1)])
def test_law_of_the_bias_step_of_powers_written_out(power, w, label):
    """u/((n-1)v) [p_y(t+u) + p_y(t-u)],  u = (v/n)^{1/(n-1)}, parts with y <= 0 left out."""
    m = amplitude.step_map(compositions.named("ReLU + power", power=power), w, 0.3, label, mean=0.1, observable="bias")
    v = np.array([0.01, 0.3, 1.0, 2.0])
    u = (v / power) ** (1 / (power - 1))
    parts = [np.where(y > 0, norm.pdf(y, w * 0.1 + 0.3, abs(w) / 4), 0) for y in (label + u, label - u)]
    found, expected = step_density.magnitude_density(v, m), u / ((power - 1) * v) * sum(parts)
    seen = found > 0  # the branches end fourteen deviations out
    assert np.count_nonzero(seen) >= 3 and np.all(expected[~seen] < 1e-35)
    np.testing.assert_allclose(expected[seen], found[seen], rtol=1e-10)


def test_law_of_the_bias_step_of_a_saturated_sigmoid_with_squared_loss_written_out():
    """The two roots of 2f²(1 - f) = v, by NumPy's polynomials, each with the slope h' = 2f²g(2g - f), g = 1 - f."""
    m = figure("sigmoid + squared", 0, observable="bias")
    for v in (0.02, 0.15, 0.29):
        f = np.roots([-2, 2, 0, -v])
        f = np.sort(f[(f.real > 0) & (f.real < 1)].real)
        parts = norm.pdf(logit(f), m.weight * m.mean + m.bias, 4.0) / np.abs(2 * f**2 * (1 - f) * (2 - 3 * f))
        assert f.size == 2 and step_density.magnitude_density(v, m) == pytest.approx(parts.sum(), rel=1e-9)


@pytest.mark.parametrize(
    ("name", "label"), [("sigmoid + squared", 0), ("sigmoid + squared", 1), ("sigmoid + cross-entropy", 1)]
)
def test_the_density_at_a_fold_is_an_inverse_root_with_the_stated_constant(name, label):
    m = figure(name, label, learning_rate=0.4)
    x, edge, constant, side = step_density.fold_edges(m)
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
    constant = step_density.pole_constant(m)
    sign = -1 if label == 0 else 1
    s = sign * 0.3 * np.array([1e4, 1e5])
    wrong = np.abs(s**2 * step_density.density(s, m) / constant - 1)
    assert wrong[1] < 1e-3 and wrong[1] == pytest.approx(0.1 * wrong[0], rel=0.05)
    beyond = step_density.cumulative(s[1], m)
    assert (beyond if label == 0 else 1 - beyond) * abs(s[1]) == pytest.approx(constant, rel=1e-3)


def test_the_tail_is_cut_where_the_gradient_is():
    m = figure("clip + cross-entropy", 0)
    pole = (1 - m.bias) / m.weight
    far = np.sqrt(1 + pole**2) / 1e-3
    assert step_density.density(-0.99 * far, m) > 0 == step_density.density(-1.01 * far, m)


M = figure("sigmoid + squared", 0)
LINE = figure("clip + cross-entropy", 0)
CALLS = {
    step_density.fold_edges: {"step_map": M},
    step_density.pole_constant: {"step_map": LINE},
}
BAD = {"step_map": ["step", None, 1.0]}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)


def test_compositions_without_a_pole_are_refused():
    other = amplitude.step_map(compositions.named("GELU + squared"), 1.0, 0.0, 0)
    with pytest.raises(ValueError, match="^step_map must have"):
        step_density.pole_constant(other)
