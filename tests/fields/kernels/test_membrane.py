"""membrane against gp_regression, integrals of e^{-S}, and differences of the action."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from lib.fields.kernels import membrane
from lib.fields.kernels.gp_regression import GaussianProcess

GRID = np.linspace(0, 3, 16)
KERNEL = 1.3 * np.exp(-np.abs(GRID[:, None] - GRID))
STIFFNESS = membrane.stiffness(KERNEL)
OBSERVED, Y, RIDGES = np.array([2, 9, 9, 14]), np.array([1.0, -0.5, 0.3, 2.0]), np.array([0.1, 0.4, 0.2, 1.0])
PROCESS, CROSS = GaussianProcess(KERNEL[np.ix_(OBSERVED, OBSERVED)], RIDGES), KERNEL[:, OBSERVED]


def test_relaxed_membrane_is_the_regression_and_its_energy_the_quadratic_form_of_the_targets():
    rest = minimize(
        membrane.action, np.zeros(16), (STIFFNESS, OBSERVED, Y, RIDGES), "CG", jac=True, options={"gtol": 1e-7}
    )
    assert rest.success
    np.testing.assert_allclose(rest.x, PROCESS.mean(Y, CROSS), atol=3e-6)
    assert rest.fun == pytest.approx(Y @ np.linalg.inv(PROCESS.gram + np.diag(RIDGES)) @ Y / 2, rel=1e-12)
    elastic = 2 * membrane.action(rest.x, STIFFNESS, [], [], 1.0)[0]
    assert elastic == pytest.approx(PROCESS.squared_norm(Y), rel=1e-6)


def test_curvature_of_the_action_is_the_inverse_of_the_posterior_covariance():
    _, steps = membrane.action(np.vstack([np.eye(16), np.zeros(16)]), STIFFNESS, OBSERVED, Y, RIDGES)
    np.testing.assert_allclose(np.linalg.inv(steps[:-1] - steps[-1]), PROCESS.covariance(CROSS, KERNEL), atol=1e-11)


def test_weight_of_the_action_has_the_posterior_mean_and_covariance_and_the_evidence_of_the_targets():
    """Two grid points, both integrals over a square."""
    kernel, y, ridge = np.array([[1.0, 0.6], [0.6, 0.8]]), np.array([1.5, -0.4]), np.array([0.5, 0.3])
    side = np.linspace(-7, 7, 401)
    fields = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1)  # (401, 401, 2)
    weight = np.exp(-membrane.action(fields, membrane.stiffness(kernel), [0, 1], y, ridge)[0])  # (401, 401)
    total = weight.sum()
    mean = np.einsum("ij,ijk->k", weight, fields) / total
    np.testing.assert_allclose(mean, GaussianProcess(kernel, ridge).mean(y, kernel), atol=1e-10)
    covariance = np.einsum("ij,ijk,ijl->kl", weight, fields - mean, fields - mean) / total
    np.testing.assert_allclose(covariance, GaussianProcess(kernel, ridge).covariance(kernel, kernel), atol=1e-10)
    noisy = kernel + np.diag(ridge)
    evidence = np.exp(-y @ np.linalg.inv(noisy) @ y / 2) / (2 * np.pi * np.sqrt(np.linalg.det(noisy)))
    measured = total * (side[1] - side[0]) ** 2 / (4 * np.pi**2 * np.sqrt(np.linalg.det(kernel) * ridge.prod()))
    assert measured == pytest.approx(evidence, rel=1e-10)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 999), st.sampled_from([(), (3,), (2, 0), (2, 3)]), st.floats(0.01, 100))
def test_gradient_is_the_difference_of_the_action_field_by_field(seed, shape, ridge):
    rng = np.random.default_rng(seed)
    fields, way = rng.standard_normal((2, *shape, 16))
    value, gradient = membrane.action(fields, STIFFNESS, OBSERVED, Y, ridge)
    assert np.shape(value) == shape
    ends = [membrane.action(fields + step * way, STIFFNESS, OBSERVED, Y, ridge)[0] for step in (1, -1)]
    scale = 1e-11 * (1 + np.sum(np.abs(ends), axis=0))
    # S is quadratic: no smaller step is needed.
    assert np.all(np.abs((ends[0] - ends[1]) / 2 - (gradient * way).sum(axis=-1)) <= scale)
    for index in np.ndindex(shape):
        alone = membrane.action(fields[index], STIFFNESS, OBSERVED, Y, ridge)
        np.testing.assert_allclose(alone[0], np.asarray(value)[index], rtol=1e-12)
        np.testing.assert_allclose(alone[1], gradient[index], rtol=1e-9, atol=1e-10 * np.abs(gradient).max())


def test_exponential_kernel_is_a_membrane_of_neighbors():
    """K = e^{-|x - x'|} is the process of first order: its stiffness has one band beside the diagonal."""
    bands = np.triu(STIFFNESS, 2)
    assert np.abs(bands).max() < 1e-11 * STIFFNESS.max()
    decay = np.exp(-(GRID[1] - GRID[0]))
    np.testing.assert_allclose(STIFFNESS.diagonal(1), -decay / (1 - decay**2) / 1.3, rtol=1e-10)
    np.testing.assert_allclose(STIFFNESS.diagonal()[1:-1], (1 + decay**2) / (1 - decay**2) / 1.3, rtol=1e-10)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"field": np.ones(15)}, "field must have shape"),
        ({"field": 1e200 * np.ones(16)}, "field must keep"),
        ({"observed": [16]}, "observed must have entries"),
        ({"observed": [0.5]}, "observed must hold whole numbers"),
        ({"targets": Y[:-1]}, "targets must have one axis of length 4"),
        ({"ridge": [1, 1, 1, 0]}, "ridge must be > 0: a spring"),
        ({"ridge": RIDGES[:-1]}, "ridge must be one number or have shape"),
    ],
)
def test_what_does_not_fit_is_refused(changed, message):
    given = {"field": np.ones(16), "stiffness": STIFFNESS, "observed": OBSERVED, "targets": Y, "ridge": RIDGES}
    with pytest.raises(ValueError, match=f"^{message}"):
        membrane.action(**given | changed)


def test_kernels_without_an_inverse_are_refused():
    for kernel in (np.ones((2, 2)), -np.eye(2), np.exp(-((GRID[:, None] - GRID) ** 2))):
        with pytest.raises(ValueError, match="^kernel must have a condition number up to"):
            membrane.stiffness(kernel)
