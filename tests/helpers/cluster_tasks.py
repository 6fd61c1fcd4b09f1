"""A real Dask scheduler and workers on this machine, and tasks that leave a trace."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HELPERS = Path(__file__).parent
ROOT = HELPERS.parent.parent
# Read by Python before anything else: this worker says that it has another NumPy.
OTHER_NUMPY = """import importlib.metadata as metadata
known = metadata.version
metadata.version = lambda name: "1.0" if name == "numpy" else known(name)
"""


def traced(log, value, rng, wait=0.0, until=None):
    """Append this process and the value to a file, wait, also for a file, and draw a number; a negative value fails."""
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"{os.getpid()} {value}\n")
    time.sleep(wait)
    wait_until(lambda: until is None or Path(until).exists())
    if value < 0:
        raise ValueError("value must not be negative")
    return value, np.random.default_rng(rng).random()


def tiny(value, rng):
    return value + np.random.default_rng(rng).integers(10)


def lines(log):
    """The processes and the values that a log of :func:`traced` has so far."""
    found = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    return [(int(process), int(value)) for process, value in found]


def wait_until(condition, seconds=180):
    """Wait for something that other processes do; three minutes without it are an error."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("it did not happen")
        time.sleep(0.05)


class Cluster:
    """A scheduler with its file, and workers that are single processes, so that one can be killed by its number."""

    def __init__(self, folder):
        self.file, self._folder, self._running = folder / "scheduler.json", folder, []
        self.scheduler = self._start("scheduler", "--port", "0", "--host", "127.0.0.1", "--scheduler-file", self.file)
        wait_until(self.file.exists)

    def _start(self, kind, *options, path=()):
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, [*path, HELPERS, ROOT]))}
        command = [sys.executable, "-m", "dask", kind, "--no-dashboard", *map(str, options)]
        with open(self._folder / "output", "ab") as output:
            process = subprocess.Popen(command, cwd=self._folder, env=environment, stdout=output, stderr=output)
        self._running.append(process)
        return process

    def worker(self, path=()):
        """Start a worker; `path`: folders that it looks into for modules before all others."""
        options = ("--scheduler-file", self.file, "--nthreads", "1", "--no-nanny", "--death-timeout", "180")
        return self._start("worker", *options, path=path)

    def close(self):
        for process in self._running:
            process.send_signal(signal.SIGKILL)
            process.wait()
