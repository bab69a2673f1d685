"""The scaffold of all convolutions: one chunk of samples, laid out so that samples are neighbours in memory.

Every array that depends on the sample has samples as its last axis ("lanes"). Each loop over lanes is one stream of
vector instructions without a branch, so a coin costs a quarter of a nanosecond and a masked message costs less than
finding out that it need not be sent. A deleted edge is a lane with weight 0.

Chunks start at multiples of `LANES`: which lane a sample sits in, and so each rounding, depends on its number alone.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graycert._compilation import bare, kernel
from graycert._types import Float32Array, IntArray
from graycert.sampling.kernels.coins import id_key, is_intercepted, sample_key

WIDEST = 32
LANES = WIDEST
"""Samples side by side. `graycert._compilation.with_constants` compiles kernels for fewer, where memory is short."""

WEIGHTED = False
"""Whether messages are weighted by their edges; `with_constants` compiles a kernel anew for models that do it."""

Int32Array = NDArray[np.int32]
ByteArray = NDArray[np.uint8]

ONE, ZERO = np.float32(1.0), np.float32(0.0)


class Field(NamedTuple):
    """In-edges by receiver, nodes numbered by distance to the targets.

    Args:
        indptr: In-edges of receiver u are ``indptr[u]:indptr[u + 1]``, int64 (num_receivers + 1,).
        sources: Source of each edge into a node whose message passing is needed, int32.
        token: Row of an ablated node in the table of the first layer: the number n of nodes.
        weights: Weight of each edge of ``sources``, float32; empty where no convolution takes weights.
    """

    indptr: IntArray
    sources: Int32Array
    token: int
    weights: Float32Array


class Senders(NamedTuple):
    """The graph that a field is part of, whose edges are known by the names of their ends.

    Args:
        indptr: In-edges of each node, int64 (num_receivers + 1,).
        sources: Source of each edge, (num_edges,).
        names: Name of each node, (num_nodes,).
        num_named: How many names there are.
    """

    indptr: IntArray
    sources: NDArray[np.signedinteger]
    names: NDArray[np.signedinteger]
    num_named: int


class Draw(NamedTuple):
    """What a chunk of samples left.

    Args:
        survives: 1 where an edge is not deleted, uint8 (num_edges, LANES).
        shown: 1 where a node is not ablated, uint8 (n, LANES).
        scale: 1/sqrt(1 + surviving in-degree), weighted where the model does it, float32 (n, LANES); empty if no
            convolution normalises by degrees.
    """

    survives: ByteArray
    shown: ByteArray
    scale: Float32Array


@bare
def lanes_of(row: NDArray[Any]) -> int:
    """Return the number of lanes of a row, told to LLVM as a number up to `LANES`, for loops over lanes.

    A short loop of known length is unrolled before LLVM thinks of vectors, and then it thinks of none. Of a loop that
    may be long, it takes more steps at a time than there are lanes.
    """
    return min(LANES, row.size)


@kernel
def draw(
    first_sample: int,
    node_key: int,
    node_keys: IntArray,
    node_thresholds: IntArray,
    edge_key: int,
    id_key_of_edges: int,
    edge_thresholds: IntArray,
    receivers: IntArray,
    senders: Senders,
    indptr: IntArray,
    weights: Float32Array,
    result: Draw,
) -> None:
    """Draw samples ``first_sample`` ... ``first_sample + LANES - 1`` into ``result``.

    Args:
        first_sample: Number of the first sample.
        node_key: Key of the samples for node coins.
        node_keys: Key per node (n,).
        node_thresholds: Threshold per node (n,).
        edge_key: Key of the samples for edge coins.
        id_key_of_edges: Key of the edges' identities.
        edge_thresholds: Threshold per edge (num_edges,).
        receivers: Nodes whose in-edges are drawn, as they are numbered in ``senders``.
        senders: Where their edges come from, in the same order.
        indptr: Segments of in-edges, (n + 1,) where degrees are wanted.
        weights: Weight of each edge (num_edges,) where degrees are weighted.
        result: Overwritten.
    """
    keys = np.empty(LANES, dtype=np.int64)
    for i in range(lanes_of(keys)):
        keys[i] = sample_key(first_sample + i, node_key)
    for node in range(node_keys.size):
        shown = result.shown[node]
        for i in range(lanes_of(shown)):
            shown[i] = not is_intercepted(keys[i], node_keys[node], node_thresholds[node])
    for i in range(lanes_of(keys)):
        keys[i] = sample_key(first_sample + i, edge_key)
    edge = 0
    for receiver in receivers:
        name = np.int64(senders.names[receiver])
        for place in range(senders.indptr[receiver], senders.indptr[receiver + 1]):
            identity = np.int64(senders.names[senders.sources[place]]) * senders.num_named + name
            survives, own, threshold = result.survives[edge], id_key(identity, id_key_of_edges), edge_thresholds[edge]
            for i in range(lanes_of(survives)):
                survives[i] = not is_intercepted(keys[i], own, threshold)
            edge += 1
    for node in range(result.scale.shape[0]):
        scale = result.scale[node]
        scale[:] = ONE
        for edge in range(indptr[node], indptr[node + 1]):
            survives, given = result.survives[edge], weights[edge] if WEIGHTED else ONE
            for i in range(lanes_of(scale)):
                scale[i] += given if survives[i] else ZERO
        for i in range(lanes_of(scale)):
            scale[i] = ONE / np.sqrt(scale[i])
