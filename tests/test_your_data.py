"""The six recipes of book/your-data.md: right where the answer is known, and clear about what they cannot answer."""

import re

import numpy as np
import pandas
import pytest
import torch

from lib.common.spectrum import Spectrum
from lib.criticality import power_laws
from lib.fields.kernels import pools
from lib.fields.kernels.effective_ridge import RidgeTheory
from lib.fields.kernels.learning_curve import PowerLaw, decay
from lib.fluctuations import gradient_noise
from lib.foundations import online
from lib.representations import pairwise
from lib.scaling import plateau, structured
from tools.build import project

RNG = np.random.default_rng(11)
LAW = np.arange(1.0, 41) ** -1.7
DRAWN = RNG.standard_normal((1500, 40))
X, Y = DRAWN * np.sqrt(LAW), DRAWN @ np.sqrt(LAW) + 0.3 * RNG.standard_normal(1500)


# --- the answers that are known -------------------------------------------------------------------


def test_a_learning_curve_from_features_and_labels_is_that_of_their_law():
    p = np.array([10, 50, 400])
    forecast = pools.modes(X, Y).predict(p, ridge=0.1, population=True).test_error
    known = RidgeTheory(LAW, p, ridge=0.1).predict(LAW, noise_variance=0.09).test_error
    np.testing.assert_allclose(forecast, known, rtol=0.1)  # 1500 samples know an eigenvalue to 4 %


def test_a_learning_curve_inside_a_pool_is_that_of_ridge_regression_by_hand():
    found, p = [], np.array([30, 200, 1200])
    for _ in range(40):
        order = RNG.permutation(1500)
        for size in p:
            seen, left = order[:size], order[size:]
            weights = np.linalg.solve(X[seen].T @ X[seen] + 0.5 * np.eye(40), X[seen].T @ Y[seen])
            found.append(((X[left] @ weights - Y[left]) ** 2).mean())
    found = np.reshape(found, (40, 3))
    predicted = pools.modes(X, Y).predict(p, ridge=0.5).test_error
    assert np.all(np.abs(found.mean(axis=0) - predicted) < 4 * found.std(axis=0) / np.sqrt(40) + predicted / p)


def test_a_committee_is_followed_from_its_measured_overlaps():
    """Against the book's own simulator at N = 300, in whose units the measured ones must be, eight runs."""
    lam = Spectrum.power_law(300, decay=1.0).normalized().eigenvalues
    student, teacher = (online.random_weights(2, 300, rng=seed) for seed in (1, 2))
    times = np.array([1.0, 5.0, 20.0])
    settings = {"learning_rate": 0.5, "times": times, "rng": 3, "replicas": 8, "eigenvalues": lam}
    runs = online.simulate(student, teacher, **settings).generalization_error
    x = np.random.default_rng(4).standard_normal((20_000, 300)) * np.sqrt(lam)
    found = structured.measured(7 * x, student / 7 / 300**0.5, teacher / 7 / 300**0.5)  # in units of its own
    eta = 0.5 / 300 / 49 * found.rate  # a step on raw weights is that of J over N, in these units
    assert eta == pytest.approx(0.5, rel=0.01)
    path = found.overlaps.solve(times, found.spectrum, learning_rate=eta)
    error = runs.std(axis=0) / np.sqrt(8)
    assert np.all(np.abs(runs.mean(axis=0) - path.generalization_error) < 4 * error + 0.03 * path.generalization_error)


def half(output, target):
    return (output[0] - target) ** 2 / 2


def neuron(weights):
    net = torch.nn.Linear(len(weights), 1, bias=False).double()
    net.weight.data = torch.tensor(weights, dtype=torch.float64)[None]
    return net


def test_the_spread_of_weights_under_torch_is_the_predicted_one():
    x, y = X[:60, :3], Y[:60]
    net = neuron(np.linalg.lstsq(x, y)[0])
    predicted = gradient_noise.measure(net, half, x, y).covariance(0.4, 5)
    sgd, inputs, targets, track = torch.optim.SGD(net.parameters(), lr=0.4), *map(torch.from_numpy, (x, y)), []
    for _ in range(12_000):
        pick = torch.from_numpy(RNG.choice(60, 5, replace=False))
        sgd.zero_grad()
        (((net(inputs[pick])[:, 0] - targets[pick]) ** 2).sum() / 10).backward()
        sgd.step()
        track.append(net.weight.data.numpy()[0].copy())
    # The slowest mode forgets in some 1/(0.4 · 0.15) = 17 steps: 12 000 know a variance to √(2 · 17/12 000) = 5 %.
    np.testing.assert_allclose(np.var(track, axis=0), np.diag(predicted), rtol=0.25)
    assert np.var(track, axis=0).sum() == pytest.approx(np.trace(predicted), rel=0.12)


def test_a_tail_is_found_with_its_exponent_and_none_where_there_is_none():
    body, tail = RNG.exponential(size=30_000), 5 * RNG.uniform(size=20_000) ** (-1 / 1.5)
    widest = power_laws.scan(np.r_[body[body < 5], tail])[0]
    assert 4 < widest.low < 10 and widest.decades >= 1.25
    assert abs(widest.fit.exponent - 2.5) < 4 * widest.fit.error and power_laws.scan(body) == ()


def test_a_linear_network_has_the_distances_of_the_theory():
    points, targets = RNG.standard_normal((12, 3)), RNG.standard_normal((12, 2))
    first, second = 1e-3 * RNG.standard_normal((20, 3)), 1e-3 * RNG.standard_normal((2, 20))
    for _ in range(4000):
        miss = (points @ first.T @ second.T - targets) / 12
        first, second = first - 0.1 * second.T @ miss.T @ points, second - 0.1 * miss.T @ points @ first.T
    measured = pairwise.squared_distances(points @ first.T)
    predicted = pairwise.map_metric(points, pairwise.linear_map(points, targets, intercept=False))
    np.testing.assert_allclose(predicted, measured, rtol=0.01, atol=1e-3)
    assert pairwise.correlation(pairwise.squared_distances(points), measured) < 0.95  # the baseline


def test_a_spectrum_has_the_exponent_of_its_law():
    found = decay(pools.modes(X, Y).spectrum.eigenvalues)
    assert abs(found.exponent - 1.7) < 0.06 and (found.first, found.last) == (1, 40)
    law = PowerLaw(found.exponent)
    assert law.loss_exponent(found.exponent, ridgeless=True) == pytest.approx(0.7, abs=0.06)
    assert law.loss_exponent(found.exponent, ridgeless=False) == pytest.approx(0.7 / 1.7, abs=0.03)


def test_a_plateau_is_seen_in_a_curve_that_has_one():
    t = np.geomspace(0.1, 1000, 200)
    found = plateau.rest(t, np.exp(-t) + 0.01 / (1 + np.exp((t - 200) / 20)))
    assert found.error == pytest.approx(0.01, rel=0.05) and found.start < 15 and found.end > 100


# --- five bad inputs each -------------------------------------------------------------------------

NET, POINTS, TIMES = neuron([1.0, 0.5]), X[:20, :2], np.geomspace(0.1, 100, 50)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: pools.modes(X, np.c_[Y, Y]), "targets must have 1 column: pass one at a time"),
        (lambda: pools.modes(X, Y[:-1]), "targets must have 1500 rows, one a sample"),
        (lambda: pools.modes(np.where(X > 2, np.nan, X), Y), "features must be finite: remove the NaN"),
        (lambda: pools.modes(X, Y).predict(1500, ridge=0.1), "samples must be fewer than the 1500 points of the pool"),
        (lambda: pools.modes(X, Y).predict(10, ridge=-0.1), "ridge must have entries >= 0"),
        (lambda: structured.measured(X, np.ones((2, 39)), np.ones((2, 40))), "student must have two axes, the second"),
        (lambda: structured.measured(X, np.ones((2, 40)), np.ones(40)), "teacher must have two axes"),
        (lambda: structured.measured(0 * X, np.ones((2, 40)), np.ones((2, 40))), "inputs must differ from zero"),
        (lambda: structured.measured(X * 1j, np.ones((2, 40)), np.ones((2, 40))), "inputs must be an array of real"),
        (lambda: plateau.rest(TIMES, 1 / TIMES), "errors must wait on a plateau, .*: follow the whole curve"),
        (lambda: gradient_noise.measure(NET, half, POINTS, Y[:19]), "targets must have 20 rows"),
        (lambda: gradient_noise.measure(NET, lambda f, t: f - t, POINTS, X[:20, :2]), "loss must give one"),
        (lambda: gradient_noise.measure(NET, half, POINTS, Y[:20]).covariance(0.1, 4), "module must be at a minimum"),
        (lambda: gradient_noise.measure(torch.nn.Dropout(), half, POINTS, Y[:20]), "module must be without dropout"),
        (lambda: gradient_noise.measure(NET, half, POINTS, Y[:20]).covariance(50.0, 4), "learning_rate must be lower"),
        (lambda: power_laws.scan(RNG.zipf(2.5, 500)), "samples must be of a continuous quantity: counts"),
        (lambda: power_laws.scan(-np.abs(Y)), "samples must have entries >= 0"),
        (lambda: power_laws.scan(np.abs(Y[:40])), "samples must hold 50 that are > 0, or more"),
        (lambda: power_laws.scan(np.abs(Y).astype(str)), "samples must be an array of real numbers"),
        (lambda: power_laws.scan(np.abs(X)), "samples must have one axis"),
        (lambda: pairwise.low_weights(pairwise.squared_distances(POINTS), POINTS), "inputs must hold points, .* pass"),
        (lambda: pairwise.low_weights(POINTS, 2.0 - 2.0 * np.eye(20)), "targets must hold points"),
        (lambda: pairwise.low_weights(POINTS, POINTS[:19]), "targets must have two axes, the first of length 20"),
        (lambda: pairwise.low_weights(POINTS, np.arange(20.0)), r"targets must hold points, .* values\[:, None\]"),
        (lambda: pairwise.low_weights(POINTS, POINTS, ratio=0.0), "ratio must be one finite number > 0"),
        (lambda: pairwise.correlation(POINTS, POINTS), "predicted must be a square matrix"),
        (lambda: decay(np.exp(-np.arange(100.0))), "values must fall with one exponent over 1 decade: state a window"),
        (lambda: decay(np.r_[LAW, -1e-3]), "values must have entries >= 0"),
        (lambda: decay(LAW[:4]), "values must leave five ranks or more"),
        (lambda: decay(LAW, last=41), "last must leave five ranks or more up to the last value > 0, rank 40"),
        (lambda: decay(np.where(LAW < 0.1, 0, LAW) + np.eye(40)[39]), "values must be > 0 up to the last that is: add"),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_refused_with_a_remedy(call, said):
    with pytest.raises(ValueError, match=f"^{said}") as refusal:
        call()
    assert "\n" not in str(refusal.value) and len(str(refusal.value)) < 300


def test_rough_inputs_are_read():
    values = np.linalg.eigvalsh(X[:60] @ X[:60].T)  # rank 40
    assert values.min() < 0 and RidgeTheory(values, 10, ridge=0.1).kappa > 0
    table = pandas.DataFrame(X[:, :5], columns=list("abcde")).assign(f=X[:, 5] > 0)
    plain = np.c_[X[:, :5], X[:, 5] > 0]
    one, two = pools.modes(table, pandas.Series(Y)), pools.modes(plain, Y[:, None])
    np.testing.assert_allclose(one.coefficients, two.coefficients, rtol=1e-12)
    with pytest.raises(ValueError, match="^targets must have the index of features"):
        pools.modes(table, pandas.Series(Y).sample(frac=1, random_state=0))
    first, second = (gradient_noise.measure(neuron(np.ones(6)), half, each, Y).gradients for each in (table, plain))
    np.testing.assert_allclose(first, second, rtol=1e-12)


def test_recipes_on_the_page_are_of_ten_lines_at_most():
    cells = project.read_notebook(project.ROOT, project.ROOT / "book" / "your-data.md").cells
    shown = [
        cell.source for cell in cells if cell.cell_type == "code" and "hide-input" not in cell.metadata.get("tags", [])
    ]
    lengths = [len(re.findall(r"^(?!from lib)(?=.*\S)", source, re.MULTILINE)) for source in shown]
    assert len(lengths) == 9 and max(lengths[:-1]) <= 10
    headings = re.findall(r"^## (\d)\.", project.read(project.ROOT / "book" / "your-data.md"), re.MULTILINE)
    assert headings == list("123456")
