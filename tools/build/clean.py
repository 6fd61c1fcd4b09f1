"""`make clean` asks here first: the exit status is 75 while a build runs, whose files would be removed under it.

It needs nothing that is installed, and what it cannot find out is no reason to keep anything: a broken environment is
removed too.
"""

import fcntl
import sys
from pathlib import Path

LOCK = Path(__file__).resolve().parents[2] / "_build" / "lock"
RUNNING = 75  # "try again later", as sysexits.h has it


def main():
    if not LOCK.exists():
        return
    with LOCK.open("r+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print("Nothing was removed: a build of this checkout is running; wait for it to end", file=sys.stderr)
            sys.exit(RUNNING)


if __name__ == "__main__":
    main()
