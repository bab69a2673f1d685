"""What a model can remember where a deep copy does not reach: classes, globals, closures, registries, environment."""

import collections
import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from graycert.models.own_code import CONTAINERS, DATA, OwnCode, stored_by
from graycert.models.places import MISSING, Place


class OutsideState:
    """A photograph of all places that the code of a model names, so that it can be put back.

    Args:
        model: What it names is looked through, see `OwnCode`.

    Attributes:
        code: What the model names.
    """

    def __init__(self, model: nn.Module) -> None:
        self.code = OwnCode(model)
        places = [*self.code.places, Place.environment()]
        self._kept = [(place, place.get(), _copied(place.get())) for place in places]
        self._names = [(each, set(vars(each))) for each in self.code.classes]

    @property
    def stored_names(self) -> set[str]:
        """Names that functions other than constructors store: attributes, globals."""
        return {
            name
            for function in self.code.functions
            if function.__name__ not in ("__init__", "reset_parameters", "__setattr__", "__setstate__")
            for name in stored_by(function, "STORE_ATTR", "STORE_GLOBAL", "STORE_DEREF")
        }

    @property
    def may_remember(self) -> bool:
        """Whether functions store anything, or containers and caches are within their reach."""
        holds = any(isinstance(place.get(), CONTAINERS) for place in self.code.places)
        return bool(self.stored_names or self.code.caches or holds)

    def changed(self) -> list[str]:
        """Return the names of places that hold something else than on the photograph."""
        names = [place.name for place, _, kept in self._kept if not same_value(place.get(), kept)]
        return names + [f"{each.__name__}.{name}" for each, before in self._names for name in set(vars(each)) - before]

    def restore(self) -> None:
        """Put everything back."""
        for cached in self.code.caches:
            cached.cache_clear()
        for each, before in self._names:
            for name in set(vars(each)) - before:
                delattr(each, name)
        for place, original, kept in self._kept:
            if same_value(place.get(), kept):
                continue
            if original is MISSING:
                place.drop()
                continue
            _put_back(original, _copied(kept))
            place.put(original if same_value(original, kept) else kept)


def _copied(value: Any) -> Any:
    """Return a photograph of a value; of a container which entries it has: those are places of their own."""
    if isinstance(value, CONTAINERS):
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
    return all(isinstance(each, DATA) for each in entries)


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
            if isinstance(value, CONTAINERS) and value and not name.startswith("_"):
                value.clear()
                refilled.append(lambda value=value: bool(value))  # type: ignore[misc]
            elif name in stored and value is not None and isinstance(value, DATA) and name != "training":
                delattr(module, name)
                if not by_removal:
                    setattr(module, name, None)
                refilled.append(lambda module=module, name=name: getattr(module, name, None) is not None)  # type: ignore[misc]
    for place in outside.code.places:
        value = place.get()
        if isinstance(value, CONTAINERS) and value and _holds_data(value):
            value.clear()
            refilled.append(lambda place=place: bool(place.get()))  # type: ignore[misc]
        elif place.key in stored and value is not None and value is not MISSING:
            place.drop() if by_removal else place.put(None)
            refilled.append(lambda place=place: place.get() not in (None, MISSING))  # type: ignore[misc]
    return refilled
