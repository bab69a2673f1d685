"""A model that classifies targets in each of several subgraphs."""

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from graycert._types import IntArray
from graycert.models.protocol import RowwiseStart, evaluate
from graycert.models.rowwise_start import rowwise_start
from graycert.sampling.voting import check_scores, evaluation_mode, skip_logits_of


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

    def scores(self, edges: IntArray | Tensor) -> Tensor:
        """Return the class scores of the targets in the graph with these edges, shape (num_targets, num_classes)."""
        there = torch.as_tensor(edges, device=self.rows.device)
        with torch.inference_mode(), evaluation_mode(self.model):
            out = evaluate(self.model, self.rows.clone(), there, rowwise=self.rowwise)[self.targets]
        return out if self.skip_logits is None else out + self.skip_logits
