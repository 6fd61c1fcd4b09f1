"""Speed of the closed forms for two points against adaptive integration of the same curves.

Run by hand: python benchmarks/representations.py.  Medians over repeats.
"""

import numpy as np
from _timing import seconds
from scipy.integrate import solve_ivp

from lib.representations.two_points import TwoArrows, TwoPoints

CONSTANTS = 1.0, 0.5, 9e-4, 4.3e-2  # X, Y, α, β as fitted to a deep network
START = [1e-2, 1e-6, 1e-6 - 1e-3 * np.sqrt(0.5)]
TIMES = np.linspace(0, 6000, 1200)


def compare(name, closed, integrated):
    """One line: seconds of both, their ratio, and how far the curves are apart."""
    apart = np.abs(closed() - integrated()).max() / np.abs(closed()).max()
    fast, slow = seconds(closed), seconds(integrated, 3)
    print(f"{name:<42s}{fast:10.2e} s{slow:10.2e} s{slow / fast:8.0f} times   largest difference {apart:.1e}")


def integrated(method, tolerance):
    """(a, b, w) at the same times by an adaptive integrator."""
    x, y, alpha, beta = CONSTANTS

    def slope(_, state):  # written out: the checks of TwoPoints are not the integrator's cost
        a, b, w = state
        turn = -0.5 * beta * (3 * w - b + y) * a - 0.5 * alpha * x * (b + w) * w / a
        return [-alpha * x * w, -w * (beta * a + alpha * x * b / a), turn]

    solution = solve_ivp(slope, (0, TIMES[-1]), START, method, t_eval=TIMES, rtol=tolerance, atol=tolerance * 1e-6)
    return solution.y.T  # (T, 3)


def main():
    print(f"{len(TIMES)} times                                closed form  integrator")
    for method, tolerance in (("LSODA", 1e-6), ("Radau", 1e-6), ("DOP853", 1e-10)):
        compare(f"three numbers, {method}, rtol {tolerance:.0e}",
                lambda: TwoPoints(START, *CONSTANTS).solve(TIMES),
                lambda: integrated(method, tolerance))  # fmt: skip
    random = np.random.default_rng(1)
    flow = TwoArrows(*(0.02 * random.standard_normal((2, 50))), 0.7, 1.0, 5e-3, 5e-3)
    compare("one output, 50 units, DOP853, rtol 1e-12", lambda: flow.solve(TIMES)[2],
            lambda: flow.integrate(TIMES)[2])  # fmt: skip


if __name__ == "__main__":
    main()
