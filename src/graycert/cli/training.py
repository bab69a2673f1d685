"""Training a model as the options say."""

from typing import Any

from graycert.cli.configs import TrainingConfig
from graycert.cli.console import Console


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
        edge_inputs=config.edge_inputs,
        progress=console.progress,
    )
    console.say(
        f"trained {record.epochs:,} epochs in {record.seconds:.1f} s; validation loss "
        f"{record.best_validation_loss:.3f} in epoch {record.best_epoch:,}"
    )
    return record.as_dict()
