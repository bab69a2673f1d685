"""Training under smoothing, as in the paper's Appendix "Hyperparameters", of any module."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from graycert._validation import check_choice
from graycert.errors import InvalidParameterError
from graycert.heterogeneous import AskedOfTypes, is_heterogeneous
from graycert.models import InterceptionGNN
from graycert.models.edge_inputs import chosen_edge_inputs
from graycert.models.precision import check_precision
from graycert.sampling.streams import CoinStream, Purpose
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.training.fit import VALIDATION_DRAWS, check_features, check_hyperparameters, fit
from graycert.training.module_loss import ModuleLoss, num_classes_of, place_of
from graycert.training.objective import STOP_ON, AnyObjective, StopOn, balanced_weights
from graycert.training.parts import Parts, smoothing_on_part
from graycert.training.record import TrainingRecord
from graycert.training.smoothed_loss import SmoothedLoss

ClassWeight = Literal["balanced"] | Sequence[float] | Tensor | None


def train(
    model: nn.Module,
    data: Any,
    *,
    smoothing: InterceptionSmoothing,
    train_mask: Any = None,
    validation_mask: Any = None,
    class_weight: ClassWeight = None,
    edge_inputs: Sequence[str] | Mapping[str, str] | None = None,
    stop_on: StopOn = "loss",
    learning_rate: float = 1e-3,
    weight_decay: float = 5e-4,
    max_epochs: int = 1_000,
    patience: int = 50,
    seed: int = 0,
    progress: bool = True,
) -> TrainingRecord:
    """Train a model in place: full batch, Adam, a fresh draw from φ in every epoch.

    An ablation token that the model has as a parameter is trained with the weights; dropout of graycert's own models
    acts on the features, not on the token. After every epoch the model is looked at on the validation nodes, averaged
    over four draws from φ, the same in every epoch, so that epochs are compared by their weights and not by the luck of
    a draw; training stops ``patience`` epochs after the best one, and the weights of that epoch are put back.
    Training-time probabilities are hyperparameters: a certificate depends on those at inference only.

    Args:
        model: From `build_model`, or any module with ``forward(x, edge_index, **edge_inputs)`` -> scores
            (`as_node_classifier` makes one of others). Left in evaluation mode.
        data: A graph with labels, or an inductive or transductive split. Or a ``HeteroData``, for a model that is
            called with ``x_dict`` and ``edge_index_dict``; masks are of the type that has labels, or dicts that name
            a type.
        smoothing: Training-time p_d and p_a; arrays have one entry per column of ``data.edge_index`` and per node (of
            a split: of ``split.test.data``, the whole graph; parts keep their edges' and nodes' probabilities).
        train_mask: Nodes to train on: boolean (num_nodes,) or indices; default ``data.train_mask``.
        validation_mask: Nodes to stop on; default ``data.val_mask``.
        class_weight: Weight of each class in the loss; "balanced" gives all the same say; default by their numbers.
        edge_inputs: Names of values per edge of ``data`` that follow surviving edges into ``forward``; () for none, as
            must be said where ``data`` has some that ``forward`` takes.
        stop_on: What is best on the validation nodes: "loss", "accuracy" or "balanced accuracy" (averaged over
            classes); of equal accuracies the one with the lower loss.
        learning_rate: Of Adam, > 0.
        weight_decay: Of Adam, >= 0.
        max_epochs: Limit of epochs, >= 1.
        patience: Epochs without improvement before stopping, >= 1.
        seed: Seeds draws and dropout. Deterministic on the CPU; the global generator of torch is left as it was.
        progress: Show a progress bar where it is seen: on a terminal, or in a notebook.

    Returns:
        What was done.

    Raises:
        InvalidParameterError: If an argument is out of range, labels are missing, or the loss is not finite.
        UnsoundSetupError: ``edge-inputs-unsaid``.

    References:
        Scholten et al. (2022), Appendix "Hyperparameters".
    """
    if not isinstance(smoothing, InterceptionSmoothing):
        raise InvalidParameterError(f"`smoothing` must be an InterceptionSmoothing, got {type(smoothing).__name__}.")
    check_choice("stop_on", stop_on, STOP_ON)
    seed = check_hyperparameters(learning_rate, weight_decay, max_epochs, patience, seed)
    if is_heterogeneous(data):
        asked = AskedOfTypes.of(model, data, targets=_naming(train_mask, validation_mask), edge_inputs=edge_inputs)
        model, data, edge_inputs = asked.model, asked.with_masks(train_mask, validation_mask), asked.edge_inputs
        train_mask, validation_mask, smoothing = None, None, asked.smoothing(smoothing)
    parts = Parts.of(data, train_mask, validation_mask)
    training, validation, num_classes = _objectives(model, parts, smoothing, edge_inputs, seed)
    weights = _class_weights(class_weight, parts, num_classes, place_of(model))
    training.class_weight = validation.class_weight = weights
    drop = model.config.dropout if isinstance(model, InterceptionGNN) else 0.0
    held_out = validation.batch(range(VALIDATION_DRAWS))
    return fit(
        model,
        lambda epoch: training(training.batch(range(epoch, epoch + 1), drop=drop)),
        lambda: validation.look(held_out, stop_on),
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        max_epochs=max_epochs,
        patience=patience,
        seed=seed,
        progress=progress,
        stop_on=stop_on,
        class_weight=None if weights is None else _recorded(class_weight, weights),
        p_delete=smoothing.p_delete if isinstance(smoothing.p_delete, float) else smoothing.delete_in_words,
        p_ablate=smoothing.p_ablate if isinstance(smoothing.p_ablate, float) else smoothing.ablate_in_words,
    )


def _naming(*masks: Any) -> Any:
    """Return the first mask that names a node type."""
    return next((mask for mask in masks if isinstance(mask, Mapping)), None)


def _objectives(
    model: nn.Module,
    parts: Parts,
    smoothing: InterceptionSmoothing,
    edge_inputs: Sequence[str] | Mapping[str, str] | None,
    seed: int,
) -> tuple[AnyObjective, AnyObjective, int]:
    """Return what is minimised, what is looked at, and the number of classes."""
    pairs = ((parts.train, Purpose.TRAINING), (parts.validation, Purpose.VALIDATION))
    placed = [(part, smoothing_on_part(smoothing, parts.whole, part), CoinStream(seed, use)) for part, use in pairs]
    if isinstance(model, InterceptionGNN):
        check_features(model, parts.train)
        if edge_inputs:
            raise InvalidParameterError(
                f"`edge_inputs` must be () for a model of build_model, which takes none, got {edge_inputs!r}."
            )
        training, validation = (SmoothedLoss(model, *given) for given in placed)
        return training, validation, model.config.num_classes
    chosen = chosen_edge_inputs(model, parts.whole.data, edge_inputs) or ()
    if chosen:
        check_precision(model, parts.train.data, edge_inputs=chosen)
    num_classes = num_classes_of(model, parts.train, chosen)
    first, second = (ModuleLoss(model, *given, chosen) for given in placed)
    return first, second, num_classes


def _recorded(chosen: ClassWeight, weights: Tensor) -> str | tuple[float, ...]:
    return chosen if isinstance(chosen, str) else tuple(weights.tolist())


def _class_weights(chosen: ClassWeight, parts: Parts, num_classes: int, where: torch.device) -> Tensor | None:
    if chosen is None:
        return None
    if isinstance(chosen, str):
        check_choice("class_weight", chosen, ("balanced",), hint="Or pass a weight per class, or None.")
        return balanced_weights(parts.train.data.y[parts.train.nodes].cpu(), num_classes=num_classes).to(where)
    weights = torch.as_tensor(chosen, dtype=torch.float32, device=where).detach()
    if weights.shape != (num_classes,) or not bool((torch.isfinite(weights) & (weights >= 0)).all()):
        raise InvalidParameterError(
            f"`class_weight` must hold {num_classes} finite weights >= 0, one per class, got {weights.tolist()}."
        )
    return weights
