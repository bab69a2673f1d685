"""What an audit is asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from graycert._types import IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Question:
    """What an audit is asked: of which model, on which graph, and what a proof needs of it.

    Args:
        model: ``forward(x, edge_index)`` -> class scores (num_nodes, num_classes).
        data: Graph with ``x`` (num_nodes, num_features) and ``edge_index`` (2, num_edges).
        num_layers: Number k of propagation steps that the user says; None to count them.
        ablation_token: Features of an ablated node (num_features,); None for the model's own, else zeros.
        edge_inputs: Names of values per edge of ``data`` that the model is given; None if nobody said.
        targets: Nodes that are asked for, shape (num_targets,); None for all.
        features_matter: Whether the scores of some target must depend on features.
        local: Whether the proof needs Lemma 1, with hostile nodes that reach a target along edges. Else the model need
            only be a function of features and edges: structure, depth and leaks are not asked for.
    """

    model: nn.Module
    data: Any
    num_layers: int | None = None
    ablation_token: Tensor | None = None
    edge_inputs: Sequence[str] | Mapping[str, str] | None = None
    targets: IntArray | None = None
    features_matter: bool = True
    local: bool = True

    @property
    def x(self) -> Tensor:
        """The features, on the CPU."""
        return self.data.x.detach().cpu()  # type: ignore[no-any-return]

    @property
    def rows(self) -> Tensor:
        """The targets as a tensor."""
        return torch.arange(self.data.x.size(0)) if self.targets is None else torch.tensor(self.targets)
