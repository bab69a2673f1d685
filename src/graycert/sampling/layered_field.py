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
        nodes: Number of each node in the graph, targets first, then by distance and number, int64 (n,).
        sizes: ``sizes[l]`` nodes have an output of layer l that a target can depend on, l = 0..k, int64 (k + 1,);
            ``sizes[0]`` = n, ``sizes[k]`` = number of targets.
        indptr: In-edges of node u are ``indptr[u]:indptr[u + 1]``, in the order of the graph, int64 (n + 1,).
        sources: Source of each edge into the first ``sizes[1]`` nodes, int32 (num_messages,).
        weights: Weight of each edge, float32 (num_edges,); empty where edges have none.
    """

    nodes: IntArray
    sizes: IntArray
    indptr: IntArray
    sources: NDArray[np.int32]
    weights: Float32Array

    @property
    def keeps_order(self) -> bool:
        """Whether its nodes are the first of the graph, in their order: what is that of the graph is not copied."""
        return _counts_up(self.nodes)

    @property
    def num_edges(self) -> int:
        """Number of edges into its nodes."""
        return int(self.indptr[-1])

    @property
    def largest_in_degree(self) -> int:
        """Of the nodes that aggregate messages."""
        return int(np.diff(self.indptr[: self.sizes[1] + 1]).max(initial=0))


@dataclass(frozen=True, eq=False)
class InEdges:
    """A graph, or the part of it that some targets depend on, as in-edges by receiver, each segment sorted by name.

    Args:
        indptr: In-edges of the first nodes, int64 (num_receivers + 1,); those of the others are not known.
        sources: int32 where node numbers fit, else int64, (num_edges,).
        names: Number of each node in the whole graph, which its coins are known by; as ``sources``, (num_nodes,).
        num_named: How many nodes the whole graph has.
        weights: float32 (num_edges,), or None where edges have none.
    """

    indptr: IntArray
    sources: NDArray[np.signedinteger]
    names: NDArray[np.signedinteger]
    num_named: int
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
        return cls.whole(
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            (source if order is None else source[order]).astype(index),
            weights if weights is None or order is None else weights[order],
        )

    @classmethod
    def whole(
        cls, indptr: IntArray, sources: NDArray[np.signedinteger], weights: Float32Array | None = None
    ) -> "InEdges":
        """Return a whole graph, whose nodes are named as they are numbered."""
        num_nodes = indptr.size - 1
        return cls(indptr, sources, np.arange(num_nodes, dtype=sources.dtype), num_nodes, weights)

    def renumbered(self, targets: IntArray, *, num_layers: int) -> tuple["InEdges", IntArray]:
        """Return what ``targets`` depend on, numbered as their field is, and the number that each of its nodes had.

        The targets are its first nodes, and their field has the numbers 0, 1, ... in it. Senders to the field's
        outermost nodes, whose coins matter for degrees, come last. A graph that has this order is returned as it is.
        """
        nodes, sizes, position = _by_distance(self, targets, num_steps=num_layers + 1)
        in_field = sizes[-2]
        if in_field == nodes.size == self.names.size and _counts_up(nodes):
            return self, nodes
        indptr = _starts(self, nodes[:in_field])
        sources = np.empty(int(indptr[-1]), dtype=self.sources.dtype)
        weights = None if self.weights is None else np.empty(sources.size, dtype=np.float32)
        for part, edges in _edges_into(self, nodes[:in_field], indptr):
            sources[part] = position[self.sources[edges]]
            if weights is not None and self.weights is not None:
                weights[part] = self.weights[edges]
        return InEdges(indptr, sources, self.names[nodes], self.num_named, weights), nodes[:in_field]

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

    def edge_ids(self, nodes: IntArray) -> IntArray:
        """Return the identity of every edge into ``nodes``, node by node; see `graycert.sampling.streams.edge_ids`."""
        indptr = _starts(self, nodes)
        found = np.empty(int(indptr[-1]), dtype=np.int64)
        for part, edges in _edges_into(self, nodes, indptr):
            found[part] = self.names[self.sources[edges]]
        found *= self.num_named
        found += np.repeat(self.names[nodes], np.diff(indptr))
        return found

    def runs_of(self, nodes: IntArray) -> Iterator[slice]:
        """Split nodes into runs with about as many in-edges as are looked at together, or one node."""
        filled = np.cumsum(self.indptr[nodes + 1] - self.indptr[nodes])
        wanted = np.arange(_AT_ONCE, filled[-1] if filled.size else 0, _AT_ONCE)
        cuts = np.unique(np.concatenate([[0], np.searchsorted(filled, wanted, side="right"), [nodes.size]]))
        yield from (slice(int(low), int(high)) for low, high in pairwise(cuts))


def layered_field(graph: InEdges, targets: IntArray, *, num_layers: int) -> LayeredField:
    """Return the field of distinct ``targets`` for k = ``num_layers`` steps.

    Of a graph that is numbered as the field is, sources and weights are those of the graph, not copies.
    """
    nodes, sizes, position = _by_distance(graph, targets, num_steps=num_layers)
    indptr = _starts(graph, nodes)
    num_messages = int(indptr[sizes[-2]])
    if _counts_up(nodes):
        sources, weights = graph.sources[:num_messages].astype(np.int32, copy=False), graph.weights
        if weights is not None:
            weights = weights[: int(indptr[-1])]
    else:
        sources = np.empty(num_messages, dtype=np.int32)
        weights = None if graph.weights is None else np.empty(int(indptr[-1]), dtype=np.float32)
        for part, edges in _edges_into(graph, nodes, indptr):
            needed = sources[part]  # as many as still matter
            needed[:] = position[graph.sources[edges[: needed.size]]]
            if weights is not None and graph.weights is not None:
                weights[part] = graph.weights[edges]
    return LayeredField(
        nodes=nodes,
        sizes=np.array(sizes[::-1], dtype=np.int64),
        indptr=indptr,
        sources=sources,
        weights=np.empty(0, dtype=np.float32) if weights is None else weights,
    )


def _by_distance(
    graph: InEdges, targets: IntArray, *, num_steps: int
) -> tuple[IntArray, list[int], NDArray[np.signedinteger]]:
    """Return the nodes within some steps, how many lie within 0, 1, ..., and each node's place among them or -1."""
    position = np.full(graph.names.size, -1, dtype=graph.sources.dtype)
    position[targets] = np.arange(targets.size)
    found, sizes = [targets], [targets.size]
    for _ in range(num_steps):
        reached: BoolArray = np.zeros(position.size, dtype=np.bool_)
        for run in graph.runs_of(found[-1]):
            reached[graph.sources[graph.into(found[-1][run])[1]]] = True
        near = np.flatnonzero(reached & (position < 0))
        position[near] = sizes[-1] + np.arange(near.size)
        found.append(near)
        sizes.append(sizes[-1] + near.size)
    return np.concatenate(found), sizes, position


def _starts(graph: InEdges, nodes: IntArray) -> IntArray:
    """Return where the in-edges of each node begin when they lie node by node, and where those of the last end."""
    return np.concatenate([[0], np.cumsum(graph.indptr[nodes + 1] - graph.indptr[nodes])]).astype(np.int64)


def _edges_into(graph: InEdges, nodes: IntArray, indptr: IntArray) -> Iterator[tuple[slice, IntArray]]:
    """Yield a part of the edges into ``nodes``, node by node, and where it lies in the graph."""
    for run in graph.runs_of(nodes):
        yield slice(int(indptr[run.start]), int(indptr[run.stop])), graph.into(nodes[run])[1]


def _counts_up(nodes: IntArray) -> bool:
    """Return whether distinct nodes are 0, 1, 2, ..."""
    return nodes.size == 0 or (int(nodes[0]) == 0 and bool((np.diff(nodes) == 1).all()))
