"""lib.scaling.structured.jacobian against the isotropic one, derivatives of the checked equations, and solutions."""

import numpy as np
import pytest
from bad_input import COUNT, NUMBER, exercised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

from lib.foundations.committee import Overlaps
from lib.scaling import plateau, spectra, structured


@settings(deadline=None, max_examples=20)
@given(levels=st.integers(1, 4), students=st.integers(1, 4), teachers=st.integers(1, 4), seed=st.integers(0, 1000))
def test_coordinates_and_directions_are_inverse(levels, students, teachers, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(levels, students, students)), rng.normal(size=(levels, students, teachers))
    x = x + np.swapaxes(x, 1, 2)
    vector = structured.coordinates(x, y)
    assert len(vector) == levels * students * (students + 1) // 2 + levels * students * teachers
    for part, wanted in zip(structured.directions(vector, levels, students, teachers), (x, y)):
        np.testing.assert_array_equal(part, wanted)


@pytest.mark.parametrize("second_order", [False, True])
def test_one_eigenvalue_is_the_isotropic_jacobian(second_order):
    q, r, t = spectra.random_overlaps([50], 3, 2, rng=1)
    for size in (1.0, 1e4):
        found = structured.jacobian(size * q, size * r, size * t, [1.0], 0.7, second_order=second_order)
        wanted = Overlaps(size * q[0], size * r[0], size * t[0]).jacobian(0.7, second_order=second_order)
        np.testing.assert_allclose(found, wanted, atol=1e-13 * np.abs(wanted).max())


@pytest.mark.parametrize("second_order", [False, True])
@pytest.mark.parametrize("students, teachers", [(2, 2), (3, 2), (1, 3)])
def test_every_direction_is_that_of_the_checked_equations(students, teachers, second_order):
    """Richardson's combination of differences, along a random direction from a state inside the covariance matrices."""
    counts, lam = [30, 60, 90], np.array([3.0, 1.0, 1 / 3])
    q, r, t = spectra.random_overlaps(counts, students, teachers, rng=2, student_variance=0.5)
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=q.shape), rng.normal(size=r.shape)
    x = x + np.swapaxes(x, 1, 2)
    option = {"multiplicities": counts, "second_order": second_order}

    def difference(step):
        up, down = (structured.derivative(q + sign * x, r + sign * y, t, lam, 0.9, **option) for sign in (step, -step))
        return structured.coordinates(*((a - b) / (2 * step) for a, b in zip(up, down)))

    wanted = (4 * difference(1e-3) - difference(2e-3)) / 3
    found = structured.jacobian(q, r, t, lam, 0.9, **option) @ structured.coordinates(x, y)
    np.testing.assert_allclose(found, wanted, atol=1e-7 * np.abs(wanted).max())


@pytest.mark.parametrize("second_order", [False, True])
def test_its_exponential_moves_states_near_the_teacher(second_order):
    lam, levels, units = spectra.power_law(3, 1.0), 3, 2
    t = np.stack([np.eye(units)] * levels) / levels
    draw, late, miss = np.random.default_rng(4).standard_normal((levels, units, 30)), 5.0, []
    for size in (1e-2, 1e-3):
        delta = size * draw / np.sqrt(levels)
        cross = t + delta[:, :, :units] / np.sqrt(levels)
        student = cross + np.swapaxes(cross, 1, 2) - t + delta @ np.swapaxes(delta, 1, 2)
        path = structured.solve([late], student, cross, t, lam, 0.8, second_order=second_order, tolerance=1e-8)
        flow = expm(late * structured.jacobian(t, t, t, lam, 0.8, second_order=second_order))
        moved = flow @ structured.coordinates(student - t, cross - t)
        followed = structured.coordinates(path.student_resolved - t, path.cross_resolved - t)
        miss.append(np.abs(followed - moved).max() / np.abs(followed).max())
    assert miss[1] < 0.2 * miss[0] < 0.01


def test_at_the_plateau_it_grows_as_the_escape_rate_and_rests_in_what_no_teacher_sees():
    lam = spectra.power_law(2, 1.0)
    t = np.stack([np.eye(2) / 2] * 2)
    point = plateau.fixed_point(np.eye(2))
    r, q = t @ np.tile(point.weights, (2, 1)).T, np.full((2, 2, 2), point.student_overlap / 2)
    values = np.linalg.eigvals(structured.jacobian(q, np.swapaxes(r, 1, 2), t, lam, 0.4, second_order=False)).real
    wanted = plateau.symmetric_escape_rate(2, 1.0, 0.0, float((lam**2).mean()), 0.0, 0.4)
    assert np.sort(values)[-1] == pytest.approx(wanted, rel=1e-6)
    assert (np.abs(values) < 1e-8).any()


# --- bad input: every public function, every argument

SQUARE, CROSS = np.stack([np.eye(2) / 2] * 2), np.zeros((2, 2, 2))
CALLS = {
    structured.coordinates: {"student_direction": SQUARE, "cross_direction": CROSS},
    structured.directions: {"vector": np.ones(5), "levels": 1, "students": 2, "teachers": 1},
    structured.jacobian: {
        "student_resolved": SQUARE,
        "cross_resolved": CROSS,
        "teacher_resolved": SQUARE,
        "eigenvalues": [1.5, 0.5],
        "learning_rate": 0.5,
        "multiplicities": [1, 1],
        "second_order": True,
    },
}
MATRICES = [None, "Q", 1.0, np.eye(2), np.ones((3, 2, 2)), np.full((2, 2, 2), np.nan), np.ones((2, 3, 2))]
BAD = {
    "student_direction": [*MATRICES[:4], *MATRICES[5:], np.zeros((0, 2, 2)), [[[1.0, 2.0], [0.0, 1.0]]] * 2],
    "cross_direction": MATRICES,
    "vector": [None, "v", 1.0, np.ones(4), np.ones((5, 1)), np.full(5, np.nan)],
    "levels": COUNT,
    "students": COUNT,
    "teachers": COUNT,
    "student_resolved": MATRICES,
    "cross_resolved": [*MATRICES, np.ones((2, 2, 2))],
    "teacher_resolved": MATRICES,
    "eigenvalues": [[], [1.0, 0.0], [1.0, np.nan], [[1.0, 0.5]], 1.0, "a", None],
    "learning_rate": NUMBER,
    "multiplicities": [[], [0, 1], [1, np.nan], 1.0, "a", [-1, 2], [1, 2, 3]],
    "second_order": [0, 1, "yes", None],
}

test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(
    CALLS, BAD, {name: r"\w+_resolved" for name in BAD if name.endswith("_resolved")}
)
