"""The code of a model that is somebody's own, and what it names: functions, classes, and places outside the module."""

import argparse
import collections
import contextvars
import dis
import functools
import inspect
import site
import sys
import sysconfig
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch_geometric.data.data import BaseData

from graycert.models.places import MISSING, Place, contents

CONTAINERS = (dict, list, set, collections.deque)
"""What can grow and shrink."""

DATA = (type(None), bool, int, float, complex, str, bytes, np.generic, Tensor, np.ndarray, *CONTAINERS, tuple)
"""What is a value, rather than code or an object."""

_LEAVES = (type(None), bool, int, float, complex, str, bytes, np.generic)
_NUMERICAL = {"torch", "torch_geometric", "torch_scatter", "torch_sparse", "torch_cluster", "pyg_lib", "numpy", "scipy"}
_BY_NAME = {"globals", "vars", "setattr", "exec", "eval", "__dict__"}
_MODULE_INTERNALS = frozenset(vars(nn.Module()))
_IMMUTABLE_TYPE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE


class OwnCode:
    """What the functions and classes of a model name, as far as they are somebody's own.

    Own is what lies outside the folders of installed packages, and packages that define the class of a module of the
    model, or a function that it holds. Other libraries are not looked into: their state is theirs.

    Args:
        model: Where to begin.

    Attributes:
        places: Where values are kept outside the model.
        functions: All functions that were looked through.
        classes: All classes that were.
        caches: Functions with a cache of their results.
        named: What functions name outside themselves, whatever it is.
    """

    def __init__(self, model: nn.Module) -> None:
        self.places: list[Place] = []
        self.functions: list[types.FunctionType] = []
        self.classes: list[type] = []
        self.caches: list[Any] = []
        self.named: list[tuple[str, Any]] = []
        self._seen: set[int] = set()
        self._roots = set(_packages(model))
        for module in model.modules():
            self._visit_object(module, inside=True)

    def _is_own(self, module: str) -> bool:
        root = module.split(".")[0]
        if root == "graycert":
            return module.startswith("graycert.zoo")
        return root in self._roots or not (is_numerical_or_standard(module) or _is_installed(root))

    def _is_new(self, value: Any) -> bool:
        new = id(value) not in self._seen
        self._seen.add(id(value))
        return new

    def _visit_object(self, value: Any, *, inside: bool) -> None:
        """Look through an object; what it holds itself is a place unless it is inside the model."""
        attributes = getattr(value, "__dict__", None)
        if not self._is_new(value) or not isinstance(attributes, dict):
            return
        for each in type(value).__mro__:
            self._visit_class(each)
        for name, held in list(attributes.items()):
            if isinstance(value, nn.Module) and name in _MODULE_INTERNALS:
                for hook in list(held.values()) if name.endswith("_hooks") else ():
                    self._visit(hook, None)
                if not inside:
                    self.places += _state_of(value, name)
            else:
                where = f"{type(value).__name__}.{name}"
                self._visit(held, None if inside else Place.entry(attributes, name, where))

    def _visit_class(self, each: type) -> None:
        """Look through the attributes of a class and the functions of its methods."""
        if not self._is_own(each.__module__) or not self._is_new(each):
            return
        self.classes.append(each)
        for name, held in list(vars(each).items()):
            if not (name.startswith("__") and isinstance(held, (*DATA, types.MappingProxyType))):
                self._visit(held, Place.attribute(each, name))

    def _visit_function(self, function: types.FunctionType) -> None:
        """Look through what a function names, closes over and has as defaults."""
        if not self._is_own(function.__module__ or "") or not self._is_new(function):
            return
        self.functions.append(function)
        names = {name for code in _codes(function.__code__) for name in code.co_names}
        scope = function.__globals__
        stored, attributes = stored_by(function, "STORE_GLOBAL"), stored_by(function, "STORE_ATTR") - {"__doc__"}
        if names & _BY_NAME:  # what is named cannot be read off the code
            names |= {name for name, held in scope.items() if isinstance(held, DATA) and not name.startswith("__")}
        for name in sorted(names):
            if name in scope or name in stored:
                self._visit_global(scope, name, names, attributes, function.__module__)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self._visit(contents(cell), Place.cell(cell, name))
        for number, held in enumerate(function.__defaults__ or ()):
            self._visit(held, Place.of(held, f"default {number} of {function.__name__}"))
        for name, held in (function.__kwdefaults__ or {}).items():
            self._visit(held, Place.of(held, f"default {name} of {function.__name__}"))
        for name, held in list(vars(function).items()):
            self._visit(held, Place.entry(vars(function), name, f"{function.__name__}.{name}"))

    def _visit_global(
        self, scope: dict[str, Any], name: str, names: set[str], attributes: set[str], module: str
    ) -> None:
        held = scope.get(name, MISSING)
        self.named.append((name, None if held is MISSING else held))
        self._visit_library(held, names, attributes)
        if isinstance(held, types.ModuleType):
            if self._is_own(held.__name__):
                for inner in sorted(names & set(vars(held))):
                    self.named.append((inner, vars(held)[inner]))
                    self._visit(vars(held)[inner], Place.entry(vars(held), inner, f"{held.__name__}.{inner}"))
        else:
            self._visit(held, Place.entry(scope, name, f"{name} in {module}"))

    def _visit_library(self, held: Any, names: set[str], attributes: set[str]) -> None:
        """Note where attributes that a function stores can be left in a library: its modules, classes, objects."""
        reached, looked_at = [held], {id(held)}
        while reached and attributes:
            target = reached.pop()
            kept = getattr(target, "__dict__", None)
            if self._is_own(_home(target)) or not isinstance(kept, dict | types.MappingProxyType):
                continue
            if not (isinstance(target, type) and target.__flags__ & _IMMUTABLE_TYPE):
                left = [each for each in sorted(attributes) if isinstance(kept.get(each), DATA)]
                self.places += [_left(target, each) for each in left]  # nothing, or a value that was left there
            if isinstance(target, types.ModuleType):
                inner = [kept[name] for name in sorted(names & set(kept)) if id(kept[name]) not in looked_at]
                looked_at.update(map(id, inner))
                reached += inner

    def _visit(self, held: Any, place: Place | None) -> None:
        """Look through a value; where it can change outside the model, it has a place."""
        held = self._unwrapped(held)
        if isinstance(held, functools.partial):
            for part in (held.func, *held.args, *held.keywords.values()):
                self._visit(part, Place.of(part, "argument of a partial function"))
        elif isinstance(held, threading.local):
            self._visit(vars(held), Place.of(vars(held), "thread-local values"))
        elif isinstance(held, contextvars.ContextVar):
            self.places.append(Place.context(held))
        elif isinstance(held, types.FunctionType):
            self._visit_function(held)
        elif isinstance(held, type):
            self._visit_class(held)
        elif isinstance(held, nn.Module):
            for module in held.modules():
                self._visit_object(module, inside=False)
        elif held is MISSING or isinstance(held, DATA):
            if place is not None:
                self.places.append(place)
            self._visit_entries(held, place)
        elif isinstance(held, types.SimpleNamespace | argparse.Namespace):
            self._visit_object(held, inside=place is None)
        elif isinstance(held, BaseData):
            for store in held.stores:
                self._visit(store._mapping, None if place is None else Place.of(store._mapping, place.name))
        elif self._is_own(type(held).__module__):
            self._visit_object(held, inside=False)

    def _unwrapped(self, held: Any) -> Any:
        """Return the function behind a method, property or cache; objects and caches are noted on the way."""
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
        return held

    def _visit_entries(self, held: Any, place: Place | None) -> None:
        """Look through what a container holds; each entry that can change is a place of its own."""
        if not isinstance(held, (*CONTAINERS, tuple)) or not self._is_new(held):
            return
        for each in list(held.values()) if isinstance(held, dict) else list(held):
            if not isinstance(each, _LEAVES):
                self._visit(each, None if place is None else Place.of(each, f"an entry of {place.name}"))


def is_numerical_or_standard(module: str) -> bool:
    """Return whether a module of Python is of its standard library, torch, PyTorch Geometric, NumPy or SciPy."""
    root = module.split(".")[0]
    return root in _NUMERICAL or (root in sys.stdlib_module_names and root != "__main__")


def stored_by(function: types.FunctionType, *operations: str) -> set[str]:
    """Return the names that a function stores by some operations of the interpreter, such as STORE_ATTR."""
    return {
        str(step.argval)
        for code in _codes(function.__code__)
        for step in dis.get_instructions(code)
        if step.opname in operations
    }


def _packages(model: nn.Module) -> Iterator[str]:
    """Yield the packages that define the classes of modules, and the functions that these hold."""
    for module in model.modules():
        for each in (type(module), *(held for held in vars(module).values() if isinstance(held, types.FunctionType))):
            if not is_numerical_or_standard(each.__module__ or ""):
                yield (each.__module__ or "").split(".")[0]


@functools.cache
def _is_installed(root: str) -> bool:
    """Return whether a package lies where packages are installed."""
    module = sys.modules.get(root)
    files = [getattr(module, "__file__", None), *list(getattr(module, "__path__", []))]
    return any(Path(file).is_relative_to(folder) for file in files if file for folder in _installed_folders())


@functools.cache
def _installed_folders() -> tuple[Path, ...]:
    paths = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    return tuple({Path(path) for path in [*paths, site.getusersitepackages()]})


def _state_of(module: nn.Module, name: str) -> list[Place]:
    """Return the weights, the buffers or the mode of a module that is no part of the model."""
    held = module.__dict__[name]
    if name == "training":
        return [Place.entry(module.__dict__, name, f"{type(module).__name__}.{name}")]
    if name not in ("_parameters", "_buffers"):
        return []
    return [
        Place.entry(held, key, f"{type(module).__name__}.{key}") for key, value in held.items() if value is not None
    ]


def _has(held: Any, name: str) -> bool:
    """Return whether an object has an attribute, without asking the object: foreign ones answer as they like."""
    return inspect.getattr_static(held, name, MISSING) is not MISSING


def _left(held: Any, name: str) -> Place:
    if isinstance(held, types.ModuleType | type):
        return Place.attribute(held, name)
    return Place.entry(held.__dict__, name, f"{getattr(held, '__name__', type(held).__name__)}.{name}")


def _home(held: Any) -> str:
    """Return the module of Python that a value is, is defined in, or is an instance of a class of."""
    if isinstance(held, types.ModuleType):
        return held.__name__
    defined = held.__module__ if isinstance(held, type | types.FunctionType) else type(held).__module__
    return str(defined or "")


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)
