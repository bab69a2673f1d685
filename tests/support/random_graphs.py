"""Random toy graphs as lists of directed edges (source, target)."""

import numpy as np

from graycert.graph import Adjacency

Edge = tuple[int, int]


def random_edges(rng: np.random.Generator, num_nodes: int, density: float, *, directed: bool) -> list[Edge]:
    """Draw each possible edge with probability ``density``; undirected edges come as both directions."""
    edges = []
    for first in range(num_nodes):
        for second in range(first + 1, num_nodes):
            if directed:
                edges += [pair for pair in [(first, second), (second, first)] if rng.random() < density]
            elif rng.random() < density:
                edges += [(first, second), (second, first)]
    return edges


def to_adjacency(edges: list[Edge], num_nodes: int) -> Adjacency:
    """Return the edges as an Adjacency."""
    return Adjacency.from_edge_index(np.array(edges, dtype=np.int64).reshape(-1, 2).T, num_nodes=num_nodes)
