"""Every test runs with one thread, as the kernels do; property tests try the same examples in every run, and
HYPOTHESIS_PROFILE=explore tries new ones."""

import os

# Before the first import of NumPy or torch, whose pools of threads wait for each other where processes share the cores.
os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
)

from pathlib import Path

from hypothesis import settings

HERE = Path(__file__).parent
ELSEWHERE = {"browser", "site", "tools"}  # tests of what is not lib

settings.register_profile("book", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "book"))


def pytest_collection_finish(session):
    """Public functions of lib check the shapes that they declare, once every test module has been imported."""
    if any(item.path.is_relative_to(HERE) and item.path.parent.name not in ELSEWHERE for item in session.items):
        import shaped

        shaped.install()
