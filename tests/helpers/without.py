"""A Python in which some packages are not installed."""

import os
import subprocess
import sys

from tools.build import project

EXTRAS = ("numba", "torch", "distributed", "dask")
ABSENT = """import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""


def run(code, names=EXTRAS):
    """What code prints where packages of these `names` cannot be imported."""
    settings = os.environ | project.kernel_environment(project.ROOT)
    command = [sys.executable, "-c", ABSENT.format(names=names) + code]
    done = subprocess.run(command, cwd=project.ROOT, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
