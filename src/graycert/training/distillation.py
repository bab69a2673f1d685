"""Distil a graph neural network into a model that sees one node at a time."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from graycert._validation import check_positive
from graycert.data import SplitPart
from graycert.errors import InvalidParameterError
from graycert.models import InterceptionGNN
from graycert.models.build import class_names_of, dimensions
from graycert.models.calling import AdaptedClassifier
from graycert.models.edge_inputs import chosen_edge_inputs
from graycert.models.node_model import NodeModel, NodeModelConfig
from graycert.models.precision import check_precision
from graycert.models.row_scaling import RowScaling
from graycert.sampling import evaluation_mode
from graycert.sampling.voting import check_scores, skip_logits_of
from graycert.training.default_teacher import default_teacher
from graycert.training.features import Features
from graycert.training.fit import check_features, check_hyperparameters
from graycert.training.module_loss import num_classes_of, place_of, values_per_edge
from graycert.training.parts import Parts
from graycert.training.row_fit import Rows, fit_network, seed_of_member

_ROLE = 1


def distill(
    data: Any,
    teacher: nn.Module | None = None,
    *,
    train_mask: Any = None,
    validation_mask: Any = None,
    edge_inputs: Sequence[str] | Mapping[str, str] | None = None,
    members: int = 4,
    hidden_channels: int = 128,
    input_dropout: float = 0.6,
    dropout: float = 0.5,
    sharpness: float = 2.0,
    learning_rate: float = 0.01,
    weight_decay: float = 5e-4,
    max_epochs: int = 150,
    patience: int = 40,
    seed: int = 0,
    progress: bool = False,
) -> NodeModel:
    r"""Distil a GNN into a per-node model (knowledge distillation): the floor of every certificate, in seconds.

    The student is an ensemble of small networks that see a node's own features. It learns what the teacher says of
    *all* nodes of the training graph, and the true label where that is a training node's; it stops on the validation
    nodes. The teacher is needed while training only. So what it knew of the neighbours is in the weights, where no
    adversary reaches it: whatever other nodes do later, the student's predictions stay.

    Args:
        data: An inductive or transductive split, or a graph with labels and masks.
        teacher: A trained model ``forward(x, edge_index, **edge_inputs)`` -> class scores or log-probabilities (of
            probabilities: `as_node_classifier` with ``output="probabilities"``). Left as it was. Default:
            `graycert.training.default_teacher` with the same seed.
        train_mask: Nodes with known labels: boolean (num_nodes,) or indices; default ``data.train_mask``.
        validation_mask: Nodes to stop on; default ``data.val_mask``.
        edge_inputs: Names of values per edge of ``data`` that the teacher is given; () for none.
        members: Networks whose probabilities are averaged, >= 1.
        hidden_channels: Width of the hidden layer, >= 1.
        input_dropout: Training-time dropout on the features, in [0, 1).
        dropout: Training-time dropout on the hidden layer, in [0, 1).
        sharpness: Power that the teacher's probabilities are raised to, > 0; 1 leaves them as they are.
        learning_rate: Of Adam, > 0.
        weight_decay: Of Adam, >= 0.
        max_epochs: Limit of epochs, >= 1.
        patience: Epochs without improvement before stopping, >= 1.
        seed: Seeds weights and dropout. Deterministic on the CPU; the global generator of torch is left as it was.
        progress: Show progress bars on standard error if it is a terminal.

    Returns:
        The student, in evaluation mode.

    Raises:
        InvalidParameterError: If an argument is out of range, labels are missing, or the teacher does not give scores.

    References:
        Hinton et al. (2015), "Distilling the Knowledge in a Neural Network".
        Zhang et al. (2022), "Graph-less Neural Networks: Teaching Old MLPs New Tricks via Distillation" (ICLR).
    """
    check_positive("sharpness", sharpness)
    seed = check_hyperparameters(learning_rate, weight_decay, max_epochs, patience, seed)
    parts = Parts.of(data, train_mask, validation_mask)
    num_features, num_classes = dimensions(data)
    config = NodeModelConfig(
        num_features=num_features,
        num_classes=num_classes,
        hidden_channels=hidden_channels,
        members=members,
        input_dropout=input_dropout,
        dropout=dropout,
    )
    if teacher is None:
        teacher = default_teacher(
            data, train_mask=train_mask, validation_mask=validation_mask, seed=seed, progress=progress
        )
    scores = _scores_of(teacher, parts, edge_inputs, num_classes)
    scaling = RowScaling.of(parts.train.data.x)
    training, validation = _lessons(parts.train, scaling, scores, sharpness), _exam(parts.validation, scaling)
    networks = [
        fit_network(
            config.new_member,
            training,
            validation,
            input_dropout=input_dropout,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            max_epochs=max_epochs,
            patience=patience,
            seed=seed_of_member(seed, _ROLE, member),
            progress=progress,
        )
        for member in range(members)
    ]
    student = NodeModel(config, scaling=scaling, members=networks)
    student.class_names = class_names_of(data)
    return student.eval()


def _scores_of(
    teacher: nn.Module, parts: Parts, edge_inputs: Sequence[str] | Mapping[str, str] | None, num_classes: int
) -> Tensor:
    """Return what the teacher says of every node of the training graph, shape (num_nodes, num_classes)."""
    chosen = chosen_edge_inputs(teacher, parts.whole.data, edge_inputs) or ()
    if isinstance(teacher, InterceptionGNN):
        check_features(teacher, parts.train)
    check_precision(teacher, parts.train.data, edge_inputs=chosen)
    found = num_classes_of(teacher, parts.train, chosen)
    if found != num_classes:
        raise InvalidParameterError(
            f"`teacher` must have an output for each of the {num_classes} classes of this graph, got {found}."
        )
    data, where = parts.train.data, place_of(teacher)
    x, edges = data.x.detach().to(where), data.edge_index.to(where)
    inputs = {name: value.to(where) for name, value in values_per_edge(data, chosen).items()}
    with torch.no_grad(), evaluation_mode(teacher):
        scores = check_scores(teacher(x.clone(), edges.clone(), **inputs), num_nodes=x.size(0), x=x)
        skip = skip_logits_of(teacher, x)
    scores = scores if skip is None else scores + skip
    if isinstance(teacher, AdaptedClassifier) and teacher.word == "probabilities":
        scores = scores.clamp(min=torch.finfo(scores.dtype).tiny).log()
    return scores.cpu().float()


def _lessons(part: SplitPart, scaling: RowScaling, scores: Tensor, sharpness: float) -> Rows:
    """Return all nodes of the training graph, with the teacher's probabilities or, where known, the label."""
    probabilities = (sharpness * scores.log_softmax(dim=1)).softmax(dim=1)
    labels = part.data.y[part.nodes].cpu()
    probabilities[part.nodes.cpu()] = nn.functional.one_hot(labels, scores.size(1)).to(scores.dtype)
    everyone = torch.arange(scores.size(0))
    return Rows(
        features=Features(scaling(part.data.x.detach().cpu())),
        chosen=everyone,
        wanted=probabilities,
    )


def _exam(part: SplitPart, scaling: RowScaling) -> Rows:
    """Return the validation nodes with their labels."""
    nodes = part.nodes.cpu()
    return Rows(
        features=Features(scaling(part.data.x.detach().cpu()[nodes])),
        chosen=torch.arange(nodes.numel()),
        wanted=part.data.y[part.nodes].cpu(),
    )
