"""What every training has: checks, a loop of steps and looks at the validation nodes, early stopping, a record."""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from graycert._progress import progress_bar
from graycert._validation import check_integer, check_positive, check_seed
from graycert.data import SplitPart
from graycert.errors import InvalidParameterError
from graycert.models import InterceptionGNN
from graycert.training.early_stopping import EarlyStopping
from graycert.training.objective import Seen, StopOn
from graycert.training.parts import Parts, is_split
from graycert.training.record import TrainingRecord

VALIDATION_DRAWS = 4


def fit(
    model: nn.Module,
    training_loss: Callable[[int], Tensor],
    validation: Callable[[], Seen],
    *,
    learning_rate: float,
    weight_decay: float,
    max_epochs: int,
    patience: int,
    seed: int,
    progress: bool,
    stop_on: StopOn = "loss",
    look_every: int = 1,
    p_delete: float | str,
    p_ablate: float | str,
    class_weight: str | tuple[float, ...] | None = None,
) -> TrainingRecord:
    """Take steps of Adam until nothing gets better on the validation nodes; the model is left with its best weights.

    Args:
        model: Is left in evaluation mode.
        training_loss: Loss of an epoch, numbered from 1, with gradients.
        validation: A look at the validation nodes, without gradients.
        learning_rate: Of Adam, > 0.
        weight_decay: Of Adam, >= 0.
        max_epochs: Limit of epochs, >= 1.
        patience: Epochs without improvement before stopping, >= 1.
        seed: Of dropout; the global generator of torch is left as it was.
        progress: Show a progress bar on standard error if it is a terminal.
        stop_on: What the look is at, for the record.
        look_every: Epochs between two looks, >= 1.
        p_delete: Training-time p_d, for the record.
        p_ablate: Training-time p_a, for the record.
        class_weight: How classes count in the loss, for the record.

    Returns:
        What was done.

    Raises:
        InvalidParameterError: If the validation loss is not finite.
    """
    started = time.perf_counter()
    if not any(values.requires_grad for values in model.parameters()):
        raise InvalidParameterError("`model` must have parameters that can be trained, got none.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, weight_decay=weight_decay, fused=True)
        stopping, epochs = _steps(
            model, training_loss, validation, optimizer, max_epochs, patience, progress, look_every
        )
    return TrainingRecord(
        epochs=epochs,
        best_epoch=stopping.best_epoch,
        best_validation_loss=stopping.best_loss,
        p_delete=p_delete,
        p_ablate=p_ablate,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        max_epochs=max_epochs,
        patience=patience,
        seed=seed,
        seconds=time.perf_counter() - started,
        stop_on=stop_on,
        class_weight=class_weight,
        best_validation_accuracy=None if stop_on == "loss" else stopping.best_share,
    )


def _steps(
    model: nn.Module,
    training_loss: Callable[[int], Tensor],
    validation: Callable[[], Seen],
    optimizer: torch.optim.Optimizer,
    max_epochs: int,
    patience: int,
    progress: bool,
    look_every: int,
) -> tuple[EarlyStopping, int]:
    """Return the best epoch and loss, and the number of epochs."""
    stopping, epoch = EarlyStopping(patience), 0
    with progress_bar("training", total=max_epochs, unit="epochs", shown=progress) as advance:
        for epoch in range(1, max_epochs + 1):
            model.train()
            optimizer.zero_grad()
            training_loss(epoch).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            if epoch % look_every and epoch < max_epochs:
                advance(1)
                continue
            model.eval()
            with torch.inference_mode():
                seen = validation()
            if not seen.loss < float("inf"):
                raise InvalidParameterError(
                    f"`learning_rate` must keep the loss finite, got a validation loss of {seen.loss} in epoch {epoch}."
                    " Choose a smaller one."
                )
            stopping.observe(seen.loss, model, share=seen.share, epochs=(epoch - 1) % look_every + 1)
            advance(1, f"validation loss {seen.loss:.3f}")
            if stopping.should_stop:
                break
    stopping.restore(model)
    return stopping, epoch


def check_training(
    model: Any, split: Any, *, learning_rate: float, weight_decay: float, max_epochs: int, patience: int, seed: int
) -> None:
    """Check a model of `build_model`, what it is trained on, and the numbers of the training.

    Raises:
        InvalidParameterError: If the model is none, labels are missing, the model takes another number of features, or
            a number is out of range.
    """
    if not isinstance(model, InterceptionGNN):
        raise InvalidParameterError(f"`model` must come from build_model, got {type(model).__name__}.")
    if not is_split(split):
        raise InvalidParameterError(
            f"`split` must come from inductive_split or transductive_split, got {type(split).__name__}."
        )
    check_features(model, Parts.of(split).train)
    check_hyperparameters(learning_rate, weight_decay, max_epochs, patience, seed)


def check_features(model: InterceptionGNN, part: SplitPart) -> None:
    """Refuse a model for another number of features.

    Raises:
        InvalidParameterError: If it is.
    """
    if part.data.x.size(1) != model.config.num_features:
        raise InvalidParameterError(
            f"`model` must take {part.data.x.size(1)} features for this graph, got a model for "
            f"{model.config.num_features}. Build it with build_model(..., split)."
        )


def check_hyperparameters(learning_rate: float, weight_decay: float, max_epochs: int, patience: int, seed: int) -> int:
    """Check the numbers of a training; return the seed as an int.

    Raises:
        InvalidParameterError: If one is out of range.
    """
    check_positive("learning_rate", learning_rate)
    if weight_decay != 0:
        check_positive("weight_decay", weight_decay, hint="0 switches it off.")
    check_integer("max_epochs", max_epochs, at_least=1)
    check_integer("patience", patience, at_least=1)
    return check_seed(seed)
