"""Speed of the theories and samplers of trained networks as fields.

Run by hand: python benchmarks/fields.py.  Medians over repeats; compilation is not counted.
"""

import numpy as np
from _timing import seconds
from sklearn.preprocessing import normalize

from lib.fields.kernels import effective_ridge, pools
from lib.fields.networks.prior import Prior
from lib.fields.overlaps import coexistence, single_index
from lib.fields.overlaps.single_index import SingleIndex
from lib.services import data

EPSILON, DIMENSION, WIDTH = -0.3, 50, 300
TARGET = single_index.staircase(EPSILON)


def regression():
    """The effective ridge of many sample sizes, and learning curves of digits."""
    eigenvalues, samples = np.arange(1.0, 10_001) ** -1.5, np.geomspace(1, 1e4, 1000)
    taken = seconds(lambda: effective_ridge.RidgeTheory(eigenvalues, samples, ridge=0.1).kappa, 3)
    print(f"κ, 10³ P and 10⁴ modes                          {taken:8.2f} s")
    digits = data.load("digits", size=8)
    targets = np.where(digits.labels % 2 == 0, 1.0, -1.0)  # (1797,)
    points = digits.images.reshape(len(targets), -1)  # (1797, 64)
    points = normalize(points - points.mean(axis=0))
    gram = Prior("erf").kernel(points)  # (1797, 1797)
    taken = seconds(lambda: pools.Pool(gram, targets).eigenvalues, 1)
    print(f"digits, eigendecomposition of 1797 points       {taken:8.2f} s")
    taken = seconds(lambda: pools.Pool(gram, targets).measure([25, 50, 100, 200], [0.1], 1), 1)
    print(f"digits, 40 subsets at each of four P            {taken:8.2f} s")


def overlaps():
    """Updates a second of the Monte Carlo over overlaps, and the five settings of the staircase."""

    def run(samples, updates):
        half = updates // (8 * WIDTH)  # of the sweeps are burn-in
        network = SingleIndex("erf", TARGET, DIMENSION, WIDTH, samples, readout_variance=8.0, perpendicular="fixed")
        return network.sample(4, half, 1, burn_in=half)

    taken = seconds(lambda: run(1000.0, 6_000_000), 3)
    print(f"N = {WIDTH} overlaps, 6·10⁶ updates, 4 chains      {taken:8.2f} s   {6e6 / taken:.2g} updates per second")
    found = {}
    taken = seconds(
        lambda: found.update(
            {p: run(p, 1_200_000).learnabilities()[..., 1].mean() for p in (200.0, 400.0, 600.0, 1000.0, 2000.0)}
        ),
        1,
    )
    print(
        f"  five P_e of 1.2·10⁶ updates each              {taken:8.2f} s   R_3 = "
        f"{', '.join(f'{r:.3f}' for r in found.values())}"
    )


def phases():
    """Phase lines and coexistence in many dimensions, both signs of ε."""
    strengths = np.geomspace(3, 300, 60)

    def diagram():
        for epsilon in (EPSILON, -EPSILON):
            limit = coexistence.Limit(strengths, epsilon, perpendicular="fixed")
            limit.spinodal()
            limit.coexistence(1.5 * limit.maxwell().load)

    print(f"phase diagram, 60 g_K, both signs of ε         {seconds(diagram, 3):8.2f} s")


def main():
    regression()
    overlaps()
    phases()


if __name__ == "__main__":
    main()
