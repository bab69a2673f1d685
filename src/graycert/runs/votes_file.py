"""votes.npz: votes, and what else of a run is an array but no column of the table."""

import contextlib
import dataclasses
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graycert.rules import CollectiveCertificate
from graycert.errors import InvalidFileError
from graycert.runs.config_file import FORMAT_VERSION, SINGLE_PROBABILITIES, check_version, smoothing_arrays

if TYPE_CHECKING:
    from graycert.certificates import NodeCertificates

AGAIN = "Certify again, or restore the file."
_COLLECTIVE, _FIELDS = "collective_", dataclasses.fields(CollectiveCertificate)


def write_votes(certificates: "NodeCertificates", path: Path) -> None:
    """Write votes.npz."""
    arrays: dict[str, Any] = {
        "format_version": np.array(FORMAT_VERSION),
        "targets": certificates.targets,
        "selection_votes": certificates.selection_votes,
        "estimation_votes": certificates.estimation_votes,
    }
    if certificates.threat.trusted is not None:
        arrays["trusted"] = certificates.threat.trusted
    arrays |= smoothing_arrays(certificates.smoothing)
    for name in ("attackers", "estimation_predictions"):
        if getattr(certificates, name) is not None:
            arrays[name] = getattr(certificates, name)
    if certificates.collective is not None:
        arrays |= {f"{_COLLECTIVE}{field.name}": getattr(certificates.collective, field.name) for field in _FIELDS}
    np.savez_compressed(path, **arrays)


def read_votes(path: Path) -> dict[str, NDArray[Any]]:
    """Read votes.npz: the arrays by name, of known names only."""
    with readable(path, "a NumPy archive"), path.open("rb") as file:  # np.load leaves a broken file open
        archive = np.load(file, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise ValueError("a single array")
        with archive:
            arrays = {name: archive[name] for name in archive.files}
    version = arrays.pop("format_version", None)
    check_version(path, None if version is None else version.tolist())
    required = {"targets", "selection_votes", "estimation_votes"}
    collective = {f"{_COLLECTIVE}{field.name}" for field in _FIELDS}
    optional = {"trusted", "attackers", "estimation_predictions", *SINGLE_PROBABILITIES, *collective}
    if not required <= set(arrays) <= required | optional or set(arrays) & collective not in (set(), collective):
        raise InvalidFileError(f"{path} must hold {sorted(required)}, got {sorted(arrays)}. {AGAIN}")
    return arrays


def collective_of(votes: dict[str, NDArray[Any]]) -> CollectiveCertificate | None:
    """Return the collective certificate among the arrays, or None."""
    if f"{_COLLECTIVE}budgets" not in votes:
        return None
    values = {field.name: votes[f"{_COLLECTIVE}{field.name}"] for field in _FIELDS}
    plain: dict[str, Any] = {}
    for name, value in values.items():
        plain[name] = value.item() if value.ndim == 0 else tuple(value.tolist()) if value.dtype.kind == "U" else value
    return CollectiveCertificate(**plain)


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
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
    ) as error:
        raise InvalidFileError(f"{path} cannot be read as {kind} ({error}). {AGAIN}") from error
