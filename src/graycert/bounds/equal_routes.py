"""Searches that were made already: what can be done to a target depends on its routes alone, not on who they are.

Leaves of one neighbour, nodes without edges, and any targets whose in-neighbours have as many in-neighbours of the same
kinds have equal routes. They are compared bit by bit with all that a search reads, so that its result is the same.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graycert._compilation import kernel
from graycert._types import IntArray
from graycert.bounds.routes import Routes

_LONGEST = 128  # numbers of a key; longer ones hardly ever repeat


class Searched(NamedTuple):
    """Searches of some targets that are looked at in one go.

    Args:
        slots: Hash table, a search or -1, a power of two of them.
        keys: What each search read, int64 (num_targets, _LONGEST).
        sizes: How many numbers that is, -1 where they were too many to be kept, shape (num_targets,).
        rows: Of which target each search was, shape (num_targets,).
        kinds: The types of each worst set, padded with -1, int32 (num_targets, num_sets, num_sets).
        made: How many searches there are, shape (1,).
    """

    slots: IntArray
    keys: IntArray
    sizes: IntArray
    rows: IntArray
    kinds: NDArray[np.int32]
    made: IntArray


def nothing_searched(num_targets: int, num_sets: int) -> Searched:
    """Return room for the searches of so many targets."""
    return Searched(
        slots=np.full(2 << num_targets.bit_length(), -1, dtype=np.int64),
        keys=np.empty((num_targets, _LONGEST), dtype=np.int64),
        sizes=np.empty(num_targets, dtype=np.int64),
        rows=np.empty(num_targets, dtype=np.int64),
        kinds=np.empty((num_targets, num_sets, num_sets), dtype=np.int32),
        made=np.zeros(1, dtype=np.int64),
    )


@kernel
def key_of(routes: Routes) -> IntArray:
    """Return all numbers of the routes but which node is of which type, as 64 bits each; none if they are many."""
    num_hops, num_types, num_routes = routes.p_first.size, routes.copies.size, routes.hops.size
    size = 2 + num_hops + 3 * num_types + 2 * num_routes
    if size > _LONGEST:
        return np.empty(0, dtype=np.int64)
    key = np.empty(size, dtype=np.int64)
    key[0], key[1] = num_hops, num_types
    low = 2
    for part in (routes.p_first, routes.p_ablate, routes.misses):
        key[low : low + part.size] = part.view(np.int64)
        low += part.size
    for numbers in (routes.copies, routes.indptr[1:], routes.hops):
        key[low : low + numbers.size] = numbers
        low += numbers.size
    return key


@kernel
def entry_of(known: Searched, key: IntArray) -> int:
    """Return the search that read the same numbers, or -1."""
    if key.size == 0:
        return -1
    place = _hash(key) & (known.slots.size - 1)
    while known.slots[place] >= 0:
        entry = known.slots[place]
        if known.sizes[entry] == key.size and (known.keys[entry, : key.size] == key).all():
            return int(entry)
        place = (place + 1) & (known.slots.size - 1)
    return -1


@kernel
def remember(known: Searched, key: IntArray, row: int, kinds: IntArray) -> int:
    """Add a search, whose last set stands for all larger ones, and return its number."""
    entry = known.made[0]
    known.made[0] += 1
    known.rows[entry], known.sizes[entry] = row, key.size
    known.kinds[entry] = -1
    for number in range(known.kinds.shape[1]):
        members = kinds[min(number, kinds.shape[0] - 1)]
        for index in range(min(members.size, known.kinds.shape[2])):
            known.kinds[entry, number, index] = members[index]
    if key.size > 0:
        known.keys[entry, : key.size] = key
        place = _hash(key) & (known.slots.size - 1)
        while known.slots[place] >= 0:
            place = (place + 1) & (known.slots.size - 1)
        known.slots[place] = entry
    return int(entry)


@kernel
def _hash(key: IntArray) -> int:
    value = np.int64(0)
    for entry in key:
        value = (value ^ entry ^ (entry >> 32)) * np.int64(-7046029254386353131)  # odd, from the golden ratio
        value ^= value >> 32
    return int(value)
