"""The networks and settings of the source's experiments, as data; reduced settings: ``dataclasses.replace``.

Source: vanrossem2024, tables 1 and 2 of its appendix; what they leave open follows the authors' public code: half the
mean square of eq. (1), the whole mean square for exclusive or, minibatches of 64 for blobs and MNIST.  For MNIST that
code also averages over the ten outputs, which ``Net.train`` does not: the step of its rate is that of a tenth of it.
"""

from dataclasses import dataclass

from lib.common import checks
from lib.representations.nets import Net


@dataclass(frozen=True)
class Experiment:
    """One row of a table: net, gain of its Xavier-normal weights, and how it is trained; biases start at zero.

    Examples
    --------
    >>> Experiment(Net(1, 1, 50, 1, "linear"), 0.5, 0.02, 3000, "half", None).net.depth
    1
    """

    net: Net
    gain: float
    learning_rate: float
    epochs: int
    loss: str  # "half" or "whole", as in Net.train
    batch: int | None  # points in a minibatch; None: all


def _two_points(gain, learning_rate, *, activation="leaky_relu", width=500, depth=20, **others):
    return Experiment(Net(1, 1, width, depth, activation, **others), gain, learning_rate, 6000, "half", None)


def _xor(gain, learning_rate, epochs=1000, depth=20):
    return Experiment(Net(2, 1, 500, depth), gain, learning_rate, epochs, "whole", None)


def _blobs(gain, learning_rate, epochs):
    return Experiment(Net(27, 1, 100, 4, "tanh"), gain, learning_rate, epochs, "half", 64)


_EXPERIMENTS = {
    # table 1: two points
    "default": _two_points(1.0, 0.005),
    "convolution": _two_points(0.95, 0.002, depth=10, channels=20, kernel=11),
    "skip": _two_points(0.1, 0.01, skip=True),
    "shallow": _two_points(0.35, 0.01, depth=2),
    "narrow": _two_points(1.05, 0.005, width=50),
    "dropout": _two_points(1.0, 0.005, depth=10, dropout=0.1),
    "linear": _two_points(0.85, 0.00125, activation="linear"),
    "ReLU": _two_points(1.0, 0.005, activation="relu"),
    "ELU": _two_points(0.95, 0.00045, activation="elu"),
    "tanh": _two_points(0.85, 0.00125, activation="tanh"),
    "swish": _two_points(1.7, 0.0025, activation="swish"),
    "low weights": _two_points(0.9, 0.015),
    "intermediate weights": _two_points(1.1, 0.0025),
    "high weights": _two_points(1.3, 0.00075),
    "very high weights": _two_points(1.4, 0.00025),
    # table 2: structured data
    "XOR low": _xor(0.7, 0.015),
    "XOR intermediate": _xor(1.25, 0.002),
    "XOR high": _xor(2.0, 3e-9),
    "XOR one layer": _xor(0.0015, 0.03, epochs=40_000, depth=1),
    "blobs very low": _blobs(0.275, 0.05, 2000),
    "blobs low": _blobs(0.5, 0.015, 1500),
    "blobs high": _blobs(2.0, 0.0015, 750),
    "MNIST": Experiment(Net(784, 10, 100, 4), 0.5, 0.002, 500, "half", 64),
}
NAMES = tuple(_EXPERIMENTS)
TWO_POINT_NAMES = NAMES[:15]


def experiment(name: str) -> Experiment:
    """The settings of one row of the source's tables.

    Parameters
    ----------
    name : str
        One of NAMES.

    Returns
    -------
    Experiment

    Examples
    --------
    >>> row = experiment("narrow")
    >>> row.net.width, row.net.depth, row.gain, row.learning_rate
    (50, 20, 1.05, 0.005)
    """
    return _EXPERIMENTS[checks.one_of("name", name, NAMES)]
