"""Simple paths of five edges and more, one by one, and the walks that stand in when there are too many."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graycert._compilation import kernel
from graycert._rounding import multiply_up
from graycert._types import FloatArray, IntArray
from graycert.graph.adjacency import Adjacency
from graycert.graph.receptive_field import ReceptiveFields

_FIRST_LENGTH = 5  # shorter paths are counted by matrix products


def count_long_paths(
    adjacency: Adjacency, field: ReceptiveFields, counts: FloatArray, *, max_paths: int
) -> NDArray[np.bool_]:
    """Fill in the counts of five edges and more, in place, and say for which targets they are exact.

    Args:
        adjacency: The graph.
        field: Receptive fields for ``counts.shape[1]`` layers.
        counts: Shape (num_entries_of_field, num_layers), columns from the fifth on are overwritten.
        max_paths: Largest number of simple paths (of any length) to enumerate per target.
    """
    num_layers = counts.shape[1]
    position = np.full(adjacency.num_nodes, -1, dtype=np.int64)
    exact = np.ones(field.targets.size, dtype=np.bool_)
    edges = adjacency.to_csr()
    for row in range(field.targets.size):
        start, stop = int(field.indptr[row]), int(field.indptr[row + 1])
        nodes = field.nodes[start:stop]
        position[nodes] = np.arange(nodes.size)
        found = np.zeros((nodes.size, num_layers), dtype=np.int64)
        exact[row] = _enumerate(
            adjacency.indptr, adjacency.sources, position, int(field.targets[row]), num_layers, max_paths, found
        )
        position[nodes] = -1
        long = found.astype(np.float64) if exact[row] else _walks_avoiding_return(edges[nodes][:, nodes], num_layers)
        counts[start:stop, _FIRST_LENGTH - 1 :] = long[:, _FIRST_LENGTH - 1 :]
    return exact


@kernel
def _enumerate(
    indptr: IntArray,
    sources: IntArray,
    position: IntArray,
    target: int,
    num_layers: int,
    max_paths: int,
    counts: IntArray,
) -> bool:
    """Walk backwards from ``target`` depth first; count each path at its start node; False if there are too many."""
    on_path = np.zeros(counts.shape[0], dtype=np.bool_)
    stack = np.empty(num_layers + 1, dtype=np.int64)
    next_edge = np.empty(num_layers + 1, dtype=np.int64)
    stack[0], next_edge[0] = target, indptr[target]
    on_path[position[target]] = True
    depth, num_paths = 0, 0
    while depth >= 0:
        node = stack[depth]
        if depth == num_layers or next_edge[depth] == indptr[node + 1]:
            on_path[position[node]] = False
            depth -= 1
            continue
        source = sources[next_edge[depth]]
        next_edge[depth] += 1
        slot = position[source]
        if on_path[slot]:
            continue
        num_paths += 1
        if num_paths > max_paths:
            return False
        depth += 1
        counts[slot, depth - 1] += 1
        stack[depth], next_edge[depth] = source, indptr[source]
        on_path[slot] = True
    return True


def _walks_avoiding_return(edges: sp.csr_array, num_layers: int) -> FloatArray:
    """Return how many walks of 1..num_layers edges lead to node 0 without visiting it before, rounded up.

    Each simple path to node 0 is such a walk, so the numbers are upper bounds. Sums of integers are exact while they
    stay within 2^53; above, each of the at most d additions of a row errs by half a unit in the last place.
    """
    largest_sum = int(np.diff(edges.indptr).max(initial=0))
    slack = 1.0 + (largest_sum + 2) * 2.0**-52
    walks = np.zeros((edges.shape[0], num_layers))
    current = np.zeros(edges.shape[0])
    current[0] = 1.0
    weights = edges.astype(np.float64)
    for length in range(num_layers):
        current = np.asarray(weights @ current, dtype=np.float64).ravel()
        current = np.where(current >= 2.0**53, multiply_up(current, slack), current)
        current[0] = 0.0
        walks[:, length] = current
    return walks
