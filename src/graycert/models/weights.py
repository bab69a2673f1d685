"""Weights on disk: safetensors plus a small JSON file; nothing is ever unpickled."""

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as parse_tensors
from safetensors.torch import save as serialize_tensors
from torch import nn

from graycert._files import is_no_room, write_atomically
from graycert._validation import check_choice
from graycert.errors import GraycertError, InvalidFileError, InvalidParameterError, WriteError
from graycert.models.build import build_from_config
from graycert.models.calling import AdaptedClassifier
from graycert.models.interception_gnn import InterceptionGNN, ModelConfig
from graycert.models.names import ARCHITECTURES, PER_NODE
from graycert.models.node_model import NodeModel, NodeModelConfig

FORMAT_VERSION = 1

OwnModel = InterceptionGNN | NodeModel
"""A model that graycert builds, which its configuration and weights describe in full."""


def _weights_path(path: str | os.PathLike[str]) -> Path:
    """Append the suffix unless it is there; a dot in "gat-0.31" starts no suffix."""
    named = Path(path)
    return named if named.suffix == ".safetensors" else named.with_name(named.name + ".safetensors")


def config_path(weights: Path) -> Path:
    """Return where the JSON beside a weights file lies."""
    return weights.with_suffix(".json")


def weights_sha256(module: nn.Module) -> str:
    """Return the hash of the weights as `save_model` writes them."""
    tensors = {name: value.detach().cpu().contiguous().clone() for name, value in module.state_dict().items()}
    return hashlib.sha256(serialize_tensors(tensors)).hexdigest()


def save_model(model: OwnModel, path: str | os.PathLike[str], *, notes: dict[str, Any] | None = None) -> Path:
    """Write ``PATH.safetensors`` and ``PATH.json``, each atomically.

    Args:
        model: A model from `build_model` or `distill`.
        path: Target file; ``.safetensors`` is appended unless it is there.
        notes: Plain values stored beside the configuration, e.g. how the model was trained.

    Returns:
        Path of the weights.

    Raises:
        InvalidFileError: If the folder cannot be written to.
        WriteError: If there is no room.
        InvalidParameterError: If the model was not built by graycert.
    """
    if not isinstance(model, OwnModel):
        raise InvalidParameterError(
            f"`model` must come from build_model or distill, got {type(model).__name__}. "
            "Save another module with safetensors.torch.save_model."
        )
    return _write(model, path, {"config": model.config.as_dict(), "notes": notes or {}}, model.class_names)


def save_weights(
    model: torch.nn.Module,
    path: str | os.PathLike[str],
    *,
    class_names: Sequence[str] | None = None,
    notes: dict[str, Any] | None = None,
) -> Path:
    """Write the weights of any module as `save_model` does; the class that makes it is not stored.

    Args:
        model: Any module.
        path: Target file; ``.safetensors`` is appended unless it is there.
        class_names: Names of its outputs, in their order.
        notes: Plain values stored beside the weights.

    Returns:
        Path of the weights.

    Raises:
        InvalidFileError: If the folder cannot be written to.
        WriteError: If there is no room.
    """
    return _write(model, path, {"notes": notes or {}}, class_names)


def _write(
    model: torch.nn.Module, path: str | os.PathLike[str], content: dict[str, Any], class_names: Sequence[str] | None
) -> Path:
    weights = _weights_path(path)
    tensors = {name: value.detach().cpu().contiguous().clone() for name, value in model.state_dict().items()}
    document = {"format_version": FORMAT_VERSION, **content}
    if class_names is not None:
        document["class_names"] = list(class_names)
    try:
        text = json.dumps(document, indent=2) + "\n"
    except (TypeError, ValueError) as error:  # before anything is written
        raise InvalidParameterError(f"`notes` must hold plain values that JSON can store, got {error}.") from error
    try:
        write_atomically(weights, lambda file: file.write_bytes(serialize_tensors(tensors)))
        write_atomically(config_path(weights), lambda file: file.write_text(text, encoding="utf-8"))
    except OSError as error:
        if is_no_room(error):
            raise WriteError(f"{weights} cannot be written ({error.strerror or error}). Make room.") from error
        raise InvalidFileError(
            f"`path` must be a place that can be written to, got {weights}: {error.strerror or error}. "
            "Choose another folder."
        ) from error
    return weights


def load_model(path: str | os.PathLike[str]) -> OwnModel:
    """Read a model written by `save_model`; it is returned in evaluation mode on the CPU.

    Raises:
        InvalidFileError: If a file is missing, truncated, foreign, or does not fit the configuration.
    """
    weights = _weights_path(path)
    config, class_names = _read_config(config_path(weights))
    _refuse_larger(config, weights)
    model = NodeModel(config) if isinstance(config, NodeModelConfig) else build_from_config(config)
    load_weights(model, weights)
    model.class_names = class_names
    return model.eval()


def _refuse_larger(config: ModelConfig | NodeModelConfig, weights: Path) -> None:
    """Refuse a configuration of a larger model than the weights file can hold, before memory is taken for it.

    Raises:
        InvalidFileError: If it is.
    """
    try:
        size = weights.stat().st_size
    except OSError:
        return  # said when it is read
    parts = config.members if isinstance(config, NodeModelConfig) else config.num_layers
    widths = 1 if isinstance(config, NodeModelConfig) else config.heads
    largest = max(parts, config.num_features, config.num_classes, config.hidden_channels, widths)
    if largest > size or config.hidden_channels * widths > size:
        raise InvalidFileError(
            f"{config_path(weights)} describes a larger model than {weights}, of {size:,} bytes, can hold ({config}). "
            "They come from different models."
        )


def load_weights(model: torch.nn.Module, path: str | os.PathLike[str]) -> None:
    """Fill ``model`` with the tensors of a safetensors file; nothing changes unless all of them fit.

    Raises:
        InvalidFileError: If the file is missing, truncated or foreign, or its names or shapes do not fit.
    """
    weights = Path(path)
    try:
        tensors = parse_tensors(weights.read_bytes())
    except OSError as error:
        raise InvalidFileError(
            f"Weights {weights} cannot be read: {error.strerror or error}. Run `graycert train --out FILE` first."
        ) from error
    except (SafetensorError, ValueError, KeyError) as error:
        raise InvalidFileError(
            f"{weights} is not an intact safetensors file ({error}). A pickled checkpoint is never opened; "
            "export its state_dict with safetensors.torch.save_file."
        ) from error
    if isinstance(model, AdaptedClassifier) and set(tensors) == set(model.model.state_dict()):
        model = model.model  # saved before it was adapted
    wanted = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    found = {name: tuple(value.shape) for name, value in tensors.items()}
    if wanted != found:
        raise InvalidFileError(f"{weights} does not fit the model: {_first_difference(wanted, found)}.")
    model.load_state_dict(tensors)


def _first_difference(wanted: dict[str, tuple[int, ...]], found: dict[str, tuple[int, ...]]) -> str:
    for name, shape in wanted.items():
        if name not in found:
            return f"tensor {name!r} of shape {shape} is missing"
        if found[name] != shape:
            return f"tensor {name!r} has shape {found[name]}, the model needs {shape}"
    extra = sorted(set(found) - set(wanted))
    return f"it holds {extra[0]!r}, which the model does not have"


def _read_config(path: Path) -> tuple[ModelConfig | NodeModelConfig, tuple[str, ...] | None]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidFileError(
            f"{path}, which says how the model is built, cannot be read: {error.strerror or error}. "
            "It must lie beside the weights; copy both files."
        ) from error
    except (ValueError, RecursionError) as error:
        raise InvalidFileError(f"{path} is not intact JSON ({error}). Write the model again.") from error
    if not isinstance(document, dict) or document.get("format_version") != FORMAT_VERSION:
        version = document.get("format_version") if isinstance(document, dict) else None
        raise InvalidFileError(
            f"{path} must have format_version {FORMAT_VERSION}, got {version!r}. It is not a graycert model "
            "or was written by another release."
        )
    try:
        config = _config_of(document["config"])
        names = document.get("class_names")
        if names is not None and (len(names) != config.num_classes or not all(isinstance(name, str) for name in names)):
            raise TypeError(f"`class_names` must hold {config.num_classes} texts")
        return config, None if names is None else tuple(names)
    except (KeyError, TypeError, GraycertError) as error:
        raise InvalidFileError(f"{path} does not describe a graycert model: {error}.") from error


def _config_of(found: dict[str, Any]) -> ModelConfig | NodeModelConfig:
    if found["architecture"] == PER_NODE:
        return NodeModelConfig(**found)
    check_choice("architecture", found["architecture"], ARCHITECTURES)
    return ModelConfig(**found)
