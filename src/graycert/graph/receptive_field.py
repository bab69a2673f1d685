"""Receptive fields: which nodes can send a message to a target within k layers."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from graycert._types import IntArray
from graycert._validation import check_integer, check_targets
from graycert.graph.adjacency import Adjacency

BLOCK_ENTRIES = 2**19  # with everything computed from an entry, some 64 MiB for a block of two layers


@dataclass(frozen=True, eq=False)
class ReceptiveFields:
    """Nodes within ``num_layers`` hops of each target, the target included at distance 0.

    Args:
        targets: Node indices, shape (num_targets,).
        indptr: The field of ``targets[i]`` lies at ``indptr[i]:indptr[i + 1]``, shape (num_targets + 1,).
        nodes: Nodes of all fields one after another, each field sorted by (distance, node).
        distances: Hops from the node to the target along edges, same shape as ``nodes``.
    """

    targets: IntArray
    indptr: IntArray
    nodes: IntArray
    distances: IntArray

    @property
    def sizes(self) -> IntArray:
        """Number of nodes in each field, target included, shape (num_targets,)."""
        return np.diff(self.indptr)

    @property
    def rows(self) -> IntArray:
        """Position in ``targets`` that each entry of ``nodes`` belongs to."""
        return np.repeat(np.arange(self.targets.size), self.sizes)


def longest_chain(num_layers: int, *, num_nodes: int) -> int:
    """Return how many propagation steps can matter: a message that arrives has come along a path without repeats.

    Whoever reaches a target over surviving edges reaches it along a simple path, of fewer edges than there are nodes.
    So whose messages can arrive, and how probably, is the same for all larger numbers of steps.

    Args:
        num_layers: Number k of steps, >= 1.
        num_nodes: Number of nodes, >= 1.

    Example:
        >>> longest_chain(2, num_nodes=5), longest_chain(10**9, num_nodes=5)
        (2, 4)
    """
    return min(num_layers, max(1, num_nodes - 1))


def receptive_fields(adjacency: Adjacency, targets: ArrayLike, *, num_layers: int) -> ReceptiveFields:
    """Find all nodes with a directed path of at most ``num_layers`` edges to each target.

    Args:
        adjacency: The graph.
        targets: Distinct node indices, shape (num_targets,).
        num_layers: Number of message-passing steps k, >= 1.

    Raises:
        InvalidParameterError: If a target is not a node or ``num_layers`` < 1.

    Example:
        >>> from graycert.graph.toy_graphs import path_graph
        >>> receptive_fields(path_graph(4), [0], num_layers=2).nodes
        array([0, 1, 2])

    References:
        Scholten et al. (2022), Section 2.
    """
    targets = check_targets(targets, num_nodes=adjacency.num_nodes)
    num_layers = check_integer("num_layers", num_layers, at_least=1)
    from graycert.graph.backward_search import field_sizes, fill_fields  # Numba takes a while to load

    sizes = field_sizes(adjacency.indptr, adjacency.sources, targets, num_layers)
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    nodes, distances = np.empty(indptr[-1], dtype=np.int64), np.empty(indptr[-1], dtype=np.int64)
    fill_fields(adjacency.indptr, adjacency.sources, targets, num_layers, indptr, nodes, distances)
    return ReceptiveFields(targets=targets, indptr=indptr, nodes=nodes, distances=distances)


def target_blocks(
    adjacency: Adjacency, targets: ArrayLike, *, num_layers: int, max_entries: int = BLOCK_ENTRIES
) -> Iterator[IntArray]:
    """Split the targets, in order, into blocks whose receptive fields together have at most ``max_entries`` nodes.

    A block has at least one target, so a single field may be larger.
    """
    targets = check_targets(targets, num_nodes=adjacency.num_nodes)
    num_layers = check_integer("num_layers", num_layers, at_least=1)
    filled = np.cumsum(_most_nodes(adjacency, num_layers)[targets])
    start, before = 0, 0
    while start < targets.size:
        stop = max(start + 1, int(np.searchsorted(filled, before + max_entries, side="right")))
        yield targets[start:stop]
        start, before = stop, int(filled[stop - 1])


def _most_nodes(adjacency: Adjacency, num_layers: int) -> IntArray:
    """Return for each node how many nodes its field has at most: as many as walks lead to it; no field is searched."""
    most, targets = np.ones(adjacency.num_nodes), adjacency.targets
    for _ in range(num_layers):
        into = np.bincount(targets, weights=most[adjacency.sources], minlength=adjacency.num_nodes)
        grown = np.minimum(1.0 + into, adjacency.num_nodes)
        if (grown == most).all():
            break
        most = grown
    return most.astype(np.int64)
