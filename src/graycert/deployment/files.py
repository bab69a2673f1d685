"""A classifier as a folder, with the formats of a run, of which it lacks the votes.

config.toml           the set-up, as in a run; its provenance has the hash of the weights
model.safetensors     weights, and model.json: how a model of graycert is built, or of which class another one is
arrays.safetensors    arrays of the set-up, and an ablation token that was given; absent without any
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.numpy import load as parse_arrays
from safetensors.numpy import save as serialize_arrays

from graycert.deployment.classifier import SmoothedClassifier
from graycert.errors import InvalidFileError, InvalidParameterError
from graycert.models import load_model, save_model, weights_sha256
from graycert.models.calling import AdaptedClassifier
from graycert.models.private_copy import private_copy
from graycert.models.weights import OwnModel, load_weights, save_weights
from graycert.runs.damaged import one_error
from graycert.runs.folder import write_folder
from graycert.setup_file import config_text, read_config, stored_arrays, stored_setup

if TYPE_CHECKING:
    from torch import nn

CONFIG, WEIGHTS, BUILT, ARRAYS = "config.toml", "model.safetensors", "model.json", "arrays.safetensors"
_TOKEN, _OWN = "ablation_token", "own:"


def save_classifier(classifier: SmoothedClassifier, directory: str | Path, *, overwrite: bool) -> Path:
    """Do the work of `SmoothedClassifier.save`."""
    target = Path(directory).expanduser().resolve()
    _check_target(target, overwrite=overwrite)
    return write_folder(target, lambda folder: _write(classifier, folder), what="classifier")


def load_classifier(directory: str | Path, *, model: "nn.Module | None") -> SmoothedClassifier:
    """Do the work of `SmoothedClassifier.load`."""
    folder = Path(directory).expanduser()
    if not (folder / CONFIG).is_file() or not (folder / WEIGHTS).is_file():
        raise InvalidFileError(f"{folder} holds no classifier. Give the folder that `SmoothedClassifier.save` wrote.")
    with one_error(folder, "reading them"):
        document = read_config(folder / CONFIG)
        arrays = _read_arrays(folder / ARRAYS)
        token = arrays.pop(_TOKEN, None)
        setup = stored_setup(folder / CONFIG, document, arrays)
        record = dict(setup.provenance.get("model") or {})
    kind = str(record.get("name", ""))
    module = _own_model(folder, kind, model) if kind.startswith(_OWN) else load_model(folder / WEIGHTS)
    if weights_sha256(module) != record.get("weights_sha256"):
        raise InvalidFileError(f"{folder / WEIGHTS} holds other weights than {CONFIG} says. Save the classifier again.")
    return SmoothedClassifier(
        setup=setup,
        model=private_copy(module).eval(),
        ablation_token=None if token is None else torch.from_numpy(token),
    )


def _write(classifier: SmoothedClassifier, folder: Path) -> None:
    setup, model = classifier.setup, classifier.model
    if isinstance(model, OwnModel):
        save_model(model, folder / WEIGHTS)
        name = model.config.architecture
    else:
        save_weights(model, folder / WEIGHTS, class_names=setup.class_names)
        name = _OWN + _class_of(model)
    record = {"name": name, "weights_sha256": weights_sha256(model)}
    told = setup.replace(provenance={**setup.provenance, "model": record})
    (folder / CONFIG).write_text(config_text(told, {}), encoding="utf-8")
    arrays: dict[str, Any] = dict(stored_arrays(setup))
    if classifier.ablation_token is not None:
        arrays[_TOKEN] = classifier.ablation_token.detach().cpu().numpy()
    if arrays:
        (folder / ARRAYS).write_bytes(serialize_arrays(arrays))


def _own_model(folder: Path, kind: str, model: "nn.Module | None") -> "nn.Module":
    """Return a copy of a model of the user's with the stored weights."""
    expected = kind.removeprefix(_OWN)
    if model is None or _class_of(model) != expected:
        raise InvalidParameterError(
            f"`model` must be a {expected}, made as the one that was saved, got "
            f"{'None' if model is None else _class_of(model)}. Weights are stored, but no code: "
            "SmoothedClassifier.load(directory, model=...)."
        )
    copied = private_copy(model)
    load_weights(copied, folder / WEIGHTS)
    return copied


def _class_of(model: "nn.Module") -> str:
    inner = model.model if isinstance(model, AdaptedClassifier) else model
    return f"{type(inner).__module__}.{type(inner).__qualname__}"


def _read_arrays(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        return dict(parse_arrays(path.read_bytes()))
    except (OSError, SafetensorError, ValueError, KeyError) as error:
        raise InvalidFileError(
            f"{path} is not an intact safetensors file ({error}). Save the classifier again."
        ) from error


def _check_target(target: Path, *, overwrite: bool) -> None:
    if not target.exists():
        return
    names = {entry.name for entry in target.iterdir()} if target.is_dir() else {target.name}
    if target.is_dir() and (not names or (overwrite and names <= {CONFIG, WEIGHTS, BUILT, ARRAYS})):
        return
    raise InvalidFileError(
        f"`directory` must be new or empty, got {target}, which holds {min(names)}. Choose another folder, or "
        "pass overwrite=True to replace an earlier classifier; anything else is never replaced."
    )
