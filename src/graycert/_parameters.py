"""Parameters of smoothings, threats and draws: declared once, for Python, the command line and files."""

import dataclasses
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from graycert.errors import InvalidParameterError

Arrays = Mapping[str, NDArray[Any]]


def parameter(
    *,
    help: str,
    option: type | Literal["nodes"] | None,
    label: str = "",
    default: Any = dataclasses.MISSING,
    per: str = "",
) -> Any:
    """Declare a parameter of a frozen dataclass.

    Args:
        help: What it is, as a phrase that is read on the command line, in reports and in files' comments.
        option: Type of the option of the same name on the command line; "nodes" for a file that names nodes, which is
            handed over as a mask; None if it has none.
        label: What a report calls it; its name if empty.
        default: Its default; left out, it must be given.
        per: What an array of it has one entry per ("edge", "node"); empty if it is never an array.
    """
    return dataclasses.field(
        default=default, repr=not per, metadata={"help": help, "label": label, "option": option, "per": per}
    )


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Parameters:
    """Values that are checked when they are made, never change, and can be stored.

    Two are equal if they are of one class and would be stored alike.

    Attributes:
        name: What the class is called on the command line and in files.
    """

    name: ClassVar[str]

    def stored(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return plain values by name, and arrays by name; what is None is left out, an array leaves a word behind."""
        values: dict[str, Any] = {}
        arrays: dict[str, NDArray[Any]] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                arrays[field.name] = value
                values[field.name] = _placeholder(field)
            elif value is not None:
                values[field.name] = str(value) if isinstance(value, Fraction) else value
        return values, arrays

    @classmethod
    def restored(cls, values: Mapping[str, Any], arrays: Arrays) -> Self:
        """Undo `stored`.

        Raises:
            InvalidParameterError: If names or values are not those of such parameters.
        """
        fields = {field.name: field for field in dataclasses.fields(cls)}
        required = {name for name, field in fields.items() if field.default is dataclasses.MISSING}
        given = dict(values)
        for name in fields:
            if (given.get(name) == _placeholder(fields[name]) and bool(fields[name].metadata["per"])) is not (
                name in arrays
            ):
                raise InvalidParameterError(
                    f"`{name}` must be stored as an array if and only if it says {_placeholder(fields[name])!r}, got "
                    f"{given.get(name)!r}. The parts come from different runs."
                )
        if not required <= set(given) <= set(fields) or not set(arrays) <= set(fields):
            raise InvalidParameterError(
                f"{cls.name!r} must have the parameters {', '.join(fields)}, got "
                f"{', '.join(sorted({*given, *arrays})) or 'none'}."
            )
        return cls(**{**given, **arrays})

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, Parameters):
            return NotImplemented
        (values, arrays), (theirs, their_arrays) = self.stored(), other.stored()
        same = values == theirs and arrays.keys() == their_arrays.keys()
        return same and all(np.array_equal(arrays[name], their_arrays[name]) for name in arrays)

    def __hash__(self) -> int:
        values, arrays = self.stored()
        plain = [
            (name, tuple(value.items()) if isinstance(value, Mapping) else value) for name, value in values.items()
        ]
        return hash((type(self), *plain, *((name, value.tobytes()) for name, value in arrays.items())))


def _placeholder(field: dataclasses.Field[Any]) -> str:
    return f"per {field.metadata['per']}"
