"""Nested plain values: what a configuration file can hold."""

import datetime
import math
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from graycert.errors import InvalidParameterError


def plain_mapping(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a deep copy of ``values`` with plain types: NumPy scalars, tuples and paths become Python's own.

    Entries that are None are dropped: TOML has no empty value, and what is stored should equal what is held.

    Raises:
        InvalidParameterError: If a key is not a text, or a value is neither number, text, date, list nor
            mapping.
    """
    if not isinstance(values, Mapping):
        raise InvalidParameterError(f"`{name}` must be a mapping with text keys, got {values!r}.")
    result = {}
    for key, value in values.items():
        if not isinstance(key, str):
            raise InvalidParameterError(f"`{name}` must have text keys, got {key!r}.")
        if value is not None:
            result[key] = _plain(f"{name}.{key}", value)
    return result


def _plain(name: str, value: object) -> Any:
    if isinstance(value, Mapping):
        return plain_mapping(name, value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(f"{name}[{index}]", item) for index, item in enumerate(value)]
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | int | datetime.date | datetime.time):
        return value
    if isinstance(value, float) and not math.isnan(value):
        return value
    raise InvalidParameterError(
        f"`{name}` must be a number, text, date, list or mapping, got {value!r}. It is written to config.toml."
    )
