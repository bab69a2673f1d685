"""NumPy archives with a record and a checksum over all that is in them: whole and what was written, or damaged."""

import hashlib
import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert._files import write_atomically

DAMAGED = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError)
"""What reading raises where a file is not what was written: a RuntimeError if a bit says that it is encrypted."""


def write_archive(file: Path, record: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a file as a whole or not at all.

    Args:
        file: Where to.
        record: Plain values.
        arrays: Arrays by name.

    Raises:
        OSError: If it cannot be written.
    """
    members: dict[str, Any] = {"record": np.array(json.dumps(record)), **arrays}
    members["checksum"] = np.array(_checksum(members))
    write_atomically(file, lambda written: np.savez(written, **members))


def read_archive(file: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the record and the arrays.

    Raises:
        FileNotFoundError: If there is no such file.
        Exception: One of `DAMAGED`.
    """
    with file.open("rb") as opened:
        archive = np.load(opened, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise ValueError("it is a single array")
        members: dict[str, NDArray[Any]] = {name: archive[name] for name in archive.files}
    if str(members.pop("checksum")) != _checksum(members):
        raise ValueError("it is not what was written")
    record: dict[str, Any] = json.loads(str(members.pop("record")))
    return record, members


def digest(array: NDArray[Any]) -> str:
    """Return a hash of type, shape and values, which are not copied."""
    found = hashlib.sha256(f"{array.dtype.str} {array.shape} ".encode())
    found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def _checksum(members: Mapping[str, NDArray[Any]]) -> str:
    return hashlib.sha256("".join(f"{name} {digest(members[name])}\n" for name in sorted(members)).encode()).hexdigest()
