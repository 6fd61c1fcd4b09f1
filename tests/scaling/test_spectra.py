"""lib.scaling.spectra against trace formulas, the moments of Wishart matrices, and vectors that are really drawn."""

import numpy as np
import pytest
from bad_input import COUNT, SEED, exercised
from hypothesis import given
from hypothesis import strategies as st

from lib.scaling import _arguments, spectra


@given(levels=st.integers(2, 300), exponent=st.floats(0, 3))
def test_power_law_has_mean_one_and_its_ratios(levels, exponent):
    lam = spectra.power_law(levels, exponent)
    assert lam.mean() == pytest.approx(1, rel=1e-12)
    k = np.arange(1, levels)
    np.testing.assert_allclose(lam[:-1] / lam[1:], ((k + 1) / k) ** (1 + exponent), rtol=1e-12)


def test_the_mean_of_a_spectrum_is_weighted():
    lam, fractions = _arguments.spectrum([3.0, 0.5], [100, 400])
    assert fractions.tolist() == [0.2, 0.8] and lam.tolist() == [3.0, 0.5]
    with pytest.raises(ValueError, match="^eigenvalues must have mean one"):
        _arguments.spectrum([3.0, 0.5])
    single = spectra.power_law(1000, 1.0).astype(np.float32)  # of mean 1 - 3e-8
    assert _arguments.spectrum(single)[0].tolist() == single.tolist()
    with pytest.raises(ValueError, match="^eigenvalues must have mean one"):
        _arguments.spectrum(single.astype(float))


@pytest.mark.parametrize("counts", [[40, 10, 2], [3, 3, 3], [1, 200, 5]])
def test_overlaps_have_the_moments_of_drawn_vectors(counts):
    """Mean and variance of every entry: T_nm^k has mean δ m_k/N and variance (1 + δ) m_k/N²; also where m_k < K + M."""
    draws, n, variance = 4000, sum(counts), 0.25
    seeds = np.random.SeedSequence(7).spawn(draws)
    parts = [spectra.random_overlaps(counts, 2, 2, s, student_variance=variance) for s in seeds]
    q, r, t = (np.stack(part) for part in zip(*parts))
    m = np.array(counts, dtype=float)
    for values, scale in ((q[:, :, 0, 0], variance), (t[:, :, 1, 1], 1.0)):
        error = values.std(axis=0) / np.sqrt(draws)
        assert (np.abs(values.mean(axis=0) - scale * m / n) < 4.5 * error).all()
        np.testing.assert_allclose(values.var(axis=0), 2 * scale**2 * m / n**2, rtol=0.25)
    for values, scale in ((q[:, :, 0, 1], variance), (r[:, :, 1, 0], np.sqrt(variance)), (t[:, :, 0, 1], 1.0)):
        error = values.std(axis=0) / np.sqrt(draws)
        assert (np.abs(values.mean(axis=0)) < 4.5 * error).all()
        np.testing.assert_allclose(values.var(axis=0), scale**2 * m / n**2, rtol=0.25)


def test_overlaps_of_few_dimensions_are_singular_and_all_are_positive():
    q, r, t = spectra.random_overlaps([3, 50], 2, 3, rng=2)
    joint = np.concatenate([np.concatenate([q, r], 2), np.concatenate([np.swapaxes(r, 1, 2), t], 2)], 1)  # (2, 5, 5)
    values = np.linalg.eigvalsh(joint)
    assert np.abs(values[0, :2]).max() < 1e-15 < 1e-4 < values[0, 2]
    assert values[1, 0] > 0.1
    again = spectra.random_overlaps([3, 50], 2, 3, rng=2)
    np.testing.assert_array_equal(again[0], q)


def test_orthonormal_teachers_are_so_and_keep_the_law_of_the_students():
    """Any orthonormal frame gives R^k_in mean zero and variance σ_J² m_k/N²; for m_k = M it is complete: R Rᵀ = n Q."""
    counts, draws, variance = np.array([40, 2]), 3000, 0.25
    option = {"student_variance": variance, "orthonormal_teachers": True}
    seeds = np.random.SeedSequence(11).spawn(draws)
    q, r, t = (
        np.stack(part) for part in zip(*(spectra.random_overlaps(counts, 3, 2, seed, **option) for seed in seeds))
    )
    np.testing.assert_array_equal(t, np.broadcast_to(np.eye(2) * (counts / 42)[:, None, None], t.shape))
    assert (np.abs(r.mean(axis=0)) < 4.5 * r.std(axis=0) / np.sqrt(draws)).all()
    np.testing.assert_allclose(
        r.var(axis=0), variance * np.broadcast_to(counts[:, None, None], (2, 3, 2)) / 42**2, rtol=0.15
    )
    full, schur = r @ np.swapaxes(r, -1, -2) / (counts / 42)[:, None, None], q  # |projection on the teachers|² <= |J|²
    np.testing.assert_allclose(full[:, 1], schur[:, 1], atol=1e-12)
    assert np.linalg.eigvalsh(schur[:, 0] - full[:, 0]).min() > 0
    with pytest.raises(ValueError, match="^multiplicities must be at least 2, the number of orthonormal teachers"):
        spectra.random_overlaps([40, 1], 3, 2, 1, orthonormal_teachers=True)


def test_variance_of_the_teacher_overlap_falls_as_one_over_n_only_at_fixed_levels():
    def spread(levels, size, draws=1500):
        lam, counts = spectra.power_law(levels, 1.0), np.full(levels, size // levels)
        seeds = np.random.SeedSequence(3).spawn(draws)
        return np.var([lam @ spectra.random_overlaps(counts, 1, 1, s)[2][:, 0, 0] for s in seeds])

    assert spread(4, 400) / spread(4, 1600) == pytest.approx(4, rel=0.25)
    exact = 2 * np.mean(spectra.power_law(64, 1.0) ** 2) / 64
    assert spread(64, 64) == pytest.approx(exact, rel=0.25)
    assert exact / (2 * np.mean(spectra.power_law(256, 1.0) ** 2) / 256) == pytest.approx(
        1, rel=0.03
    )  # it does not fall


# --- bad input: every public function, every argument

CALLS = {
    spectra.power_law: {"levels": 3, "exponent": 0.5},
    spectra.random_overlaps: {
        "multiplicities": [3, 4],
        "students": 2,
        "teachers": 1,
        "rng": 1,
        "student_variance": 0.5,
        "orthonormal_teachers": True,
    },
}
BAD = {
    "levels": COUNT,
    "exponent": [-0.1, np.nan, np.inf, "1", None, [0.1], True, 1e4],
    "multiplicities": [[], [0, 1], [1, np.nan], 1.0, "a", [-1, 2]],
    "students": COUNT,
    "teachers": COUNT,
    "rng": SEED,
    "student_variance": [-0.1, np.nan, np.inf, "1", None, [0.1], True],
    "orthonormal_teachers": [0, 1, "yes", None],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD)
