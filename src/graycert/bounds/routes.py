"""How hostile nodes reach a target through its in-neighbours, the first hops: what exact bounds are computed from."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graycert._compilation import kernel
from graycert._types import FloatArray, IntArray

# A factor p + q·m takes four operations, one more is its product: shrinking by eight roundings keeps it a lower bound.
_SHRINK = 1.0 - 8.0 * 2.0**-53


class Routes(NamedTuple):
    r"""The routes from the eligible nodes w of one receptive field to its target v, through first hops u -> v.

    Given which edges u -> v survive, the nodes of an attacker set are intercepted independently of each other; node w
    by the factor $a_w + (1-a_w)\prod_{u\text{ survives}} f_w(u)$. Here $f_w(u)$ is the probability that w does not
    reach u in the remaining k - 1 layers: 0 for u itself, 1 - q(w, u) exactly for k = 2, and for k > 2 a lower bound
    along self-avoiding walks. Nodes with equal probabilities form one type.

    Args:
        p_first: p_delete of the edge from each first hop to the target, shape (num_hops,). The last entry is 0: it
            stands for nodes whose unablated message always arrives, such as the target.
        p_ablate: Probability of ablating a node, per type, shape (num_types,).
        copies: How many nodes are of each type, shape (num_types,).
        indptr: The routes of type t are ``indptr[t]:indptr[t + 1]``, shape (num_types + 1,).
        hops: First hop of each route, rising within a type.
        misses: f_w(u) of each route, in [0, 1).
        type_of: Type of each node of the field, -1 for those that cannot reach the target or are not eligible,
            shape (num_nodes_of_field,).
    """

    p_first: FloatArray
    p_ablate: FloatArray
    copies: IntArray
    indptr: IntArray
    hops: IntArray
    misses: FloatArray
    type_of: IntArray


class Walker(NamedTuple):
    """Scratch space for walks in one graph, one entry per node; at rest between targets.

    Args:
        place: Position of each node in the receptive field, or -1.
        on_walk: Whether the walk visits the node.
        miss: Per step of a walk, the probability of not reaching the node at which the step ends, else 1.
        touched: Per step, the nodes with a ``miss`` below 1.
        steps_left: How many edges may still be looked at for the target in hand, shape (1,).
    """

    place: IntArray
    on_walk: NDArray[np.bool_]
    miss: FloatArray
    touched: IntArray
    steps_left: IntArray


def make_walker(num_nodes: int, num_layers: int) -> Walker:
    """Return scratch space for ``find_routes``."""
    steps = max(1, num_layers - 1)
    return Walker(
        place=np.full(num_nodes, -1, dtype=np.int64),
        on_walk=np.zeros(num_nodes, dtype=np.bool_),
        miss=np.ones((steps, num_nodes)),
        touched=np.empty((steps, num_nodes), dtype=np.int64),
        steps_left=np.zeros(1, dtype=np.int64),
    )


@kernel
def find_routes(
    indptr: IntArray,
    sources: IntArray,
    p_delete: FloatArray,
    p_ablate: FloatArray,
    nodes: IntArray,
    eligible: NDArray[np.bool_],
    num_layers: int,
    max_steps: int,
    walker: Walker,
) -> Routes:
    r"""Collect the routes of one receptive field.

    Guarantee:
        For k <= 2 the intercepting probabilities are exact. For k > 2, p(E(B)) of every set B is at most what they
        give, by Harris' inequality (docs/proofs/two_level.md).

    Args:
        indptr: In-neighbours of i are ``sources[indptr[i]:indptr[i + 1]]``.
        sources: Source of each edge.
        p_delete: Per edge, shape (num_edges,).
        p_ablate: Per node, shape (num_nodes,).
        nodes: The receptive field, the target first.
        eligible: Which of them may be hostile.
        num_layers: k >= 1.
        max_steps: How many edges to look at, each as often as walks use it.
        walker: Scratch space.

    Returns:
        The routes; without even the last hop, ``p_first`` of shape (0,), if there are more walks than that.
    """
    target = nodes[0]
    for position in range(1, nodes.size):
        if eligible[position]:
            walker.place[nodes[position]] = position
    first, last = indptr[target], indptr[target + 1]
    size = 0  # of the lists of routes
    rows = np.empty(64, dtype=np.int64)
    hops = np.empty(64, dtype=np.int64)
    misses = np.empty(64)
    if eligible[0]:  # the target sees its own features unless they are ablated
        rows[0], hops[0], misses[0] = 0, last - first, 0.0
        size = 1
    walker.on_walk[target] = True
    walker.steps_left[0] = max_steps
    for edge in range(first, last):
        if p_delete[edge] == 1.0:
            continue
        hop, found = sources[edge], 0
        if num_layers > 1:
            walker.on_walk[hop] = True
            found = _walk(indptr, sources, p_delete, hop, num_layers - 1, walker)
            walker.on_walk[hop] = False
        if walker.steps_left[0] < 0:
            walker.miss[:] = 1.0
            walker.on_walk[:] = False
            break
        while size + found + 1 > rows.size:
            rows, hops, misses = _longer(rows), _longer(hops), _longer(misses)
        if walker.place[hop] >= 0:
            rows[size], hops[size], misses[size] = walker.place[hop], edge - first, 0.0
            size += 1
        for index in range(found):
            node = walker.touched[0, index]
            if walker.place[node] >= 0:
                rows[size], hops[size], misses[size] = walker.place[node], edge - first, walker.miss[0, node]
                size += 1
            walker.miss[0, node] = 1.0
    walker.on_walk[target] = False
    for position in range(nodes.size):
        walker.place[nodes[position]] = -1
    if walker.steps_left[0] < 0:
        return _merge(np.empty(0), p_ablate[nodes], rows[:0], hops[:0], misses[:0])
    p_first = np.zeros(last - first + 1)
    p_first[: last - first] = p_delete[first:last]
    return _merge(p_first, p_ablate[nodes], rows[:size], hops[:size], misses[:size])


@kernel
def _longer(array: NDArray[Any]) -> NDArray[Any]:
    longer = np.empty(2 * array.size, dtype=array.dtype)
    longer[: array.size] = array
    return longer


@kernel
def _walk(indptr: IntArray, sources: IntArray, p_delete: FloatArray, hop: int, steps: int, walker: Walker) -> int:
    """Fill ``walker.miss[0]`` with the probability that nodes do not reach ``hop`` in 1..``steps`` edges.

    Along the tree of self-avoiding walks, as if each of its branches had edges of its own. Returns the number of
    nodes touched. Depth first, without recursion, which Numba cannot load from its cache.
    """
    ends, edges = np.empty(steps, dtype=np.int64), np.empty(steps, dtype=np.int64)
    touched = np.zeros(steps, dtype=np.int64)
    step, ends[0], edges[0] = 0, hop, indptr[hop]
    while walker.steps_left[0] >= 0:
        walker.steps_left[0] -= 1
        if edges[step] == indptr[ends[step] + 1]:  # all walks that end here are done
            if step == 0:
                return int(touched[0])
            walker.on_walk[ends[step]] = False
            step -= 1
            p = p_delete[edges[step]]
            for index in range(touched[step + 1]):
                node = walker.touched[step + 1, index]
                miss = (p + (1.0 - p) * walker.miss[step + 1, node]) * _SHRINK
                walker.miss[step + 1, node] = 1.0
                _multiply(walker, touched, step, node, miss)
            edges[step] += 1
            continue
        node, p = sources[edges[step]], p_delete[edges[step]]
        if walker.on_walk[node] or p == 1.0:
            edges[step] += 1
            continue
        _multiply(walker, touched, step, node, p)
        if step + 1 == steps:
            edges[step] += 1
            continue
        walker.on_walk[node] = True
        step += 1
        ends[step], edges[step], touched[step] = node, indptr[node], 0
    return 0


@kernel
def _multiply(walker: Walker, touched: IntArray, step: int, node: int, miss: float) -> None:
    if walker.miss[step, node] == 1.0:
        walker.touched[step, touched[step]] = node
        touched[step] += 1
        walker.miss[step, node] = miss  # the only factor of most nodes: no rounding
    else:
        walker.miss[step, node] *= miss * _SHRINK


@kernel
def _merge(p_first: FloatArray, ablate: FloatArray, rows: IntArray, hops: IntArray, misses: FloatArray) -> Routes:
    """Sort the routes by node, send nodes that always arrive to the last hop, and merge nodes with equal routes."""
    certain, num_rows, always = np.zeros(ablate.size, dtype=np.bool_), ablate.size, p_first.size - 1
    starts = np.zeros(num_rows + 1, dtype=np.int64)
    for route in range(rows.size):
        starts[rows[route] + 1] += 1
        if misses[route] == 0.0 and p_first[hops[route]] == 0.0:
            certain[rows[route]] = True
    for row in range(num_rows):
        starts[row + 1] += starts[row]
    sorted_hops, sorted_misses = np.empty(rows.size, dtype=np.int64), np.empty(rows.size)
    filled = starts[:-1].copy()
    for route in range(rows.size):  # hops came in rising order, so they rise within each node but the target
        sorted_hops[filled[rows[route]]], sorted_misses[filled[rows[route]]] = hops[route], misses[route]
        filled[rows[route]] += 1
    stops = starts[1:].copy()
    for row in range(num_rows):
        if certain[row]:
            sorted_hops[starts[row]], sorted_misses[starts[row]], stops[row] = always, 0.0, starts[row] + 1
    type_of, first = _same_routes(ablate, starts[:-1], stops, sorted_hops, sorted_misses)
    num_types = first.size
    copies = np.zeros(num_types, dtype=np.int64)
    for row in range(num_rows):
        if type_of[row] >= 0:
            copies[type_of[row]] += 1
    indptr = np.zeros(num_types + 1, dtype=np.int64)
    for number in range(num_types):
        indptr[number + 1] = indptr[number] + stops[first[number]] - starts[first[number]]
    type_hops, type_misses = np.empty(indptr[-1], dtype=np.int64), np.empty(indptr[-1])
    for number in range(num_types):
        row = first[number]
        type_hops[indptr[number] : indptr[number + 1]] = sorted_hops[starts[row] : stops[row]]
        type_misses[indptr[number] : indptr[number + 1]] = sorted_misses[starts[row] : stops[row]]
    return Routes(p_first, ablate[first], copies, indptr, type_hops, type_misses, type_of)


@kernel
def _same_routes(
    ablate: FloatArray, starts: IntArray, stops: IntArray, hops: IntArray, misses: FloatArray
) -> tuple[IntArray, IntArray]:
    """Return the type of each row (-1 without routes, or if the node is always ablated) and the first row of each."""
    size = 2
    while size < 2 * ablate.size:
        size *= 2
    table = np.full(size, -1, dtype=np.int64)
    type_of, first = np.full(ablate.size, -1, dtype=np.int64), np.empty(ablate.size, dtype=np.int64)
    bits, ablate_bits = misses.view(np.int64), ablate.view(np.int64)
    known = 0
    for row in range(ablate.size):
        if stops[row] == starts[row] or ablate[row] == 1.0:
            continue
        value = ablate_bits[row]
        for route in range(starts[row], stops[row]):
            value = (value ^ hops[route] ^ bits[route] ^ (bits[route] >> 32)) * np.int64(-7046029254386353131)
            value ^= value >> 32
        place = value & (size - 1)
        while table[place] >= 0 and not _equal(row, first[table[place]], ablate, starts, stops, hops, misses):
            place = (place + 1) & (size - 1)
        if table[place] < 0:
            table[place], first[known] = known, row
            known += 1
        type_of[row] = table[place]
    return type_of, first[:known].copy()


@kernel
def _equal(
    left: int,
    right: int,
    ablate: FloatArray,
    starts: IntArray,
    stops: IntArray,
    hops: IntArray,
    misses: FloatArray,
) -> bool:
    length = stops[left] - starts[left]
    if ablate[left] != ablate[right] or length != stops[right] - starts[right]:
        return False
    for offset in range(length):
        i, j = starts[left] + offset, starts[right] + offset
        if hops[i] != hops[j] or misses[i] != misses[j]:
            return False
    return True
