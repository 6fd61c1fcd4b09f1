"""Speed of the exact stationary covariance, of the learning-rate threshold, and of simulated chains.

Run by hand: python benchmarks/linear.py.  Medians over repeats; compilation is not counted.
"""

import os

import numpy as np
from _timing import seconds

from lib.fluctuations import regression
from lib.fluctuations.descent import Descent
from lib.services import data

CHAINS, STEPS = 200, 500


def pixels_and_targets(name, size):
    """A bundled set with one output a class."""
    images = data.load(name, size=size)
    return data.design(images.images), data.one_hot(images.labels, images.classes)


def exact(name, size, batch, repeats):
    """Time the three steps that lead from a data set to its stationary covariance."""
    inputs, targets = pixels_and_targets(name, size)
    fitted = regression.fit(inputs, targets)
    rate = 0.26 * fitted.learning_rate_threshold(batch)
    times = [
        seconds(lambda: regression.fit(inputs, targets), repeats),
        seconds(lambda: Descent(fitted, rate, batch).stationary_covariance(), repeats),
        seconds(lambda: fitted.learning_rate_threshold(batch), repeats),
    ]
    shape = f"{name}, {len(inputs)} x {inputs.shape[1]}, m = {batch}"
    print(f"  {shape:36s}" + "".join(f"{1e3 * t:10.1f} ms" for t in times))


def chains():
    """Chain-steps a second on digits, with all cores and with one, recording every fifth step or the first one only."""
    fitted = regression.fit(*pixels_and_targets("digits", 6))
    rate = 0.26 * fitted.learning_rate_threshold(5)
    start = np.zeros((10, len(fitted.eigenvalues)))
    print("chains on digits, m = 5               chain-steps per second")
    for workers in sorted({1, os.cpu_count()}):
        for every in (5, STEPS):
            run = {
                "steps": STEPS,
                "replicas": CHAINS,
                "rng": 1,
                "start": start,
                "record_every": every,
                "workers": workers,
            }
            speed = CHAINS * STEPS / seconds(lambda: Descent(fitted, rate, 5).simulate(**run), 5)
            print(f"  {workers} workers, one step in {every:3d} recorded {speed:12.3g}")


def main():
    print(f"{'exact in the learning rate':38s}{'fit':>13s}{'covariance':>13s}{'threshold':>13s}")
    exact("digits", 6, 5, 7)
    exact("photo-patches", 8, 500, 5)
    exact("mnist-5k", 24, 5, 3)
    chains()


if __name__ == "__main__":
    main()
