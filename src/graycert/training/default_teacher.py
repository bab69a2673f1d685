"""A GNN to learn from where the user has none: features classified first, then spread over the graph."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import APPNP

from graycert._validation import check_integer, check_open_unit
from graycert.data import SplitPart
from graycert.models.build import dimensions
from graycert.models.node_model import RowNetwork
from graycert.models.row_scaling import RowScaling
from graycert.training.features import Features
from graycert.training.fit import check_hyperparameters
from graycert.training.parts import Parts
from graycert.training.row_fit import Rows, fit_network, seed_of_member
from graycert.training.spreading import Spreading

_ROLE = 0
_LOOK_EVERY = 2  # epochs


class Teacher(nn.Module):
    """An ensemble of networks whose class scores are spread by personalised PageRank.

    Args:
        scaling: What is done to features first.
        members: Networks with one hidden layer.
        teleport: Share of its own scores that a node keeps in every step, in (0, 1).
        steps: Steps of propagation, >= 1.

    References:
        Gasteiger et al. (2019), "Predict then Propagate: Graph Neural Networks meet Personalized PageRank" (ICLR).
    """

    def __init__(self, scaling: RowScaling, members: list[RowNetwork], *, teleport: float, steps: int) -> None:
        super().__init__()
        self.scaling, self.members = scaling, nn.ModuleList(members)
        self.spread = APPNP(K=steps, alpha=teleport)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return log-probabilities, shape (num_nodes, num_classes)."""
        rows = self.scaling(x)
        each = torch.stack([self.spread(member(rows), edge_index).log_softmax(dim=1) for member in self.members])
        return each.logsumexp(dim=0) - math.log(len(self.members))


def default_teacher(
    data: Any,
    *,
    train_mask: Any = None,
    validation_mask: Any = None,
    members: int = 3,
    hidden_channels: int = 64,
    input_dropout: float = 0.5,
    dropout: float = 0.5,
    teleport: float = 0.1,
    steps: int = 10,
    learning_rate: float = 0.01,
    weight_decay: float = 5e-3,
    max_epochs: int = 200,
    patience: int = 40,
    seed: int = 0,
    progress: bool = False,
) -> Teacher:
    """Train a GNN to distil from: an ensemble of APPNP, in seconds.

    Args:
        data: An inductive or transductive split, or a graph with labels and masks.
        train_mask: Nodes to train on: boolean (num_nodes,) or indices; default ``data.train_mask``.
        validation_mask: Nodes to stop on; default ``data.val_mask``.
        members: Networks whose probabilities are averaged, >= 1.
        hidden_channels: Width of the hidden layer, >= 1.
        input_dropout: Training-time dropout on the features, in [0, 1).
        dropout: Training-time dropout on the hidden layer, in [0, 1).
        teleport: Share of its own scores that a node keeps in every step, in (0, 1).
        steps: Steps of propagation, >= 1.
        learning_rate: Of Adam, > 0.
        weight_decay: Of the first layer, >= 0.
        max_epochs: Limit of epochs, >= 1.
        patience: Epochs without improvement before stopping, >= 1.
        seed: Seeds weights and dropout; the global generator of torch is left as it was.
        progress: Show progress bars on standard error if it is a terminal.

    Returns:
        The teacher, in evaluation mode: ``forward(x, edge_index)`` -> log-probabilities.

    Raises:
        InvalidParameterError: If an argument is out of range or labels are missing.

    References:
        Gasteiger et al. (2019), "Predict then Propagate" (ICLR).
    """
    check_integer("members", members, at_least=1)
    check_integer("steps", steps, at_least=1)
    check_open_unit("teleport", teleport)
    seed = check_hyperparameters(learning_rate, weight_decay, max_epochs, patience, seed)
    parts = Parts.of(data, train_mask, validation_mask)
    num_features, num_classes = dimensions(data)
    scaling = RowScaling.of(parts.train.data.x)
    training, validation = (
        _rows(part, scaling, teleport=teleport, steps=steps) for part in (parts.train, parts.validation)
    )
    networks = [
        fit_network(
            lambda: RowNetwork(num_features, hidden_channels, num_classes, dropout=dropout),
            training,
            validation,
            input_dropout=input_dropout,
            first_layer_decay=weight_decay,
            learning_rate=learning_rate,
            weight_decay=0.0,
            max_epochs=max_epochs,
            patience=patience,
            look_every=_LOOK_EVERY,
            seed=seed_of_member(seed, _ROLE, member),
            progress=progress,
        )
        for member in range(members)
    ]
    return Teacher(scaling, networks, teleport=teleport, steps=steps).eval()


def _rows(part: SplitPart, scaling: RowScaling, *, teleport: float, steps: int) -> Rows:
    """Return all nodes of a graph, of which the labelled ones count after propagation."""
    data = part.data
    return Rows(
        features=Features(scaling(data.x.detach().cpu())),
        chosen=part.nodes,
        wanted=data.y[part.nodes],
        spread=Spreading(data.edge_index.cpu(), num_nodes=data.num_nodes, teleport=teleport, steps=steps),
    )
