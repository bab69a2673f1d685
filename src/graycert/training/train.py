"""Training under smoothing, as in the paper's Appendix "Hyperparameters"."""

import time
from typing import Any

import torch

from graycert.data import validate_data
from graycert.errors import InvalidParameterError
from graycert.models import InterceptionGNN
from graycert.sampling.streams import CoinStream, Purpose
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.training.fit import check_recipe, fit
from graycert.training.part_smoothing import smoothing_on_part
from graycert.training.record import TrainingRecord
from graycert.training.smoothed_loss import SmoothedLoss

_VALIDATION_DRAWS = 4


def train(
    model: InterceptionGNN,
    split: Any,
    *,
    smoothing: InterceptionSmoothing,
    learning_rate: float = 1e-3,
    weight_decay: float = 5e-4,
    max_epochs: int = 1_000,
    patience: int = 50,
    seed: int = 0,
    progress: bool = False,
) -> TrainingRecord:
    """Train a model in place: full batch, Adam, a fresh draw from φ in every epoch.

    The ablation token is trained with the weights; dropout acts on the features, not on the token. After every epoch
    the loss on the validation nodes is averaged over four draws from φ, the same in every epoch, so that epochs are
    compared by their weights and not by the luck of a draw; training stops ``patience`` epochs after the minimum, and
    the weights of that epoch are put back.
    Training-time probabilities are hyperparameters: a certificate depends on those at inference only.

    Args:
        model: From `build_model`. Left in evaluation mode.
        split: An inductive or transductive split.
        smoothing: Training-time p_d and p_a; arrays have one entry per column of ``split.test.data.edge_index`` and
            per node of that graph, the whole one. Parts of the graph keep their edges' and nodes' probabilities.
        learning_rate: Of Adam, > 0.
        weight_decay: Of Adam, >= 0.
        max_epochs: Limit of epochs, >= 1.
        patience: Epochs without improvement before stopping, >= 1.
        seed: Seeds draws and dropout. Deterministic on the CPU; the global generator of torch is left as it was.
        progress: Show a progress bar on standard error if it is a terminal.

    Returns:
        What was done.

    Raises:
        InvalidParameterError: If an argument is out of range, labels are missing, or the loss is not finite.

    References:
        Scholten et al. (2022), Appendix "Hyperparameters".
    """
    _check_arguments(model, split, smoothing, learning_rate, weight_decay, max_epochs, patience, seed)
    started = time.perf_counter()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        on_training, on_validation = (
            smoothing_on_part(smoothing, split.test, part) for part in (split.train, split.validation)
        )
        training = SmoothedLoss(model, split.train, on_training, CoinStream(seed, Purpose.TRAINING))
        validation = SmoothedLoss(model, split.validation, on_validation, CoinStream(seed, Purpose.VALIDATION))
        held_out = validation.batch(range(_VALIDATION_DRAWS))
        stopping, epochs = fit(
            model,
            lambda epoch: training(training.batch(range(epoch, epoch + 1), drop=model.config.dropout)),
            lambda: float(validation(held_out)),
            optimizer=torch.optim.Adam(model.parameters(), lr=learning_rate, weight_decay=weight_decay, fused=True),
            max_epochs=max_epochs,
            patience=patience,
            progress=progress,
        )
    return TrainingRecord(
        epochs=epochs,
        best_epoch=stopping.best_epoch,
        best_validation_loss=stopping.best_loss,
        p_delete=smoothing.p_delete if isinstance(smoothing.p_delete, float) else smoothing.delete_in_words,
        p_ablate=smoothing.p_ablate if isinstance(smoothing.p_ablate, float) else smoothing.ablate_in_words,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        max_epochs=max_epochs,
        patience=patience,
        seed=seed,
        seconds=time.perf_counter() - started,
    )


def _check_arguments(
    model: InterceptionGNN,
    split: Any,
    smoothing: InterceptionSmoothing,
    learning_rate: float,
    weight_decay: float,
    max_epochs: int,
    patience: int,
    seed: int,
) -> None:
    if not isinstance(model, InterceptionGNN):
        raise InvalidParameterError(
            f"`model` must come from build_model, got {type(model).__name__}. Train other models with your own loop: "
            "ablate with torch.where, delete edges, one draw per epoch."
        )
    if not all(hasattr(split, part) for part in ("train", "validation", "test")):
        raise InvalidParameterError(
            f"`split` must come from inductive_split or transductive_split, got {type(split).__name__}."
        )
    if not isinstance(smoothing, InterceptionSmoothing):
        raise InvalidParameterError(f"`smoothing` must be an InterceptionSmoothing, got {type(smoothing).__name__}.")
    for part in (split.train, split.validation):
        validate_data(part.data, need_labels=True)
    if split.train.data.x.size(1) != model.config.num_features:
        raise InvalidParameterError(
            f"`model` must take {split.train.data.x.size(1)} features for this graph, got a model for "
            f"{model.config.num_features}. Build it with build_model(..., split)."
        )
    check_recipe(learning_rate, weight_decay, max_epochs, patience, seed)
