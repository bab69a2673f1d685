"""Arrays of a result: declared once, and every check, file, table and verification follows from that."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graycert.errors import InvalidParameterError

Kind = Literal["int", "float", "bool", "text"]
Stage = Literal["asked", "graph", "drawn", "concluded"]
Compared = Literal["equal", "close", "never"]

_KINDS: dict[Kind, str] = {"int": "iu", "float": "f", "bool": "b", "text": "U"}
_WORDS: dict[Kind, str] = {"int": "integers", "float": "float64 numbers", "bool": "truth values", "text": "texts"}


@dataclass(frozen=True)
class Field:
    """One array of a result.

    Args:
        name: Attribute of the result, and name in votes.npz.
        kind: What it holds.
        shape: Size of each axis, by name ("targets", "classes", "radii", "nodes"; other names fit any size).
        doc: What it is, in a sentence.
        stage: Where it comes from: what was asked for, the graph, draws or evaluations of the model, or a conclusion
            from the others. Decides what `verify` computes again, and what `again` takes over.
        optional: Whether a result may lack it.
        given_for: What a rule needs of votes (`Rule.needs`) where an optional array must be there all the same; arrays
            of stage "drawn" are left out where a conclusion is drawn anew by a rule that needs something else.
        at_least: Smallest entry.
        at_most: Largest entry: a number, or the name of a size, which is then the first that is too large.
        column: Name in the table of targets; empty if it is stored in votes.npz instead. With ``first``, a prefix.
        first: Number of the first column of an array with two axes in the table, e.g. 1 for ``delta_1``.
        compared: How `verify` holds it against what it computes again: "close" is up to 1e-12.
        dtype: How integers are stored that fit, else int64; int64 where this is empty.
    """

    name: str
    kind: Kind
    shape: tuple[str, ...]
    doc: str
    _: dataclasses.KW_ONLY
    stage: Stage
    optional: bool = False
    given_for: tuple[str, ...] = ()
    at_least: float | None = None
    at_most: float | str | None = None
    column: str = ""
    first: int | None = None
    compared: Compared = "equal"
    dtype: str = ""

    def checked(self, value: Any, sizes: Mapping[str, int]) -> NDArray[Any]:
        """Return the array, copied, in its type and read-only.

        Raises:
            InvalidParameterError: If type, shape or an entry is wrong.
        """
        array = np.asarray(value)
        if array.size == 0 and array.dtype == np.float64 and self.kind != "float":  # [] has no dtype of its own
            array = array.astype({"int": np.int64, "bool": np.bool_, "text": np.str_}[self.kind])
        if array.dtype.kind not in _KINDS[self.kind] or (self.kind == "float" and array.dtype != np.float64):
            raise InvalidParameterError(f"`{self.name}` must hold {_WORDS[self.kind]}, got dtype {array.dtype}.")
        wanted = tuple(sizes.get(axis, -1) for axis in self.shape)
        if array.ndim != len(wanted) or any(
            size not in (-1, found) for size, found in zip(wanted, array.shape, strict=True)
        ):
            raise InvalidParameterError(
                f"`{self.name}` must have shape ({', '.join(self._axes(sizes))}), got {array.shape}."
            )
        self._check_entries(array, sizes)
        if self.kind == "int":
            array = self._as_integers(array)
        array = np.array(array, order="C")
        array.flags.writeable = False
        return array

    def _as_integers(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the same numbers in a type that holds them: the declared one, or the widest; nothing wraps around.

        Raises:
            InvalidParameterError: If even that is too narrow.
        """
        for kind in (self.dtype or "int64", "int64"):
            limits = np.iinfo(kind)
            if not array.size or (int(array.min()) >= limits.min and int(array.max()) <= limits.max):
                return array.astype(kind)
        raise InvalidParameterError(f"`{self.name}` must hold integers below 2**63, got {int(array.max())}.")

    def _check_entries(self, array: NDArray[Any], sizes: Mapping[str, int]) -> None:
        if not array.size or self.kind not in ("int", "float"):
            return
        most = sizes[self.at_most] - 1 if isinstance(self.at_most, str) else self.at_most
        low = -np.inf if self.at_least is None else self.at_least
        high = np.inf if most is None else most
        refused = array[~((array >= low) & (array <= high))]  # NaN, too
        if refused.size:
            rule = f">= {self.at_least}" if most is None else f"in [{self.at_least}, {most}]"
            raise InvalidParameterError(f"`{self.name}` must be {rule}, got {refused.flat[0]}.")

    def _axes(self, sizes: Mapping[str, int]) -> list[str]:
        one = {axis: _SINGULAR.get(axis, axis.removesuffix("s")) for axis in self.shape}
        return [f"{sizes[axis]} (one per {one[axis]})" if axis in sizes else axis for axis in self.shape]


_SINGULAR = {"targets": "target", "classes": "class", "radii": "radius", "nodes": "node"}


def array_field(kind: Kind, shape: tuple[str, ...], doc: str, **declared: Any) -> Any:
    """Declare an array among the fields of a dataclass; arguments are those of `Field`, its name follows."""
    default: Any = None if declared.get("optional") else dataclasses.MISSING
    return dataclasses.field(
        default=default, metadata={"array": {"kind": kind, "shape": shape, "doc": doc, **declared}}
    )


def declared_arrays(owner: Any) -> tuple[Field, ...]:
    """Return the arrays among the fields of a dataclass, in their order."""
    return tuple(
        Field(name=each.name, **each.metadata["array"])
        for each in dataclasses.fields(owner)
        if "array" in each.metadata
    )
