"""Random streams: how one seed serves many independent tasks."""

import numpy as np

from lib.common import checks
from lib.common.shapes import Rng


def children(rng: Rng, count: int) -> list[np.random.SeedSequence]:
    """Seeds of independent streams: number n has the n-th child of a seed, however many there are.

    Unlike ``seed.spawn(count)``, which counts up inside a caller's SeedSequence, a second call with a seed gives the
    same streams.

    Parameters
    ----------
    rng : int, SeedSequence or Generator
        A Generator spawns new streams in every call.
    count : int

    Returns
    -------
    list of numpy.random.SeedSequence

    Examples
    --------
    >>> [child.spawn_key for child in children(1, 2)]
    [(0,), (1,)]
    """
    own = checks.seed_sequence("rng", rng)
    keys = ((*own.spawn_key, n) for n in range(count))
    return [np.random.SeedSequence(own.entropy, spawn_key=key, pool_size=own.pool_size) for key in keys]
