"""The receptive field of the targets, numbered so that every layer computes a prefix of it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graycert._types import Float32Array, IntArray


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

    @property
    def largest_in_degree(self) -> int:
        """Of the nodes that aggregate messages."""
        return int(np.diff(self.indptr[: self.sizes[1] + 1]).max(initial=0))


@dataclass(frozen=True, eq=False)
class InEdges:
    """A graph as in-edges by receiver, each segment sorted by source.

    Args:
        indptr: int64 (num_nodes + 1,).
        sources: int64 (num_edges,).
        weights: float32 (num_edges,), or None where edges have none.
    """

    indptr: IntArray
    sources: IntArray
    weights: Float32Array | None = None

    @classmethod
    def of(
        cls, edge_index: IntArray, *, num_nodes: int, self_loops: bool, weights: Float32Array | None = None
    ) -> "InEdges":
        """Sort the edges; ``self_loops`` tells whether they are messages (else convolutions add their own)."""
        source, target = edge_index
        kept = np.flatnonzero((source != target) | self_loops)
        order = kept[np.lexsort((source[kept], target[kept]))]
        counts = np.bincount(target[kept], minlength=num_nodes)
        return cls(
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            source[order].astype(np.int64),
            None if weights is None else weights[order],
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


def layered_field(graph: InEdges, targets: IntArray, *, num_layers: int) -> LayeredField:
    """Return the field of distinct ``targets`` for k = ``num_layers`` steps."""
    num_nodes = graph.indptr.size - 1
    position = np.full(num_nodes, -1, dtype=np.int64)
    position[targets] = np.arange(targets.size)
    found, sizes = [targets], [targets.size]
    for _ in range(num_layers):
        near = np.unique(graph.sources[graph.into(found[-1])[1]])
        near = near[position[near] < 0]
        position[near] = sizes[-1] + np.arange(near.size)
        found.append(near)
        sizes.append(sizes[-1] + near.size)
    nodes = np.concatenate(found)
    degrees, edges = graph.into(nodes)
    indptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    edge_ids = graph.sources[edges]
    weights = np.empty(0, dtype=np.float32) if graph.weights is None else graph.weights[edges]
    del edges
    sources = position[edge_ids[: indptr[sizes[-2]]]].astype(np.int32)
    edge_ids *= num_nodes
    edge_ids += np.repeat(nodes, degrees)
    return LayeredField(
        nodes=nodes,
        sizes=np.array(sizes[::-1], dtype=np.int64),
        indptr=indptr,
        edge_ids=edge_ids,
        sources=sources,
        weights=weights,
    )
