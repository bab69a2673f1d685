"""Places outside a module where a value can be kept: a global, an attribute of a class, a closure, a context."""

import contextvars
import os
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MISSING = object()
"""What a place holds that is not there."""


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

    @classmethod
    def entry(cls, holder: dict[str, Any], key: str, name: str) -> "Place":
        """Return the entry of a dictionary, such as the globals of a module or the attributes of an object."""

        def drop() -> None:
            holder.pop(key, None)

        return cls(name, key, lambda: holder.get(key, MISSING), lambda value: holder.__setitem__(key, value), drop)

    @classmethod
    def attribute(cls, owner: type | types.ModuleType, key: str) -> "Place":
        """Return the attribute of a class or module."""
        return cls(
            f"{owner.__name__}.{key}",
            key,
            lambda: vars(owner).get(key, MISSING),
            lambda value: setattr(owner, key, value),
            lambda: delattr(owner, key),
        )

    @classmethod
    def cell(cls, cell: types.CellType, key: str) -> "Place":
        """Return the variable of a closure."""

        def put(value: Any) -> None:
            cell.cell_contents = value

        return cls(f"closure variable {key}", key, lambda: contents(cell), put, _nothing)

    @classmethod
    def context(cls, variable: contextvars.ContextVar[Any]) -> "Place":
        """Return a context variable."""

        def put(value: Any) -> None:
            variable.set(value)

        name = f"context variable {variable.name}"
        return cls(name, variable.name, lambda: variable.get(None), put, lambda: put(None))

    @classmethod
    def of(cls, value: Any, name: str) -> "Place":
        """Return what a value holds that can change by itself, such as a list."""
        return cls(name, name, lambda: value, lambda _: None, _nothing)

    @classmethod
    def environment(cls) -> "Place":
        """Return the environment of the process."""

        def put(value: dict[str, str]) -> None:
            for name in set(os.environ) - set(value):
                del os.environ[name]
            os.environ.update(value)

        return cls("os.environ", "environ", lambda: dict(os.environ), put, _nothing)


def contents(cell: types.CellType) -> Any:
    """Return what the variable of a closure holds."""
    try:
        return cell.cell_contents
    except ValueError:  # not yet filled
        return MISSING


def _nothing() -> None:
    """Leave it there."""
