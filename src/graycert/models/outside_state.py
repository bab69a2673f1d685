"""What a model can remember where a deep copy does not reach: classes, globals, closures, registries, environment."""

import argparse
import collections
import contextvars
import copy
import dis
import functools
import inspect
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data.data import BaseData

_LIBRARIES = """
torch torch_geometric torch_scatter torch_sparse torch_cluster pyg_lib numpy scipy numba llvmlite pandas pyarrow
matplotlib networkx sklearn sympy mpmath joblib PIL tqdm rich jinja2 attr attrs pydantic fsspec aiohttp requests urllib3
psutil xxhash safetensors lightning pytorch_lightning lightning_fabric torchmetrics IPython ipykernel pytest _pytest
pluggy hypothesis optuna pymoo cyclopts
"""
_KNOWN = set(_LIBRARIES.split())
_BY_NAME = {"globals", "vars", "setattr", "exec", "eval", "__dict__"}
_MODULE_INTERNALS = frozenset(vars(nn.Module()))
_MISSING = object()
_CONTAINERS = (dict, list, set, collections.deque)
_IMMUTABLE = (type(None), bool, int, float, complex, str, bytes, np.generic)
_DATA = (*_IMMUTABLE, Tensor, np.ndarray, *_CONTAINERS, tuple)


@dataclass(frozen=True, eq=False)
class Place:
    """Somewhere outside the module where a value is kept.

    Args:
        name: What it is called, for people.
        key: Its last name.
        get: Returns the value.
        put: Replaces it.
        drop: Removes it.
    """

    name: str
    key: str
    get: Callable[[], Any]
    put: Callable[[Any], None]
    drop: Callable[[], None]


class OutsideState:
    """A photograph of all places that the code of a model names, so that it can be put back.

    Args:
        model: Its classes, the functions that they call, and what these name are looked through, as far as they are
            not part of torch, PyTorch Geometric, NumPy, SciPy, the standard library or graycert.
    """

    def __init__(self, model: nn.Module) -> None:
        self._walk = _Walk()
        for module in model.modules():
            self._walk.visit_object(module, inside=True)
        places = [*self._walk.places, _environment()]
        self._kept = [(place, place.get(), _copied(place.get())) for place in places]
        self._names = [(each, set(vars(each))) for each in self._walk.classes]

    @property
    def stored_names(self) -> set[str]:
        """Names that functions other than constructors store: attributes, globals."""
        return {
            name
            for function in self.functions
            if function.__name__ not in ("__init__", "reset_parameters", "__setattr__", "__setstate__")
            for name in _stored(function, "STORE_ATTR", "STORE_GLOBAL", "STORE_DEREF")
        }

    @property
    def may_remember(self) -> bool:
        """Whether functions store anything, or containers and caches are within their reach."""
        holds = any(isinstance(place.get(), _CONTAINERS) for place in self.places)
        return bool(self.stored_names or self._walk.caches or holds)

    @property
    def functions(self) -> list[types.FunctionType]:
        """All functions that were looked through."""
        return self._walk.functions

    @property
    def named(self) -> list[tuple[str, Any]]:
        """What functions name outside themselves, whatever it is."""
        return self._walk.named

    @property
    def places(self) -> list[Place]:
        """All places."""
        return self._walk.places

    def changed(self) -> list[str]:
        """Return the names of places that hold something else than on the photograph."""
        names = [place.name for place, _, kept in self._kept if not same_value(place.get(), kept)]
        return names + [f"{each.__name__}.{name}" for each, before in self._names for name in set(vars(each)) - before]

    def restore(self) -> None:
        """Put everything back."""
        for cached in self._walk.caches:
            cached.cache_clear()
        for each, before in self._names:
            for name in set(vars(each)) - before:
                delattr(each, name)
        for place, original, kept in self._kept:
            if same_value(place.get(), kept):
                continue
            if original is _MISSING:
                place.drop()
                continue
            _put_back(original, _copied(kept))
            place.put(original if same_value(original, kept) else kept)


class _Walk:
    def __init__(self) -> None:
        self.places: list[Place] = []
        self.functions: list[types.FunctionType] = []
        self.classes: list[type] = []
        self.caches: list[Any] = []
        self.named: list[tuple[str, Any]] = []
        self._seen: set[int] = set()

    def _is_new(self, value: Any) -> bool:
        new = id(value) not in self._seen
        self._seen.add(id(value))
        return new

    def visit_object(self, value: Any, *, inside: bool) -> None:
        """Look through an object; what it holds itself is a place unless it is inside the module."""
        if not self._is_new(value):
            return
        for each in type(value).__mro__:
            self.visit_class(each)
        attributes = getattr(value, "__dict__", {})
        for name, held in list(attributes.items()) if isinstance(attributes, dict) else ():
            if isinstance(value, nn.Module) and name in _MODULE_INTERNALS:
                for hook in list(held.values()) if name.endswith("_hooks") else ():
                    self._visit(hook, None)
                if not inside:
                    self.places += _own_values(value, name)
            else:
                self._visit(held, None if inside else _entry(value.__dict__, name, f"{type(value).__name__}.{name}"))

    def visit_class(self, each: type) -> None:
        """Look through the attributes of a class and the functions of its methods."""
        if not is_foreign(each.__module__) or not self._is_new(each):
            return
        self.classes.append(each)
        for name, held in list(vars(each).items()):
            if not (name.startswith("__") and isinstance(held, (*_DATA, types.MappingProxyType))):
                self._visit(held, _attribute(each, name))

    def visit_function(self, function: types.FunctionType) -> None:
        """Look through what a function names, closes over and has as defaults."""
        if not is_foreign(function.__module__ or "") or not self._is_new(function):
            return
        self.functions.append(function)
        names = {name for code in _codes(function.__code__) for name in code.co_names}
        scope = function.__globals__
        stored, attributes = _stored(function, "STORE_GLOBAL"), _stored(function, "STORE_ATTR") - {"__doc__"}
        if names & _BY_NAME:  # what is named cannot be read off the code
            names |= {name for name, held in scope.items() if isinstance(held, _DATA) and not name.startswith("__")}
        for name in sorted(names):
            if name in scope or name in stored:
                self._visit_global(scope, name, names, attributes, function.__module__)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self._visit(_contents(cell), _cell(cell, name))
        for number, held in enumerate(function.__defaults__ or ()):
            self._visit(held, _held(held, f"default {number} of {function.__name__}"))
        for name, held in (function.__kwdefaults__ or {}).items():
            self._visit(held, _held(held, f"default {name} of {function.__name__}"))
        for name, held in list(vars(function).items()):
            self._visit(held, _entry(vars(function), name, f"{function.__name__}.{name}"))

    def _visit_global(
        self, scope: dict[str, Any], name: str, names: set[str], attributes: set[str], module: str
    ) -> None:
        held = scope.get(name, _MISSING)
        self.named.append((name, None if held is _MISSING else held))
        if isinstance(held, types.ModuleType | type) and not is_foreign(_home(held)):
            left = [each for each in sorted(attributes) if isinstance(vars(held).get(each), _DATA)]
            self.places += [_attribute(held, each) for each in left]  # nothing, or a value left in torch itself
        if isinstance(held, types.ModuleType):
            if is_foreign(held.__name__):
                for inner in sorted(names & set(vars(held))):
                    self.named.append((inner, vars(held)[inner]))
                    self._visit(vars(held)[inner], _entry(vars(held), inner, f"{held.__name__}.{inner}"))
        else:
            self._visit(held, _entry(scope, name, f"{name} in {module}"))

    def _visit(self, held: Any, place: Place | None) -> None:
        if isinstance(held, staticmethod | classmethod):
            held = held.__func__
        elif isinstance(held, property):
            held = held.fget
        elif isinstance(held, types.MethodType):
            self._visit(held.__self__, None)
            held = held.__func__
        if _has(held, "cache_clear") and _has(held, "__wrapped__"):
            self.caches.append(held)
            held = held.__wrapped__
        if isinstance(held, functools.partial):
            for part in (held.func, *held.args, *held.keywords.values()):
                self._visit(part, _held(part, "argument of a partial function"))
        elif isinstance(held, threading.local):
            self._visit(vars(held), _held(vars(held), "thread-local values"))
        elif isinstance(held, contextvars.ContextVar):
            self.places.append(_context(held))
        elif isinstance(held, types.FunctionType):
            self.visit_function(held)
        elif isinstance(held, type):
            self.visit_class(held)
        elif isinstance(held, nn.Module):
            for module in held.modules():
                self.visit_object(module, inside=False)
        elif held is _MISSING or isinstance(held, _DATA):
            if place is not None:
                self.places.append(place)
            self._visit_entries(held, place)
        elif isinstance(held, types.SimpleNamespace | argparse.Namespace):
            self.visit_object(held, inside=place is None)
        elif isinstance(held, BaseData):
            for store in held.stores:
                self._visit(store._mapping, None if place is None else _held(store._mapping, place.name))
        elif is_foreign(type(held).__module__) and hasattr(held, "__dict__"):
            self.visit_object(held, inside=False)

    def _visit_entries(self, held: Any, place: Place | None) -> None:
        """Look through what a container holds; each entry that can change is a place of its own."""
        if not isinstance(held, (*_CONTAINERS, tuple)) or not self._is_new(held):
            return
        for each in list(held.values()) if isinstance(held, dict) else list(held):
            if not isinstance(each, _IMMUTABLE):
                self._visit(each, None if place is None else _held(each, f"an entry of {place.name}"))


def _own_values(module: nn.Module, name: str) -> list[Place]:
    """Return the weights, the buffers or the mode of a module that is no part of the model."""
    where = f"{type(module).__name__}.{name}"
    if name == "training":
        return [_entry(module.__dict__, name, where)]
    if name not in ("_parameters", "_buffers"):
        return []
    held = module.__dict__[name]
    return [_entry(held, key, f"{type(module).__name__}.{key}") for key, value in held.items() if value is not None]


def is_foreign(module: str) -> bool:
    """Return whether a module of Python is none of torch, PyTorch Geometric, NumPy, SciPy, Python or graycert."""
    root = module.split(".")[0]
    if root == "graycert":
        return module.startswith("graycert.zoo")
    return (root not in _KNOWN and root not in sys.stdlib_module_names) or root == "__main__"


def _has(held: Any, name: str) -> bool:
    """Return whether an object has an attribute, without asking the object: foreign ones answer as they like."""
    return inspect.getattr_static(held, name, _MISSING) is not _MISSING


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _entry(holder: dict[str, Any], name: str, text: str) -> Place:
    def drop() -> None:
        holder.pop(name, None)

    return Place(text, name, lambda: holder.get(name, _MISSING), lambda value: holder.__setitem__(name, value), drop)


def _home(held: types.ModuleType | type) -> str:
    return held.__name__ if isinstance(held, types.ModuleType) else held.__module__


def _stored(function: types.FunctionType, *operations: str) -> set[str]:
    return {
        str(step.argval)
        for code in _codes(function.__code__)
        for step in dis.get_instructions(code)
        if step.opname in operations
    }


def _environment() -> Place:
    def put(value: dict[str, str]) -> None:
        for name in set(os.environ) - set(value):
            del os.environ[name]
        os.environ.update(value)

    return Place("os.environ", "environ", lambda: dict(os.environ), put, lambda: None)


def _attribute(each: type | types.ModuleType, name: str) -> Place:
    return Place(
        f"{each.__name__}.{name}",
        name,
        lambda: vars(each).get(name, _MISSING),
        lambda value: setattr(each, name, value),
        lambda: delattr(each, name),
    )


def _cell(cell: types.CellType, name: str) -> Place:
    def put(value: Any) -> None:
        cell.cell_contents = value

    return Place(f"closure variable {name}", name, lambda: _contents(cell), put, lambda: None)


def _context(variable: contextvars.ContextVar[Any]) -> Place:
    def put(value: Any) -> None:
        variable.set(value)

    return Place(f"context variable {variable.name}", variable.name, lambda: variable.get(None), put, lambda: put(None))


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet filled
        return _MISSING


def _held(value: Any, text: str) -> Place:
    return Place(text, text, lambda: value, lambda _: None, lambda: None)


def _copied(value: Any) -> Any:
    """Return a photograph of a value; of a container which entries it has: those are places of their own."""
    if isinstance(value, _CONTAINERS):
        return copy.copy(value)
    if not isinstance(value, Tensor | np.ndarray):
        return value
    try:
        return copy.deepcopy(value)
    except Exception:  # a tensor with a history
        return value.detach().clone() if isinstance(value, Tensor) else value


def _put_back(original: Any, kept: Any) -> None:
    """Give an object that was changed in place its contents back."""
    if isinstance(original, dict | set):
        original.clear()
        original.update(kept)
    elif isinstance(original, list):
        original[:] = kept
    elif isinstance(original, collections.deque):
        original.clear()
        original.extend(kept)
    elif isinstance(original, Tensor) and original.shape == kept.shape:
        with torch.no_grad():
            original.copy_(kept)
    elif isinstance(original, np.ndarray) and original.shape == kept.shape:
        original[...] = kept


def same_value(first: Any, second: Any) -> bool:
    """Return whether two values are equal; tensors and arrays bit for bit, containers entry by entry."""
    if first is second:
        return True
    if type(first) is not type(second):
        return False
    if isinstance(first, Tensor):
        return _same_tensor(first, second)
    if isinstance(first, np.ndarray):
        return first.shape == second.shape and bool(np.array_equal(first, second))
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same_value(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple | collections.deque):
        return len(first) == len(second) and all(map(same_value, first, second))
    try:
        return bool(first == second)
    except Exception:  # foreign comparison
        return False


def _same_tensor(first: Tensor, second: Tensor) -> bool:
    if first.shape != second.shape or first.dtype != second.dtype or first.layout != second.layout:
        return False
    if first.layout is not torch.strided:
        first, second = first.to_dense(), second.to_dense()
    return bool(((first == second) | ((first != first) & (second != second))).all())


def _holds_data(container: Any) -> bool:
    """Return whether a container holds values, rather than parts of the model: functions, classes, objects."""
    entries = container.values() if isinstance(container, dict) else container
    return all(isinstance(each, _DATA) for each in entries)


def emptied(model: nn.Module, outside: OutsideState, *, by_removal: bool) -> list[Callable[[], bool]]:
    """Empty whatever forward passes store, in a copy of a model and outside it.

    Args:
        model: A copy.
        outside: What is outside it; put it back afterwards.
        by_removal: Whether to remove attributes instead of setting them to None.

    Returns:
        Per emptied place a function that tells whether something is stored there again.
    """
    refilled: list[Callable[[], bool]] = []
    stored = outside.stored_names
    for module in model.modules():
        for name, value in list({**vars(module), **module._buffers}.items()):
            if isinstance(value, _CONTAINERS) and value and not name.startswith("_"):
                value.clear()
                refilled.append(lambda value=value: bool(value))  # type: ignore[misc]
            elif name in stored and value is not None and isinstance(value, _DATA) and name != "training":
                delattr(module, name)
                if not by_removal:
                    setattr(module, name, None)
                refilled.append(lambda module=module, name=name: getattr(module, name, None) is not None)  # type: ignore[misc]
    for place in outside.places:
        value = place.get()
        if isinstance(value, _CONTAINERS) and value and _holds_data(value):
            value.clear()
            refilled.append(lambda place=place: bool(place.get()))  # type: ignore[misc]
        elif place.key in stored and value is not None and value is not _MISSING:
            try:
                place.drop() if by_removal else place.put(None)
            except (TypeError, AttributeError):  # an attribute that nobody can set
                continue
            refilled.append(lambda place=place: place.get() not in (None, _MISSING))  # type: ignore[misc]
    return refilled
