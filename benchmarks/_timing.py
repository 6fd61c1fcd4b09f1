"""The stopwatch of the benchmarks: a median, because machines are noisy."""

from statistics import median
from time import perf_counter

REPEATS = 7


def seconds(task, repeats=REPEATS):
    """Median time of one call, after a first call that compiles."""
    task()
    taken = []
    for _ in range(repeats):
        begin = perf_counter()
        task()
        taken.append(perf_counter() - begin)
    return median(taken)
