"""Training a model as the options say."""

from typing import Any

from graycert.cli.configs import TrainingConfig
from graycert.cli.console import Console


def check_training(config: TrainingConfig) -> None:
    """Check every number of the training before anything is loaded.

    Raises:
        InvalidParameterError: If one is out of range.
    """
    from graycert._validation import check_choice, check_integer, check_positive, check_probability, check_seed

    check_choice("split", config.split, ("inductive", "transductive"))
    check_integer("per_class", config.per_class, at_least=1)
    check_seed(config.seed)
    check_probability("train_p_delete", config.train_p_delete, hint="It is the chance of deleting an edge.")
    check_probability("train_p_ablate", config.train_p_ablate, hint="It is the chance of ablating a node.")
    check_integer("max_epochs", config.max_epochs, at_least=1)
    check_integer("patience", config.patience, at_least=1)
    check_positive("learning_rate", config.learning_rate)
    if config.weight_decay != 0.0:
        check_positive("weight_decay", config.weight_decay, hint="0 switches it off.")
    if config.num_layers is not None:
        check_integer("num_layers", config.num_layers, at_least=1)


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
        progress=console.progress,
    )
    console.say(
        f"trained {record.epochs:,} epochs in {record.seconds:.1f} s; validation loss "
        f"{record.best_validation_loss:.3f} in epoch {record.best_epoch:,}"
    )
    return record.as_dict()
