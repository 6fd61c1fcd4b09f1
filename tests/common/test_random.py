"""One seed, many streams: the same at every call, and all of the seed goes into them."""

import numpy as np
import pytest

from lib.common import random


def states(seeds):
    return [seed.generate_state(4).tolist() for seed in seeds]


def test_children_are_those_that_spawning_gives_first():
    assert states(random.children(7, 3)) == states(np.random.SeedSequence(7).spawn(3))


def test_children_do_not_change_the_seed_and_do_not_depend_on_it_having_spawned():
    seed = np.random.SeedSequence(7)
    first = states(random.children(seed, 2))
    assert seed.n_children_spawned == 0
    seed.spawn(5)
    assert states(random.children(seed, 4))[:2] == first


@pytest.mark.parametrize("change", [{"entropy": 8}, {"spawn_key": (1,)}, {"pool_size": 8}])
def test_children_keep_entropy_place_and_pool(change):
    plain = {"entropy": 7, "spawn_key": (0,), "pool_size": 4}
    changed = np.random.SeedSequence(**plain | change)
    assert states(random.children(changed, 2)) == states(np.random.SeedSequence(**plain | change).spawn(2))
    assert states(random.children(changed, 2)) != states(random.children(np.random.SeedSequence(**plain), 2))


def test_children_need_a_seed():
    with pytest.raises(ValueError, match="^rng must be an integer"):
        random.children(None, 2)
