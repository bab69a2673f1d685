"""The receptive field of the targets, numbered so that every layer computes a prefix of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from graycert._types import BoolArray, Float32Array, IntArray
from graycert.graph.edge_order import order_by_target

_AT_ONCE = 2**20  # edges that are looked at together


@dataclass(frozen=True, eq=False)
class LayeredField:
    """Nodes by distance to the targets, and all edges into them.

    Args:
        nodes: Original index of each node, targets first, then by distance and index, int64 (n,).
        sizes: ``sizes[l]`` nodes have an output of layer l that a target can depend on, l = 0..k, int64 (k + 1,);
            ``sizes[0]`` = n, ``sizes[k]`` = number of targets.
        indptr: In-edges of node u are ``indptr[u]:indptr[u + 1]``, sorted by original source, int64 (n + 1,).
        edge_ids: Identity of each edge in the original graph, int64 (num_edges,).
        sources: Source of each edge into the first ``sizes[1]`` nodes, int32 (num_messages,).
        weights: Weight of each edge, float32 (num_edges,); empty where edges have none.
    """

    nodes: IntArray
    sizes: IntArray
    indptr: IntArray
    edge_ids: IntArray
    sources: NDArray[np.int32]
    weights: Float32Array

    def is_whole(self, num_nodes: int) -> bool:
        """Return whether it is the graph of ``num_nodes`` nodes, in its own order."""
        return self.nodes.size == num_nodes and bool((self.nodes[1:] > self.nodes[:-1]).all())

    @property
    def largest_in_degree(self) -> int:
        """Of the nodes that aggregate messages."""
        return int(np.diff(self.indptr[: self.sizes[1] + 1]).max(initial=0))


@dataclass(frozen=True, eq=False)
class InEdges:
    """A graph as in-edges by receiver, each segment sorted by source.

    Args:
        indptr: int64 (num_nodes + 1,).
        sources: int32 where node numbers fit, else int64, (num_edges,).
        weights: float32 (num_edges,), or None where edges have none.
    """

    indptr: IntArray
    sources: NDArray[np.signedinteger]
    weights: Float32Array | None = None

    @classmethod
    def of(
        cls, edge_index: IntArray, *, num_nodes: int, self_loops: bool, weights: Float32Array | None = None
    ) -> "InEdges":
        """Sort the edges; ``self_loops`` tells whether they are messages (else convolutions add their own)."""
        source, target = edge_index
        if not self_loops and bool((source == target).any()):
            kept = source != target
            source, target, weights = source[kept], target[kept], None if weights is None else weights[kept]
        order = order_by_target((source, target), num_nodes=num_nodes)
        counts = np.bincount(target, minlength=num_nodes)
        index = np.int32 if num_nodes <= np.iinfo(np.int32).max else np.int64
        return cls(
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            (source if order is None else source[order]).astype(index),
            weights if weights is None or order is None else weights[order],
        )

    @property
    def largest_in_degree(self) -> int:
        """Most edges into a node."""
        return int(np.diff(self.indptr).max(initial=0))

    def into(self, nodes: IntArray) -> tuple[IntArray, IntArray]:
        """Return in-degrees of ``nodes`` and the positions of their in-edges, node by node."""
        degrees = self.indptr[nodes + 1] - self.indptr[nodes]
        places = np.repeat(self.indptr[nodes] - (np.cumsum(degrees) - degrees), degrees)
        places += np.arange(places.size)
        return degrees, places

    def runs_of(self, nodes: IntArray) -> Iterator[slice]:
        """Split nodes into runs with about as many in-edges as are looked at together, or one node."""
        filled = np.cumsum(self.indptr[nodes + 1] - self.indptr[nodes])
        wanted = np.arange(_AT_ONCE, filled[-1] if filled.size else 0, _AT_ONCE)
        cuts = np.unique(np.concatenate([[0], np.searchsorted(filled, wanted, side="right"), [nodes.size]]))
        yield from (slice(int(low), int(high)) for low, high in pairwise(cuts))


def layered_field(graph: InEdges, targets: IntArray, *, num_layers: int) -> LayeredField:
    """Return the field of distinct ``targets`` for k = ``num_layers`` steps."""
    num_nodes = graph.indptr.size - 1
    position = np.full(num_nodes, -1, dtype=np.int64)
    position[targets] = np.arange(targets.size)
    found, sizes = [targets], [targets.size]
    for _ in range(num_layers):
        reached: BoolArray = np.zeros(num_nodes, dtype=np.bool_)
        for run in graph.runs_of(found[-1]):
            reached[graph.sources[graph.into(found[-1][run])[1]]] = True
        near = np.flatnonzero(reached & (position < 0))
        position[near] = sizes[-1] + np.arange(near.size)
        found.append(near)
        sizes.append(sizes[-1] + near.size)
    nodes = np.concatenate(found)
    indptr = np.concatenate([[0], np.cumsum(graph.indptr[nodes + 1] - graph.indptr[nodes])]).astype(np.int64)
    edge_ids = np.empty(int(indptr[-1]), dtype=np.int64)
    sources = np.empty(int(indptr[sizes[-2]]), dtype=np.int32)
    weights = np.empty(0 if graph.weights is None else edge_ids.size, dtype=np.float32)
    for run in graph.runs_of(nodes):
        degrees, edges = graph.into(nodes[run])
        part, senders = slice(int(indptr[run.start]), int(indptr[run.stop])), graph.sources[edges]
        edge_ids[part] = senders
        edge_ids[part] *= num_nodes
        edge_ids[part] += np.repeat(nodes[run], degrees)
        needed = sources[part]  # as many as still matter
        needed[:] = position[senders[: needed.size]]
        if graph.weights is not None:
            weights[part] = graph.weights[edges]
    return LayeredField(
        nodes=nodes,
        sizes=np.array(sizes[::-1], dtype=np.int64),
        indptr=indptr,
        edge_ids=edge_ids,
        sources=sources,
        weights=weights,
    )
