"""How the models of experiments are trained: one recipe each."""

from collections.abc import Callable
from typing import Any

from graycert.reproduction.settings import MLPTraining, ModelSettings, SparseTraining, TrainedModel, TrainingSettings


def trained(settings: TrainedModel, split: Any) -> tuple[Any, dict[str, Any]]:
    """Return a model that was trained on a split, and notes on its training."""
    model, record = _RECIPES[settings.recipe](settings, split)
    return model, {} if record is None else record.as_dict()


def _under_interception(settings: TrainingSettings, split: Any) -> tuple[Any, Any]:
    import graycert

    smoothing = graycert.InterceptionSmoothing(p_delete=settings.p_delete, p_ablate=settings.p_ablate)
    model = graycert.build_model(
        settings.architecture, split, num_layers=settings.num_layers, skip=settings.skip, seed=settings.seed
    )
    return model, graycert.train(model, split, smoothing=smoothing, seed=settings.seed, **_learning(settings))


def _under_flips(settings: SparseTraining, split: Any) -> tuple[Any, Any]:
    import graycert
    from graycert.smoothing.sparse.training import train_sparse_smoothing

    smoothing = graycert.SparseSmoothing(p_plus=settings.p_plus, p_minus=settings.p_minus)
    model = graycert.build_model(
        settings.architecture, split, num_layers=settings.num_layers, skip=settings.skip, seed=settings.seed
    )
    return model, train_sparse_smoothing(model, split, smoothing=smoothing, seed=settings.seed, **_learning(settings))


def _without_messages(settings: MLPTraining, split: Any) -> tuple[Any, Any]:
    from graycert.smoothing.features_only.training import train_mlp

    return train_mlp(split, seed=settings.seed), None


def _learning(settings: ModelSettings) -> dict[str, Any]:
    return settings.model_dump(include={"learning_rate", "weight_decay", "max_epochs", "patience"})


_RECIPES: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "interception": _under_interception,
    "sparse": _under_flips,
    "mlp": _without_messages,
}
