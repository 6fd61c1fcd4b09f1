"""Random streams: how one seed serves many independent tasks."""

import numpy as np

from lib.common import checks


def children(seed, count):
    """Seeds of `count` independent streams: number n has the n-th child of `seed`, however many there are.

    Unlike ``seed.spawn(count)``, which counts up inside a caller's SeedSequence, a second call gives the same streams.

    >>> [child.spawn_key for child in children(1, 2)]
    [(0,), (1,)]
    """
    own = checks.seed_sequence("seed", seed)
    keys = ((*own.spawn_key, n) for n in range(count))
    return [np.random.SeedSequence(own.entropy, spawn_key=key, pool_size=own.pool_size) for key in keys]
