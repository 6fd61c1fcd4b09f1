"""Random streams: how one seed serves many independent tasks."""

import numpy as np

from lib.common import checks


def children(rng, count):
    """Seeds of `count` independent streams: number n has the n-th child of `rng`, however many there are.

    Unlike ``seed.spawn(count)``, which counts up inside a caller's SeedSequence, a second call with a seed gives the
    same streams; a Generator spawns new ones.

    >>> [child.spawn_key for child in children(1, 2)]
    [(0,), (1,)]
    """
    own = checks.seed_sequence("rng", rng)
    keys = ((*own.spawn_key, n) for n in range(count))
    return [np.random.SeedSequence(own.entropy, spawn_key=key, pool_size=own.pool_size) for key in keys]
