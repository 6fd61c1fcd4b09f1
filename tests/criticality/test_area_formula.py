"""The area formula against triangles, closed forms and limits; one-dimensional maps against laws that are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import subspace_angles
from scipy.special import expit
from scipy.stats import norm, ortho_group

from lib.criticality import area_formula as af

RNG = np.random.default_rng(3)
CURVES = {  # h, h' of several compositions
    "sigmoid + cross-entropy": lambda y: (expit(y), expit(y) * expit(-y)),
    "exponential": lambda y: (2 * np.exp(2 * y), 4 * np.exp(2 * y)),
    "cubic": lambda y: (3 * y**2, 6 * y),
    "linear": lambda y: (np.ones_like(y), np.zeros_like(y)),
    "negative": lambda y: (-np.cosh(y), -np.sinh(y)),
}


def neuron(curve, w, b, x, rate=1.0):
    """Steps (N, d + 1) and Jacobians (N, d + 1, d) of a neuron, by hand."""
    h, h1 = CURVES[curve](x @ w + b)
    lever = np.column_stack([x, np.ones(len(x))])
    shape = np.vstack([np.eye(x.shape[1]), np.zeros(x.shape[1])])
    return -rate * h[:, None] * lever, -rate * (h1[:, None, None] * lever[:, :, None] * w + h[:, None, None] * shape)


# --- areas ----------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.sampled_from(list(CURVES)), st.integers(1, 9), st.integers(0, 99), st.floats(0.01, 10))
def test_the_closed_form_of_the_neuron_is_the_area(curve, d, seed, rate):
    rng = np.random.default_rng(seed)
    x, w, b = rng.standard_normal((5, d)), rng.standard_normal(d), rng.standard_normal()
    _, jacobians = neuron(curve, w, b, x, rate)
    found = af.neuron_log_area(x, w, *CURVES[curve](x @ w + b), learning_rate=rate)
    np.testing.assert_allclose(found, af.log_area(jacobians), rtol=1e-10, atol=1e-10)
    gram = jacobians.transpose(0, 2, 1) @ jacobians
    np.testing.assert_allclose(
        found, np.linalg.slogdet(gram)[1] / 2, rtol=1e-6, atol=1e-6
    )  # squares the condition number
    equal = np.abs(rate * CURVES[curve](x @ w + b)[0])
    values = np.linalg.svd(jacobians, compute_uv=False)
    near = np.isclose(values, equal[:, None], rtol=1e-9, atol=0)
    assert np.all(near.sum(axis=1) >= d - 2)


def triangles(count):
    """Centres of a grid of inputs, the areas of its image cells as two triangles each, and those of the area
    formula."""
    w, b, side = np.array([1.5, -0.7]), -0.4, np.linspace(-5, 5, count + 1)
    x = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1)
    q = neuron("sigmoid + cross-entropy", w, b, x.reshape(-1, 2))[0].reshape(count + 1, count + 1, 3)
    cells = [(q[:-1, :-1], q[1:, :-1], q[:-1, 1:]), (q[1:, 1:], q[1:, :-1], q[:-1, 1:])]
    areas = sum(np.linalg.norm(np.cross(one - corner, other - corner), axis=-1) / 2 for corner, one, other in cells)
    centres = ((x[1:, 1:] + x[:-1, :-1]) / 2).reshape(-1, 2)
    return centres, areas.ravel(), neuron("sigmoid + cross-entropy", w, b, centres)[1]


def test_areas_of_small_triangles_and_the_probability_on_them():
    error = []
    for count in (100, 200, 400):
        centres, areas, jacobians = triangles(count)
        error.append(np.abs(areas / (np.exp(af.log_area(jacobians)) * (10 / count) ** 2) - 1).max())
    assert error[2] < 3e-3 and np.log2(error[1] / error[2]) == pytest.approx(
        2, abs=0.1
    )  # second order in the side of a cell
    density = np.exp(norm.logpdf(centres).sum(axis=1) - af.log_area(jacobians))
    assert density @ areas == pytest.approx(1, abs=1e-4)


def test_for_as_many_parameters_as_inputs_the_area_is_the_determinant_and_for_one_input_the_arc_speed():
    square = RNG.standard_normal((6, 4, 4))
    np.testing.assert_allclose(af.log_area(square), np.linalg.slogdet(square)[1], rtol=1e-10)
    x, w, b = np.linspace(-1, 1, 9), 3.0, -1.0
    h, h1 = CURVES["exponential"](w * x + b)
    s, s1 = h * np.sqrt(1 + x**2), w * h1 * np.sqrt(1 + x**2) + h * x / np.sqrt(1 + x**2)
    arc = np.hypot(s1, s / (1 + x**2))  # radial speed and turning
    np.testing.assert_allclose(af.neuron_log_area(x[:, None], [w], h, h1), np.log(arc), rtol=1e-12)


def test_the_logarithm_survives_where_the_area_does_not():
    x, w = RNG.standard_normal((3, 40)), RNG.standard_normal(40)
    h = np.full(3, 1e-300)
    usual = af.neuron_log_area(x, w, np.ones(3), np.ones(3))
    np.testing.assert_allclose(af.neuron_log_area(x, w, h, h), usual + 40 * np.log(1e-300), rtol=1e-12)
    jacobians = neuron("cubic", w, 0.0, x)[1]
    np.testing.assert_allclose(
        af.log_area(1e-300 * jacobians), af.log_area(jacobians) + 40 * np.log(1e-300), rtol=1e-10
    )


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_on_a_cone_the_density_per_area_has_exponent_d(d):
    # A flat density of inputs along w, an exponential tail: per unit of area the exponent is d up to 1/(c|w|), c = 2
    # and |w| = 500.
    w = 500 * np.eye(d)[0]
    x = np.zeros((2, d)) + 0.3
    x[1, 0] += 0.02  # 20 e-foldings of h
    q, jacobians = neuron("exponential", w, -150.0, x)
    radii = np.log(np.linalg.norm(q, axis=1))
    assert radii[1] - radii[0] > 19
    slope = np.diff(af.log_area(jacobians))[0] / np.diff(radii)[0]
    assert slope == pytest.approx(d, abs=0.01 * d)


# --- frames ---------------------------------------------------------------------------------------


def test_singular_pairs_are_those_of_each_jacobian():
    jacobians = RNG.standard_normal((4, 7, 5))
    found = af.singular_pairs(jacobians, pairs=5)
    np.testing.assert_allclose(
        (found.left * found.values[:, None]) @ found.right.transpose(0, 2, 1), jacobians, atol=1e-13
    )
    few = af.singular_pairs(jacobians, pairs=2)
    assert (
        few.left.shape == (4, 7, 2) and few.right.shape == (4, 5, 2) and np.array_equal(few.values, found.values[:, :2])
    )
    np.testing.assert_allclose(jacobians @ few.right, few.left * few.values[:, None], atol=1e-13)
    assert np.all(np.diff(found.values, axis=1) <= 0)


def test_overlaps_are_cosines_without_sign_or_length():
    vectors = RNG.standard_normal((6, 4))
    found = af.overlaps(vectors)
    expected = [np.cos(subspace_angles(vectors[[i]].T, vectors[[j]].T)[0]) for i in range(6) for j in range(i + 1, 6)]
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    scaled = vectors * np.array([1e-200, -3.0, 1e200, 1.0, -1e-8, 2.0])[:, None]
    np.testing.assert_allclose(af.overlaps(scaled), found, rtol=1e-13)


def test_one_frame_for_all_samples_is_energy_on_the_diagonal_only():
    left, right = ortho_group.rvs(6, random_state=1)[:, :4], ortho_group.rvs(4, random_state=2)
    sizes = RNG.uniform(1, 2, (9, 4)) * [8.0, 4.0, 2.0, 0.5]
    shared = np.einsum("ki,ni,li->nkl", left, sizes, right)
    np.testing.assert_allclose(af.diagonal_energy(shared), 1, rtol=1e-12)
    np.testing.assert_allclose(
        af.diagonal_energy(shared * 10.0 ** np.linspace(-200, 1, 9)[:, None, None]), 1, rtol=1e-12
    )
    jacobians = shared + 0.5 * RNG.standard_normal(shared.shape)
    found = af.diagonal_energy(jacobians)
    assert np.all((found > 0) & (found < 1))
    turned = ortho_group.rvs(6, random_state=3) @ jacobians @ ortho_group.rvs(4, random_state=4)
    np.testing.assert_allclose(af.diagonal_energy(turned), found, rtol=1e-10)


# --- one-dimensional maps, eq. (4.6) --------------------------------------------------------------


def test_a_linear_map_decouples_exactly_even_for_correlated_inputs():
    rng = np.random.default_rng(1)
    x = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.8], [0.8, 1.0]], 200_000)
    matrix = rng.standard_normal((3, 2))
    pairs = af.singular_pairs(matrix[None], pairs=2)
    inputs, outputs = x @ pairs.right[0], x @ matrix.T @ pairs.left[0]
    assert abs(np.corrcoef(inputs.T)[0, 1]) > 0.1
    for i in range(2):
        found = af.one_dimensional_map(inputs[:, i], outputs[:, i])
        assert found.distance < 1e-3 and found.explained > 1 - 1e-12
        np.testing.assert_allclose(found.predicted, pairs.values[0, i] * inputs[:, i], atol=1e-12)


def test_the_map_is_the_conditional_mean():
    rng = np.random.default_rng(2)
    x = rng.standard_normal(200_000)
    y = np.sin(x) + 0.5 * rng.standard_normal(len(x))
    found = af.one_dimensional_map(x, y)
    signal = (1 - np.exp(-2)) / 2  # variance of sin x
    assert found.explained == pytest.approx(signal / (signal + 0.25), abs=0.005)
    inside = np.abs(x) < 2
    assert np.abs(found.predicted - np.sin(x))[inside].max() < 5 * 0.5 / np.sqrt(1000) + 0.01
    order = rng.permutation(len(x))
    again = af.one_dimensional_map(x[order], y[order])
    np.testing.assert_allclose(again.predicted, found.predicted[order], atol=1e-12)
    assert again.explained == pytest.approx(found.explained, rel=1e-10) and again.distance == pytest.approx(
        found.distance, abs=1e-12
    )


def test_the_distance_between_the_laws_is_that_of_the_laws():
    rng = np.random.default_rng(4)
    x, noise = rng.standard_normal((2, 200_000))
    found = af.one_dimensional_map(x, x + noise, bins=20)
    grid = np.linspace(-5, 5, 10_001)
    exact = np.abs(norm.cdf(grid) - norm.cdf(grid / np.sqrt(2))).max()
    at = grid[np.abs(norm.cdf(grid) - norm.cdf(grid / np.sqrt(2))).argmax()]
    sigma = np.hypot(
        np.sqrt(0.5 / len(x)), norm.pdf(at) * np.sqrt(20 / len(x))
    )  # of the two laws, of the mean in a bin
    assert exact > 20 * sigma and found.distance == pytest.approx(exact, abs=4 * sigma)


# --- what is refused ------------------------------------------------------------------------------


def test_maps_and_frames_that_do_not_exist_are_refused():
    folded = neuron("cubic", np.array([1.0, 2.0]), 0.0, np.array([[2.0, -1.0]]))[1]  # y = 0: h = h' = 0
    for function in (af.log_area, af.diagonal_energy):
        with pytest.raises(ValueError, match="^jacobians must "):
            function(folded)
    with pytest.raises(ValueError, match="^slope1 must keep the result inside"):
        af.neuron_log_area([[0.0]], [1.0], [1e-300], [1e300])
    x, y = np.linspace(0, 1, 20), np.linspace(1, 3, 20) ** 2
    for bad, name in (
        ((np.repeat([0.0, 1.0], 10), y, 4), "inputs must differ between bins"),
        ((x, y, 11), "inputs must hold at least two samples a bin"),
        ((x, y[:-1], 5), "outputs must have shape"),
        ((x, 0.1 + 1e-16 * np.arange(20), 5), "outputs must differ between samples"),
    ):
        with pytest.raises(ValueError, match=f"^{name}"):
            af.one_dimensional_map(*bad[:2], bins=bad[2])


@pytest.mark.parametrize(("call", "name"), [
    (lambda: af.log_area(np.ones((2, 3, 4))), "jacobians"), (lambda: af.log_area(np.zeros((0, 4, 3))), "jacobians"),
    (lambda: af.singular_pairs(np.ones((2, 4, 3)), pairs=4), "pairs"),
    (lambda: af.overlaps(np.ones((1, 3))), "vectors"),
    (lambda: af.overlaps([[1.0, 0.0], [0.0, 0.0]]), "vectors"),
    (lambda: af.neuron_log_area(np.zeros((2, 0)), [], [1.0, 2.0], [1.0, 2.0]), "inputs"),
    (lambda: af.neuron_log_area(np.ones((2, 3)), [1.0, 2.0], [1.0, 2.0], [1.0, 2.0]), "weights"),
    (lambda: af.neuron_log_area(np.ones((2, 1)), [1.0], [1.0, 0.0], [1.0, 2.0]), "slope"),
    (lambda: af.neuron_log_area(np.ones((2, 1)), [1.0], [1.0, 1.0], [1.0]), "slope1"),
])  # fmt: skip
def test_arguments_that_do_not_fit_are_refused(call, name):
    with pytest.raises(ValueError, match=f"^{name} must"):
        call()
