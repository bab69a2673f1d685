"""Build one of the paper's architectures for a graph."""

from collections.abc import Callable
from typing import Any

import torch

from graycert._validation import check_choice, check_seed
from graycert.errors import InvalidParameterError
from graycert.models.gat import build_gat
from graycert.models.gatv2 import build_gatv2
from graycert.models.gcn import build_gcn
from graycert.models.interception_gnn import InterceptionGNN, ModelConfig
from graycert.models.names import ARCHITECTURES
from graycert.models.sma import build_sma

_BUILDERS: dict[str, Callable[[ModelConfig], InterceptionGNN]] = {
    "gcn": build_gcn,
    "gat": build_gat,
    "gatv2": build_gatv2,
    "sma": build_sma,
}


def build_model(
    architecture: str,
    data: Any,
    *,
    num_layers: int = 2,
    hidden_channels: int | None = None,
    heads: int = 8,
    skip: bool = False,
    dropout: float = 0.8,
    num_neighbors: int = 64,
    temperature: float = 1.0,
    seed: int = 0,
) -> InterceptionGNN:
    """Build an untrained model whose defaults are the paper's hyperparameters.

    Args:
        architecture: "gcn" (Kipf and Welling 2017), "gat" (Veličković et al. 2018), "gatv2" (Brody et al. 2022) or
            "sma" (Geisler et al. 2020).
        data: A graph or a split (its training graph is taken); gives the number of features and of classes.
        num_layers: Number k of message-passing layers, >= 1.
        hidden_channels: Hidden width (default 64), per head for attention (default 8).
        heads: Attention heads of hidden layers (GAT, GATv2).
        skip: Add the skip connection. The certificate then excludes attacks on the target itself.
        dropout: Training-time dropout on features and attention coefficients, in [0, 1).
        num_neighbors: In-neighbours that the soft medoid considers (SMA).
        temperature: Temperature of the soft medoid (SMA), > 0.
        seed: Seeds the initial weights; the global generator of torch is left as it was.

    Returns:
        The model, in training mode, on the CPU.

    Raises:
        InvalidParameterError: If an argument is out of range or ``data`` has no features or labels.

    References:
        Scholten et al. (2022), Appendix "Hyperparameters".
    """
    check_choice("architecture", architecture, ARCHITECTURES)
    seed = check_seed(seed)
    num_features, num_classes = dimensions(data)
    if hidden_channels is None:
        hidden_channels = 8 if architecture in ("gat", "gatv2") else 64
    config = ModelConfig(
        architecture=architecture,
        num_features=num_features,
        num_classes=num_classes,
        num_layers=num_layers,
        hidden_channels=hidden_channels,
        heads=heads,
        skip=skip,
        dropout=dropout,
        num_neighbors=num_neighbors,
        temperature=temperature,
    )
    model = build_from_config(config, seed=seed)
    model.class_names = class_names_of(data)
    return model


def build_from_config(config: ModelConfig, *, seed: int = 0) -> InterceptionGNN:
    """Build the model that ``config`` describes, with weights drawn from ``seed``."""
    check_choice("architecture", config.architecture, ARCHITECTURES)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _BUILDERS[config.architecture](config)


def class_names_of(data: Any) -> tuple[str, ...] | None:
    """Return the names of the classes of a graph or split, None where there are none."""
    names = getattr(data.train.data if hasattr(data, "train") else data, "class_names", None)
    return None if names is None else tuple(str(name) for name in names)


def dimensions(data: Any) -> tuple[int, int]:
    """Return (num_features, num_classes) of a graph or of the training graph of a split."""
    graph = data.train.data if hasattr(data, "train") else data
    if getattr(graph, "x", None) is None:
        raise InvalidParameterError("`data` must have features `x` to build a model from it, got none.")
    names = getattr(graph, "class_names", None)
    if names is not None:
        return int(graph.x.size(1)), len(names)
    if getattr(graph, "y", None) is None:
        raise InvalidParameterError(
            "`data` must have labels `y` (or `class_names`) so that the number of classes is known, got neither. "
            "Set `data.y`; of tables, `label` (`--label COLUMN`) says which column of the node table has the classes."
        )
    # a split's test graph holds every node, so a class that is absent from the training graph still counts
    labels = data.test.data.y if hasattr(data, "test") else graph.y
    return int(graph.x.size(1)), int(labels.max()) + 1
