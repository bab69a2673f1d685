"""Theorem 2 with a probability per edge and node: paths are told apart by what they weigh, not by their lengths."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graycert._compilation import inlined, kernel
from graycert._rounding import add_up, complement_up, multiply_up, next_up, one_minus_exp_up
from graycert._types import FloatArray, IntArray
from graycert._validation import check_integer, check_probabilities
from graycert.graph import Adjacency, ReceptiveFields
from graycert.graph.simple_paths import DEFAULT_MAX_PATHS

# Assumed of numpy.log1p, as of expm1 in graycert._rounding, and checked by tests/bounds/test_weighted_paths.py: at
# most 4 units in the last place off. The factor allows eight.
_LOG1P_SLACK = 1.0 + 8 * 2.0**-52


def weighted_single_source_bounds(
    adjacency: Adjacency,
    field: ReceptiveFields,
    *,
    p_delete: ArrayLike,
    p_ablate: ArrayLike,
    num_layers: int,
    max_paths: int = DEFAULT_MAX_PATHS,
) -> tuple[FloatArray, NDArray[np.bool_]]:
    r"""Bound, for each node of each receptive field, the probability that its message reaches the target.

    $$\overline{\Delta}_w=\bigl(1-p_a(w)\bigr)\Bigl[1-\prod_{q}\Bigl(1-\prod_{e\in q}\bigl(1-p_d(e)\bigr)\Bigr)\Bigr],
    \qquad \overline{\Delta}_v=1-p_a(v)$$

    The outer product runs over the simple paths q of at most k edges from w to the target v.

    Guarantee:
        Entries are at least $\Delta_w$ if edges are deleted and nodes ablated independently with these probabilities,
        or the two directions of an undirected edge together with the same one. They equal $\Delta_w$ up to rounding
        if no two paths share an edge, as always for two layers or fewer. Rounded upward, by less than
        (5k + 12 + 4n)·2^-53 for n paths. For targets that are not exact, walks that do not return to the target stand
        in for simple paths: those of one length as if all were as likely to survive as the likeliest, with the same
        sum of probabilities.

    Args:
        adjacency: The graph.
        field: Receptive fields for ``num_layers`` layers.
        p_delete: p_d of each edge in the order of ``adjacency``, in [0, 1], shape (num_edges,).
        p_ablate: p_a of each node, in [0, 1], shape (num_nodes,).
        num_layers: Number k of message-passing steps, >= 1.
        max_paths: How many simple paths of edges with p_d < 1 to follow per target before counting walks instead,
            >= 1; one and two layers have no limit, their paths are never more than the edges.

    Returns:
        bounds: In [0, 1], shape of ``field.nodes``.
        exact: Whether simple paths were followed, shape (num_targets,).

    Raises:
        InvalidParameterError: If an argument is malformed or out of range.

    Example:
        >>> from graycert.graph import path_graph, receptive_fields
        >>> graph = path_graph(3)  # 2 -> 1 -> 0 and back; edges in the order (1, 0), (0, 1), (2, 1), (1, 2)
        >>> bounds, exact = weighted_single_source_bounds(
        ...     graph, receptive_fields(graph, [0], num_layers=2),
        ...     p_delete=[0.5, 1, 0.2, 1], p_ablate=[0, 0.1, 0.5], num_layers=2)
        >>> bounds.round(12), exact
        (array([1.  , 0.45, 0.2 ]), array([ True]))

    References:
        Scholten et al. (2022), Theorem 2 (one p_d, one p_a); docs/proofs/nonuniform.md.
    """
    keep = complement_up(check_probabilities("p_delete", p_delete, size=adjacency.num_edges, per="edge"))
    shown_of_node = check_probabilities("p_ablate", p_ablate, size=adjacency.num_nodes, per="node")
    num_layers = check_integer("num_layers", num_layers, at_least=1)
    limit = check_integer("max_paths", max_paths, at_least=1) if num_layers > 2 else 2**62
    arrive = np.zeros(field.nodes.size)
    exact = np.empty(field.targets.size, dtype=np.bool_)
    graph = (adjacency.indptr, adjacency.sources, keep)
    _follow(*graph, field.indptr, field.nodes, num_layers, limit, arrive, exact)
    for row in np.flatnonzero(~exact).tolist():
        part = slice(int(field.indptr[row]), int(field.indptr[row + 1]))
        arrive[part] = _over_count(*_walks(*graph, field.nodes[part], num_layers))
    return ablate_sources(arrive, shown_of_node[field.nodes]), exact


def ablate_sources(arrive: ArrayLike, p_ablate: ArrayLike) -> FloatArray:
    """Return (1 - p_a(w)) times the probability that w's message would arrive unless ablated, rounded upward.

    Args:
        arrive: In [0, 1]; 1 for the target itself, e.g. ``single_source_bounds(..., p_ablate=0.0)`` for others.
        p_ablate: p_a of the same nodes, in [0, 1], same shape.
    """
    shown = complement_up(p_ablate)
    return np.minimum(multiply_up(shown, arrive), shown)


@inlined
def _up(value: float) -> float:
    return float(np.nextafter(value, np.inf))


@kernel
def _follow(
    indptr: IntArray,
    sources: IntArray,
    keep: FloatArray,
    field_indptr: IntArray,
    nodes: IntArray,
    num_layers: int,
    max_paths: int,
    arrive: FloatArray,
    exact: NDArray[np.bool_],
) -> None:
    """Follow the simple paths against their edges, depth first; ``arrive`` holds 0 where nothing arrives.

    A path that survives with probability s turns D into D + (1 - D) s, which keeps the accuracy of small values.
    """
    position = np.full(indptr.size - 1, -1, dtype=np.int64)
    on_path = np.zeros(indptr.size - 1, dtype=np.bool_)
    stack, next_edge = np.empty((2, num_layers + 1), dtype=np.int64)
    survive = np.ones(num_layers + 1)
    for row in range(exact.size):
        start, stop = field_indptr[row], field_indptr[row + 1]
        for place in range(start, stop):
            position[nodes[place]] = place
        target = nodes[start]
        arrive[start], on_path[target] = 1.0, True
        stack[0], next_edge[0] = target, indptr[target]
        depth, num_paths = 0, 0
        while depth >= 0 and num_paths <= max_paths:
            node, edge = stack[depth], next_edge[depth]
            if depth == num_layers or edge == indptr[node + 1]:
                on_path[node] = False
                depth -= 1
                continue
            next_edge[depth] += 1
            source = sources[edge]
            if on_path[source] or keep[edge] == 0.0:
                continue
            num_paths += 1
            depth += 1
            stack[depth], next_edge[depth], on_path[source] = source, indptr[source], True
            survive[depth] = min(1.0, _up(survive[depth - 1] * keep[edge]))
            before = arrive[position[source]]
            if before < 1.0:
                arrive[position[source]] = min(1.0, _up(before + _up(_up(1.0 - before) * survive[depth])))
        exact[row] = depth < 0
        for place in range(start, stop):
            on_path[nodes[place]] = False


@kernel
def _walks(
    indptr: IntArray, sources: IntArray, keep: FloatArray, nodes: IntArray, num_layers: int
) -> tuple[FloatArray, FloatArray]:
    """Return sum and maximum of the survival probabilities of the walks of 1..k edges to ``nodes[0]``, rounded up.

    Walks that visit ``nodes[0]`` before their end are left out. Both have shape (num_layers, num_nodes_of_field).
    """
    position = np.full(indptr.size - 1, -1, dtype=np.int64)
    for place in range(nodes.size):
        position[nodes[place]] = place
    total, largest = np.zeros((num_layers + 1, nodes.size)), np.zeros((num_layers + 1, nodes.size))
    total[0, 0] = largest[0, 0] = 1.0
    for length in range(1, num_layers + 1):
        for place in range(nodes.size):
            if total[length - 1, place] == 0.0:
                continue
            for edge in range(indptr[nodes[place]], indptr[nodes[place] + 1]):
                source = position[sources[edge]]
                if source == 0 or keep[edge] == 0.0:
                    continue
                more = _up(total[length - 1, place] * keep[edge])
                total[length, source] = _up(total[length, source] + more)
                best = min(1.0, _up(largest[length - 1, place] * keep[edge]))
                largest[length, source] = max(largest[length, source], best)
    return total[1:], largest[1:]


def _over_count(total: FloatArray, largest: FloatArray) -> FloatArray:
    """Bound the probability that one of many walks survives; the target, first of its field, is certain.

    -log(1 - s) is convex and 0 at 0, so for all s <= m it is at most s/m · -log(1 - m): summed over the walks of one
    length, (sum of s)/m · -log(1 - m).
    """
    certain = largest == 1.0
    used = (largest > 0.0) & ~certain
    m = np.where(used, largest, 0.5)
    rate = next_up(multiply_up(-np.log1p(-m), _LOG1P_SLACK) / m)
    weights = np.where(certain, np.inf, np.where(used, multiply_up(total, rate), 0.0))
    exponents = np.zeros(total.shape[1])
    for row in weights:
        exponents = add_up(exponents, row)
    arrive = one_minus_exp_up(exponents)
    arrive[0] = 1.0
    return arrive
