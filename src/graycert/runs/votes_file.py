"""votes.npz: votes, and what else of a run is an array but no column of the table."""

import contextlib
import dataclasses
import math
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from graycert.certificates import ARRAYS, Certificates
from graycert.errors import InvalidFileError
from graycert.rules import CollectiveCertificate
from graycert.runs.neighbourhoods import Neighbourhoods, neighbourhoods_of
from graycert.setup_file import FORMAT_VERSION, check_version, stored_arrays
from graycert.smoothing import Smoothing

AGAIN = "Certify again, or restore the file."
_LARGEST_RATIO = 1_100  # deflate compresses by no more than 1,032
_COLLECTIVE, _FIELDS = "collective_", dataclasses.fields(CollectiveCertificate)
_NEIGHBOURHOODS, _DRAWN = "neighbourhood_", dataclasses.fields(Neighbourhoods)


def write_votes(certificates: Certificates, path: Path) -> None:
    """Write votes.npz."""
    arrays: dict[str, Any] = {"format_version": np.array(FORMAT_VERSION), "targets": certificates.targets}
    arrays |= stored_arrays(certificates.setup)
    arrays |= {name: value for name, (spec, value) in certificates.every_array().items() if not spec.column}
    if certificates.collective is not None:
        values = {f"{_COLLECTIVE}{field.name}": getattr(certificates.collective, field.name) for field in _FIELDS}
        arrays |= {name: value for name, value in values.items() if value is not None}
    drawn = neighbourhoods_of(certificates)
    if drawn is not None:
        arrays |= {f"{_NEIGHBOURHOODS}{name}": value for name, value in drawn.arrays().items()}
    np.savez_compressed(path, **arrays)


def read_votes(path: Path) -> dict[str, NDArray[Any]]:
    """Read votes.npz: the arrays by name."""
    with readable(path, "a NumPy archive"), path.open("rb") as file:  # np.load leaves a broken file open
        archive = np.load(file, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise ValueError("a single array")
        _refuse_bombs(file)
        with archive:
            arrays = {name: archive[name] for name in archive.files}
    version = arrays.pop("format_version", None)
    check_version(path, None if version is None else version.tolist())
    if "targets" not in arrays:
        raise InvalidFileError(f"{path} must hold `targets`, got {sorted(arrays)}. {AGAIN}")
    return arrays


def _refuse_bombs(file: BinaryIO) -> None:
    """Refuse members whose header promises other arrays than the file can hold, before memory is taken for them.

    Raises:
        ValueError: If one does.
    """
    formats = np.lib.format
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            if member.file_size > _LARGEST_RATIO * member.compress_size + 1_000:
                raise ValueError(f"{member.filename} cannot be of {member.file_size} bytes")
            with archive.open(member) as entry:
                version = formats.read_magic(entry)
                read = formats.read_array_header_1_0 if version == (1, 0) else formats.read_array_header_2_0
                shape, _, dtype = read(entry)
                length = entry.tell() + math.prod(shape) * dtype.itemsize
            if length != member.file_size or max(shape, default=0) > max(member.file_size, 1):
                raise ValueError(f"{member.filename} promises shape {shape} of {dtype} in {member.file_size} bytes")


def arrays_of(path: Path, arrays: dict[str, NDArray[Any]], smoothing: Smoothing) -> dict[str, NDArray[Any]]:
    """Return the arrays of votes.npz that are no part of the set-up, of known names only.

    Raises:
        InvalidFileError: If one is missing or unknown.
    """
    found = {name: array for name, array in arrays.items() if "." not in name and name != "targets"}
    specs = [spec for spec in (*ARRAYS, *smoothing.adds) if not spec.column]
    collective = {f"{_COLLECTIVE}{field.name}" for field in _FIELDS}
    always = {f"{_COLLECTIVE}{field.name}" for field in _FIELDS if field.default is dataclasses.MISSING}
    drawn = {f"{_NEIGHBOURHOODS}{field.name}" for field in _DRAWN}
    drawn_always = {f"{_NEIGHBOURHOODS}{field.name}" for field in _DRAWN if field.default is dataclasses.MISSING}
    required = {spec.name for spec in specs if not spec.optional}
    known = {spec.name for spec in specs} | collective | drawn
    groups = ((collective, always), (drawn, drawn_always))
    is_whole = all(set(found) & names == set() or some <= set(found) for names, some in groups)
    if not required <= set(found) <= known or not is_whole:
        raise InvalidFileError(
            f"{path} must hold {sorted(required | {'targets'})}, and may hold {sorted(known - required)}, got "
            f"{sorted(found)}. {AGAIN}"
        )
    return {name: array for name, array in found.items() if name not in collective | drawn}


def collective_of(votes: dict[str, NDArray[Any]]) -> CollectiveCertificate | None:
    """Return the collective certificate among the arrays, or None."""
    if f"{_COLLECTIVE}budgets" not in votes:
        return None
    values = {field.name: votes.get(f"{_COLLECTIVE}{field.name}") for field in _FIELDS}
    plain: dict[str, Any] = {}
    for name, value in values.items():
        if value is not None:
            is_text = value.dtype.kind == "U"
            plain[name] = value.item() if value.ndim == 0 else tuple(value.tolist()) if is_text else value
    return CollectiveCertificate(**plain)


def neighbourhoods_in(path: Path, votes: dict[str, NDArray[Any]], *, num_targets: int) -> Neighbourhoods | None:
    """Return what can be drawn among the arrays, or None.

    Raises:
        InvalidFileError: If arrays do not fit each other.
    """
    if f"{_NEIGHBOURHOODS}rows" not in votes:
        return None
    values: dict[str, Any] = {field.name: votes.get(f"{_NEIGHBOURHOODS}{field.name}") for field in _DRAWN}
    found = Neighbourhoods(**values)
    wrong = found.wrong(num_targets=num_targets)
    if wrong:
        raise InvalidFileError(f"{path}: `{_NEIGHBOURHOODS}{wrong}` does not fit the other arrays. {AGAIN}")
    return found


@contextlib.contextmanager
def readable(path: Path, kind: str) -> Iterator[None]:
    """Turn whatever a damaged file raises into an ``InvalidFileError`` that names it."""
    try:
        yield
    except (
        OSError,
        ValueError,
        EOFError,
        KeyError,
        MemoryError,
        RecursionError,
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
    ) as error:
        raise InvalidFileError(f"{path} cannot be read as {kind} ({error}). {AGAIN}") from error
