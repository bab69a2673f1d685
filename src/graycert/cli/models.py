"""The model that the options name: one of graycert's, a file, or any class of the user."""

import difflib
import importlib
import inspect
import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graycert.cli.configs import TrainingConfig, WeightsConfig
from graycert.cli.console import Console
from graycert.errors import InvalidFileError, InvalidParameterError

_WEIGHTS_SUFFIX = ".safetensors"
_PICKLES = (".pt", ".pth", ".ckpt", ".bin", ".pkl", ".pickle")


@dataclass(frozen=True, kw_only=True)
class ChosenModel:
    """A model and what is known of it.

    Args:
        module: The model.
        needs_training: Whether it is new.
        record: What is stored with the certificates.
        notes: What the file of the weights says of their training.
    """

    module: Any
    needs_training: bool
    record: dict[str, Any]
    notes: dict[str, Any]

    @property
    def skip(self) -> bool:
        """Whether the target's own features reach its output in every draw."""
        from graycert.models.protocol import has_skip

        return has_skip(self.module)

    @property
    def is_builtin(self) -> bool:
        """Whether the model is one of graycert's architectures."""
        from graycert.models import InterceptionGNN

        return isinstance(self.module, InterceptionGNN)


def check_name(name: str) -> None:
    """Refuse early what cannot name a model.

    Raises:
        InvalidParameterError: If it is none of the three forms.
        InvalidFileError: If it is a pickled checkpoint.
    """
    from graycert.models.names import ARCHITECTURES

    if Path(name).suffix.lower() in _PICKLES:
        raise InvalidFileError(
            f"`--model` must not be a pickled file, got {name}: reading one can run code, so it is never opened. "
            "Export the state_dict with safetensors.torch.save_file and pass package.module:Class with --weights."
        )
    if name in ARCHITECTURES or ":" in name or name.endswith(_WEIGHTS_SUFFIX):
        return
    close = difflib.get_close_matches(name.lower(), ARCHITECTURES, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise InvalidParameterError(
        f"`--model` must be {', '.join(ARCHITECTURES)}, package.module:Class or FILE.safetensors, got {name!r}.{hint}"
    )


def new_model(config: TrainingConfig, data: Any) -> Any:
    """Return an untrained model of a named architecture, with a skip connection unless told otherwise."""
    from graycert.models import build_model

    graph = data.train.data if hasattr(data, "train") else data
    if graph.get("x") is None:
        raise InvalidParameterError(
            f"`--graph` must have features to train on, got {config.graph!r} without. "
            "Give an edge table its node table with `--nodes`."
        )
    return build_model(
        config.model, data, num_layers=config.num_layers or 2, skip=config.skip is not False, seed=config.seed
    )


def choose(config: WeightsConfig, data: Any, console: Console) -> ChosenModel:
    """Return the model that `--model` and `--weights` name.

    Raises:
        InvalidParameterError: If the options contradict each other, or the class cannot be made.
        InvalidFileError: If weights are missing, damaged, pickled, or do not fit.
    """
    check_name(config.model)
    if ":" in config.model:
        return _foreign(config, data, console)
    if config.model.endswith(_WEIGHTS_SUFFIX):
        if config.weights is not None:
            raise InvalidParameterError("`--weights` must be left out when `--model` is a file of weights.")
        return _saved(config, data, config.model)
    if config.weights is None:
        module = new_model(config, data)
        return ChosenModel(module=module, needs_training=True, record=_record(module, config.model), notes={})
    if Path(config.weights).with_suffix(".json").is_file() and config.weights.endswith(_WEIGHTS_SUFFIX):
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
    _check_choice("skip", config.skip, made.skip, given=config.skip is not None)
    _check_choice("num-layers", config.num_layers, made.num_layers, given=config.num_layers is not None)
    _check_fit(path, made, data)
    check_class_names(module.class_names, data.get("class_names"))
    return ChosenModel(
        module=module, needs_training=False, record=_record(module, made.architecture, path), notes=_notes(Path(path))
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
    module = own_module(config, data)
    if config.weights is not None:
        notes = _notes_of_own(Path(config.weights), data)
        return replace(_with_weights(module, config.model, config.weights), notes=notes)
    console.warn(f"no --weights: {config.model} is certified with the weights that it comes with.")
    return ChosenModel(module=module, needs_training=False, record=_record(module, config.model), notes={})


def own_module(config: TrainingConfig, data: Any) -> Any:
    """Return what a class of the user makes, with weights that the seed decides."""
    if config.skip:
        raise InvalidParameterError("`--skip` must be left out for a class of your own: it is built as it is.")
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed % 2**63)  # the class may draw its initial weights
        return _instance(config.model, data)


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
    return ChosenModel(module=module.eval(), needs_training=False, record=_record(module, name, path), notes={})


def _instance(name: str, data: Any) -> Any:
    from torch import nn

    module_name, _, attribute = name.partition(":")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # modules beside the user, as with `python -m`
    try:
        made = getattr(importlib.import_module(module_name), attribute)
    except Exception as error:  # whatever the user's module raises
        raise InvalidParameterError(
            f"`--model` must name something that can be imported, got {name!r} ({type(error).__name__}: {error}). "
            "Write package.module:Class, and start graycert where Python finds the package."
        ) from error
    if isinstance(made, nn.Module):
        return made
    try:
        module = made(**_arguments(made, data))
    except InvalidParameterError:
        raise
    except Exception as error:
        raise InvalidParameterError(
            f"`--model`: {name} cannot be called ({type(error).__name__}: {error}). It gets "
            "num_features and num_classes, or in_channels and out_channels, if it asks for them, and nothing else."
        ) from error
    if not isinstance(module, nn.Module):
        raise InvalidParameterError(f"`--model`: {name} must make a torch.nn.Module, got {type(module).__name__}.")
    return module


def _arguments(made: Any, data: Any) -> dict[str, int]:
    """Return the sizes that a class asks for, by the names that PyTorch Geometric and graycert use."""
    labels, names = data.get("y"), data.get("class_names")
    num_classes = len(names) if names is not None else 0 if labels is None else int(labels.max()) + 1
    sizes = {
        "num_features": data.num_features,
        "in_channels": data.num_features,
        "num_classes": num_classes,
        "out_channels": num_classes,
    }
    wanted = inspect.signature(made).parameters
    if num_classes < 1 and ("num_classes" in wanted or "out_channels" in wanted):
        raise InvalidParameterError(
            "`--model` asks for the number of classes, but the graph has no labels that tell it. Name a function that "
            "needs no arguments, or only the number of features, and knows the number of classes itself."
        )
    return {name: size for name, size in sizes.items() if name in wanted}


def _record(module: Any, name: str, path: str | None = None) -> dict[str, Any]:
    from graycert.models.interception_gnn import ModelConfig

    config = getattr(module, "config", None)
    return {
        "name": name,
        "weights": None if path is None else str(Path(path).expanduser().resolve()),
        "config": config.as_dict() if isinstance(config, ModelConfig) else None,
    }


def _notes(path: Path) -> dict[str, Any]:
    document = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))  # load_model has checked it
    notes = document.get("notes")
    return notes if isinstance(notes, dict) else {}
