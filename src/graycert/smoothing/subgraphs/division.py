"""T subgraphs by a hash of each edge's source."""

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from graycert._types import IntArray
from graycert._validation import check_integer, check_seed
from graycert.graph.conversion import as_array
from graycert.sampling.streams import mix
from graycert.smoothing.subgraphs.parameters import MOST_SUBGRAPHS


def hash_division(num_nodes: int, *, num_subgraphs: int, seed: int) -> IntArray:
    """Return the subgraph h(u) of the edges that start at each node u, in [0, num_subgraphs), shape (num_nodes,).

    h(u) is a hash of the seed and the number of the node alone: neither features nor edges change it, and it is the
    same on every machine and for every number of nodes.

    Args:
        num_nodes: Number of nodes, >= 1.
        num_subgraphs: Number T of subgraphs, in [1, 2^20].
        seed: An integer in [0, 2^64).

    Example:
        >>> first, more = (hash_division(n, num_subgraphs=5, seed=0) for n in (3, 8))
        >>> bool((first == more[:3]).all())
        True
    """
    check_integer("num_nodes", num_nodes, at_least=1)
    check_integer("num_subgraphs", num_subgraphs, at_least=1, at_most=MOST_SUBGRAPHS)
    text = f"graycert/1 subgraph division {check_seed(seed)}".encode()
    key = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little", signed=True)
    hashed = mix(mix(np.arange(num_nodes, dtype=np.int64) + key)).view(np.uint64)
    return (hashed % np.uint64(num_subgraphs)).astype(np.int64)


def subgraphs(edge_index: Any, division: IntArray, *, num_subgraphs: int) -> Iterator[IntArray]:
    """Yield the edges of each subgraph, int64 (2, num_edges of it), in the order in which the graph has them.

    Args:
        edge_index: Array or tensor of shape (2, num_edges).
        division: The subgraph of the edges that start at each node, shape (num_nodes,).
        num_subgraphs: Number T of subgraphs.
    """
    edges = as_array(edge_index)
    part = division[edges[0]]
    order = np.argsort(part, kind="stable")
    sizes = np.bincount(part, minlength=num_subgraphs)
    yield from np.split(edges[:, order], np.cumsum(sizes)[:-1], axis=1)
