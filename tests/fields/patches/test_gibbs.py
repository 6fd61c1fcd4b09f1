"""lib.fields.patches.gibbs against quadrature, the prior, the regression at fixed filters, and the theory
with its gap at finite size.
"""

import numpy as np
import pytest
from scipy.integrate import quad

from lib.common import hmc
from lib.fields.patches import gibbs, posterior
from lib.fields.patches.shared_filters import PatchNetwork

RNG = np.random.default_rng(5)
NET = PatchNetwork(2, 3, 2, 0.5)
X, Y = RNG.standard_normal((6, 2, 3)), RNG.standard_normal(6)


def test_one_channel_on_one_component_has_the_moments_of_quadrature():
    x, y, ridge = np.array([0.5, -1.0, 2.0]), np.array([0.6, -0.8, 1.5]), 0.4
    readout, weight = 1.3 / 2.0, 0.8  # divided by the mean field, as the ridge is

    def density(w):
        # a integrated out:  A = v w² x xᵀ + T, by the matrix determinant lemma
        power = 1 + readout * w**2 * (x @ x) / (ridge / 2)
        return np.exp(
            -(w**2) / (2 * weight) + readout * w**2 * (x @ y) ** 2 / (2 * (ridge / 2) ** 2 * power)
        ) / np.sqrt(power)

    def product(w):
        return readout * w**2 * (x @ y) / (ridge / 2 + readout * w**2 * (x @ x))

    total, square, mean = (
        quad(lambda w: part(w) * density(w), 0, 9, epsabs=0)[0] for part in (lambda w: 1, lambda w: w * w, product)
    )

    def observable(w, a):
        return np.stack([w * w, a * w], axis=1)[..., 0, 0]

    net = PatchNetwork(1, 1, 1, ridge, mean_field=2.0, readout_variance=1.3, weight_variance=0.8)
    found = hmc.summary(gibbs.sample(net, x[:, None, None], y, 100, 1500, 4, burn_in=100, observable=observable))
    assert np.all(np.abs(found.mean - np.array([square, mean]) / total) < 4 * found.error)
    assert np.all(found.error < 0.01)


def test_without_data_both_have_their_prior():
    def kept(w, a):
        return np.stack(
            [3 * (w**2).mean(axis=(1, 2)), 2 * 4 * (a**2).mean(axis=(1, 2)), (a[:, 0] * a[:, 1]).mean(axis=1)], axis=1
        )

    net = PatchNetwork(2, 3, 4, 0.1, mean_field=5.0, readout_variance=1.5, weight_variance=0.6)
    found = hmc.summary(gibbs.sample(net, np.zeros((0, 2, 3)), [], 50, 300, 6, observable=kept))
    assert np.all(np.abs(found.mean - [0.6, 0.3, 0]) < 4 * found.error) and np.all(found.error < 0.01)


def test_own_filters_on_given_data_are_those_of_a_network_with_blocks_of_inputs():
    """N_p = 2, C = 1 of own filters: two units that see one patch each, by Hamiltonian Monte Carlo of everything."""
    net = PatchNetwork(2, 3, 1, 0.5, shared=False)

    def energy(theta):  # (M, 8)  w_1, w_2, a
        w, a = theta[:, :6].reshape(-1, 2, 3), theta[:, 6:]
        wrong = np.einsum("mi,mij,pij->mp", a, w, X) - Y
        pull = np.concatenate([3 * theta[:, :6], 2 * a], axis=1)
        force = np.einsum("mp,pij->mij", wrong / 0.5, X)
        slope = np.concatenate([(a[..., None] * force).reshape(-1, 6), (w * force).sum(axis=2)], axis=1)
        return (theta * pull).sum(axis=1) / 2 + (wrong**2).sum(axis=1), pull + slope

    start = np.random.default_rng(1).standard_normal((40, 8)) / 2
    chains = hmc.sample(energy, start, 1500, np.random.default_rng(2), observable=lambda t: np.concatenate(
        [(t[:, 6:, None] * t[:, :6].reshape(-1, 2, 3)).reshape(-1, 6), t[:, 6:] ** 2], axis=1))  # fmt: skip
    expected = hmc.summary(chains.samples)
    found = hmc.summary(gibbs.sample(net, X, Y, 40, 1500, 3, observable=lambda w, a: np.concatenate(
        [(a[..., None] * w).reshape(-1, 6), a[..., 0] ** 2], axis=1)))  # fmt: skip
    error = np.hypot(found.error, expected.error)
    assert np.all(np.abs(found.mean - expected.mean) < 4 * error) and np.all(error < 0.03)
    plain = gibbs.sample(net, X, Y, 40, 5, 3)
    np.testing.assert_allclose(plain, gibbs.sample(
        net, X, Y, 40, 5, 3, observable=lambda w, a: (a[:, :, None] @ w)[:, :, 0]))  # fmt: skip


def test_an_observable_may_change_what_it_is_given():
    def spoiled(w, a):
        value = a @ w
        w[:], a[:] = 0, 0
        return value

    given = NET, X, Y, 1, 5, 3
    np.testing.assert_array_equal(gibbs.sample(*given, observable=spoiled), gibbs.sample(*given))


def test_readouts_given_filters_are_those_of_the_regression():
    # A sweep draws the readouts at the filters that the sweep before it left.
    def both(w, a):
        return np.concatenate([w.ravel(), a.ravel()])[None]

    pairs = gibbs.sample(NET, X, Y, 1, 3000, 3, burn_in=100, observable=both)
    w, a = pairs[:-1, 0, :6].reshape(-1, 1, 2, 3), pairs[1:, 0, 6:].reshape(-1, 2, 2)  # and the readouts drawn next
    means = np.concatenate([posterior.mean_readouts(NET, "linear", one, X, Y) for one in w])
    off = a - means
    assert np.all(np.abs(off.mean(axis=0)) < 4.5 * off.std(axis=0) / np.sqrt(len(off)))
    # and the deviations have the posterior's covariance  (ΦᵀΦ/T + 1/v)⁻¹  on average
    expected = np.zeros((4, 4))
    for one in w[:, 0]:
        f = np.einsum("pis,cs->pic", X, one).reshape(6, 4)
        expected += np.linalg.inv(f.T @ f / 0.5 + 4 * np.eye(4)) / len(w)
    flat = off.reshape(-1, 4)
    np.testing.assert_allclose(flat.T @ flat / len(flat), expected, atol=0.08 * expected.max())


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("inputs", {"inputs": X[:, :, :2]}),
        ("inputs", {"inputs": X[:, :1]}),
        ("targets", {"targets": Y[:5]}),
        ("ridge of network", {"network": PatchNetwork(2, 3, 2, 0.0)}),
        ("ridge", {"network": PatchNetwork(2, 3, 5, 1e-15), "inputs": np.tile(X, (2, 1, 1)), "targets": np.tile(Y, 2)}),
        *(("observable", {"observable": bad}) for bad in (1.0, lambda w, a: w[0], lambda w, a: w * np.nan)),
    ],
)
def test_what_does_not_fit_is_refused(name, changed):
    given = {"network": NET, "inputs": X, "targets": Y, "chains": 3, "steps": 2, "rng": 0, "burn_in": 1}
    with pytest.raises(ValueError, match=f"^{name} must"):
        gibbs.sample(**given | changed)
