r"""The worst set of ρ hostile nodes: greedy, the bound that every prefix of it gives, and branch and bound.

L(B) = -log g(B) is monotone and submodular for two layers, and for the surrogate of more (docs/proofs/two_level.md), so
L(B) <= L(S) + sum of the ρ largest gains at S, for every S; and within B ⊇ S of the ρ - |S| largest.
"""

import numpy as np
from numpy.typing import NDArray

from graycert._compilation import kernel
from graycert._types import FloatArray, IntArray
from graycert.bounds.interception_state import State, gain, pop, push
from graycert.bounds.routes import Routes

CLOSE = 1e-13  # sets whose L differs by less need not be told apart


@kernel
def all_gains(routes: Routes, state: State, copies: IntArray, changed: int, gains: FloatArray) -> None:
    """Update the gains of the types with copies left; ``changed`` is the component to look at, -1 for all.

    Types without copies left get -1, to be ranked behind nodes whose gain is 0.
    """
    for kind in range(copies.size):
        if copies[kind] == 0:
            gains[kind] = -1.0
        elif changed < 0 or state.component[kind] == changed:
            gains[kind] = gain(routes, state, kind)


@kernel
def largest_sums(gains: FloatArray, copies: IntArray, order: IntArray, sums: FloatArray) -> None:
    """Fill ``sums[r]`` with the sum of the r largest gains, each type counted as often as it has copies."""
    total, filled = 0.0, 1
    sums[0] = 0.0
    for kind in order:
        for _ in range(copies[kind]):
            if filled == sums.size:
                return
            total += gains[kind]
            sums[filled] = total
            filled += 1
    sums[filled:] = total


@kernel
def greedy(
    routes: Routes, state: State, max_radius: int, stop_above: float
) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
    """Add the node of largest gain, again and again; the state is left as it was.

    Args:
        routes: The routes.
        state: No node chosen.
        max_radius: How many nodes to choose at most.
        stop_above: Stop once L exceeds this; a certificate needs L < log 2.

    Returns:
        reached: L of the first r chosen nodes, shape (max_radius + 1,); flat where it stopped.
        limit: At least L of every set of r nodes, up to rounding, same shape.
        prefix: How many chosen nodes this limit was found at, same shape; its rounding error grows with them.
        chosen: The types in order.
    """
    reached, limit = np.zeros(max_radius + 1), np.full(max_radius + 1, np.inf)
    prefix = np.zeros(max_radius + 1, dtype=np.int64)
    copies, gains = routes.copies.copy(), np.zeros(routes.copies.size)
    sums, chosen = np.zeros(max_radius + 1), np.empty(max_radius, dtype=np.int64)
    total, steps, changed = 0.0, 0, -1
    while True:
        all_gains(routes, state, copies, changed, gains)
        order = np.argsort(-gains, kind="mergesort")
        largest_sums(gains, copies, order, sums)
        for radius in range(max_radius + 1):
            if total + sums[radius] < limit[radius] - CLOSE:
                limit[radius], prefix[radius] = total + sums[radius], steps
        if steps == max_radius or order.size == 0 or gains[order[0]] <= 0.0 or total > stop_above:
            break
        kind = order[0]
        if gains[kind] == np.inf:  # this node cannot be intercepted: nothing is left to bound
            reached[steps + 1 :] = np.inf
            limit[steps + 1 :] = np.inf
            chosen[steps] = kind
            steps += 1
            break
        if not push(routes, state, kind):
            break
        total += gains[kind]
        copies[kind] -= 1
        changed = state.component[kind]
        chosen[steps] = kind
        steps += 1
        reached[steps:] = total
    while state.top[1] > 0:
        pop(state)
    return reached, limit, prefix, chosen[:steps].copy()


@kernel
def dominations(routes: Routes) -> NDArray[np.bool_]:
    """Return [i, j] whether a node of type i intercepts no better than one of type j, whatever else is hostile."""
    num_types = routes.copies.size
    dominates = np.zeros((num_types, num_types), dtype=np.bool_)
    misses = np.ones(routes.p_first.size)
    for i in range(num_types):
        for route in range(routes.indptr[i], routes.indptr[i + 1]):
            misses[routes.hops[route]] = routes.misses[route]
        for j in range(num_types):
            if i == j or routes.p_ablate[i] > routes.p_ablate[j]:
                continue
            holds = True
            for route in range(routes.indptr[j], routes.indptr[j + 1]):
                if misses[routes.hops[route]] > routes.misses[route]:
                    holds = False
                    break
            dominates[i, j] = holds and not dominates[j, i]  # +0.0 and -0.0 are equal but not one type
        for route in range(routes.indptr[i], routes.indptr[i + 1]):
            misses[routes.hops[route]] = 1.0
    return dominates


@kernel
def branch_and_bound(
    routes: Routes,
    state: State,
    dominates: NDArray[np.bool_],
    radius: int,
    best: float,
    best_set: IntArray,
) -> tuple[float, bool]:
    """Find the largest L of any ``radius`` nodes; the state is left as it was.

    Some best set contains, with each node, all nodes that dominate it. Children of a set add one node of the largest
    gain and exclude it, with all nodes it dominates, from their later siblings.

    Args:
        routes: The routes, with at least ``radius`` nodes.
        state: No node chosen.
        dominates: From ``dominations``.
        radius: Number of nodes, >= 1.
        best: L of ``best_set``.
        best_set: The types of the best set known, shape (radius,); overwritten if a better one is found.

    Returns:
        The largest L found, and whether no set exceeds it by more than ``CLOSE``, up to rounding.
    """
    num_types = routes.copies.size
    gains, order = np.zeros((radius, num_types)), np.zeros((radius, num_types), dtype=np.int64)
    left, position = np.zeros((radius, num_types), dtype=np.int64), np.zeros(radius, dtype=np.int64)
    totals, chosen = np.zeros(radius + 1), np.zeros(radius, dtype=np.int64)
    for kind in range(num_types):
        above = 0
        for other in range(num_types):
            if dominates[other, kind]:
                above += routes.copies[other]
        left[0, kind] = min(routes.copies[kind], max(0, radius - above))
    depth, entered, changed = 0, True, -1
    while depth >= 0:
        if state.work[0] > state.work[1]:
            break
        needed = radius - depth
        if entered:
            all_gains(routes, state, left[depth], changed, gains[depth])
            order[depth] = np.argsort(-gains[depth], kind="mergesort")
            position[depth], entered = 0, False
        if needed == 1:
            kind = order[depth, 0]
            if left[depth, kind] > 0 and totals[depth] + gains[depth, kind] > best:
                best = totals[depth] + gains[depth, kind]
                best_set[:depth] = chosen[:depth]
                best_set[depth] = kind
        step = position[depth]
        goes_on = needed > 1 and step < num_types
        if goes_on:
            kind = order[depth, step]
            goes_on = totals[depth] + _most(gains[depth], left[depth], order[depth], step, needed) > best + CLOSE
        if not goes_on:
            depth -= 1
            if depth >= 0:
                pop(state)
                _exclude(dominates, left[depth], order[depth, position[depth]])
                position[depth] += 1
            continue
        if left[depth, kind] == 0:
            position[depth] += 1
            continue
        left[depth, kind] -= 1
        rest = _most(gains[depth], left[depth], order[depth], step, needed - 1)
        if totals[depth] + gains[depth, kind] + rest <= best + CLOSE:
            left[depth, kind] += 1
            _exclude(dominates, left[depth], kind)
            position[depth] += 1
            continue
        if not push(routes, state, kind):
            break
        changed, chosen[depth] = state.component[kind], kind
        left[depth + 1], gains[depth + 1] = left[depth], gains[depth]
        totals[depth + 1] = totals[depth] + gains[depth, kind]
        depth, entered = depth + 1, True
    finished = depth < 0
    while state.top[1] > 0:
        pop(state)
    return best, finished


@kernel
def _most(gains: FloatArray, left: IntArray, order: IntArray, start: int, count: int) -> float:
    total = 0.0
    for step in range(start, order.size):
        kind = order[step]
        taken = min(count, left[kind])
        if taken > 0:
            total += taken * gains[kind]
            count -= taken
        if count == 0:
            break
    return total


@kernel
def _exclude(dominates: NDArray[np.bool_], left: IntArray, kind: int) -> None:
    left[kind] = 0
    for other in range(left.size):
        if dominates[kind, other]:
            left[other] = 0
