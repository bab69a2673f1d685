"""Columns between NumPy and Arrow, buffer by buffer: Arrow's own conversions load pandas, which takes longer."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graycert._types import BoolArray

if TYPE_CHECKING:
    import pyarrow as pa

Column = NDArray[Any] | list[list[str]]
"""Numbers, truth values or texts; or a list of texts per row."""


def to_arrow(values: NDArray[Any] | Sequence[Any], *, of_lists: bool = False) -> "pa.Array":
    """Return a column as Arrow keeps it.

    Args:
        values: Numbers, truth values or texts, shape (num_rows,).
        of_lists: Whether they are lists of texts instead.
    """
    import pyarrow as pa

    if of_lists:
        texts = _texts([text for row in values for text in row])
        starts = pa.py_buffer(_starts(len(row) for row in values))
        return pa.Array.from_buffers(pa.list_(pa.string()), len(values), [None, starts], children=[texts])
    array = np.asarray(values)
    if array.dtype.kind == "U":
        return _texts(array.tolist())
    held = np.packbits(array, bitorder="little") if array.dtype == np.bool_ else np.ascontiguousarray(array)
    return pa.Array.from_buffers(pa.from_numpy_dtype(array.dtype), array.size, [None, pa.py_buffer(held)])


def from_arrow(column: "pa.ChunkedArray") -> Column:
    """Return a column without empty cells.

    Raises:
        ValueError: If it holds something else than numbers, truth values, texts or lists of texts.
    """
    import pyarrow as pa

    kind = column.type
    if pa.types.is_list(kind) and pa.types.is_string(kind.value_type):
        return [list(texts) for texts in column.to_pylist()]
    if pa.types.is_string(kind):
        return np.array(column.to_pylist(), dtype=np.str_)
    if pa.types.is_boolean(kind):
        return np.concatenate([np.empty(0, dtype=np.bool_), *(_truth_values(chunk) for chunk in column.chunks)])
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise ValueError(f"a column of type {kind}")
    dtype = np.dtype(kind.to_pandas_dtype())  # a type of NumPy, whatever the name says
    return np.concatenate([np.empty(0, dtype=dtype), *(_numbers(chunk, dtype) for chunk in column.chunks)])


def _texts(texts: Sequence[str]) -> "pa.Array":
    import pyarrow as pa

    coded = [text.encode() for text in texts]
    starts = pa.py_buffer(_starts(len(text) for text in coded))
    return pa.Array.from_buffers(pa.string(), len(coded), [None, starts, pa.py_buffer(b"".join(coded))])


def _starts(lengths: Iterable[int]) -> NDArray[np.int32]:
    return np.cumsum([0, *lengths]).astype(np.int32)


def _truth_values(chunk: "pa.Array") -> BoolArray:
    bits = np.unpackbits(_values(chunk, np.dtype(np.uint8)), bitorder="little")
    return bits[chunk.offset : chunk.offset + len(chunk)].astype(np.bool_)


def _numbers(chunk: "pa.Array", dtype: "np.dtype[Any]") -> NDArray[Any]:
    return _values(chunk, dtype)[chunk.offset : chunk.offset + len(chunk)]


def _values(chunk: "pa.Array", dtype: "np.dtype[Any]") -> NDArray[Any]:
    """Return the values of a buffer, which may hold more than the chunk does."""
    buffer = chunk.buffers()[1]
    return np.empty(0, dtype=dtype) if buffer is None else np.frombuffer(buffer, dtype, buffer.size // dtype.itemsize)
