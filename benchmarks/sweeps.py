"""What a sweep costs beside its tasks: time, memory and traffic a task, on this machine and on a Dask cluster on it.

Run by hand: python benchmarks/sweeps.py [tasks ...], by default 1 000 and 10 000.  The cluster has a scheduler and two
workers of one thread; a task draws three overlaps, which takes less time than to send it anywhere.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from lib.scaling import structured
from lib.services import cluster, sweep

SETTING = {"multiplicities": [1], "students": 1, "teachers": 1}


def start(folder, kind, *options):
    """A scheduler or a worker as a process of its own."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "dask", kind, "--scheduler-file", str(folder / "scheduler.json"), *options]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def measure(count, scheduler=None, **options):
    """Milliseconds and bytes through the loopback for each of the tasks; memory of this process and the scheduler."""
    moved, begin = psutil.net_io_counters(pernic=True)["lo"].bytes_sent, time.perf_counter()
    assert len(sweep.run(structured.random_overlaps, [SETTING] * count, 1, **options)) == count
    seconds = time.perf_counter() - begin
    moved = psutil.net_io_counters(pernic=True)["lo"].bytes_sent - moved if scheduler else 0
    processes = [psutil.Process(), *([psutil.Process(scheduler.pid)] if scheduler else [])]
    memory = " and ".join(f"{process.memory_info().rss / 1e6:.0f} MB" for process in processes)
    return f"{1e3 * seconds / count:8.3f} ms a task, {moved / count:6.0f} bytes, {memory}"


def main():
    counts = [int(text) for text in sys.argv[1:]] or [1_000, 10_000]
    for count in counts:
        print(f"{count:7d} tasks, one process     ", measure(count))
        print(f"{count:7d} tasks, two processes   ", measure(count, workers=2))
        with tempfile.TemporaryDirectory() as kept:
            print(f"{count:7d} tasks, one, kept       ", measure(count, folder=kept))
    with tempfile.TemporaryDirectory() as folder:
        scheduler = start(Path(folder), "scheduler", "--port", "0", "--no-dashboard")
        workers = [start(Path(folder), "worker", "--nthreads", "1", "--no-nanny", "--no-dashboard") for _ in range(2)]
        try:
            while not (Path(folder) / "scheduler.json").exists():
                time.sleep(0.1)
            os.environ[cluster.ENVIRONMENT] = str(Path(folder) / "scheduler.json")
            measure(10, scheduler)
            for count in counts:
                print(f"{count:7d} tasks, cluster         ", measure(count, scheduler))
        finally:
            for process in [*workers, scheduler]:
                process.kill()
                process.wait()


if __name__ == "__main__":
    main()
