"""The model that the options name: one of graycert's, a file, or any class of the user."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graycert.cli.configs import ModelConfig, WeightsConfig
from graycert.cli.console import Console
from graycert.errors import InvalidFileError, InvalidParameterError
from graycert.models.names import DEFAULT_TEACHER, check_new_model, is_own

WEIGHTS_SUFFIX = ".safetensors"
_PICKLES = (".pt", ".pth", ".ckpt", ".bin", ".pkl", ".pickle")


@dataclass(frozen=True, kw_only=True)
class ChosenModel:
    """A model and what is known of it.

    Args:
        module: The model.
        needs_training: Whether it is new.
        record: What is stored with the certificates.
        notes: What the file of the weights says of their training.
        teacher: What it is to be distilled from; None for the default.
        distils: Whether it is to be distilled; the module then only stands for the one to come.
    """

    module: Any
    needs_training: bool
    record: dict[str, Any]
    notes: dict[str, Any]
    teacher: "ChosenModel | None" = None
    distils: bool = False

    @property
    def skip(self) -> bool:
        """Whether the target's own features reach its output in every draw."""
        from graycert.models.protocol import has_skip

        return has_skip(self.module)

    @property
    def is_builtin(self) -> bool:
        """Whether the model is one that graycert builds, and so saves in full."""
        from graycert.models.weights import OwnModel

        return isinstance(self.module, OwnModel)


def check_name(name: str, *, trained: bool = True) -> None:
    """Refuse early what cannot name a model.

    Args:
        name: Its name.
        trained: Whether it may be a file of weights, too.

    Raises:
        InvalidParameterError: If it is none of these forms.
        InvalidFileError: If it is a pickled checkpoint.
    """
    if Path(name).suffix.lower() in _PICKLES:
        raise InvalidFileError(
            f"`--model` must not be a pickled file, got {name}: reading one can run code, so it is never opened. "
            "Export the state_dict with safetensors.torch.save_file and pass package.module:Class with --weights."
        )
    if not trained or not name.endswith(WEIGHTS_SUFFIX):
        check_new_model(name, also=("FILE.safetensors",) if trained else ())


def is_new(config: WeightsConfig) -> bool:
    """Return whether the options name a model that comes without weights, and is not the default teacher."""
    return config.weights is None and not config.model.endswith(WEIGHTS_SUFFIX) and config.model != DEFAULT_TEACHER


def new_model(config: ModelConfig, data: Any) -> Any:
    """Return an untrained model: an architecture has a skip connection unless told otherwise."""
    from graycert.models.by_name import new_model as make

    graph = data.test.data if hasattr(data, "test") else data
    if graph.get("x") is None:
        raise InvalidParameterError(
            f"`--graph` must have features to train on, got {config.graph!r} without. "
            "Give an edge table its node table with `--nodes`."
        )
    skip = config.skip if is_own(config.model) else config.skip is not False
    return make(config.model, data, num_layers=config.num_layers, skip=skip, seed=config.seed)


def choose(config: WeightsConfig, data: Any, console: Console) -> ChosenModel:
    """Return the model that `--model` and `--weights` name.

    Raises:
        InvalidParameterError: If the options contradict each other, or the class cannot be made.
        InvalidFileError: If weights are missing, damaged, pickled, or do not fit.
    """
    check_name(config.model)
    if is_own(config.model):
        return _foreign(config, data, console)
    if config.model.endswith(WEIGHTS_SUFFIX):
        if config.weights is not None:
            raise InvalidParameterError("`--weights` must be left out when `--model` is a file of weights.")
        return _saved(config, data, config.model)
    if config.weights is None:
        module = new_model(config, data)
        return ChosenModel(module=module, needs_training=True, record=record_of(module, config.model), notes={})
    if Path(config.weights).with_suffix(".json").is_file() and config.weights.endswith(WEIGHTS_SUFFIX):
        return _saved(config, data, config.weights)
    module = new_model(config, data)
    return _with_weights(module, config.model, config.weights)


def _saved(config: WeightsConfig, data: Any, path: str) -> ChosenModel:
    from graycert.models import load_model
    from graycert.problem import check_class_names

    module = load_model(path)
    made = module.config
    _check_choice(
        "model", config.model, made.architecture, given="model" in config.model_fields_set and path != config.model
    )
    _check_choice("skip", config.skip, module.skip, given=config.skip is not None)
    _check_choice("num-layers", config.num_layers, module.num_layers, given=config.num_layers is not None)
    _check_fit(path, made, data)
    check_class_names(module.class_names, data.get("class_names"))
    return ChosenModel(
        module=module, needs_training=False, record=record_of(module, made.architecture, path), notes=_notes(Path(path))
    )


def _check_choice(flag: str, asked: object, found: object, *, given: bool) -> None:
    if given and asked != found:
        raise InvalidParameterError(
            f"`--{flag}` must be {found!r}, as the weights were trained, got {asked!r}. Leave it out, or train again."
        )


def _check_fit(path: str, made: Any, data: Any) -> None:
    num_features = data.num_features
    if made.num_features != num_features:
        raise InvalidFileError(
            f"{path} does not fit the graph: it needs {made.num_features} features per node, got {num_features}. "
            "Were the weights trained on another graph?"
        )
    names = data.get("class_names")
    labels = data.get("y")
    num_classes = len(names) if names is not None else 0 if labels is None else int(labels.max()) + 1
    if num_classes > made.num_classes or (names is not None and num_classes != made.num_classes):
        raise InvalidFileError(
            f"{path} does not fit the graph: it tells {made.num_classes} classes apart, the graph has {num_classes}. "
            "Were the weights trained on another graph?"
        )


def _foreign(config: WeightsConfig, data: Any, console: Console) -> ChosenModel:
    module = new_model(config, data)
    if config.weights is not None:
        notes = _notes_of_own(Path(config.weights), data)
        return replace(_with_weights(module, config.model, config.weights), notes=notes)
    console.warn(f"no --weights: {config.model} is certified with the weights that it comes with.")
    return ChosenModel(module=module, needs_training=False, record=record_of(module, config.model), notes={})


def _notes_of_own(weights: Path, data: Any) -> dict[str, Any]:
    """Return what `graycert train` noted beside weights, if it made them; refuse another numbering of classes."""
    from graycert.problem import check_class_names

    try:
        document = json.loads(weights.with_suffix(".json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}  # weights of the user's own training
    if not isinstance(document, dict):
        return {}
    check_class_names(document.get("class_names"), data.get("class_names"))
    notes = document.get("notes")
    return notes if isinstance(notes, dict) else {}


def _with_weights(module: Any, name: str, path: str) -> ChosenModel:
    from graycert.models.weights import load_weights

    load_weights(module, path)
    return ChosenModel(module=module.eval(), needs_training=False, record=record_of(module, name, path), notes={})


def record_of(module: Any, name: str, path: str | None = None) -> dict[str, Any]:
    """Return what a run stores of its model."""
    from graycert.models.weights import OwnModel

    return {
        "name": name,
        "weights": None if path is None else str(Path(path).expanduser().resolve()),
        "config": module.config.as_dict() if isinstance(module, OwnModel) else None,
    }


def _notes(path: Path) -> dict[str, Any]:
    document = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))  # load_model has checked it
    notes = document.get("notes")
    return notes if isinstance(notes, dict) else {}
