"""The table of the targets: for data frames and for certificates.parquet."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert._fields import Field
from graycert.certificates import ARRAYS, Certificates
from graycert.runs.who import protect_first_per_target
from graycert.smoothing import Smoothing

DERIVED = ("class_name", "whole_field", "protect_first")
"""Columns that follow from others: written for readers, compared when a table is read."""


LISTS = ("protect_first",)
"""Columns with a list of texts per target."""


def to_columns(certificates: Certificates) -> dict[str, Any]:
    """Return the columns of the table, one entry per target each, in the order in which they are shown."""
    columns: dict[str, Any] = {}
    for spec, array in certificates.every_array().values():
        if not spec.column:
            continue
        if spec.first is None:
            columns[spec.column] = array.tolist() if spec.kind == "text" else array
        else:
            columns |= {f"{spec.column}{spec.first + place}": array[:, place] for place in range(array.shape[1])}
        names = certificates.setup.class_names
        if spec.name == "prediction" and names is not None:
            columns["class_name"] = [names[index] for index in array]
        if spec.name == "radius":
            columns["whole_field"] = certificates.whole_field
            if certificates.attackers is not None:
                columns["protect_first"] = protect_first_per_target(certificates)
    return columns


def from_columns(columns: dict[str, Any], smoothing: Smoothing) -> dict[str, NDArray[Any]]:
    """Return the arrays of a table by name; derived columns are left out.

    Raises:
        KeyError: If a column that every table has is missing.
    """
    arrays: dict[str, NDArray[Any]] = {}
    for spec in in_table(smoothing):
        if spec.first is None:
            if spec.column in columns:
                arrays[spec.name] = columns[spec.column]
            elif not spec.optional:
                raise KeyError(spec.column)
            continue
        found = [columns[name] for name in _numbered(spec, columns)]
        if found:
            arrays[spec.name] = np.stack(found, axis=1)
        elif not spec.optional:
            raise KeyError(f"{spec.column}{spec.first}")
    return arrays


def in_table(smoothing: Smoothing) -> Iterable[Field]:
    """Return the declarations of the arrays that are columns."""
    return (spec for spec in (*ARRAYS, *smoothing.adds) if spec.column)


def _numbered(spec: Field, columns: dict[str, Any]) -> Iterable[str]:
    """Return the names of an array's columns, in order, as far as they follow each other."""
    place = spec.first or 0
    while f"{spec.column}{place}" in columns:
        yield f"{spec.column}{place}"
        place += 1
