"""Arrays that lie in files: features of `.npy` files, and what is made in pieces and would fill the memory."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert.errors import InvalidFileError

SUFFIX = ".npy"
ON_DISK_FROM = 2**28
"""Bytes from which an array that is made while a graph is loaded lies in a temporary file."""

_PIECE = 2**24  # bytes that are worked on at a time


def is_array_file(value: object) -> bool:
    """Say whether the name of a file is that of an array of NumPy."""
    return isinstance(value, str | Path) and str(value).lower().endswith(SUFFIX)


def new_array(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Return an array to be filled: in memory, or, if it is large, in a file that is gone when the array is.

    The file has no name and lies where `tempfile` puts it (TMPDIR). What is read of it is loaded by the operating
    system page by page, and given up where memory is short.
    """
    kind = np.dtype(dtype)
    if int(np.prod(shape)) * kind.itemsize < ON_DISK_FROM:
        return np.empty(shape, dtype=kind)
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, dtype=kind, mode="w+", shape=shape)


def pieces(num_rows: int, bytes_per_row: int) -> Iterator[slice]:
    """Split rows into runs of some megabytes."""
    step = max(1, _PIECE // max(1, bytes_per_row))
    yield from (slice(start, min(start + step, num_rows)) for start in range(0, num_rows, step))


def features_of_file(path: Path) -> NDArray[np.float32]:
    """Return the matrix of a ``.npy`` file as float32, mapped rather than loaded.

    float32 is mapped as it is; other numbers, such as float16, are converted in pieces, exactly if float16, into an
    array as `new_array` makes it. The file is never written to.

    Raises:
        InvalidFileError: If it is missing, damaged, or holds something other than a matrix of numbers.
    """
    matrix = _mapped(path)
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf" or 0 in matrix.shape:
        raise InvalidFileError(
            f"'{path}' must hold numbers of shape (num_nodes, num_features), got dtype {matrix.dtype} and shape "
            f"{matrix.shape}."
        )
    if matrix.dtype == np.float32 and matrix.flags.c_contiguous:
        return matrix
    made = new_array(matrix.shape, np.float32)
    for rows in pieces(matrix.shape[0], matrix.shape[1] * 4):
        made[rows] = matrix[rows]
    return made


def whole_numbers_of_file(path: Path) -> NDArray[np.int64]:
    """Return the whole numbers of a ``.npy`` file as int64, shape (num_nodes,).

    Raises:
        InvalidFileError: If it is missing, damaged, or holds something else.
    """
    values = _mapped(path)
    if values.dtype.kind not in "iu" or values.size != values.shape[0]:
        raise InvalidFileError(
            f"'{path}' must hold one whole number per node, got dtype {values.dtype} and shape {values.shape}."
        )
    return values.reshape(-1).astype(np.int64)


def _mapped(path: Path) -> NDArray[Any]:
    try:
        found = np.load(path, mmap_mode="c", allow_pickle=False)  # "c": torch wants arrays that could be written to
    except (OSError, ValueError, EOFError) as error:
        raise InvalidFileError(
            f"'{path}' must be an array of NumPy (.npy), but it is missing, truncated or another format ({error}). "
            "Write it with numpy.save."
        ) from error
    if not isinstance(found, np.ndarray) or found.ndim == 0:
        raise InvalidFileError(f"'{path}' must hold one array, got {type(found).__name__}. Write it with numpy.save.")
    return found
