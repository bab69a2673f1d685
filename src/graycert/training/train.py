"""Training under smoothing, as in the paper's Appendix "Hyperparameters"."""

from typing import Any

from graycert.errors import InvalidParameterError
from graycert.models import InterceptionGNN
from graycert.sampling.streams import CoinStream, Purpose
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.training.fit import VALIDATION_DRAWS, check_training, fit
from graycert.training.part_smoothing import smoothing_on_part
from graycert.training.record import TrainingRecord
from graycert.training.smoothed_loss import SmoothedLoss


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
    if not isinstance(smoothing, InterceptionSmoothing):
        raise InvalidParameterError(f"`smoothing` must be an InterceptionSmoothing, got {type(smoothing).__name__}.")
    check_training(
        model,
        split,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        max_epochs=max_epochs,
        patience=patience,
        seed=seed,
    )
    on_training, on_validation = (
        smoothing_on_part(smoothing, split.test, part) for part in (split.train, split.validation)
    )
    training = SmoothedLoss(model, split.train, on_training, CoinStream(seed, Purpose.TRAINING))
    validation = SmoothedLoss(model, split.validation, on_validation, CoinStream(seed, Purpose.VALIDATION))
    held_out = validation.batch(range(VALIDATION_DRAWS))
    return fit(
        model,
        lambda epoch: training(training.batch(range(epoch, epoch + 1), drop=model.config.dropout)),
        lambda: float(validation(held_out)),
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        max_epochs=max_epochs,
        patience=patience,
        seed=seed,
        progress=progress,
        p_delete=smoothing.p_delete if isinstance(smoothing.p_delete, float) else smoothing.delete_in_words,
        p_ablate=smoothing.p_ablate if isinstance(smoothing.p_ablate, float) else smoothing.ablate_in_words,
    )
