"""Speed of the theories and simulators for structured inputs.

Run by hand: python benchmarks/scaling.py.  Medians over repeats; compilation is not counted.
"""

import numpy as np
from _timing import seconds
from scipy.integrate import solve_ivp

from lib.common.spectrum import Spectrum
from lib.foundations import online
from lib.scaling import gram_descent, structured
from lib.scaling.linear_student import LinearStudent
from lib.scaling.structured import ResolvedOverlaps

STEPS, LEARNING_RATE = 100_000, 0.1


def theories():
    """The linear student with 2048 eigenvalues, and two erf units with 4096 of them."""
    lam, alpha = Spectrum.power_law(2048, decay=1.75).normalized().eigenvalues, np.geomspace(0.1, 1e5, 50)
    linear = seconds(lambda: LinearStudent(lam, 1.0).generalization_error(alpha), 3)
    print(f"linear student, L = 2048, 50 times              {linear:8.2f} s")
    lam = Spectrum.power_law(4096, decay=1.5).normalized().eigenvalues
    start = structured.random_overlaps(np.full(4096, 10), 2, 2, rng=1, student_variance=1e-4)
    times, errors = np.geomspace(1, 1e6, 30), {}
    for tolerance in (1e-6, 1e-5):
        taken = seconds(
            lambda: errors.update(
                {tolerance: start.solve(times, lam, LEARNING_RATE, tolerance=tolerance).generalization_error}
            ),
            1,
        )
    followed = errors[1e-6] > 1e-10  # below, rounding of order one overlaps is what is left
    apart = np.abs(errors[1e-5] / errors[1e-6] - 1)[followed].max()
    print(
        f"erf equations, K = M = 2, L = 4096, to α = 1e6  {taken:8.2f} s   relative error {apart:.1e} where ε_g > 1e-10"
    )


def small_and_tight():
    """Eight eigenvalues at a tolerance of 1e-8, against the same equations in a general integrator."""
    lam, rate, end = Spectrum.power_law(8, decay=1.5).normalized().eigenvalues, 0.1, 1e3
    q, r, t = structured.random_overlaps(np.full(8, 125), 2, 2, rng=1, student_variance=1e-4)

    def velocity(_, state):
        moves = ResolvedOverlaps(state[:32].reshape(8, 2, 2), state[32:].reshape(8, 2, 2), t).derivative(lam, rate)
        return np.concatenate([part.ravel() for part in moves])

    state = np.concatenate([q.ravel(), r.ravel()])
    own = seconds(lambda: ResolvedOverlaps(q, r, t).solve([end], lam, rate, tolerance=1e-8), 3)
    general = seconds(lambda: solve_ivp(velocity, (0, end), state, method="DOP853", rtol=1e-10, atol=1e-13), 3)
    print(
        f"erf equations, K = M = 2, L = 8, tolerance 1e-8 {own:8.2f} s   "
        f"{general / own:.1f} times as fast as DOP853 of derivative"
    )


def many_units():
    """Forty units and 512 eigenvalues, the size of figure 6 of worschech2024, through the first time units."""
    lam = Spectrum.power_law(512, decay=1.5).normalized().eigenvalues
    start = structured.random_overlaps(np.ones(512, dtype=int), 40, 40, rng=1, student_variance=1e-12)
    taken = seconds(lambda: start.solve([5.0], lam, 0.01, tolerance=1e-4), 1)
    print(f"erf equations, K = M = 40, L = 512, to α = 5    {taken:8.2f} s")


def full_vector():
    """Steps a second of descent that moves all weights, N = 500."""
    student, teacher = online.random_weights(2, 500, 1, variance=0.1), online.random_weights(2, 500, 2)
    lam = np.repeat(Spectrum.power_law(4, decay=2.0).normalized().eigenvalues, 125)
    return STEPS / seconds(
        lambda: online.simulate(
            student, teacher, learning_rate=LEARNING_RATE, times=[STEPS / 500], rng=3, eigenvalues=lam
        )
    )


def gram_space(levels, size):
    """Steps a second in the space of Gram matrices."""
    lam, counts = Spectrum.power_law(levels, decay=2.0).normalized().eigenvalues, np.full(levels, size // levels)
    start = structured.random_overlaps(counts, 2, 2, rng=1, student_variance=0.1)
    return STEPS / seconds(
        lambda: gram_descent.simulate([STEPS / counts.sum()], start, Spectrum(lam, counts), LEARNING_RATE, rng=2)
    )


def main():
    theories()
    small_and_tight()
    many_units()
    full = full_vector()
    print("descent, K = M = 2                              steps per second")
    print(f"  all weights, N = 500, L = 4                   {full:10.3g}")
    for levels, size in ((1, 500), (4, 500), (4, 10**4), (4, 10**6), (64, 10**6)):
        speed = gram_space(levels, size)
        print(
            f"  Gram space, N = {size:<8d} L = {levels:<3d}              {speed:10.3g}   {speed / full:.1f} "
            "times as fast"
        )


if __name__ == "__main__":
    main()
