"""training against autograd, against exact solutions of a linear network, and in short experiments."""

import numpy as np
import pytest
import torch
from bad_input import COUNT, NUMBER, SEED, exercised
from net_reference import GOOD, NET, NETS, PARAMETERS, POINTS, leaves, moved, only, outputs
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

from lib.representations import _passes, nets, training
from lib.representations.nets import Net

TWO = [[-1.0], [0.0]], [[0.6], [0.6 + np.sqrt(0.5)]]


def drawn(net, trials, points, seed=1, precision="float64"):
    """Parameters with biases that are not zero, inputs and targets."""
    random = np.random.default_rng(seed)
    parameters = moved(nets.draw(net, 1.1, trials, rng=seed, precision=precision), 0.1, random)
    return parameters, random.standard_normal((points, net.inputs)), random.standard_normal((points, net.outputs))


def own_stream(seed, trial):
    """The documented stream of a trial: the first child of the trial's child."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(trial, 0))))


def by_autograd(net, parameters, trial, x, y, rate, epochs, *, scale, optimizer, batch, rng):
    """Final weights and biases of one trial by autograd and torch.optim; every random number from the trial's own
    stream."""
    weights, biases = leaves(parameters, trial)
    x, y = torch.tensor(x, dtype=weights[0].dtype), torch.tensor(y, dtype=weights[0].dtype)
    trained = weights + [
        b for i, b in enumerate(biases) if net.biases == "all" or (net.biases == "output" and i == len(biases) - 1)
    ]
    step = {"descent": torch.optim.SGD, "adam": torch.optim.Adam}[optimizer](trained, lr=rate)
    random, kept = own_stream(rng, trial), None
    sizes = [net.inputs] + [len(h[0]) for h in outputs(net, weights, biases, x)[:-1]]
    for _ in range(epochs):
        order = np.arange(len(x)) if batch in (None, len(x)) else random.permutation(len(x))
        for first in range(0, len(x), batch or len(x)):
            some = order[first : first + (batch or len(x))]
            if net.dropout:
                numbers = random.random((len(some), sum(sizes)), dtype=np.float32)
                masks = torch.tensor(numbers >= np.float32(net.dropout)).to(x.dtype) / (1 - net.dropout)
                kept = masks.split(sizes, dim=1)
            step.zero_grad()
            (scale * ((outputs(net, weights, biases, x[some], kept)[-1] - y[some]) ** 2).sum(1).mean()).backward()
            step.step()
    return [p.detach().numpy() for p in (*weights, *biases)]


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("optimizer", ["descent", "adam"])
def test_three_steps_are_those_of_autograd(name, optimizer):
    net, options = NETS[name], {"optimizer": optimizer, "batch": None, "rng": 7}
    parameters, x, y = drawn(net, 2, 4)
    for loss, scale in (("half", 0.5), ("whole", 1.0)):
        end = training.train(net, parameters, x, y, 0.02, 3, loss=loss, **options).parameters
        for trial in range(2):
            expected = by_autograd(net, parameters, trial, x, y, 0.02, 3, scale=scale, **options)
            for mine, theirs in zip((*end.weights, *end.biases), expected, strict=True):
                np.testing.assert_allclose(mine[trial], theirs, rtol=0, atol=1e-12 if optimizer == "descent" else 1e-10)


def test_three_steps_in_float32():
    net = NETS["leaky ReLU"]
    parameters, x, y = drawn(net, 1, 4, precision="float32")
    end = training.train(net, parameters, x, y, 0.02, 3).parameters
    expected = by_autograd(net, parameters, 0, x, y, 0.02, 3, scale=0.5, optimizer="descent", batch=None, rng=0)
    for mine, theirs in zip((*end.weights, *end.biases), expected, strict=True):
        assert mine.dtype == np.float32
        np.testing.assert_allclose(mine[0], theirs, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["tanh", "dropout"])
def test_minibatches_share_out_a_permutation(name):
    net, options = NETS[name], {"optimizer": "descent", "batch": 4, "rng": 3}
    parameters, x, y = drawn(net, 2, 10)
    end = training.train(net, parameters, x, y, 0.02, 2, **options).parameters
    for trial in range(2):
        expected = by_autograd(net, parameters, trial, x, y, 0.02, 2, scale=0.5, **options)
        for mine, theirs in zip((*end.weights, *end.biases), expected, strict=True):
            np.testing.assert_allclose(mine[trial], theirs, rtol=0, atol=1e-12)
    options = {"optimizer": "descent", "rng": 3}
    whole, none = (training.train(net, parameters, x, y, 0.02, 2, batch=batch, **options) for batch in (10, None))
    np.testing.assert_array_equal(whole.loss, none.loss)


def test_dropout_keeps_the_mean_of_every_entry():
    net = Net(3, 1, 40, 2, dropout=0.3)
    masks = training._masks(net, (3, 500, 3), [own_stream(1, t) for t in range(3)], torch.float64)
    assert [mask.shape[2] for mask in masks] == [3, 40, 40]
    numbers = torch.cat(masks, dim=2).numpy()
    assert set(np.unique(numbers)) == {0.0, 1 / 0.7}
    assert abs(numbers.mean() - 1) < 4 * np.sqrt(0.3 / 0.7 / numbers.size)
    assert not np.array_equal(numbers[0], numbers[1])


@pytest.mark.parametrize(("precision", "close"), [("float64", 1e-13), ("float32", 2e-6)])
def test_a_trial_trains_alone_as_it_does_among_others(precision, close):
    # the same up to rounding: torch takes other vector instructions for the last entries of an array
    for name, options in [
        ("leaky ReLU", {}),
        ("convolution", {}),
        ("skip and dropout", {"rng": 5}),
        ("swish", {"rng": 5, "batch": 3, "optimizer": "adam"}),
    ]:
        net = NETS[name]
        _, x, y = drawn(net, 1, 8)
        start = nets.draw(net, 1.2, 7, rng=2, precision=precision)
        together = training.train(net, start, x, y, 0.01, 5, **options)
        for trials in (
            [(0, 1), (0,)] if options else [(0, 1, 2), (0,), (4,)]
        ):  # without random numbers any trial can stand alone
            few = training.train(net, only(start, *trials), x, y, 0.01, 5, **options)
            np.testing.assert_allclose(few.loss, together.loss[list(trials)], rtol=close)
            for mine, theirs in zip(few.parameters.weights, together.parameters.weights, strict=True):
                np.testing.assert_allclose(mine, theirs[list(trials)], rtol=0, atol=close)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_loss_is_an_identity_of_the_alignment(precision):
    # (22): L = |ȳ - (y_1 + y_2)/2|²/2 + (w + (Y - b)/2)/4 for any two-point model
    for name in ("tanh", "skip and dropout", "convolution"):
        parameters, x, y = drawn(NETS[name], 3, 2, precision=precision)
        run = training.train(NETS[name], parameters, x, y, 0.02, 12, rng=1)
        assert run.loss.max() < 30  # the tolerance is absolute
        middle, apart = y.mean(axis=0), ((y[1] - y[0]) ** 2).sum()
        expected = ((run.mean_output - middle) ** 2).sum(2) / 2 + (
            run.alignment + (apart - run.squared_output_distance) / 2
        ) / 4
        np.testing.assert_allclose(run.loss, expected, rtol=0, atol=1e-12 if precision == "float64" else 1e-6)
        whole = training.train(NETS[name], parameters, x, y, 0.01, 12, rng=1, loss="whole")
        np.testing.assert_allclose(whole.loss, 2 * run.loss, rtol=1e-12 if precision == "float64" else 1e-3)


@pytest.mark.parametrize("name", ["leaky ReLU", "skip and dropout", "convolution"])
def test_observables_are_those_of_the_network_at_that_epoch(name):
    net, (parameters, x, y) = NETS[name], drawn(NETS[name], 3, 6)
    options = {"rng": 2, "batch": 4, "pair": (4, 1), "points": (0, 5), "layer": (1, 3)}
    run = training.train(net, parameters, x, y, 0.02, 6, record_every=3, **options)
    assert run.epochs.tolist() == [0, 3, 6]
    for slot, state in [(0, parameters), (2, run.parameters)]:
        found = nets.values(net, state, x)
        for k, layer in enumerate((1, 3)):
            h = found[layer - 1]
            np.testing.assert_allclose(
                run.squared_hidden_distance[:, slot, k], ((h[:, 4] - h[:, 1]) ** 2).sum(1), rtol=1e-12
            )
            np.testing.assert_array_equal(run.hidden[k][:, slot], h[:, [0, 5]])
        f = found[-1]
        apart = f[:, 1] - f[:, 4]
        np.testing.assert_allclose(run.output_difference[:, slot], apart, rtol=1e-12)
        np.testing.assert_allclose(run.squared_output_distance[:, slot], (apart**2).sum(1), rtol=1e-12)
        np.testing.assert_allclose(run.alignment[:, slot], (apart * (apart - y[1] + y[4])).sum(1), atol=1e-12)
        np.testing.assert_allclose(run.mean_output[:, slot], (f[:, 1] + f[:, 4]) / 2, rtol=1e-12)
        np.testing.assert_allclose(run.loss[:, slot], ((f - y) ** 2).sum(2).mean(1) / 2, rtol=1e-12)
    one = training.train(net, parameters, x, y, 0.02, 6, record_every=3, **options | {"layer": 3})
    np.testing.assert_array_equal(one.squared_hidden_distance, run.squared_hidden_distance[:, :, 1])
    np.testing.assert_array_equal(one.hidden, run.hidden[1])
    plain = training.train(net, parameters, x, y, 0.02, 6, rng=2, batch=4)
    assert plain.hidden is None
    middle = training.train(net, parameters, x, y, 0.02, 6, rng=2, batch=4, layer=net.middle)
    np.testing.assert_array_equal(plain.squared_hidden_distance, middle.squared_hidden_distance)


# --- a linear network with one hidden layer is solved exactly -------------------------------------


def exact_distance(t, dh, v, x_apart, gap, alpha, beta):
    """a(t) of one output without any ansatz, spec (h_± = h_±(0) e^{±σ}, Riccati equation for e^{2σ}); and its limit."""
    k = np.sqrt(alpha * beta * x_apart) / 2
    plus, minus = (dh / np.sqrt(alpha * x_apart) + sign * v / np.sqrt(beta) for sign in (1, -1))
    p, m = plus @ plus, minus @ minus
    root = np.sqrt(gap**2 + k**2 * p * m)
    up, down = (gap + root) / (k * p), (gap - root) / (k * p)
    ratio = (1 - up) / (1 - down) * np.exp(-2 * k * root * t)  # (n,)
    grown = np.sqrt((up - down * ratio) / (1 - ratio))[:, None]  # (n, 1)  e^σ
    h = (plus * grown + minus / grown) / 2  # (n, H)
    return alpha * x_apart * (h**2).sum(axis=1)


def test_descent_of_a_linear_net_is_the_exact_solution_at_half_the_rate():
    net, gap = Net(2, 1, 12, 1, "linear", biases="output"), np.sqrt(0.5)
    start = nets.draw(net, 0.6, 3, rng=8)
    x, y = np.array([[-0.4, 0.3], [0.4, -0.3]]), np.array([[0.6], [0.6 + gap]])  # centred, |Δx| = 1
    errors = []
    for rate in (0.02, 0.01, 0.005):
        run = training.train(net, start, x, y, rate, round(40 / rate), record_every=round(0.5 / rate))
        gaps = [
            np.abs(
                run.squared_hidden_distance[t]
                - exact_distance(run.epochs, (x[1] - x[0]) @ w, v[:, 0], 1.0, gap, rate / 2, rate / 2)
            ).max()
            for t, (w, v) in enumerate(zip(*start.weights))
        ]
        errors.append(max(gaps))
        # the output bias carries the mean, and its descent is a geometric series: the third rate is η
        np.testing.assert_allclose(
            run.mean_output[:, :, 0], np.broadcast_to(y.mean() * (1 - (1 - rate) ** run.epochs), (3, 81)), atol=1e-12
        )
    assert errors[0] < 5e-4
    assert errors[0] / errors[1] == pytest.approx(2, abs=0.1) and errors[1] / errors[2] == pytest.approx(2, abs=0.1)
    # erratum: with the printed gradients the rates would be η, and the error would stay as the step shrinks
    printed = exact_distance(
        run.epochs, (x[1] - x[0]) @ start.weights[0][0], start.weights[1][0, :, 0], 1.0, gap, 0.005, 0.005
    )
    assert np.abs(run.squared_hidden_distance[0] - printed).max() > 0.1
    # final distance: (10) with the middle term for a decoder gradient that is not parallel to dh
    dh, v = (x[1] - x[0]) @ start.weights[0][0], start.weights[1][0, :, 0]
    half = (dh @ dh - v @ v) / 2
    limit = half + np.sqrt(half**2 + (dh @ dh) * (v @ v) - (dh @ v) ** 2 + 0.5)
    assert exact_distance(np.array([4e4]), dh, v, 1.0, gap, 0.0025, 0.0025)[0] == pytest.approx(limit, rel=1e-9)
    assert run.squared_hidden_distance[0, -1] == pytest.approx(limit, rel=2e-3)


# --- short experiments ----------------------------------------------------------------------------


def test_a_shallow_net_follows_the_two_point_theory():
    net = Net(1, 1, 500, 2)
    run = training.train(net, nets.draw(net, 0.35, 1, rng=1, precision="float32"), *TWO, 0.01, 4000, record_every=20)
    assert run.converged().all()
    a, c, w = run.squared_hidden_distance[0], run.output_difference[0, :, 0], run.alignment[0]
    gap = np.sqrt(0.5)

    def curves(logs):
        alpha, beta = np.exp(logs)

        def slope(t, state):
            a, c, v = state
            return [-alpha * (c - gap) * c, -(c - gap) / 2 * (beta * a + alpha * v), -beta * (c - gap) * c]

        # the three rates of a, Δf and |v|² with v parallel to dh at the start: (7) without its division by a
        a_fit, c_fit, _ = solve_ivp(
            slope, (0, 4000), [a[0], c[0], c[0] ** 2 / a[0]], t_eval=run.epochs, method="LSODA", rtol=1e-8, atol=1e-12
        ).y
        return a_fit, c_fit**2, c_fit * (c_fit - gap)

    fit = least_squares(lambda logs: np.concatenate(curves(logs)) - np.concatenate([a, c**2, w]), np.log([3e-3, 3e-3]))
    quality = [
        1 - ((mine - theirs) ** 2).sum() / ((mine - mine.mean()) ** 2).sum()
        for mine, theirs in zip((a, c**2, w), curves(fit.x))
    ]
    assert quality[0] > 0.97 and quality[1] > 0.97


def test_one_hidden_layer_merges_the_equal_inputs_of_xor():
    net, x, y = Net(2, 1, 100, 1), [[0, 0], [1, 0], [0, 1], [1, 1]], [[0], [1], [1], [0]]
    start = nets.draw(net, 0.01, 3, rng=1, precision="float32")
    run = training.train(net, start, x, y, 0.1, 8000, loss="whole", record_every=8000, points=(0, 1, 2, 3))
    assert run.converged().all()
    h = run.hidden[:, -1].astype(float)
    merged, apart = ((h[:, 3] - h[:, 0]) ** 2).sum(axis=1), ((h[:, 2] - h[:, 1]) ** 2).sum(axis=1)
    assert np.all(merged / apart < 0.1)


def test_adam_and_descent_converge_and_a_trial_that_does_not_is_counted():
    start = nets.draw(Net(1, 1, 20, 3, "tanh"), 1.0, 4, rng=1)
    start.weights[2][3] = start.weights[3][3] = start.biases[3][3] = (
        0  # a trial at the saddle where only the output bias moves
    )
    for optimizer, rate in (("descent", 0.1), ("adam", 0.01)):
        run = training.train(Net(1, 1, 20, 3, "tanh"), start, *TWO, rate, 2000, optimizer=optimizer, record_every=2000)
        assert run.converged().tolist() == [True, True, True, False] and run.converged().mean() == 0.75
    assert run.converged(below=1e3).all()
    for bad in (0, -1.0, "a", None):
        with pytest.raises(ValueError, match="^below must "):
            run.converged(below=bad)


def test_no_global_state_is_used_or_changed():
    net, (parameters, x, y) = NETS["dropout"], drawn(NETS["dropout"], 2, 6)
    before = (
        torch.get_rng_state().clone(),
        np.random.get_state()[1].copy(),  # noqa: NPY002 - the old global state must stay as it is
        torch.get_num_threads(),
        torch.get_default_dtype(),
    )
    copies = [w.copy() for w in parameters.weights]
    first = training.train(net, parameters, x, y, 0.01, 4, rng=3, batch=2)
    old = np.random.get_state()[1]  # noqa: NPY002
    after = torch.get_rng_state(), old, torch.get_num_threads(), torch.get_default_dtype()
    assert torch.equal(before[0], after[0]) and np.array_equal(before[1], after[1]) and before[2:] == after[2:]
    np.testing.assert_array_equal(training.train(net, parameters, x, y, 0.01, 4, rng=3, batch=2).loss, first.loss)
    assert not np.array_equal(training.train(net, parameters, x, y, 0.01, 4, rng=4, batch=2).loss, first.loss)
    for w, old in zip(parameters.weights, copies):
        np.testing.assert_array_equal(w, old)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_a_trial_that_overflows_is_named(precision):
    start = nets.draw(NET, 1.0, 3, rng=1, precision=precision)
    for w in start.weights:
        w[1] *= 60
    with pytest.raises(ValueError, match=r"^learning_rate must be small enough .* trials 1 by epoch \d+$"):
        training.train(NET, start, [[0.0, 1.0], [1.0, 0.0]], [[0.0], [1.0]], 0.05, 400, record_every=400)


@pytest.mark.parametrize("record_every", [1, 10**5])
def test_training_ends_soon_after_an_overflow(record_every, monkeypatch):
    epochs, forward = [], _passes.forward
    monkeypatch.setattr(_passes, "forward", lambda *given: epochs.append(1) or forward(*given))
    with pytest.raises(ValueError, match="^learning_rate must be small enough .* trials .* by epoch "):
        training.train(NET, GOOD, [[0.0, 1.0], [1.0, 0.0]], [[0.0], [1.0]], 50.0, 10**5, record_every=record_every)
    assert len(epochs) <= 2 * training._WATCH


# --- bad input ------------------------------------------------------------------------------------

CALLS = {
    training.train: {
        **{
            "net": NET,
            "start": GOOD,
            "inputs": [[1.0, 2.0], [0.0, 1.0], [2.0, 0.0]],
            "targets": [[1.0], [2.0], [0.0]],
            "learning_rate": 0.1,
        },
        **{
            "epochs": 4,
            "loss": "half",
            "optimizer": "adam",
            "batch": 2,
            "rng": 1,
            "record_every": 2,
            "layer": 1,
            "pair": (0, 1),
            "points": (2,),
        },
    }
}
BAD = {
    "net": [None, "net", 3, Net],
    "start": PARAMETERS,
    "inputs": POINTS,
    "targets": [[1.0, 2.0, 0.0], [[1.0], [2.0]], [[1.0], [2.0], [np.nan]], "targets", None],
    "learning_rate": NUMBER,
    "epochs": COUNT,
    "loss": ["mean", None, 1, ["half"]],
    "optimizer": ["sgd", None, 1],
    "batch": [0, 4, 2.0, "2", True],
    "rng": SEED,
    "record_every": [*COUNT, 3],
    "layer": [0, 3, 1.0, "1", True, (), (1, 3), (1, "2")],
    "pair": [(0, 3), (0,), (1, 1), (0, 1, 2), "01", None, 1, (0, -1), (0, 1.0)],
    "points": [(3,), (0, 0), (-1,), (0.0,), "0", None, 1],
}
test_the_good_calls_pass, test_bad_input_is_refused_by_name = exercised(CALLS, BAD, {"start": r"start[.\w]*"})


def test_the_good_call_passes():
    assert training.train(**CALLS[training.train]).loss.shape == (2, 3)


def test_dropout_asks_for_a_seed():
    parameters, x, y = drawn(NETS["dropout"], 2, 6)
    with pytest.raises(ValueError, match="^rng must "):
        training.train(NETS["dropout"], parameters, x, y, 0.01, 4)
