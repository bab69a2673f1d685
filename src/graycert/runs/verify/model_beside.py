"""What a model says without a single draw: skip connection, depth, classes, features, convolution, weights."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graycert.certificates import Certificates
from graycert.data.as_data import as_data
from graycert.errors import GraycertError
from graycert.problem import Problem
from graycert.runs.store import MODEL_FILES
from graycert.runs.verify.as_trained import compare_as_trained
from graycert.runs.verify.findings import VerificationCheck
from graycert.runs.verify.stored_files import stored_hash

if TYPE_CHECKING:  # loads torch
    from torch import nn


def model_beside(folder: Path) -> "nn.Module | None":
    """Return the model that a run keeps, or None if there is none.

    Raises:
        InvalidFileError: If its files are damaged.
    """
    if not all((folder / name).is_file() for name in MODEL_FILES):
        return None
    from graycert.models import load_model

    return load_model(folder / MODEL_FILES[0])


def ask_model(stored: Certificates, graph: Any, model: "nn.Module") -> Iterator[VerificationCheck]:
    """Hold what a run says of its model against the model.

    The depth of a model that graycert did not build is what the audit finds, which `verify` runs when it draws again.

    Args:
        stored: The run.
        graph: The graph that was certified.
        model: The model.
    """
    from graycert.audit import convolution_of
    from graycert.models.weights import OwnModel

    s = stored.setup
    try:
        problem = Problem.stored(s, stored.targets, graph)
        s.smoothing.method.refuse(dataclasses.replace(problem, model=model))
        yield _check("model: skip", "what it shows of the target is what the threat allows")
    except GraycertError as error:
        yield _check("model: skip", str(error), passed=False)
    try:
        known = None if s.convolution is None else convolution_of(model)
    except Exception:  # a model that cannot be copied is refused, in words, when it draws
        known = None
    if known is not None:
        yield _equal("model: convolution", s.convolution, known)
    yield from _same_weights(stored, model)
    yield from compare_as_trained(stored, as_data(graph), model)
    if not isinstance(model, OwnModel):
        return
    config = model.config
    yield _equal("model: classes", s.num_classes, config.num_classes)
    yield _equal("model: features", int(graph.x.shape[1]), config.num_features)
    if s.num_layers is not None:
        deep_enough = s.num_layers >= model.num_layers
        detail = f"the run assumes {s.num_layers:,} propagation steps, the model takes {model.num_layers:,}"
        yield _check("model: depth", detail, passed=deep_enough)


def _same_weights(stored: Certificates, model: "nn.Module") -> Iterator[VerificationCheck]:
    """Compare the weights with the hash that the run stores, where it stores one and the model is all tensors."""
    from graycert.models import weights_sha256

    expected = stored_hash(stored)
    if expected is None:
        return
    try:
        found = weights_sha256(model)
    except (AttributeError, TypeError, ValueError) as error:  # a module may keep anything beside its tensors
        yield _check("model: weights", f"its weights have no hash ({type(error).__name__}: {error})", passed=False)
        return
    same = found == expected
    detail = "is the model that voted" if same else f"its hash is {found}, but the run was made with {expected}"
    yield _check("model: weights", detail, passed=same)


def _check(name: str, detail: str, *, passed: bool = True) -> VerificationCheck:
    return VerificationCheck(name=name, passed=passed, detail=detail)


def _equal(name: str, stored: object, found: object) -> VerificationCheck:
    return _check(name, f"stored {stored!r}, the model has {found!r}", passed=stored == found)
