"""The floor: a classifier that looks at the target's own features and at no other node.

Whoever trusts the target and fears only other nodes has certified robustness at every ρ for free: no message arrives,
so none can be hostile. A certified accuracy below this floor does not pay for the graph.

Threat model: features of any number of nodes other than the target, and any change of the structure; deterministic. The
target's own features are trusted; a target that may be hostile itself is certified for nothing (radius 0).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from graycert._types import IntArray
from graycert._validation import check_integer, check_targets
from graycert.data import validate_data
from graycert.errors import InvalidParameterError
from graycert.graph.eligible_nodes import eligible_nodes
from graycert.models import InterceptionGNN, build_model
from graycert.sampling import evaluation_mode
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats.node_features import NodeFeatureThreat
from graycert.training import train

_NO_EDGES = InterceptionSmoothing(p_delete=1.0, p_ablate=0.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class MLPCertificates:
    """Predictions and radii in the order of the targets.

    Attributes:
        targets: Node index of each target, shape (num_targets,).
        prediction: Predicted class, shape (num_targets,).
        radius: ``num_eligible``, that is, all of them; 0 where the target itself is eligible.
        num_eligible: Eligible nodes of the receptive field that another model would have, so that curves compare.
    """

    targets: IntArray
    prediction: IntArray
    radius: IntArray
    num_eligible: IntArray


def train_mlp(
    split: Any,
    *,
    hidden_channels: int = 64,
    dropout: float = 0.5,
    learning_rate: float = 1e-3,
    weight_decay: float = 2e-2,
    max_epochs: int = 1_000,
    patience: int = 50,
    seed: int = 0,
) -> InterceptionGNN:
    """Train an MLP with one hidden layer on the training nodes, by the recipe of all other models (`graycert.train`).

    It is a GCN all of whose edges are deleted: its two layers then are linear maps with biases, with ReLU between them.
    So optimiser, dropout on the features, early stopping and the seed mean exactly what they mean for the GNNs. Only
    dropout and weight decay have defaults of their own: the pair with the highest mean accuracy on the *validation*
    nodes of Cora-ML and Citeseer among 16 settings (five seeds), so that the floor is a strong one.

    Args:
        split: An inductive or transductive split.
        hidden_channels: Width of the hidden layer, >= 1.
        dropout: Training-time dropout on the features, in [0, 1).
        learning_rate: Of Adam, > 0.
        weight_decay: Of Adam, >= 0.
        max_epochs: Limit of epochs, >= 1.
        patience: Epochs without improvement before stopping, >= 1.
        seed: Seeds weights and dropout.

    Returns:
        The model, in evaluation mode. Its predictions are those of `mlp_predictions`.

    Raises:
        InvalidParameterError: If an argument is out of its domain.
    """
    model = build_model("gcn", split, hidden_channels=hidden_channels, dropout=dropout, seed=seed)
    train(
        model,
        split,
        smoothing=_NO_EDGES,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        max_epochs=max_epochs,
        patience=patience,
        seed=seed,
    )
    return model


def mlp_predictions(model: InterceptionGNN, data: Any, targets: ArrayLike) -> IntArray:
    """Return the class of each target from its own features alone, shape (num_targets,).

    Args:
        model: From `train_mlp`.
        data: Graph with ``x``; its edges are not looked at.
        targets: Distinct node indices, shape (num_targets,).
    """
    if not isinstance(model, InterceptionGNN):
        raise InvalidParameterError(f"`model` must come from train_mlp, got {type(model).__name__}.")
    validate_data(data)
    nodes = torch.tensor(check_targets(targets, num_nodes=data.num_nodes))
    with torch.inference_mode(), evaluation_mode(model):
        scores = model.skip_logits(data.x[nodes])
    prediction: IntArray = scores.argmax(dim=1).numpy()
    return prediction


def certify_mlp(
    model: InterceptionGNN,
    data: Any,
    *,
    targets: ArrayLike,
    threat: NodeFeatureThreat | None = None,
    num_layers: int = 2,
) -> MLPCertificates:
    """Certify every target against all its eligible nodes, if the target itself is not one of them.

    Guarantee:
        The prediction is a function of the target's own features; nothing done to other nodes or to edges changes it.

    Args:
        model: From `train_mlp`.
        data: Graph with ``x`` and ``edge_index``.
        targets: Distinct node indices, shape (num_targets,).
        threat: Which nodes may be hostile; default all but the target.
        num_layers: Depth of the model that this one is compared with: eligible nodes are counted in its fields.

    Raises:
        InvalidParameterError: If an argument is out of its domain.
    """
    threat = threat if threat is not None else NodeFeatureThreat(min_distance=1)
    if not isinstance(threat, NodeFeatureThreat):
        raise InvalidParameterError(f"`threat` must be a NodeFeatureThreat, got {type(threat).__name__}.")
    check_integer("num_layers", num_layers, at_least=1)
    prediction = mlp_predictions(model, data, targets)
    nodes = check_targets(targets, num_nodes=data.num_nodes)
    eligible = eligible_nodes(data, nodes, threat, num_layers=num_layers)
    exposed = eligible.contain(np.arange(nodes.size), nodes)
    return MLPCertificates(
        targets=nodes,
        prediction=prediction,
        radius=np.where(exposed, 0, eligible.counts),
        num_eligible=eligible.counts,
    )
