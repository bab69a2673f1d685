"""What somebody says of her tables: the options of the same names in Python and on the command line; loads no torch."""

import csv
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from graycert._validation import check_choice
from graycert.errors import InvalidParameterError

FILLS = ("median", "zero")
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "blank": " ", "bar": "|"}
_LISTS = ("class_names", "one_hot", "drop")


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """What is said of the columns of an edge table and a node table; what is left out is recognised or refused.

    Attributes:
        label: Column of the node table with the classes; empty if no column has them.
        source: Column of the edge table with the node that a message comes from.
        target: Column of the edge table with the node that a message goes to.
        id: Column of the node table with the names of the nodes.
        class_names: Labels in the order of the model's outputs; with class numbers as labels, a name for each number.
        split_column: Column of the node table that says train, validation or test; empty if no column does.
        one_hot: Columns that become one feature for each of their values.
        fill: What takes the place of missing numbers: "median" (of the column) or "zero".
        drop: Columns of the node table that are no features.
        separator: A character, or one of comma, semicolon, tab, blank and bar.
    """

    label: str | None = None
    source: str | None = None
    target: str | None = None
    id: str | None = None
    class_names: tuple[str, ...] = ()
    split_column: str | None = None
    one_hot: tuple[str, ...] = ()
    fill: str | None = None
    drop: tuple[str, ...] = ()
    separator: str | None = None

    @classmethod
    def of(cls, **given: Any) -> Self:
        """Return the options that are not None, where lists may be texts with commas, as on the command line.

        Raises:
            InvalidParameterError: If a value is out of its domain, or a list names something twice.
        """
        values = {name: value for name, value in given.items() if value is not None}
        for name in _LISTS:
            if name in values:
                values[name] = _listed(name, values[name])
        for name, value in values.items():
            if name not in _LISTS and not isinstance(value, str):
                raise InvalidParameterError(f"`{name}` must be a text, got {value!r}.")
        if values.get("fill") is not None:
            check_choice("fill", values["fill"], FILLS, hint="It says what takes the place of missing numbers.")
        if values.get("separator") is not None:
            values["separator"] = _separator(values["separator"])
        return cls(**values)

    def stored(self) -> dict[str, str]:
        """Return what was said as texts, of which `of` makes the same options."""
        result = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None and value != ():
                result[field.name] = _joined(value) if isinstance(value, tuple) else value
        return result


TABLE_OPTIONS = tuple(field.name for field in dataclasses.fields(TableOptions))
"""Their names."""


def _listed(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = next(csv.reader([value], skipinitialspace=True), [])
    texts = tuple(str(each).strip() for each in value) if isinstance(value, Sequence) else ()
    if len(texts) == 0 or any(not isinstance(each, str) for each in value):
        raise InvalidParameterError(f"`{name}` must be a list of texts, or one text with commas, got {value!r}.")
    repeated = next((text for number, text in enumerate(texts) if text in texts[:number]), None)
    if repeated is not None:
        raise InvalidParameterError(f"`{name}` must not repeat a name, got {repeated!r} more than once.")
    if "" in texts:
        raise InvalidParameterError(f"`{name}` must be a list of names, got an empty one in {', '.join(texts)!r}.")
    return texts


def _joined(texts: tuple[str, ...]) -> str:
    quoted = ('"' + text.replace('"', '""') + '"' if set(text) & set(',"\r\n') else text for text in texts)
    return ",".join(quoted)


def _separator(text: str) -> str:
    found = {"space": " ", "pipe": "|", "\\t": "\t", **SEPARATORS}.get(text.lower(), text)
    if len(found) != 1 or found.isalnum() or found in "\"'\r\n#.-+_":
        raise InvalidParameterError(
            f"`separator` must be one of {', '.join(SEPARATORS)} or another character between values, got {text!r}."
        )
    return found
