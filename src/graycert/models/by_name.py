"""A new model by its name: one of graycert's architectures, or a class or function of the user."""

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

from graycert.errors import InvalidParameterError
from graycert.models.build import build_model
from graycert.models.names import check_new_model, is_own


def new_model(name: str, data: Any, *, num_layers: int | None = None, skip: bool | None = None, seed: int = 0) -> Any:
    """Return an untrained model.

    Args:
        name: "gcn", "gat", "gatv2" or "sma", or package.module:Class of the user, which is called with those of
            ``num_features``, ``num_classes``, ``in_channels`` and ``out_channels`` that it asks for.
        data: A graph or a split, which gives the number of features and of classes.
        num_layers: Message-passing steps of an architecture; default 2. A class of the user has its own.
        skip: Whether an architecture has a skip connection; default no. A class of the user is built as it is.
        seed: Seeds the initial weights; the global generator of torch is left as it was.

    Raises:
        InvalidParameterError: If the name is unknown, cannot be imported, or does not make a model.
    """
    check_new_model(name)
    if not is_own(name):
        return build_model(name, data, num_layers=num_layers or 2, skip=bool(skip), seed=seed)
    if skip:
        raise InvalidParameterError("`skip` must be left out for a class of your own: it is built as it is.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed % 2**63)  # the class may draw its initial weights
        return _own_model(name, data.test.data if hasattr(data, "test") else data)


def source_of(name: str) -> bytes:
    """Return the file that a class of the user is written in; nothing if there is none."""
    _look_beside_the_user()
    spec = importlib.util.find_spec(name.partition(":")[0])
    return b"" if spec is None or not spec.has_location else Path(str(spec.origin)).read_bytes()


def _own_model(name: str, data: Any) -> nn.Module:
    module_name, _, attribute = name.partition(":")
    _look_beside_the_user()
    try:
        made = getattr(importlib.import_module(module_name), attribute)
    except Exception as error:  # whatever the user's module raises
        raise InvalidParameterError(
            f"`model` must name something that can be imported, got {name!r} ({type(error).__name__}: {error}). "
            "Write package.module:Class, and start graycert where Python finds the package."
        ) from error
    if isinstance(made, nn.Module):
        return made
    try:
        module = made(**_sizes(made, data))
    except InvalidParameterError:
        raise
    except Exception as error:
        raise InvalidParameterError(
            f"`model`: {name} cannot be called ({type(error).__name__}: {error}). It gets "
            "num_features and num_classes, or in_channels and out_channels, if it asks for them, and nothing else."
        ) from error
    if not isinstance(module, nn.Module):
        raise InvalidParameterError(f"`model`: {name} must make a torch.nn.Module, got {type(module).__name__}.")
    return module


def _look_beside_the_user() -> None:
    """Find modules in the working folder, as with `python -m`."""
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))


def _sizes(made: Any, data: Any) -> dict[str, int]:
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
            "`model` asks for the number of classes, but the graph has no labels that tell it. Name a function that "
            "needs no arguments, or only the number of features, and knows the number of classes itself."
        )
    return {name: size for name, size in sizes.items() if name in wanted}
