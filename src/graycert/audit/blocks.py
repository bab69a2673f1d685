"""Small parts of a graph, side by side: what a pass over the whole graph would show, for a fraction of its cost."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from graycert._types import IntArray
from graycert.errors import GraycertError

_ENTRIES = 400_000  # features that a union may hold; so wide features get fewer rows
_FEWEST, _MOST = 48, 320
_PER_BLOCK = 16
_NEIGHBOURS = 5


@dataclass(frozen=True)
class Blocks:
    """A union of induced subgraphs around random nodes, with the features that they have.

    Args:
        x: Features, shape (num_rows, num_features).
        edge_index: Sorted by target and source, int64 (2, num_edges), with a third row where edges carry values.
        original: Node of the graph per row, int64 (num_rows,).
    """

    x: Tensor
    edge_index: Tensor
    original: Tensor


def union_of_blocks(x: Tensor, edge_index: Tensor, *, num_hops: int, seed: int) -> Blocks:
    """Return induced subgraphs of parts of receptive fields, and as many nodes alone, as one graph.

    Args:
        x: Features of the graph.
        edge_index: Its edges, sorted by target.
        num_hops: How far from its middle a block reaches.
        seed: Chooses blocks.
    """
    num_nodes, size = x.size(0), int(np.clip(_ENTRIES // x.size(1), _FEWEST, _MOST))
    lanes = edge_index.numpy()
    incoming = _InEdges(np.searchsorted(lanes[1], np.arange(num_nodes + 1)), lanes[0], lanes[2:])
    generator = np.random.default_rng(seed)
    middles = _middles(incoming, generator)
    nodes: list[IntArray] = []
    edges: list[IntArray] = []
    filled = 0
    for number in range(10 * size):
        block = _grown(incoming, int(middles[number % middles.size]), num_hops, generator)
        own = _induced(incoming, block)
        own[:2] += filled
        edges.append(own)
        nodes.append(block)
        filled += block.size
        if filled >= size:
            break
    rows = torch.from_numpy(np.concatenate(nodes))
    joined = np.concatenate(edges, axis=1)
    joined = joined[:, np.lexsort((joined[0], joined[1]))]
    return Blocks(x[rows], torch.from_numpy(np.ascontiguousarray(joined)), rows)


def runs_on(model: nn.Module, blocks: Blocks) -> bool:
    """Return whether a model gives a row of scores per node on parts of its graph; the model is called."""
    try:
        out = model(blocks.x, blocks.edge_index)
    except GraycertError:
        raise
    except Exception:  # foreign code: whatever it raises, it does not run on another graph
        return False
    return isinstance(out, Tensor) and out.dim() == 2 and out.size(0) == blocks.x.size(0)


@dataclass(frozen=True, eq=False)
class _InEdges:
    """Sources by receiver, and whatever else each edge has."""

    indptr: IntArray
    indices: IntArray
    others: IntArray


def _middles(incoming: _InEdges, generator: np.random.Generator) -> IntArray:
    """Return nodes in random order, those that receive something first, one of the others now and then."""
    degrees = np.diff(incoming.indptr)
    order = generator.permutation(degrees.size)
    receiving, lonely = order[degrees[order] > 0], order[degrees[order] == 0]
    if not receiving.size or not lonely.size:
        return order
    return np.concatenate([np.append(receiving[:8], lonely[:1]), receiving[8:], lonely[1:]])


def _grown(incoming: _InEdges, middle: int, num_hops: int, generator: np.random.Generator) -> IntArray:
    block, ring = [middle], [middle]
    for _ in range(min(num_hops + 1, 4)):
        following: list[int] = []
        for node in ring:
            senders = incoming.indices[incoming.indptr[node] : incoming.indptr[node + 1]]
            for sender in generator.permutation(senders)[:_NEIGHBOURS].tolist():
                if sender not in block and len(block) < _PER_BLOCK:
                    block.append(sender)
                    following.append(sender)
        ring = following
    return generator.permutation(np.array(block, dtype=np.int64))


def _induced(incoming: _InEdges, block: IntArray) -> IntArray:
    place = {int(node): number for number, node in enumerate(block)}
    found = [
        (place[int(incoming.indices[edge])], number, *incoming.others[:, edge])
        for number, node in enumerate(block)
        for edge in range(incoming.indptr[node], incoming.indptr[node + 1])
        if int(incoming.indices[edge]) in place
    ]
    return np.array(found, dtype=np.int64).reshape(-1, 2 + incoming.others.shape[0]).T
