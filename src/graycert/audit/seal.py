"""A report is bound to the model, graph and token that it is about, by hash, for as long as the process lives."""

import dataclasses
import hashlib
import hmac
import os
import pickle
import secrets
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from graycert.audit.question import Question
from graycert.audit.report import AuditReport
from graycert.graph import fingerprint_of
from graycert.models.edge_inputs import chosen_edge_inputs
from graycert.models.own_code import OwnCode, is_numerical_or_standard
from graycert.models.private_copy import private_copy
from graycert.sampling.voting import ablation_row

_KEY = secrets.token_bytes(32)  # of this process: what another one has sealed is not trusted


def parts_of(asked: Question, *, fingerprint: str | None = None) -> Mapping[str, str]:
    """Return a hash of each thing that the verdict of an audit depends on, apart from the targets.

    Of the model its values and the code of its modules count, and what classes, globals and closures hold that this
    code names; its mode and place do not.

    Args:
        asked: What is asked.
        fingerprint: That of the graph (`graph_fingerprint`), if it is known.

    Returns:
        Hexadecimal digits by name; those of the model are empty if it holds something that cannot be hashed.
    """
    chosen = chosen_edge_inputs(asked.model, asked.data, asked.edge_inputs)
    copied = private_copy(asked.model).cpu()
    token = ablation_row(copied, asked.ablation_token, num_features=asked.data.x.size(1))
    return {
        "model": _model_hash(copied),
        "data": fingerprint_of(asked.data, chosen) if fingerprint is None else fingerprint,
        "ablation_token": _hash(lambda digest: digest.add(token.detach().to(asked.data.x.dtype))),
        "edge_inputs": str(chosen or ()),
        "num_layers": str(asked.num_layers),
        "features_matter": str(asked.features_matter),
    }


def sealed(report: AuditReport, asked: Question) -> AuditReport:
    """Return a report that is bound to what was asked."""
    bound = dataclasses.replace(report, about=parts_of(asked))
    return dataclasses.replace(bound, seal=_seal_of(bound))


def is_sealed(report: AuditReport) -> bool:
    """Return whether a report is as this process sealed it."""
    return bool(report.seal) and hmac.compare_digest(report.seal, _seal_of(report))


def _seal_of(report: AuditReport) -> str:
    """Return the seal that a report of this process has, over all that it says and is about."""
    said = {each.name: getattr(report, each.name) for each in dataclasses.fields(report) if each.name != "seal"}
    return hmac.new(_KEY, repr(said).encode(), hashlib.sha256).hexdigest()


def _hash(fill: Callable[["_Digest"], None], model: nn.Module | None = None) -> str:
    digest = _Digest(frozenset() if model is None else frozenset(map(id, model.modules())))
    fill(digest)
    return digest.hexdigest()


def _model_hash(model: nn.Module) -> str:
    code = OwnCode(model)

    def fill(digest: _Digest) -> None:
        digest.add(model)
        for function in code.functions:
            digest.add(function)
        digest.add(code.named)
        for place in code.places:
            digest.add((place.name, place.get()))
        if {"environ", "getenv"} & {name for function in code.functions for name in function.__code__.co_names}:
            digest.add(dict(os.environ))

    try:
        return _hash(fill, model)
    except Exception:  # foreign objects refuse to be pickled in their own ways
        return ""


class _Digest:
    """A hash of nested values: arrays by their bytes, functions by their code, objects by class and attributes.

    Args:
        evaluated: Identities of modules whose mode does not count.
    """

    def __init__(self, evaluated: frozenset[int]) -> None:
        self._evaluated = evaluated
        self._sha = hashlib.sha256()
        self._seen: dict[int, tuple[int, Any]] = {}  # the objects too, so that no number is given away again

    def hexdigest(self) -> str:
        """Return the hash of all that was added."""
        return self._sha.hexdigest()

    def add(self, value: Any) -> None:
        """Add one value.

        Raises:
            TypeError: If it is of a kind of which nobody knows what it holds; or another error of `pickle`.
        """
        if value is None or isinstance(value, bool | int | float | complex | str | bytes | torch.dtype | torch.device):
            self._say(type(value).__name__, repr(value))
            return
        if id(value) in self._seen:
            self._say("again", str(self._seen[id(value)][0]))
            return
        self._seen[id(value)] = (len(self._seen), value)
        if isinstance(value, Tensor):
            self._add_tensor(value)
        elif isinstance(value, np.ndarray) and value.dtype.kind in "biufcSU":
            self._say("array", value.dtype.str, str(value.shape))
            self._sha.update(np.ascontiguousarray(value).tobytes())
        elif isinstance(value, dict | list | tuple | set | frozenset):
            self._add_container(value)
        elif isinstance(value, types.FunctionType):
            self._add_function(value)
        elif isinstance(value, type):
            self._add_class(value)
        elif isinstance(value, types.CodeType):
            self._say("code", value.co_code.hex(), repr(value.co_names))
            self.add(value.co_consts)
        elif isinstance(value, types.MethodType):
            self.add((value.__func__, value.__self__))
        elif isinstance(value, types.ModuleType | types.BuiltinFunctionType):
            self._say("name", repr(value))
        else:
            self._add_object(value)

    def _say(self, *words: str) -> None:
        for word in words:
            self._sha.update(f"{len(word)}:{word};".encode())

    def _add_tensor(self, value: Tensor) -> None:
        if value.layout is not torch.strided:
            raise TypeError("a sparse tensor")
        self._say("tensor", type(value).__name__, str(value.dtype), str(tuple(value.shape)))
        flat = value.detach().cpu().contiguous().reshape(-1)
        self._sha.update(flat.view(torch.uint8).numpy().tobytes())

    def _add_container(self, value: Any) -> None:
        self._say(type(value).__name__, str(len(value)))
        if isinstance(value, set | frozenset):
            value = sorted(value, key=repr)
        for each in value.items() if isinstance(value, dict) else value:
            if isinstance(value, dict):
                self.add(each[0])
                self.add(each[1])
            else:
                self.add(each)

    def _add_function(self, function: types.FunctionType) -> None:
        self._say("function", function.__qualname__)
        self.add(function.__code__)
        self.add((function.__defaults__, function.__kwdefaults__))
        for cell in function.__closure__ or ():
            try:
                held = cell.cell_contents
            except ValueError:  # not filled yet
                self._say("empty cell")
            else:
                self.add(held)

    def _add_class(self, each: type) -> None:
        """Add name and code of a class; what a class of somebody holds is among the places outside the model."""
        self._say("class", f"{each.__module__}.{each.__qualname__}")
        for parent in each.__mro__:
            for name, held in vars(parent).items():
                inner = getattr(held, "__func__", getattr(held, "fget", held))
                if isinstance(inner, types.FunctionType):
                    self._say(name)
                    self.add(inner.__code__)

    def _add_object(self, value: Any) -> None:
        kind = type(value)
        own_words = any({"__reduce__", "__reduce_ex__"} & set(vars(each)) for each in kind.__mro__[:-1])
        if own_words or not hasattr(value, "__dict__"):
            if not is_numerical_or_standard(kind.__module__):
                raise TypeError(f"{kind.__name__} may hold more than its attributes")
            self._say("pickled", kind.__qualname__)
            self._sha.update(pickle.dumps(value))
            return
        self.add(kind)
        slots = {name for each in kind.__mro__ for name in getattr(each, "__slots__", ())}
        self.add({name: getattr(value, name) for name in sorted(slots) if name != "__dict__" and hasattr(value, name)})
        for name, held in vars(value).items():
            if name == "training" and id(value) in self._evaluated:
                continue  # evaluation mode, always
            self._say(name)
            self.add(list(held.values()) if "_hooks" in name and isinstance(held, dict) else held)  # numbered anew
