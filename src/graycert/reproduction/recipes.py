"""How the models of experiments are trained: one recipe each."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from graycert.models.names import is_own
from graycert.reproduction.settings import (
    DistilledTraining,
    MLPTraining,
    ModelSettings,
    SparseTraining,
    TrainedModel,
    TrainingSettings,
)


def trained(settings: TrainedModel, split: Any) -> tuple[Any, dict[str, Any]]:
    """Return a model that was trained on a split, and notes on its training."""
    model, record = _RECIPES[settings.recipe](settings, split)
    return model, {} if record is None else record.as_dict()


def untrained(settings: ModelSettings, split: Any, *, seed: int) -> Any:
    """Return the model as it is before training."""
    from graycert.models.by_name import new_model

    return new_model(settings.architecture, split, num_layers=settings.num_layers, skip=settings.skip, seed=seed)


def read_model(settings: TrainedModel, file: Path, split: Callable[[], Any]) -> Any:
    """Return a trained model from its file, in evaluation mode.

    Args:
        settings: What it is.
        file: Its weights.
        split: Returns what it was trained on, from which a class of the user is made.

    Raises:
        InvalidFileError: If the file is missing or damaged.
    """
    from graycert.models import load_model, load_weights

    if not isinstance(settings, ModelSettings) or not is_own(settings.architecture):
        return load_model(file)
    model = untrained(settings, split(), seed=settings.seed)
    load_weights(model, file)
    return model.eval()


def write_model(model: Any, file: Path, notes: dict[str, Any]) -> None:
    """Write the weights of a trained model, whoever wrote its class."""
    from graycert.models import save_model
    from graycert.models.weights import OwnModel, save_weights

    if isinstance(model, OwnModel):
        save_model(model, file, notes=notes)
    else:
        save_weights(model, file, notes=notes)


def _under_interception(settings: TrainingSettings, split: Any) -> tuple[Any, Any]:
    import graycert

    smoothing = graycert.InterceptionSmoothing(p_delete=settings.p_delete, p_ablate=settings.p_ablate)
    model = untrained(settings, split, seed=settings.seed)
    return model, graycert.train(model, split, smoothing=smoothing, seed=settings.seed, **_learning(settings))


def _under_flips(settings: SparseTraining, split: Any) -> tuple[Any, Any]:
    import graycert
    from graycert.smoothing.sparse.training import train_sparse_smoothing

    smoothing = graycert.SparseSmoothing(p_plus=settings.p_plus, p_minus=settings.p_minus)
    model = untrained(settings, split, seed=settings.seed)
    return model, train_sparse_smoothing(model, split, smoothing=smoothing, seed=settings.seed, **_learning(settings))


def _without_messages(settings: MLPTraining, split: Any) -> tuple[Any, Any]:
    from graycert.smoothing.features_only.training import train_mlp

    return train_mlp(split, seed=settings.seed), None


def _distilled(settings: DistilledTraining, split: Any) -> tuple[Any, Any]:
    import graycert

    return graycert.distill(split, seed=settings.seed), None


def _learning(settings: ModelSettings) -> dict[str, Any]:
    return settings.model_dump(include={"learning_rate", "weight_decay", "max_epochs", "patience"})


_RECIPES: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "interception": _under_interception,
    "sparse": _under_flips,
    "mlp": _without_messages,
    "distilled": _distilled,
}
