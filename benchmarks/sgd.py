"""Speed of the SGD simulator and of the order-parameter equations, K = M = 2, one core.

Run by hand: python benchmarks/sgd.py.  The reference is a C++ code of 2019 for the same simulation, which makes 1.25e5
steps a second at N = 500.  Medians over repeats; compilation is not counted.
"""

import numpy as np
from _timing import seconds
from scipy.special import erf

from lib.foundations import online
from lib.foundations.committee import Overlaps

DIMENSION, LEARNING_RATE, REFERENCE = 500, 0.5, 1.25e5


def plain_numpy(student, teacher, learning_rate, steps, random):
    """The same rule as a loop over NumPy calls, with the usual care: one product for the fields, one outer product."""
    units, dimension = student.shape
    teachers = len(teacher)
    for _ in range(steps):
        example = random.standard_normal(dimension) / np.sqrt(dimension)
        x = student @ example
        delta = erf(teacher @ example / np.sqrt(2)).sum() / np.sqrt(teachers)
        delta -= np.sqrt(teachers) / units * erf(x / np.sqrt(2)).sum()
        slope = np.sqrt(2 / np.pi) * np.exp(-(x**2) / 2)
        student += learning_rate * np.sqrt(teachers) / units * delta * np.outer(slope, example)


def main():
    overlaps = Overlaps(0.25 * np.eye(2), 0.05 * np.eye(2), np.eye(2))
    student, teacher = online.weights_with_overlaps(overlaps, DIMENSION, rng=1)
    steps = {"ours": 200_000, "numpy": 10_000}
    ours = steps["ours"] / seconds(
        lambda: online.simulate(student, teacher, learning_rate=LEARNING_RATE, times=[steps["ours"] / DIMENSION], rng=2)
    )
    random = np.random.Generator(np.random.SFC64(2))
    numpy = steps["numpy"] / seconds(
        lambda: plain_numpy(student.copy(), teacher, LEARNING_RATE, steps["numpy"], random)
    )
    equations = seconds(lambda: overlaps.solve([0, 500], learning_rate=LEARNING_RATE))
    print(f"SGD, K = M = 2, N = {DIMENSION}        steps per second")
    print(f"  lib.foundations.online                   {ours:10.3g}")
    print(f"  plain NumPy loop             {numpy:10.3g}   ours is {ours / numpy:.1f} times as fast")
    print(f"  C++ code of 2019 (stated)    {REFERENCE:10.3g}   ours is {ours / REFERENCE:.1f} times as fast")
    print(f"equations to α = 500, rtol = 1e-9   {1e3 * equations:.1f} ms")


if __name__ == "__main__":
    main()
