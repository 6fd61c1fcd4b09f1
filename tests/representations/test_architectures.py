"""lib.representations.architectures against the source's tables, typed once more in another shape."""

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.special import expit

from lib.representations import architectures

# name | activation | gain | learning rate | epochs | units | hidden layers
TABLES = """
default              | leaky_relu | 1.0    | 0.005   | 6000  | 500 | 20
convolution          | leaky_relu | 0.95   | 0.002   | 6000  | 500 | 10
skip                 | leaky_relu | 0.1    | 0.01    | 6000  | 500 | 20
shallow              | leaky_relu | 0.35   | 0.01    | 6000  | 500 | 2
narrow               | leaky_relu | 1.05   | 0.005   | 6000  | 50  | 20
dropout              | leaky_relu | 1.0    | 0.005   | 6000  | 500 | 10
linear               | linear     | 0.85   | 0.00125 | 6000  | 500 | 20
ReLU                 | relu       | 1.0    | 0.005   | 6000  | 500 | 20
ELU                  | elu        | 0.95   | 0.00045 | 6000  | 500 | 20
tanh                 | tanh       | 0.85   | 0.00125 | 6000  | 500 | 20
swish                | swish      | 1.7    | 0.0025  | 6000  | 500 | 20
low weights          | leaky_relu | 0.9    | 0.015   | 6000  | 500 | 20
intermediate weights | leaky_relu | 1.1    | 0.0025  | 6000  | 500 | 20
high weights         | leaky_relu | 1.3    | 0.00075 | 6000  | 500 | 20
very high weights    | leaky_relu | 1.4    | 0.00025 | 6000  | 500 | 20
XOR low              | leaky_relu | 0.7    | 0.015   | 1000  | 500 | 20
XOR intermediate     | leaky_relu | 1.25   | 0.002   | 1000  | 500 | 20
XOR high             | leaky_relu | 2.0    | 3e-9    | 1000  | 500 | 20
XOR one layer        | leaky_relu | 0.0015 | 0.03    | 40000 | 500 | 1
blobs very low       | tanh       | 0.275  | 0.05    | 2000  | 100 | 4
blobs low            | tanh       | 0.5    | 0.015   | 1500  | 100 | 4
blobs high           | tanh       | 2.0    | 0.0015  | 750   | 100 | 4
MNIST                | leaky_relu | 0.5    | 0.002   | 500   | 100 | 4
"""
ROWS = [[cell.strip() for cell in line.split("|")] for line in TABLES.strip().splitlines()]
SIZES = {"XOR": (2, 1, "whole", None), "blobs": (27, 1, "half", 64), "MNIST": (784, 10, "half", 64)}


def test_the_rows_are_those_of_the_tables():
    assert [row[0] for row in ROWS] == list(architectures.NAMES)
    assert architectures.TWO_POINT_NAMES[-1] == "very high weights" and len(architectures.TWO_POINT_NAMES) == 15
    for name, activation, *numbers in ROWS:
        row = architectures.experiment(name)
        found = [row.gain, row.learning_rate, row.epochs, row.net.width, row.net.depth]
        assert row.net.activation == activation and found == [float(number) for number in numbers], name
        sizes = SIZES.get(name.split()[0], (1, 1, "half", None))
        assert (row.net.inputs, row.net.outputs, row.loss, row.batch) == sizes, name
        assert row.net.dropout == (0.1 if name == "dropout" else 0) and row.net.skip == (name == "skip")
        assert (row.net.channels, row.net.kernel) == ((20, 11) if name == "convolution" else (None, None))


@pytest.mark.parametrize("name", architectures.NAMES)
def test_every_row_trains(name):
    row, random = architectures.experiment(name), np.random.default_rng(1)
    x, y = random.standard_normal((3, row.net.inputs)), random.standard_normal((3, row.net.outputs))
    start = row.net.draw(row.gain, 1, rng=1, precision="float32")
    run = row.net.train(start, x, y, row.learning_rate, 2, loss=row.loss, rng=1)
    assert run.loss.shape == (1, 3) and np.all(np.diff(run.loss) != 0) and np.all(run.squared_hidden_distance > 0)


@pytest.mark.parametrize("name", architectures.TWO_POINT_NAMES)
def test_archived_curves_are_those_of_one_output_and_of_a_task_that_was_learned(name):
    epochs, measured, fitted = architectures.at_size(name)
    a, b, w = measured.T
    assert epochs.tolist() == list(range(0, 6000, 210)) and measured.shape == fitted.shape == (29, 3)
    assert np.abs((b - w) ** 2 - b).max() < 0.01 * max(1, b.max())  # (b - w)² = bY: an identity for one output
    assert a.min() > 0 and a[-1] == 1 and abs(b[-1] - 1) < (0.1 if name == "dropout" else 1e-3)


def explained(measured, fitted):
    return 1 - ((measured - fitted) ** 2).mean(axis=0) / measured.var(axis=0)


def sharp(curve):
    """R² of a jump from first to last value at the best time."""
    jumps = [np.where(np.arange(29) >= n, curve[-1], curve[0]) for n in range(30)]
    return max(explained(curve, jump) for jump in jumps)


def test_archived_fits_miss_w_most_where_the_units_are_linear():
    default, linear = (explained(*architectures.at_size(name)[1:]) for name in ("default", "linear"))
    assert default[2] > 0.95 > 0.7 > linear[2] and linear[0] > 0.95


def test_what_archived_fits_explain_of_the_remainder_of_a_sharp_step():
    """The numbers of the row align/fig2-smooth."""
    steps, gained, few = {}, {}, ("linear", "tanh", "convolution")
    for name in architectures.TWO_POINT_NAMES[:11]:
        _, measured, fitted = architectures.at_size(name)
        found = explained(measured, fitted)[:2]
        steps[name] = np.array([sharp(measured[:, n]) for n in (0, 1)])
        gained[name] = 1 - (1 - found) / (1 - steps[name])
        assert found.min() > 0.94 or name not in few
    assert np.round([gained["linear"], gained["tanh"]], 2).tolist() == [[0.60, 0.34], [0.63, 0.24]]
    assert min(steps[name].min() for name in few) > 0.93 and gained["convolution"].max() < 0
    assert min(gained[name][1] for name in gained if name not in few) > 0.5


def test_a_shape_of_two_constants_fitted_to_b_and_w_leaves_little_of_b():
    """The numbers of the row align/fig2, of the remainder of a sharp step, and of align/fig11, of the squared error."""
    left, others = {}, {"convolution", "dropout", "ELU", "high weights", "very high weights"}
    for name in set(architectures.TWO_POINT_NAMES) - others:  # the ten that start small and rise steadily
        epochs, measured, fitted = architectures.at_size(name)
        b, w = measured[:, 1:].T
        for power in (1, 2):  # a logistic b, and the square of a logistic, the theory's small start

            def curves(p, power=power):
                made = expit((epochs - p[0]) / p[1]) ** power
                return np.concatenate([made, made - np.sqrt(made)])

            half = epochs[np.argmax(b > 0.4)]
            tries = [least_squares(lambda p: curves(p) - np.append(b, w), (half, width)) for width in (60, 150, 400)]
            made, pulse = np.split(curves(min(tries, key=lambda each: each.cost).x), 2)
            error = 1 + 2 * pulse - made
            left[name, power] = (1 - (1 - explained(b, made)) / (1 - sharp(b)), explained(1 + 2 * w - b, error))
        assert explained(1 + 2 * w - b, 1 + 2 * fitted[:, 2] - fitted[:, 1]) > 0.95
    names = {name for name, _ in left}
    assert len(names) == 10 and min(left[name, 1][0] for name in names) > 0.99
    assert min(left[name, 2][0] for name in names) > 0.97
    assert sum(left[name, 1][1] > left[name, 2][1] for name in names) == 8


def test_from_large_weights_a_falls_at_once_and_the_outputs_wait():
    """The numbers of the row align/fig3-decay: the time to a tenth of the way over that from there to nine tenths."""

    def wait(curve):
        way = np.maximum.accumulate((curve - curve[0]) / (curve[-1] - curve[0]))
        first, last = (np.interp(level, way, np.arange(29)) for level in (0.1, 0.9))
        return first / (last - first)

    for name in ("high weights", "very high weights"):
        a, b, w = architectures.at_size(name)[1].T
        assert a[1] < 0.9 * a[0] and min(wait(b), wait(2 * w - b)) > 0.5
    assert architectures.at_size("high weights")[1][:, 0].min() < 0.8  # below its end, and back
