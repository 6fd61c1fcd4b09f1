"""lib.scaling.gram against descent of all weights, in law: means and spreads of the overlaps over runs."""

import numpy as np
import pytest
from bad_input import COUNT, NUMBER, SEED, exercised
from scipy.special import erf

from lib.scaling import gram, spectra, structured


def vectors_with(resolved, counts, rng):
    """Weights (K, N), (M, N) in the eigenbasis with exactly these overlaps; eigenspaces one after the other."""
    q, r, t = resolved
    joint = np.concatenate([np.concatenate([q, r], 2), np.concatenate([np.swapaxes(r, 1, 2), t], 2)], 1)
    parts = []
    for block, count in zip(joint, counts):
        values, frame = np.linalg.eigh(block)
        kept = min(count, len(block))
        root = frame[:, -kept:] * np.sqrt(np.maximum(values[-kept:], 0))
        parts.append(root @ np.linalg.qr(rng.standard_normal((count, kept)))[0].T * np.sqrt(sum(counts)))
    weights = np.concatenate(parts, axis=1)
    return weights[: q.shape[1]], weights[q.shape[1] :]


def descend(student, teacher, scale, rate, steps, runs, rng):
    """Plain descent of `runs` copies of a student; the fields' covariances Q, R at the end, one a run."""
    units, teachers, n = len(student), len(teacher), student.shape[1]
    j = np.repeat(student[None], runs, axis=0)
    for _ in range(steps):
        xi = rng.standard_normal((runs, n)) * scale
        x, y = np.einsum("rin,rn->ri", j, xi) / np.sqrt(n), xi @ teacher.T / np.sqrt(n)
        delta = erf(y / np.sqrt(2)).sum(1) / np.sqrt(teachers) - np.sqrt(teachers) / units * erf(x / np.sqrt(2)).sum(1)
        slope = np.sqrt(2 / np.pi) * np.exp(-(x**2) / 2)
        j += rate * np.sqrt(teachers) / units * (delta[:, None] * slope)[:, :, None] * xi[:, None, :] / np.sqrt(n)
    weighted = j * scale**2
    return np.einsum("rin,rjn->rij", weighted, j) / n, weighted @ teacher.T / n


@pytest.mark.parametrize(
    "counts, units, teachers", [([30, 20], 2, 2), ([1, 3, 40], 2, 1), ([4, 5, 2], 1, 3), ([6], 3, 3)]
)
def test_law_is_that_of_full_descent(counts, units, teachers):
    rng = np.random.default_rng(4)
    lam = spectra.power_law(len(counts), 1.0)
    lam = lam / (np.array(counts) @ lam / sum(counts))
    start = spectra.random_overlaps(counts, units, teachers, 5, student_variance=0.5)
    student, teacher = vectors_with(start, counts, rng)
    steps, runs, rate = 3 * sum(counts), 1500, 0.8
    q, r = descend(student, teacher, np.sqrt(np.repeat(lam, counts)), rate, steps, runs, rng)
    path = gram.simulate([3.0], *start, lam, counts, rate, rng=6, runs=runs)
    for full, reduced in ((q, path.student_overlap[:, 0]), (r, path.cross_overlap[:, 0])):
        error = np.hypot(full.std(0), reduced.std(0)) / np.sqrt(runs)
        assert (np.abs(full.mean(0) - reduced.mean(0)) < 4.5 * error).all()
        centred = [(part - part.mean(0)) ** 2 for part in (full, reduced)]
        error = np.hypot(*(part.std(0) for part in centred)) / np.sqrt(runs)
        assert (np.abs(centred[0].mean(0) - centred[1].mean(0)) < 4.5 * error).all()
        assert (full.std(0) > 1e-3).all()  # the spread that is compared is no rounding


def test_runs_follow_the_equations_for_large_dimensions_and_their_spread_falls_as_one_over_root_n():
    lam, levels, rate, runs = spectra.power_law(4, 1.0), 4, 0.5, 24
    start = spectra.random_overlaps([64] * levels, 2, 2, 3, student_variance=0.05)
    expected = structured.solve([2.0], *start, lam, rate, tolerance=1e-6)
    spreads, misses = [], []
    for size in (400, 6400):
        path = gram.simulate([2.0], *start, lam, [size // levels] * levels, rate, rng=8, runs=runs)
        spreads.append(np.sqrt((path.student_overlap[:, 0].std(axis=0, ddof=1) ** 2).sum()))
        misses.append(np.abs(path.generalization_error.mean() / expected.generalization_error[0] - 1))
    assert spreads[0] / spreads[1] == pytest.approx(4, rel=0.3)
    assert misses[1] < 0.01


def test_records_start_and_keeps_the_overlaps_a_covariance():
    counts, lam = [2, 100], np.array([3.0, 0.96])
    start = spectra.random_overlaps(counts, 2, 2, 1, student_variance=0.3)
    path = gram.simulate([0, 300], *start, lam, counts, 0.7, rng=2, runs=2)
    np.testing.assert_allclose(
        path.student_overlap[:, 0], structured.fields(start[0], lam)[None].repeat(2, 0), rtol=1e-9
    )
    for q, r in zip(path.student_resolved, path.cross_resolved):
        joint = np.concatenate([np.concatenate([q, r], 2), np.concatenate([np.swapaxes(r, 1, 2), start[2]], 2)], 1)
        assert np.linalg.eigvalsh(joint).min() > -1e-13
        assert np.abs(np.linalg.eigvalsh(joint[0])[:2]).max() < 1e-13  # two dimensions hold no more
    assert (path.generalization_error[:, 1] < 0.03 * path.generalization_error[:, 0]).all()


def test_seed_fixes_every_run_whatever_the_workers_and_unequal_ranks_are_refused():
    start = spectra.random_overlaps([9, 9], 2, 2, 1)
    call = [1.0, 2.0], *start, spectra.power_law(2, 1.0), [9, 9], 0.5
    first, second = (gram.simulate(*call, rng=3, runs=4, workers=w) for w in (1, 2))
    np.testing.assert_array_equal(first.student_overlap, second.student_overlap)
    assert np.abs(first.student_overlap - gram.simulate(*call, rng=4, runs=4).student_overlap).min() > 1e-9
    with pytest.raises(ValueError, match="^multiplicities must be at least the rank"):
        gram.simulate([1.0], *start, spectra.power_law(2, 1.0), [2, 2], 0.5, rng=1)
    with pytest.raises(ValueError, match="^learning_rate must keep the overlaps"):
        gram.simulate([100.0], *start, spectra.power_law(2, 1.0), [9, 9], 1e200, rng=1)


# --- bad input: every public function, every argument

Q, R, T = spectra.random_overlaps([9, 9], 2, 1, 1)
CALLS = {
    gram.simulate: {
        "times": [0.5, 1.0],
        "student_resolved": Q,
        "cross_resolved": R,
        "teacher_resolved": T,
        "eigenvalues": [1.5, 0.5],
        "multiplicities": [9, 9],
        "learning_rate": 0.1,
        "rng": 1,
        "runs": 1,
        "workers": 1,
    },
}
BAD = {
    "times": [[], [1.0, 1.0], [2.0, 1.0], [-1.0], [np.nan], [[1.0]], "times", None, [1.0, 1.001]],
    "student_resolved": [Q[:1], Q[0], np.full((2, 2, 2), np.nan), -Q, Q + np.triu(np.ones((2, 2)), 1), "Q", None],
    "cross_resolved": [R[:1], R[:, :1], 100 * R, np.full((2, 2, 1), np.nan), "R", None],
    "teacher_resolved": [T[:1], T[0], np.full((2, 1, 1), np.nan), "T", None],
    "eigenvalues": [[], [1.0, 0.0], [1.0, np.nan], [[1.0, 0.5]], 1.0, "a", None, [1.5, 0.6]],
    "multiplicities": [[], [0, 1], [1, np.nan], 1.0, "a", [-1, 2], [1, 2, 3], [9.5, 9.5]],
    "learning_rate": NUMBER,
    "rng": SEED,
    "runs": COUNT,
    "workers": COUNT,
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(
    CALLS, BAD, {"student_resolved": "cross_resolved|student_resolved"}
)


def test_the_good_call_passes():
    gram.simulate(**CALLS[gram.simulate])
