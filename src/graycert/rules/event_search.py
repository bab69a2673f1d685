r"""Search for a set of hostile nodes against which a target cannot be certified, given what arrived in its samples.

A set B is tested with the votes that were lost where nothing from B arrived. As B grows these fall and p(E(B)) rises,
so no set that contains S can fail if the lost votes at S pass together with the largest p(E(B)) of such a set.
"""

from typing import NamedTuple

import numpy as np

from graycert._compilation import kernel
from graycert._types import FloatArray, IntArray, WordArray
from graycert.bounds.interception_state import State, gain, pop, push, relative_error
from graycert.bounds.routes import Routes

CERTIFIED, REFUTED, UNDECIDED = 0, 1, 2
SPARE = 2.0**-48  # rounding of the few sums of numbers below 2 in a test


class LostVotes(NamedTuple):
    """The samples that did not vote for the reported class, and what arrived in them.

    Args:
        kinds: Type of each candidate, shape (num_candidates,).
        twins: Equal for candidates of equal type and arrivals, shape (num_candidates,), rising.
        arrived: Whether the message of a candidate arrived, one bit per sample, shape (num_candidates, num_words);
            samples are grouped by the class that they voted for, and each class begins a word.
        valid: Bits that stand for a sample, shape (num_words,).
        class_starts: Words ``class_starts[c]:class_starts[c + 1]`` belong to the c-th class.
        upper: Upper confidence bound on the probability of an event that occurred 0, 1, ... times among all samples.
        two_classes: Whether the classifier has two classes; all lost votes then go to the same one.
        for_none: Whether the first of the classes stands for votes for no class, which count for every other one.
    """

    kinds: IntArray
    twins: IntArray
    arrived: WordArray
    valid: WordArray
    class_starts: IntArray
    upper: FloatArray
    two_classes: bool
    for_none: bool = False


@kernel
def search(
    routes: Routes, state: State, votes: LostVotes, radius: int, delta_upper: float, max_sets: int, found: IntArray
) -> tuple[int, int]:
    """Look for a set of ``radius`` candidates that fails the test.

    Args:
        routes: The routes of the target's field.
        state: No node chosen; left as it was.
        votes: The lost votes.
        radius: Number of hostile nodes, from 1 to the number of candidates.
        delta_upper: A bound on p(E(B)) of all these sets.
        max_sets: How many sets to branch on before giving up.
        found: Receives a set that fails, as positions of candidates, shape (radius,).

    Returns:
        ``CERTIFIED``, ``REFUTED`` or ``UNDECIDED``, and the number of sets branched on.
    """
    num_candidates, num_words = votes.arrived.shape
    alive = np.empty((radius + 1, num_words), dtype=np.uint64)
    alive[0] = votes.valid
    if _bound(votes, alive[0], -1) + 2.0 * delta_upper < 1.0 - SPARE:
        return CERTIFIED, 0
    pool, sizes = np.empty((radius + 1, num_candidates), dtype=np.int64), np.zeros(radius + 1, dtype=np.int64)
    pool[0], sizes[0] = np.arange(num_candidates), num_candidates
    gains, lost = np.empty((radius, num_candidates)), np.empty((radius, num_candidates))
    rest, totals = np.empty((radius, num_candidates)), np.zeros(radius + 1)
    position = np.zeros(radius, dtype=np.int64)
    depth, num_sets, entered, outcome = 0, 0, True, CERTIFIED
    while depth >= 0:
        needed, size = radius - depth, sizes[depth]
        if entered:
            num_sets += 1
            if num_sets > max_sets or state.work[0] > state.work[1]:
                outcome = UNDECIDED
                break
            _rank(
                routes, state, votes, alive[depth], pool[depth, :size], needed, gains[depth], lost[depth], rest[depth]
            )
            position[depth], entered = 0, False
        step = position[depth]
        if size - step < needed:
            depth -= 1
            if depth >= 0:
                pop(state)
                position[depth] += 1
            continue
        candidate = pool[depth, step]
        most = totals[depth] + gains[depth, step] + rest[depth, step]
        slack = (2 * radius + 1) * (2.0 * relative_error(routes, state, radius) + 2.0**-50 * (1.0 + most))
        passes = lost[depth, step] - 2.0 * np.expm1(-(most + slack)) < 1.0 - SPARE
        if passes or (step > 0 and votes.twins[candidate] == votes.twins[pool[depth, step - 1]]):
            position[depth] += 1  # a set with the second of two twins is as harmful as with the first
            continue
        found[depth] = candidate
        if needed == 1:
            outcome = REFUTED
            break
        if not push(routes, state, votes.kinds[candidate]):
            outcome = UNDECIDED
            break
        for word in range(num_words):
            alive[depth + 1, word] = alive[depth, word] & ~votes.arrived[candidate, word]
        totals[depth + 1] = totals[depth] + gains[depth, step]
        sizes[depth + 1] = size - step - 1
        pool[depth + 1, : size - step - 1] = pool[depth, step + 1 : size]
        depth, entered = depth + 1, True
    while state.top[1] > 0:
        pop(state)
    return outcome, num_sets


@kernel
def _rank(
    routes: Routes,
    state: State,
    votes: LostVotes,
    alive: WordArray,
    pool: IntArray,
    needed: int,
    gains: FloatArray,
    lost: FloatArray,
    rest: FloatArray,
) -> None:
    """Sort the candidates of ``pool``, most harmful first, and fill what each adds.

    ``gains`` of L, ``lost`` what the votes contribute to the test, ``rest`` the largest gains that ``needed - 1``
    candidates behind it can add.
    """
    by_kind = np.full(routes.copies.size, -1.0)
    size = pool.size
    gain_of, lost_of = np.empty(size), np.empty(size)
    for place in range(size):
        kind = votes.kinds[pool[place]]
        if by_kind[kind] < 0.0:
            by_kind[kind] = gain(routes, state, kind)
        gain_of[place] = by_kind[kind]
        if place > 0 and votes.twins[pool[place]] == votes.twins[pool[place - 1]]:
            lost_of[place] = lost_of[place - 1]
        else:
            lost_of[place] = _bound(votes, alive, pool[place])
    order = np.argsort(-(lost_of - 2.0 * np.expm1(-gain_of)), kind="mergesort")
    candidates = pool.copy()
    largest = np.zeros(needed)  # of the gains behind, rising
    total = 0.0
    for place in range(size - 1, -1, -1):
        pool[place] = candidates[order[place]]
        gains[place], lost[place], rest[place] = gain_of[order[place]], lost_of[order[place]], total
        if needed > 1 and gains[place] > largest[1]:
            slot = 1
            while slot + 1 < needed and largest[slot + 1] < gains[place]:
                largest[slot] = largest[slot + 1]
                slot += 1
            largest[slot] = gains[place]
            total = largest.sum()


@kernel
def _bound(votes: LostVotes, alive: WordArray, candidate: int) -> float:
    """Return what lost votes contribute to the test if only samples in ``alive`` count, and none that it reached."""
    total, largest, for_none = np.int64(0), np.int64(0), np.int64(0)
    for number in range(votes.class_starts.size - 1):
        count = np.int64(0)
        for word in range(votes.class_starts[number], votes.class_starts[number + 1]):
            bits = alive[word] if candidate < 0 else alive[word] & ~votes.arrived[candidate, word]
            count += _ones(bits)
        total += count
        if number == 0 and votes.for_none:
            for_none = count
        else:
            largest = max(largest, count)
    largest += for_none
    if votes.two_classes:
        return float(2.0 * votes.upper[total])
    return float(votes.upper[total] + votes.upper[largest])


@kernel
def _ones(word: np.uint64) -> np.int64:
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))
