"""Training a model as the options say."""

from typing import Any, Literal

from graycert.cli.configs import TrainingConfig
from graycert.cli.console import Console
from graycert.errors import InvalidParameterError

_OF_A_LOSS = ("class_weight", "stop_on")


def check_loss(config: TrainingConfig, *, trains: bool) -> None:
    """Refuse what says how classes count, where it is no weight or nothing is trained that it is said of.

    Args:
        config: The options.
        trains: Whether a GNN that is named is trained; the default teacher and students have losses of their own.

    Raises:
        InvalidParameterError: If ``--class-weight`` is neither a name nor numbers, or would do nothing.
    """
    class_weights(config.class_weight)
    for name in _OF_A_LOSS:
        value = getattr(config, name)
        if not trains and value != type(config).model_fields[name].default:
            raise InvalidParameterError(
                f"`--{name.replace('_', '-')}` belongs to a model that is trained here (--model gat, gcn, gatv2 or "
                f"sma, without --weights), got {value!r} where none is. Leave it out."
            )


def class_weights(option: str | None) -> Literal["balanced"] | list[float] | None:
    """Return what `graycert.train` is told of the weights of classes."""
    if option is None:
        return None
    if option == "balanced":
        return "balanced"
    try:
        return [float(weight) for weight in option.split(",")]
    except ValueError:
        raise InvalidParameterError(
            f"`--class-weight` must be balanced, or a number per class with commas between them, got {option!r}. "
            "Write 1,10."
        ) from None


def train_model(config: TrainingConfig, model: Any, split: Any, console: Console) -> dict[str, Any]:
    """Train ``model`` in place and return the record of it."""
    from graycert.smoothing.interception.parameters import InterceptionSmoothing
    from graycert.training import train

    console.say(f"training {config.model} for at most {config.max_epochs:,} epochs")
    record = train(
        model,
        split,
        smoothing=InterceptionSmoothing(p_delete=config.train_p_delete, p_ablate=config.train_p_ablate),
        learning_rate=config.learning_rate,
        weight_decay=config.weight_decay,
        max_epochs=config.max_epochs,
        patience=config.patience,
        seed=config.seed,
        class_weight=class_weights(config.class_weight),
        stop_on=config.stop_on,
        edge_inputs=config.edge_inputs,
        progress=console.progress,
    )
    console.say(
        f"trained {record.epochs:,} epochs in {record.seconds:.1f} s; validation loss "
        f"{record.best_validation_loss:.3f} in epoch {record.best_epoch:,}"
    )
    return record.as_dict()
