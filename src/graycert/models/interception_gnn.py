"""The base GNN of a smoothed classifier: message-passing layers, ablation token t, optional skip connection."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from graycert._validation import check_integer, check_positive, check_probability
from graycert.errors import InvalidParameterError


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Everything needed to build a model again; defaults are those of the paper's Appendix "Hyperparameters".

    Args:
        architecture: "gcn", "gat", "gatv2" or "sma".
        num_features: Number d of input features, >= 1.
        num_classes: Number C of classes, >= 2.
        num_layers: Number of message-passing layers k, >= 1.
        hidden_channels: Width of hidden layers; per head for attention.
        heads: Attention heads of the hidden layers (GAT, GATv2).
        skip: Whether a skip connection adds the target's own, non-ablated features.
        dropout: Training-time dropout on the features and on attention coefficients, in [0, 1).
        num_neighbors: In-neighbours of largest weight that the soft medoid considers (SMA).
        temperature: Temperature T of the soft medoid (SMA), > 0.
    """

    architecture: str
    num_features: int
    num_classes: int
    num_layers: int = 2
    hidden_channels: int = 64
    heads: int = 8
    skip: bool = False
    dropout: float = 0.8
    num_neighbors: int = 64
    temperature: float = 1.0

    def __post_init__(self) -> None:
        """Check the domains."""
        check_integer("num_features", self.num_features, at_least=1)
        check_integer("num_classes", self.num_classes, at_least=2, hint="One class leaves nothing to certify.")
        check_integer("num_layers", self.num_layers, at_least=1)
        check_integer("hidden_channels", self.hidden_channels, at_least=1)
        check_integer("heads", self.heads, at_least=1)
        check_integer("num_neighbors", self.num_neighbors, at_least=1)
        check_positive("temperature", self.temperature)
        if not isinstance(self.skip, bool):
            raise InvalidParameterError(f"`skip` must be True or False, got {self.skip!r}.")
        if check_probability("dropout", self.dropout) == 1.0:
            raise InvalidParameterError("`dropout` must be in [0, 1), got 1. It would erase every feature.")

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as a plain dictionary."""
        return asdict(self)


class MessagePassingLayer(nn.Module, ABC):
    """One layer, split into its row-wise linear map and its aggregation over the edges.

    One call of ``aggregate`` moves messages over exactly one edge.
    """

    @abstractmethod
    def project(self, x: Tensor) -> Tensor:
        """Return the projected rows, shape (num_nodes, width)."""

    @abstractmethod
    def aggregate(self, hidden: Tensor, edge_index: Tensor) -> Tensor:
        """Return the layer's output from projected rows, shape (num_nodes, out_channels)."""

    @abstractmethod
    def aggregate_first(self, hidden: Tensor, edge_index: Tensor, in_degree: Tensor, num_receivers: int) -> Tensor:
        """Return the output of the first rows alone: what `aggregate` gives them, without computing the others.

        Args:
            hidden: Projected rows of the receivers, then of their other sources, shape (num_nodes, width).
            edge_index: All in-edges of the receivers, no self-loops, int64 (2, num_edges).
            in_degree: In-edges of every node, int64 (num_nodes,).
            num_receivers: How many rows to return.
        """


class InterceptionGNN(nn.Module):
    r"""A message-passing classifier f with a trainable ablation token and an optional skip connection.

    ``forward(x, edge_index)`` is the base GNN. With ``skip`` the smoothed classifier votes with
    $f(\phi(A, X))_v + s(X)_v$: in the skip branch s the non-ablated features pass through the same weights without
    edges, with ReLU between the layers. It is added to the output only, so no other node ever sees it: Lemma 1 then
    holds for every attacker but the target itself.

    Args:
        config: What was built.
        layers: Message-passing layers, in order.
        activation: Applied between layers.

    Attributes:
        class_names: Names of the outputs, in their order, where they are known; a graph must number them alike.

    References:
        Scholten et al. (2022), Section 3 (token t), Section 6 "Skip-connections".
    """

    class_names: tuple[str, ...] | None = None

    def __init__(
        self,
        config: ModelConfig,
        layers: Sequence[MessagePassingLayer],
        activation: Callable[[Tensor], Tensor],
    ) -> None:
        super().__init__()
        self.config = config
        self.skip = config.skip
        self.layers = nn.ModuleList(layers)
        self.activation = activation
        self.feature_dropout = nn.Dropout(config.dropout)
        token = torch.empty(1, config.num_features)
        nn.init.xavier_uniform_(token)
        self.ablation_token = nn.Parameter(token.squeeze(0))

    @property
    def num_layers(self) -> int:
        """Number k of propagation steps."""
        return len(self.layers)

    @property
    def first_layer(self) -> MessagePassingLayer:
        """The layer that sees the features."""
        return self._layer(0)

    def project(self, x: Tensor) -> Tensor:
        """Apply the first layer's linear map to each row, shape (num_nodes, width)."""
        return self.first_layer.project(self.feature_dropout(x))

    def propagate(self, hidden: Tensor, edge_index: Tensor) -> Tensor:
        """Run everything after the first linear map; returns class scores (num_nodes, num_classes)."""
        return self._run(hidden, edge_index, self.activation)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return class scores of the base GNN, without the skip connection, shape (num_nodes, num_classes)."""
        return self.propagate(self.project(x), edge_index)

    def skip_logits(self, x: Tensor) -> Tensor:
        """Return what the skip connection adds, from non-ablated ``x``; row v depends on row v of ``x`` alone."""
        return self.skip_from_projection(self.project(x))

    def skip_from_projection(self, hidden: Tensor) -> Tensor:
        """Return what the skip connection adds, from projected non-ablated rows."""
        no_edges = torch.empty(2, 0, dtype=torch.long, device=hidden.device)
        return self._run(hidden, no_edges, torch.relu)

    def _run(self, hidden: Tensor, edge_index: Tensor, activation: Callable[[Tensor], Tensor]) -> Tensor:
        for index in range(len(self.layers)):
            if index:
                hidden = self._layer(index).project(activation(hidden))
            hidden = self._layer(index).aggregate(hidden, edge_index)
        return hidden

    def _layer(self, index: int) -> MessagePassingLayer:
        return cast("MessagePassingLayer", self.layers[index])
