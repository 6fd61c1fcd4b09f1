"""lib.fluctuations.stationary against samples that are never seen twice, and its matrix equation."""

import re

import numpy as np
import pytest

from lib.fluctuations import stationary


def test_closed_form_against_samples_that_are_never_seen_twice():
    rng = np.random.default_rng(11)
    lam, sigma, rate, batch, replicas = np.array([2.0, 1.0, 0.3]), 0.5, 0.25, 2, 4000
    g = stationary.gaussian_variances(lam, sigma**2 * lam / batch, rate, batch)
    v, total = rng.standard_normal((replicas, 3)) * np.sqrt(g), np.zeros((replicas, 3))
    for _ in range(400):
        x = rng.standard_normal((replicas, batch, 3)) * np.sqrt(lam)
        error = np.einsum("cbk,ck->cb", x, v) - sigma * rng.standard_normal((replicas, batch))
        v = v - rate / batch * np.einsum("cb,cbk->ck", error, x)
        total += v**2 / 400
    deviation = total.std(axis=0) / np.sqrt(replicas)
    assert (deviation < 0.02 * g).all() and (np.abs(total.mean(axis=0) - g) < 4 * deviation).all()
    assert (np.abs(total.mean(axis=0) - rate * sigma**2 / (2 * batch)) > 8 * deviation).all()  # the leading order


def test_closed_form_solves_the_matrix_equation_and_its_scalar_case_has_a_pole():
    lam, noise, rate, batch = np.array([1.0, 0.5, 0.2]), np.array([0.3, 1.0, 0.1]), 0.4, 3
    g = stationary.gaussian_variances(lam, noise, rate, batch)
    sandwich = lam**2 * g + (lam * (lam @ g) + lam**2 * g) / batch
    np.testing.assert_allclose(2 * lam * g, rate * (sandwich + noise), rtol=1e-12)
    for bad in (4 / 3, 3.0, np.nextafter(4 / 3, 0)):  # 2 / 3λ, beyond it, and where rounding would decide
        with pytest.raises(ValueError, match="^learning_rate must be below 1.33333, where"):
            stationary.gaussian_variances([0.5], [1.0], bad, 1)
    for arguments in (([], []), ([1.0, 0.5], [1.0])):
        with pytest.raises(ValueError, match="^(eigenvalues|noise) must "):
            stationary.gaussian_variances(*arguments, 0.1, 2)


def test_the_threshold_in_the_message_is_a_pole():
    lam, noise, batch = np.array([3.0, 1.0, 0.2]), np.ones(3), 4
    with pytest.raises(ValueError) as caught:
        stationary.gaussian_variances(lam, noise, 10.0, batch)
    edge = float(re.search("below ([0-9.]+),", str(caught.value))[1])
    sizes = [stationary.gaussian_variances(lam, noise, (1 - gap) * edge, batch).sum() for gap in (1e-3, 1e-4)]
    assert sizes[1] / sizes[0] == pytest.approx(10, rel=0.1) and edge < 2 / (3.0 * 1.25)
