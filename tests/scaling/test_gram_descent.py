"""lib.scaling.gram_descent against descent of all weights, in law: means and spreads of the overlaps over replicas."""

import numpy as np
import pytest
from power_law import power_law
from scipy.special import erf

from lib.common.spectrum import Spectrum
from lib.scaling import gram_descent, structured


def vectors_with(resolved, counts, rng):
    """Weights (K, N), (M, N) in the eigenbasis with exactly these overlaps; eigenspaces one after the other."""
    q, r, t = resolved
    parts = []
    for block, count in zip(np.block([[q, r], [r.mT, t]]), counts):
        values, frame = np.linalg.eigh(block)
        kept = min(count, len(block))
        root = frame[:, -kept:] * np.sqrt(np.maximum(values[-kept:], 0))
        parts.append(root @ np.linalg.qr(rng.standard_normal((count, kept)))[0].T * np.sqrt(sum(counts)))
    weights = np.concatenate(parts, axis=1)
    return weights[: q.shape[1]], weights[q.shape[1] :]


def descend(student, teacher, scale, rate, steps, replicas, rng):
    """Plain descent of copies of a student; the fields' covariances Q, R at the end, one a replica."""
    units, teachers, n = len(student), len(teacher), student.shape[1]
    j = np.repeat(student[None], replicas, axis=0)
    for _ in range(steps):
        xi = rng.standard_normal((replicas, n)) * scale
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
    rng, size, replicas, rate = np.random.default_rng(4), sum(counts), 1500, 0.8
    spectrum = Spectrum(power_law(len(counts), 1.0), counts).normalized()
    start = structured.random_overlaps(counts, units, teachers, 5, student_variance=0.5)
    scale = np.sqrt(np.repeat(spectrum.eigenvalues, counts))
    q, r = descend(*vectors_with(start, counts, rng), scale, rate, 3 * size, replicas, rng)
    path = gram_descent.simulate(3.0, start, spectrum, rate, rng=6, replicas=replicas)
    for full, reduced in ((q, path.student_overlap), (r, path.cross_overlap)):
        error = np.hypot(full.std(0), reduced.std(0)) / np.sqrt(replicas)
        assert (np.abs(full.mean(0) - reduced.mean(0)) < 4.5 * error).all()
        centred = [(part - part.mean(0)) ** 2 for part in (full, reduced)]
        error = np.hypot(*(part.std(0) for part in centred)) / np.sqrt(replicas)
        assert (np.abs(centred[0].mean(0) - centred[1].mean(0)) < 4.5 * error).all()
        assert (full.std(0) > 1e-3).all()  # the spread that is compared is no rounding


def test_replicas_follow_the_equations_for_large_dimensions_and_their_spread_falls_as_one_over_root_n():
    lam, rate = power_law(4, 1.0), 0.5
    start = structured.random_overlaps([64] * 4, 2, 2, 3, student_variance=0.05)
    expected = start.solve(2.0, lam, rate, tolerance=1e-6).generalization_error
    spreads, misses = [], []
    for size in (400, 6400):
        path = gram_descent.simulate([2.0], start, Spectrum(lam, [size // 4] * 4), rate, rng=8, replicas=24)
        spreads.append(np.sqrt((path.student_overlap[:, 0].std(axis=0, ddof=1) ** 2).sum()))
        misses.append(np.abs(path.generalization_error.mean() / expected - 1))
    assert spreads[0] / spreads[1] == pytest.approx(4, rel=0.3)
    assert misses[1] < 0.01


def test_records_start_and_keeps_the_overlaps_a_covariance():
    counts, lam = [2, 100], np.array([3.0, 0.96])
    start = structured.random_overlaps(counts, 2, 2, 1, student_variance=0.3)
    path = gram_descent.simulate([0, 300], start, Spectrum(lam, counts), 0.7, rng=2, replicas=2)
    begin = structured.fields(start.student, lam)[None].repeat(2, 0)
    np.testing.assert_allclose(path.student_overlap[:, 0], begin, rtol=1e-9)
    for q, r in zip(path.student_resolved, path.cross_resolved):
        values = np.linalg.eigvalsh(np.block([[q, r], [r.mT, start.teacher]]))
        assert values.min() > -1e-13
        assert np.abs(values[0, :2]).max() < 1e-13  # two dimensions hold no more
    assert (path.generalization_error[:, 1] < 0.03 * path.generalization_error[:, 0]).all()


def test_seed_fixes_every_replica_whatever_the_workers_and_what_does_not_fit_is_refused():
    start, spectrum = structured.random_overlaps([9, 9], 2, 2, 1), Spectrum(power_law(2, 1.0), [9, 9])
    call = [1.0, 2.0], start, spectrum, 0.5
    first, second = (gram_descent.simulate(*call, rng=3, replicas=4, workers=w) for w in (1, 2))
    np.testing.assert_array_equal(first.student_overlap, second.student_overlap)
    other = gram_descent.simulate(*call, rng=4, replicas=4)
    assert np.abs(first.student_overlap - other.student_overlap).min() > 1e-9
    with pytest.raises(ValueError, match="^spectrum must have multiplicities of at least the rank"):
        gram_descent.simulate([1.0], start, Spectrum(spectrum.eigenvalues, [2, 2]), 0.5, rng=1)
    with pytest.raises(ValueError, match="^spectrum must have whole multiplicities"):
        gram_descent.simulate([1.0], start, Spectrum(spectrum.eigenvalues, [9.5, 9.5]), 0.5, rng=1)
    with pytest.raises(ValueError, match="^learning_rate must keep the result"):
        gram_descent.simulate([100.0], start, spectrum, 1e200, rng=1)
    with pytest.raises(ValueError, match="^times must lie at least one example"):
        gram_descent.simulate([1.0, 1.001], start, spectrum, 0.5, rng=1)
