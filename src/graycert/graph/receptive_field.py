"""Receptive fields: which nodes can send a message to a target within k layers."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from graycert._validation import check_integer, check_targets
from graycert.graph.adjacency import Adjacency, IntArray


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
    num_nodes, num_targets = adjacency.num_nodes, targets.size
    edges = adjacency.to_csr()
    # A (target, node) pair is one number, so that sets of pairs are sorted arrays.
    frontier = np.arange(num_targets) * num_nodes + targets
    seen, keys, distances = np.sort(frontier), [frontier], [np.zeros(num_targets, dtype=np.int64)]
    for hop in range(1, num_layers + 1):
        columns, nodes = np.divmod(frontier, num_nodes)
        ones = np.ones(frontier.size, dtype=np.int64)
        reached = sp.csc_array(edges @ sp.csc_array((ones, (nodes, columns)), shape=(num_nodes, num_targets)))
        pairs = np.sort(_pair_keys(reached))
        slot = np.minimum(np.searchsorted(seen, pairs), seen.size - 1)
        frontier = pairs[seen[slot] != pairs]
        if not frontier.size:
            break
        keys.append(frontier)
        distances.append(np.full(frontier.size, hop, dtype=np.int64))
        seen = np.sort(np.concatenate([seen, frontier]))
    rows, nodes = np.divmod(np.concatenate(keys), num_nodes)
    hops = np.concatenate(distances)
    order = np.lexsort((nodes, hops, rows))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=num_targets))]).astype(np.int64)
    return ReceptiveFields(targets=targets, indptr=indptr, nodes=nodes[order], distances=hops[order])


def target_blocks(
    adjacency: Adjacency, targets: ArrayLike, *, num_layers: int, max_entries: int = 4_000_000
) -> Iterator[IntArray]:
    """Split the targets, in order, into blocks whose receptive fields together have at most ``max_entries`` nodes.

    Field sizes are over-estimated by the number of walks, so memory stays bounded whatever the graph; a block has
    at least one target.
    """
    targets = check_targets(targets, num_nodes=adjacency.num_nodes)
    num_layers = check_integer("num_layers", num_layers, at_least=1)
    reverse = adjacency.to_csr().T.astype(np.float64)
    walks = total = np.ones(adjacency.num_nodes)
    for _ in range(num_layers):
        walks = np.minimum(reverse @ walks, adjacency.num_nodes)
        total = np.minimum(total + walks, adjacency.num_nodes)
    start, filled = 0, 0.0
    for position, size in enumerate(total[targets]):
        if position > start and filled + size > max_entries:
            yield targets[start:position]
            start, filled = position, 0.0
        filled += size
    yield targets[start:]


def _pair_keys(matrix: sp.csc_array) -> IntArray:
    """Return column * num_rows + row of each stored entry."""
    columns = np.repeat(np.arange(matrix.shape[1]), np.diff(matrix.indptr))
    return np.asarray(columns * matrix.shape[0] + matrix.indices, dtype=np.int64)
