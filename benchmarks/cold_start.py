"""What a first call costs: compilation, in a fresh process with an empty cache, beside the same call once warm.

Run by hand: python benchmarks/cold_start.py.  CPU seconds without imports, medians of fresh processes.
"""

import os
import subprocess
import sys
import tempfile
from statistics import median

PROCESSES = 3
CALLS = {
    "Overlaps.solve": """
from lib.foundations.committee import Overlaps
def call():
    return Overlaps([[0.25, 0], [0, 0.2]], [[0.01, 0.02], [0.03, 0]], np.eye(2)).solve([0, 10, 50], learning_rate=0.5)
""",
    "ResolvedOverlaps.solve": """
from lib.common.spectrum import Spectrum
from lib.scaling import structured
spectrum = Spectrum.power_law(8, decay=1.5).normalized()
start = structured.random_overlaps(np.full(8, 125), 2, 2, rng=1, student_variance=1e-4)
def call():
    return start.solve([0, 10, 1000], spectrum, 0.1)
""",
    "online.simulate": """
from lib.foundations import online
student, teacher = online.random_weights(2, 100, 1, variance=0.1), online.random_weights(2, 100, 2)
def call():
    return online.simulate(student, teacher, learning_rate=0.5, times=[0, 1, 10], rng=3)
""",
    "gram_descent.simulate": """
from lib.common.spectrum import Spectrum
from lib.scaling import gram_descent, structured
counts = np.full(4, 125)
spectrum = Spectrum(Spectrum.power_law(4, decay=2.0).normalized().eigenvalues, counts)
start = structured.random_overlaps(counts, 2, 2, rng=1, student_variance=0.1)
def call():
    return gram_descent.simulate([10], start, spectrum, 0.1, rng=2)
""",
    "linear_descent.simulate": """
from lib.scaling import linear_descent
start = linear_descent.random_deviations(2, 100, 1)
def call():
    return linear_descent.simulate(start, np.ones(100), 0.5, [0, 1, 10], 2)
""",
    "Descent.simulate": """
from lib.fluctuations import descent, regression
random = np.random.default_rng(0)
problem = regression.fit(random.standard_normal((50, 5)), random.standard_normal((50, 2)))
def call():
    return descent.Descent(problem, 0.05, 5).simulate(steps=1000, replicas=10, rng=1)
""",
    "Unit.simulate": """
from lib.fluctuations import sigmoid
unit = sigmoid.Unit.at_minimum(4 * [[1.0]], [0, 1, 1, 1])
def call():
    return unit.simulate(0.1, 1, steps=1000, replicas=10, rng=1)
""",
    "SingleIndex.sample": """
from lib.fields.overlaps import single_index
network = single_index.SingleIndex("erf", [1.0, -0.7], 20, 50, 0.0, perpendicular="free")
def call():
    return network.sample(4, 100, 1)
""",
}
CLOCK = """
from time import process_time
times = [process_time()]
for _ in range(2):
    call()
    times.append(process_time())
print(times[1] - times[0], times[2] - times[1])
"""


def cold_and_warm(code):
    """CPU seconds of the first and of the second call in a fresh process with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-c", "import numpy as np" + code + CLOCK]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return [float(part) for part in done.stdout.split()]


def main():
    print("CPU seconds of a call                    cold       warm")
    for name, code in CALLS.items():
        cold, warm = (median(part) for part in zip(*(cold_and_warm(code) for _ in range(PROCESSES))))
        print(f"  {name:<32s} {cold:10.2f} {warm:10.3f}")


if __name__ == "__main__":
    main()
