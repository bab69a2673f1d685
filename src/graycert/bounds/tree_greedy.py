"""Kernels on trees: gains of nested worst sets, from the leaves to the root, every operation rounded upward.

Arrays follow the breadth-first order of ``graycert.graph.InTree``. The derivations are in docs/proofs/trees.md.
"""

import numpy as np

from graycert._compilation import inlined, kernel
from graycert._types import FloatArray, IntArray


@kernel
def worst_chain(parents: IntArray, p_delete: FloatArray, shown: FloatArray, most: int) -> tuple[IntArray, FloatArray]:
    """Return positions in the order in which the worst sets grow, and the gain that each brings.

    A gain is the probability that a message of this node arrives, given that none arrives from those before.

    Args:
        parents: Position of the parent; -1 for the root, at position 0.
        p_delete: Probability of deleting the edge to the parent; the root's entry is not used.
        shown: Probability that a hostile node's features are not ablated, rounded upward; 0 if it is not eligible.
        most: How many gains are wanted; those after them are 0 and their positions in any order.
    """
    starts, stops = _subtrees(parents)
    order, gains = np.empty(parents.size, dtype=np.int64), np.empty(parents.size)
    for position in range(parents.size):
        order[starts[position]], gains[starts[position]] = position, shown[position]
    for position in range(parents.size - 1, -1, -1):
        start, stop = starts[position], stops[position]
        _sort_falling(gains[start:stop], order[start:stop], most)
        if position > 0:
            _send_through_edge(gains[start : min(stop, start + most)], p_delete[position])
    return order, gains


@kernel
def accumulate(gains: FloatArray, reached: FloatArray) -> None:
    """Write the probability that a message arrives from the first m nodes to ``reached[m - 1]``, for all m."""
    so_far = 0.0
    for index in range(reached.size):
        if index < gains.size:
            so_far = _either(so_far, gains[index])
        reached[index] = so_far


@kernel
def reach_root(parents: IntArray, p_delete: FloatArray, shown: FloatArray) -> float:
    """Return the probability that a message of any node arrives at the root; arguments as in ``worst_chain``."""
    reached = shown.copy()
    for position in range(parents.size - 1, 0, -1):
        through = _multiply_up(_complement_up(p_delete[position]), reached[position])
        reached[parents[position]] = _either(reached[parents[position]], through)
    return float(reached[0])


@kernel
def _subtrees(parents: IntArray) -> tuple[IntArray, IntArray]:
    """Return where the subtree of each position starts and stops in depth-first order, its own root first."""
    sizes = np.ones(parents.size, dtype=np.int64)
    for position in range(parents.size - 1, 0, -1):
        sizes[parents[position]] += sizes[position]
    starts, free = np.zeros(parents.size, dtype=np.int64), np.ones(parents.size, dtype=np.int64)
    for position in range(1, parents.size):
        parent = parents[position]
        starts[position] = free[parent]
        free[parent] += sizes[position]
        free[position] = starts[position] + 1
    return starts, starts + sizes


@kernel
def _sort_falling(gains: FloatArray, order: IntArray, most: int) -> None:
    """Put the ``most`` largest gains first, equal ones as they came, and set the others to 0: no set needs them."""
    for index in range(1, gains.size):
        gain, position, place = gains[index], order[index], index
        if index >= most:
            gains[index] = 0.0
            if gains[most - 1] >= gain:
                continue
            order[index], place = order[most - 1], most - 1
        while place > 0 and gains[place - 1] < gain:
            gains[place], order[place] = gains[place - 1], order[place - 1]
            place -= 1
        gains[place], order[place] = gain, position


@kernel
def _send_through_edge(gains: FloatArray, p_delete: float) -> None:
    """Turn gains at the source of an edge, in falling order, into gains at its end, in falling order."""
    if p_delete == 0.0:
        return
    p_keep, missed, before = _complement_up(p_delete), 1.0, 1.0
    for index in range(gains.size):
        gain = gains[index]
        useful = _multiply_up(p_keep, missed)  # the edge is kept, and nothing has come through so far
        total = max(np.nextafter(p_delete + useful, 0.0), p_delete)
        share = min(np.nextafter(useful / total, np.inf), 1.0) if useful > 0.0 else 0.0
        before = min(_multiply_up(gain, share), before)
        gains[index] = before
        missed = _multiply_up(missed, _complement_up(gain))


@inlined
def _either(left: float, right: float) -> float:
    """Return an upper bound of 1 - (1 - left)(1 - right)."""
    if left == 0.0 or right == 0.0:
        return left + right
    return min(float(np.nextafter(left + _multiply_up(_complement_up(left), right), np.inf)), 1.0)


@inlined
def _complement_up(value: float) -> float:
    """Return an upper bound of 1 - value for a value in [0, 1]; the difference is exact from 1/2 on (Sterbenz)."""
    return 1.0 - value if value >= 0.5 else min(float(np.nextafter(1.0 - value, np.inf)), 1.0)


@inlined
def _multiply_up(left: float, right: float) -> float:
    """Return an upper bound of left * right for values in [0, 1]; exact if one of them is 0 or 1."""
    return min(float(np.nextafter(left * right, np.inf)), left, right)
