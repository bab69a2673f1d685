"""An MLP to hold GNNs against: trained by the same recipe, without messages."""

from typing import Any

from graycert.models import InterceptionGNN, build_model
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.training import train

_NO_EDGES = InterceptionSmoothing(p_delete=1.0, p_ablate=0.0)


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
        The model, in evaluation mode; certify it with `FeaturesOnly`.

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
