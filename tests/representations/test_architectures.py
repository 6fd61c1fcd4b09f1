"""lib.representations.architectures against the source's tables, typed once more in another shape."""

import numpy as np
import pytest

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
