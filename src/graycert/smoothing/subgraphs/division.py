"""T subgraphs by a hash of each edge's source, and a model that classifies targets in each of them."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from graycert._types import IntArray
from graycert._validation import check_integer, check_seed
from graycert.models.protocol import RowwiseStart, evaluate
from graycert.models.rowwise_start import rowwise_start
from graycert.sampling import evaluation_mode
from graycert.sampling.streams import mix
from graycert.sampling.voting import check_scores, skip_logits_of
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
    hashed = mix(mix(torch.arange(num_nodes) + key)).numpy().view(np.uint64)
    return (hashed % np.uint64(num_subgraphs)).astype(np.int64)


def subgraphs(edge_index: Tensor, division: IntArray, *, num_subgraphs: int) -> Iterator[Tensor]:
    """Yield the edges of each subgraph, int64 (2, num_edges of it), in the order in which the graph has them."""
    edges = edge_index.cpu()
    part = torch.from_numpy(division)[edges[0]]
    order = torch.argsort(part, stable=True)
    sizes = torch.bincount(part, minlength=num_subgraphs).tolist()
    yield from torch.split(edges[:, order], sizes, dim=1)


@dataclass(frozen=True, kw_only=True)
class SubgraphClassifier:
    """Classifies fixed targets of a graph for changing edges; what does not depend on edges is computed once.

    Args:
        model: What is evaluated.
        rows: Projected rows of all nodes where the model starts row-wise, else features.
        rowwise: Whether ``rows`` are projected rows.
        skip_logits: What a skip connection adds per target, or None.
        targets: Node indices, int64 (num_targets,).
        num_classes: Number C of classes.
    """

    model: nn.Module
    rows: Tensor
    rowwise: bool
    skip_logits: Tensor | None
    targets: Tensor
    num_classes: int

    @classmethod
    def build(cls, model: nn.Module, data: Any, targets: IntArray) -> "SubgraphClassifier":
        """Project the features of all nodes once, if the model starts row-wise."""
        where = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
        x, edges, nodes = data.x.to(where), data.edge_index.to(where), torch.tensor(targets, device=where)
        with torch.inference_mode(), evaluation_mode(model):
            scores = check_scores(model(x, edges), num_nodes=x.size(0), x=x)
            split = rowwise_start(model, x, edges, scores)
            return cls(
                model=model if split is None else split,
                rows=x if split is None else cast("RowwiseStart", split).project(x),
                rowwise=split is not None,
                skip_logits=skip_logits_of(model, x, nodes),
                targets=nodes,
                num_classes=scores.size(1),
            )

    def scores(self, edges: Tensor) -> Tensor:
        """Return the class scores of the targets in the graph with these edges, shape (num_targets, num_classes)."""
        with torch.inference_mode(), evaluation_mode(self.model):
            out = evaluate(self.model, self.rows.clone(), edges.to(self.rows.device), rowwise=self.rowwise)[
                self.targets
            ]
        return out if self.skip_logits is None else out + self.skip_logits
