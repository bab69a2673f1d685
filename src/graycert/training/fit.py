"""The loop of epochs that every training has: a step, a look at the validation loss, early stopping."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from graycert._progress import progress_bar
from graycert._validation import check_integer, check_positive, check_seed
from graycert.errors import InvalidParameterError
from graycert.training.early_stopping import EarlyStopping


def fit(
    model: nn.Module,
    training_loss: Callable[[int], Tensor],
    validation_loss: Callable[[], float],
    *,
    optimizer: torch.optim.Optimizer,
    max_epochs: int,
    patience: int,
    progress: bool,
) -> tuple[EarlyStopping, int]:
    """Take steps until the validation loss no longer falls; the model is left with its best weights.

    Args:
        model: Is left in evaluation mode.
        training_loss: Loss of an epoch, numbered from 1, with gradients.
        validation_loss: Loss on the validation nodes, evaluated without gradients after every epoch.
        optimizer: Of the model's parameters.
        max_epochs: Limit of epochs, >= 1.
        patience: Epochs without improvement before stopping, >= 1.
        progress: Show a progress bar on standard error if it is a terminal.

    Returns:
        Best epoch and loss, and the number of epochs.

    Raises:
        InvalidParameterError: If the validation loss is not finite.
    """
    stopping, epoch = EarlyStopping(patience), 0
    with progress_bar("training", total=max_epochs, unit="epochs", shown=progress) as advance:
        for epoch in range(1, max_epochs + 1):
            model.train()
            optimizer.zero_grad()
            training_loss(epoch).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            model.eval()
            with torch.inference_mode():
                seen = validation_loss()
            if not seen < float("inf"):
                raise InvalidParameterError(
                    f"`learning_rate` must keep the loss finite, got a validation loss of {seen} in epoch {epoch}. "
                    "Choose a smaller one."
                )
            stopping.observe(seen, model)
            advance(1, f"validation loss {seen:.3f}")
            if stopping.should_stop:
                break
    stopping.restore(model)
    return stopping, epoch


def check_recipe(learning_rate: float, weight_decay: float, max_epochs: int, patience: int, seed: int) -> None:
    """Check the numbers of a training.

    Raises:
        InvalidParameterError: If one is out of range.
    """
    check_positive("learning_rate", learning_rate)
    if weight_decay != 0:
        check_positive("weight_decay", weight_decay, hint="0 switches it off.")
    check_integer("max_epochs", max_epochs, at_least=1)
    check_integer("patience", patience, at_least=1)
    check_seed(seed)
