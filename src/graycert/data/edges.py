"""Lists of edges, shape (2, num_edges), row 0 = sources: what the steps of a preparation make of them."""

import numpy as np

from graycert._types import BoolArray, IntArray


def without_loops(edges: IntArray) -> IntArray:
    """Leave out edges from a node to itself."""
    proper = edges[0] != edges[1]
    return edges if proper.all() else edges[:, proper]


def merged(edges: IntArray, num_nodes: int) -> IntArray:
    """Return each edge once, sorted by (source, target)."""
    keys = distinct(edges[0] * num_nodes + edges[1])
    return np.stack(np.divmod(keys, num_nodes))


def with_reverse(edges: IntArray, num_nodes: int) -> IntArray:
    """Return each edge and its reverse once, sorted by (source, target)."""
    return merged(np.concatenate([edges, edges[::-1]], axis=1), num_nodes)


def among(edges: IntArray, nodes: IntArray, num_nodes: int) -> tuple[IntArray, BoolArray]:
    """Return the edges between some nodes, numbered by their places among these, and which edges they are.

    Args:
        edges: The edges.
        nodes: Distinct nodes in ascending order.
        num_nodes: Number of all nodes.
    """
    place = np.full(num_nodes, -1, dtype=np.int64)
    place[nodes] = np.arange(nodes.size)
    renumbered = place[edges]
    stays = (renumbered[0] >= 0) & (renumbered[1] >= 0)
    return renumbered[:, stays], stays


def distinct(keys: IntArray) -> IntArray:
    """Return numbers sorted, each once; keys of edges are many, and mostly sorted already."""
    ordered = np.sort(keys, kind="stable")
    first = np.ones(ordered.size, dtype=np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    found: IntArray = ordered[first]
    return found
