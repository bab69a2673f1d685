"""What a training run did."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class TrainingRecord:
    """How a model was trained.

    Args:
        epochs: Epochs that ran.
        best_epoch: Epoch whose weights the model holds, counted from 1.
        best_validation_loss: Validation loss of that epoch.
        stop_on: What was best in that epoch: "loss", "accuracy" or "balanced accuracy".
        best_validation_accuracy: The accuracy that training stopped on, if it did.
        p_delete: Training-time p_d; in words ("0.1..0.5 (per edge)") if it differs from edge to edge.
        p_ablate: Training-time p_a; in words if it differs from node to node.
        learning_rate: Of Adam.
        weight_decay: Of Adam.
        max_epochs: Limit of epochs.
        patience: Epochs without improvement after which training stopped.
        seed: Seed of draws and dropout.
        seconds: Wall time.
        class_weight: How classes counted in the loss: "balanced", a weight per class, or None, by their numbers.
    """

    epochs: int
    best_epoch: int
    best_validation_loss: float
    p_delete: float | str
    p_ablate: float | str
    learning_rate: float
    weight_decay: float
    max_epochs: int
    patience: int
    seed: int
    seconds: float
    stop_on: str = "loss"
    best_validation_accuracy: float | None = None
    class_weight: str | tuple[float, ...] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as a plain dictionary."""
        return asdict(self)
