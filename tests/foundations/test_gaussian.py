"""lib.foundations.gaussian against quadrature, Monte Carlo, closed forms, limits and symmetries."""

from math import factorial

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import dblquad, quad
from scipy.special import erf, roots_hermitenorm

from lib.foundations import gaussian

AVERAGES = [(gaussian.erf_i2, 2), (gaussian.erf_i3, 3), (gaussian.erf_i4, 4)]
AVERAGES += [(lambda c, n=n: gaussian.arccosine_kernel(c, n), 2) for n in range(3)]
SEEDS = st.integers(0, 10**6)


def g(z):
    return erf(z / np.sqrt(2))


def dg(z):
    return np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2)


def integrand(z):
    """The averaged function of 2, 3 or 4 arguments; the arguments are the last axis of z."""
    if z.shape[-1] == 2:
        return g(z[..., 0]) * g(z[..., 1])
    if z.shape[-1] == 3:
        return dg(z[..., 0]) * z[..., 1] * g(z[..., 2])
    return dg(z[..., 0]) * dg(z[..., 1]) * g(z[..., 2]) * g(z[..., 3])


def power_unit(n):
    """Both arguments through a step times a power: the integrand of the arc-cosine kernels."""
    return lambda z: np.prod(np.where(z > 0, 1.0, 0.0) * z**n, axis=-1)


def random_covariance(seed, size, rank=None, scale=1.0):
    root = np.random.default_rng(seed).standard_normal((size, rank or size)) * np.sqrt(scale)  # (size, rank)
    return root @ root.T


def plane_average(function, root):
    """Adaptive quadrature of F(root @ x) over a plane of two independent normals x; root is (n, 2)."""

    def weighted(y, x):
        return function(root @ np.array([x, y])) * np.exp(-(x**2 + y**2) / 2) / (2 * np.pi)

    return dblquad(weighted, -9, 9, -9, 9, epsabs=1e-11, epsrel=1e-11)[0]


# ---- the erf integrals ---------------------------------------------------------------------------


@pytest.mark.parametrize("average, size", AVERAGES[:3])
@pytest.mark.parametrize("seed", [0, 1])
def test_erf_averages_equal_adaptive_quadrature(average, size, seed):
    root = np.random.default_rng(seed).standard_normal((size, 2))  # rank two: singular for three and four arguments
    assert average(root @ root.T) == pytest.approx(plane_average(integrand, root), abs=1e-9)


@pytest.mark.parametrize("average, size", AVERAGES[:3])
def test_erf_averages_equal_product_quadrature_at_full_rank(average, size):
    x, weight = roots_hermitenorm(26)
    grid = np.stack(np.meshgrid(*[x] * size, indexing="ij"), axis=-1)  # (26, ..., size)
    weights = np.prod(
        np.stack(np.meshgrid(*[weight / weight.sum()] * size, indexing="ij"), axis=-1), axis=-1
    )  # (26, ...)
    root = np.linalg.cholesky(random_covariance(3, size, scale=0.1))
    assert average(root @ root.T) == pytest.approx((weights * integrand(grid @ root.T)).sum(), abs=1e-9)


@settings(max_examples=25)
@given(seed=SEEDS, rank=st.integers(1, 4), scale=st.floats(1e-3, 1e3))
def test_symmetries_of_the_integrals(seed, rank, scale):
    c = random_covariance(seed, 4, rank, scale)
    value = gaussian.erf_i4(c)
    for order in ([1, 0, 2, 3], [0, 1, 3, 2], [1, 0, 3, 2]):
        assert gaussian.erf_i4(c[np.ix_(order, order)]) == pytest.approx(value, abs=1e-11)
    assert gaussian.erf_i2(c[:2, :2]) == pytest.approx(gaussian.erf_i2(c[1::-1, 1::-1]), abs=1e-14)
    for signs, parity in (([-1, 1, 1, 1], 1), ([1, -1, 1, 1], 1), ([1, 1, -1, 1], -1), ([1, 1, 1, -1], -1)):
        mirrored = c * np.outer(signs, signs)
        assert gaussian.erf_i4(mirrored) == pytest.approx(parity * value, abs=1e-14)
    for signs, parity in (([-1, 1, 1], 1), ([1, -1, 1], -1), ([1, 1, -1], -1)):
        mirrored = c[:3, :3] * np.outer(signs, signs)
        assert gaussian.erf_i3(mirrored) == pytest.approx(parity * gaussian.erf_i3(c[:3, :3]), rel=1e-14)


def test_limits_of_the_integrals():
    c = random_covariance(7, 4)
    assert gaussian.erf_i2(np.diag([2.0, 3.0])) == 0
    for q in (0.0, 1e-8, 1.0, 1e6, 1e12):  # equal arguments; the two forms share no rounding
        assert gaussian.erf_i2(np.full((2, 2), q)) == pytest.approx(
            1 - 2 / np.pi * np.arctan2(np.sqrt(1 + 2 * q), q), abs=1e-15
        )
    small = 1e-5
    for (average, size), factor in zip(AVERAGES[:3], (2 / np.pi, 2 / np.pi, 4 / np.pi**2)):
        assert average(small * c[:size, :size]) / small == pytest.approx(factor * c[size - 2, size - 1], rel=1e-3)
    shrink = np.diag([1, 1, small])  # the argument of g alone is small: g(z) = √(2/π) z
    linear = 2 / np.pi * (c[1, 2] - c[0, 1] * c[0, 2] / (1 + c[0, 0])) / np.sqrt(1 + c[0, 0])
    assert gaussian.erf_i3(shrink @ c[:3, :3] @ shrink) / small == pytest.approx(linear, rel=1e-8)
    assert gaussian.erf_i3(np.diag([1, 1, 0]) @ c[:3, :3] @ np.diag([1, 1, 0])) == 0
    assert gaussian.erf_i4(np.diag([0, 0, 1, 1]) @ c @ np.diag([0, 0, 1, 1])) == pytest.approx(
        2 / np.pi * gaussian.erf_i2(c[2:, 2:]), rel=1e-14
    )


def test_singular_covariances_do_not_lose_digits():
    for q in (1e-3, 1.0, 1e4, 1e8):  # four equal arguments: D11 = D12 = q / (1 + 2q)
        exact = 4 / np.pi**2 / np.sqrt(1 + 2 * q) * np.arctan2(q, np.sqrt((1 + 2 * q) * (1 + 4 * q)))
        assert gaussian.erf_i4(np.full((4, 4), q)) == pytest.approx(exact, rel=1e-13)


@settings(max_examples=15)
@given(seed=SEEDS)
def test_price_and_stein_connect_the_integrals(seed):
    c, step = random_covariance(seed, 2) + 0.1 * np.eye(2), 1e-5
    shift = step * np.array([[0, 1], [1, 0]])
    slope = (gaussian.erf_i2(c + shift) - gaussian.erf_i2(c - shift)) / (2 * step)
    derivative_average = 2 / np.pi / np.sqrt(np.linalg.det(np.eye(2) + c))
    assert slope == pytest.approx(derivative_average, rel=1e-7)
    first_twice = c[np.ix_([0, 0, 1], [0, 0, 1])]  # ⟨g'(z1) z1 g(z2)⟩ = C12 ⟨g'g'⟩ / (1 + C11)
    assert gaussian.erf_i3(first_twice) == pytest.approx(c[0, 1] * derivative_average / (1 + c[0, 0]), rel=1e-12)


# ---- the arc-cosine kernels ----------------------------------------------------------------------


@pytest.mark.parametrize("order", [0, 1, 2])
def test_arccosine_kernels_equal_quadrature_in_polar_coordinates(order):
    c = random_covariance(2, 2)
    root = np.linalg.cholesky(c)

    def ray(angle):  # the radial integral of r^(2n+1) exp(-r²/2) is 2^n n!
        return (
            power_unit(order)(root @ np.array([np.cos(angle), np.sin(angle)]))
            * 2**order
            * factorial(order)
            / (2 * np.pi)
        )

    kinks = [np.arctan2(-row[0], row[1]) % np.pi + turn for row in root for turn in (0, np.pi)]
    expected = quad(ray, 0, 2 * np.pi, points=sorted(kinks), epsabs=1e-12, epsrel=1e-12)[0]
    assert gaussian.arccosine_kernel(c, order) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=25)
@given(seed=SEEDS, scale=st.floats(1e-3, 1e3))
def test_properties_of_the_arccosine_kernels(seed, scale):
    c = random_covariance(seed, 2) + 0.1 * np.eye(2)
    step = 1e-5 * np.array([[0, 1], [1, 0]])
    stretch = np.diag([scale, 1 / scale])
    for order in (0, 1, 2):
        value = gaussian.arccosine_kernel(c, order)
        assert gaussian.arccosine_kernel(stretch @ c @ stretch, order) == pytest.approx(value, rel=1e-9)
        if order > 0:  # Price's theorem: dk_n / dC12 = n² k_{n-1}
            slope = (gaussian.arccosine_kernel(c + step, order) - gaussian.arccosine_kernel(c - step, order)) / 2e-5
            assert slope == pytest.approx(order**2 * gaussian.arccosine_kernel(c, order - 1), rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_arccosine_kernels_of_nearly_opposite_arguments_keep_their_digits(order):
    """In forty digits; rounding of the determinant moves φ = π - θ by 1e-16/φ², and k_n by 2n + 1 times that."""
    for rho in (-1 + 1e-12, -1 + 1e-8, -0.9999, -0.96, -0.95):
        with mp.workdps(40):
            phi = mp.acos(-mp.mpf(rho))
            exact = (phi, mp.sin(phi) - phi * mp.cos(phi), phi * (2 + mp.cos(2 * phi)) - 1.5 * mp.sin(2 * phi))[order]
            exact = float(2**order * exact / (2 * mp.pi))
        bound = (2 * order + 1) * 4e-16 / float(phi) ** 2 + 1e-13
        assert gaussian.arccosine_kernel(2 * np.array([[1, rho], [rho, 1]]), order) == pytest.approx(exact, rel=bound)


def test_limits_of_the_arccosine_kernels():
    for order, half_moment, moment in ((0, 0.5, 1), (1, 1 / np.sqrt(2 * np.pi), 1), (2, 0.5, 3)):
        assert gaussian.arccosine_kernel(np.eye(2), order) == pytest.approx(half_moment**2)
        assert gaussian.arccosine_kernel(np.ones((2, 2)), order) == pytest.approx(moment / 2)
        assert gaussian.arccosine_kernel(2 * np.eye(2) - 1, order) == pytest.approx(0, abs=1e-15)
    for order in (1, 2):
        assert gaussian.arccosine_kernel(np.diag([0.0, 2.0]), order) == 0
    with pytest.raises(ValueError, match="covariance must have variances > 0 for order 0"):
        gaussian.arccosine_kernel(np.diag([0.0, 2.0]), 0)


# ---- batches and bad input -----------------------------------------------------------------------


@pytest.mark.parametrize("average, size", AVERAGES)
def test_leading_axes_are_independent_cases_on_their_own_scale(average, size):
    batch = np.array(
        [[random_covariance(10 * i + j, size, scale=10.0 ** (4 * i - 4)) for j in range(3)] for i in range(3)]
    )
    values = average(batch)  # (3, 3)
    assert values.shape == (3, 3) and average(batch[:0]).shape == (0, 3)
    assert values == pytest.approx(np.array([[average(c) for c in row] for row in batch]), rel=1e-13)


@pytest.mark.parametrize("average, size", AVERAGES)
def test_matrices_that_are_no_covariance_are_refused_by_name(average, size):
    good = np.stack([random_covariance(k, size, scale=10.0 ** (6 * k)) for k in range(2)])
    small = good[0]  # the flaw is in the small one, which the largest entry would hide
    lopsided, strong = small.copy(), np.diag([1e14, 1e-10, 1.0, 1.0][:size])
    lopsided[0, 1] += 1e-6 * np.abs(small).max()
    strong[0, 1] = strong[1, 0] = 3e3  # a correlation of 30
    indefinite = small - (np.linalg.eigvalsh(small)[0] + 1e-6 * np.abs(small).max()) * np.eye(size)
    for bad, wanted in [(lopsided, "be symmetric"), (strong, "be positive semi"), (indefinite, "be positive semi")]:
        with pytest.raises(ValueError, match=f"^covariance must {wanted}"):
            average(np.stack([bad, good[1]]))
    for shape in (good[:, :, :-1], good[0, 0]):
        with pytest.raises(ValueError, match="^covariance must have shape"):
            average(shape)


def test_unchecked_averages_are_those_of_a_checked_covariance():
    c = np.stack([random_covariance(k, 2) for k in range(3)])
    assert np.array_equal(gaussian.erf_i2(c), gaussian.erf_i2(c, check=False))
    for order in range(3):
        found = gaussian.arccosine_kernel(c, order)
        assert np.array_equal(found, gaussian.arccosine_kernel(c, order, check=False))
    with pytest.raises(ValueError, match="^order must be 0, 1 or 2"):
        gaussian.arccosine_kernel(c, 3)


@settings(max_examples=30)
@given(seed=SEEDS, size=st.integers(2, 4), rank=st.integers(1, 4), scale=st.floats(1e-70, 1e70))
def test_no_accepted_covariance_gives_nan(seed, size, rank, scale):
    c = random_covariance(seed, size, rank, scale)
    for average, n in AVERAGES:
        if n <= size:
            assert np.isfinite(average(c[:n, :n]))
