"""Small named graphs for examples, documentation and tests."""

import numpy as np

from graycert._validation import check_integer
from graycert.graph.adjacency import Adjacency


def path_graph(num_nodes: int) -> Adjacency:
    """Return the undirected path 0 - 1 - ... - (num_nodes - 1).

    Example:
        >>> path_graph(3).in_neighbors(1)
        array([0, 2])
    """
    num_nodes = check_integer("num_nodes", num_nodes, at_least=1)
    return _undirected([(node, node + 1) for node in range(num_nodes - 1)], num_nodes)


def star_graph(num_leaves: int) -> Adjacency:
    """Return the undirected star with centre 0 and leaves 1..num_leaves.

    Example:
        >>> star_graph(3).in_neighbors(0)
        array([1, 2, 3])
    """
    num_leaves = check_integer("num_leaves", num_leaves, at_least=0)
    return _undirected([(0, leaf) for leaf in range(1, num_leaves + 1)], num_leaves + 1)


def bottleneck_graph(num_attackers: int) -> Adjacency:
    """Return target 0 whose only neighbour 1 has the further neighbours 2..num_attackers + 1 (App. F).

    All messages of the second-hop nodes share the edge 1 -> 0, so their paths depend on each other.

    Example:
        >>> bottleneck_graph(2).in_neighbors(1)
        array([0, 2, 3])
    """
    num_attackers = check_integer("num_attackers", num_attackers, at_least=0)
    second_hop = [(1, node) for node in range(2, num_attackers + 2)]
    return _undirected([(0, 1), *second_hop], num_attackers + 2)


def shared_edge_graph() -> Adjacency:
    """Return the smallest graph on which Theorem 2 is loose: 4 -> 3, then 3 -> 1 -> 0 and 3 -> 2 -> 0.

    Both paths of length three from node 4 to node 0 use the edge 4 -> 3.

    Example:
        >>> shared_edge_graph().num_edges
        5
    """
    return Adjacency.from_edge_index([[4, 3, 3, 1, 2], [3, 1, 2, 0, 0]], num_nodes=5)


def _undirected(pairs: list[tuple[int, int]], num_nodes: int) -> Adjacency:
    forward = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Adjacency.from_edge_index(np.hstack([forward, forward[::-1]]), num_nodes=num_nodes)
