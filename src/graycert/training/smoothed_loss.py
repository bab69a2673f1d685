"""The training objective: cross entropy of the smoothed model, averaged over draws."""

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from graycert.data import SplitPart
from graycert.models import InterceptionGNN
from graycert.models.interception_gnn import MessagePassingLayer
from graycert.sampling.streams import CoinStream
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.training.drawn_field import DrawnField, FieldSampler
from graycert.training.features import Features
from graycert.training.objective import Objective


@dataclass(frozen=True)
class Batch:
    """Some draws and all that does not depend on the weights.

    Args:
        field: The drawn graphs around the targets.
        rows: Features of the nodes that some copy shows, shape (num_rows, num_features).
        row_of_copy: Row per copy, 0 for the token and 1 + i for row i of ``rows``, int64 (num_copies,).
        row_of_target: Row of ``rows`` per target, for the skip connection, int64 (num_targets,); None without.
        labels: Label per target of all draws, int64 (num_samples * num_targets,).
    """

    field: DrawnField
    rows: Tensor
    row_of_copy: Tensor
    row_of_target: Tensor | None
    labels: Tensor


class SmoothedLoss(Objective[Batch]):
    """Cross entropy of the smoothed model on the nodes of one part of a split.

    Only what reaches these nodes in a draw is computed.

    Args:
        model: The model.
        part: Graph and nodes.
        smoothing: p_d and p_a.
        stream: Where the coins come from.
    """

    def __init__(
        self, model: InterceptionGNN, part: SplitPart, smoothing: InterceptionSmoothing, stream: CoinStream
    ) -> None:
        data = part.data
        self.model = model
        self._features = Features(data.x)
        self._nodes = part.nodes
        self._labels = data.y[part.nodes]
        self._sampler = FieldSampler(
            data.edge_index,
            part.nodes,
            num_nodes=int(data.num_nodes),
            num_layers=model.num_layers,
            smoothing=smoothing,
            stream=stream,
        )

    def batch(self, samples: range, *, drop: float = 0.0) -> Batch:
        """Draw the given sample numbers; each feature is dropped with probability ``drop``, by torch's generator."""
        field = self._sampler.draw(samples)
        shown = field.nodes[~field.ablated]
        wanted, row = torch.unique(torch.cat([shown, self._nodes]) if self.model.skip else shown, return_inverse=True)
        row_of_copy = torch.zeros_like(field.nodes)
        row_of_copy[~field.ablated] = 1 + row[: shown.numel()]
        return Batch(
            field=field,
            rows=self._features.rows(wanted, drop=drop),
            row_of_copy=row_of_copy,
            row_of_target=row[shown.numel() :] if self.model.skip else None,
            labels=self._labels.repeat(len(samples)),
        )

    def scores(self, batch: Batch) -> Tensor:
        """Return class scores per target of all draws, shape (num_samples * num_targets, num_classes)."""
        model, field = self.model, batch.field
        rows = model.first_layer.project(batch.rows)
        token_row = model.first_layer.project(model.ablation_token.unsqueeze(0))
        hidden = torch.cat([token_row, rows])[batch.row_of_copy]
        for index, module in enumerate(model.layers):
            layer, hops = cast("MessagePassingLayer", module), model.num_layers - 1 - index
            if index:
                hidden = layer.project(model.activation(hidden))
            edges, degrees = field.edge_index[:, : field.edges_within[hops]], field.in_degree[: hidden.size(0)]
            hidden = layer.aggregate_first(hidden, edges, degrees, field.copies_within[hops])
        if batch.row_of_target is not None:
            skip = model.skip_from_projection(rows[batch.row_of_target])
            hidden = hidden + skip.repeat(hidden.size(0) // skip.size(0), 1)
        return hidden
