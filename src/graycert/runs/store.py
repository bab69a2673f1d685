"""Run directories: written as a whole or not at all, read with every doubt turned into an error.

config.toml           every parameter, versions, fingerprint of the graph
certificates.parquet  a row per target, Δ̄(ρ) included
votes.npz             votes, and all other arrays that are no columns: nodes to protect first, trusted nodes of the
                      threat, probabilities per edge or node, what a smoothing adds, the collective certificate
summary.json          the statement and counts per radius
report.html           all of it for people
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert.certificates import Certificates
from graycert.errors import GraycertError, InvalidFileError
from graycert.runs.arrow_columns import from_arrow, to_arrow
from graycert.runs.columns import DERIVED, LISTS, from_columns, to_columns
from graycert.runs.damaged import one_error
from graycert.runs.floor import FLOOR_FILE
from graycert.runs.folder import write_folder
from graycert.runs.page import render_report
from graycert.runs.view import report_view
from graycert.runs.votes_file import (
    AGAIN,
    arrays_of,
    collective_of,
    neighbourhoods_in,
    read_votes,
    readable,
    write_votes,
)
from graycert.runs.words import summary_record
from graycert.setup_file import FORMAT_VERSION, check_version, config_text, read_config, stored_setup

CONFIG, TABLE, VOTES, SUMMARY, REPORT = (
    "config.toml",
    "certificates.parquet",
    "votes.npz",
    "summary.json",
    "report.html",
)
FILES = (CONFIG, TABLE, VOTES, SUMMARY, REPORT)
MODEL_FILES = ("model.safetensors", "model.json")  # a run may also keep its model
FLOOR_FILES = (FLOOR_FILE, "floor.json")  # and the model of single nodes that it is compared with
_KNOWN = {*FILES, *MODEL_FILES, *FLOOR_FILES}
_VERSION_KEY = b"graycert_format_version"
_LARGEST_RATIO = 2_000  # zstd and runs of equal values compress further, but tables of targets do not


def save_run(certificates: Certificates, directory: str | Path, *, overwrite: bool = False) -> Path:
    """Write a run directory as a whole, see `write_folder`.

    Args:
        certificates: What to write.
        directory: New or empty folder; parents are made.
        overwrite: Replace an earlier run directory; a folder with any other file in it is never replaced.

    Returns:
        The absolute path of the directory.

    Raises:
        InvalidFileError: If the directory holds something, or cannot be written.
        WriteError: If there is no room.
    """
    target = Path(directory).expanduser().resolve()
    _check_target(target, overwrite=overwrite)
    return write_folder(target, lambda folder: _write_files(certificates, folder), what="run")


def check_destination(directory: str | Path, *, overwrite: bool = False) -> Path:
    """Refuse early, before hours of work, what `save_run` would refuse; nothing is written.

    Returns:
        The absolute path of the directory.

    Raises:
        InvalidFileError: If the directory holds something, or cannot be made or written.
    """
    target = Path(directory).expanduser().resolve()
    _check_target(target, overwrite=overwrite)
    existing = next(folder for folder in (target, *target.parents) if folder.exists())
    if not can_write(existing):
        raise InvalidFileError(
            f"`directory` must be writable, got {target}, but {existing} is no folder that can be written to. "
            "Choose another folder."
        )
    return target


def can_write(folder: Path) -> bool:
    """Return whether a file can be made in ``folder``, by making one without a name (root may seem to be allowed)."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def load_run(directory: str | Path, *, need_report: bool = True) -> Certificates:
    """Read a run directory; without ``need_report`` its report.html may be missing or damaged.

    Raises:
        InvalidFileError: If a file is missing, truncated, corrupted, foreign, or of another format version,
            or if the files do not fit each other.
    """
    folder = Path(directory).expanduser()
    if not folder.is_dir():
        raise InvalidFileError(f"{folder} is no folder. Give the folder that `graycert certify` wrote.")
    with one_error(folder, "reading them"):
        return _load(folder, need_report=need_report)


def _refuse_unfinished(folder: Path) -> None:
    from graycert.blocks.folder import SETTINGS

    if (folder / SETTINGS).is_file():
        raise InvalidFileError(
            f"{folder} is an unfinished run, which holds no certificates yet. The same `graycert certify` command goes "
            "on with it, and so does graycert.Certificates.resume."
        )


def _load(folder: Path, *, need_report: bool) -> Certificates:
    if not (folder / TABLE).is_file():
        _refuse_unfinished(folder)
    config = read_config(folder / CONFIG)
    for name in FILES:
        if not (folder / name).is_file() and (need_report or name != REPORT):
            raise InvalidFileError(f"{folder / name} is missing. {AGAIN}")
    columns = _read_table(folder / TABLE)
    votes = read_votes(folder / VOTES)
    summary = _read_summary(folder / SUMMARY)
    if need_report:
        _check_report(folder / REPORT)
    loaded = _certificates(folder, config, columns, votes)
    _check_agreement(folder, loaded, columns, summary)
    return loaded


def is_run_directory(folder: Path) -> bool:
    """Whether the folder holds nothing but files of a run, its config.toml among them."""
    names = {entry.name for entry in folder.iterdir()}
    return CONFIG in names and names <= _KNOWN


def _check_target(target: Path, *, overwrite: bool) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise InvalidFileError(f"`directory` must be a folder, got the file {target}. Choose another name.")
    try:
        entries = sorted(entry.name for entry in target.iterdir())
    except OSError as error:
        raise InvalidFileError(f"`directory` must be readable, got {target} ({error.strerror}).") from error
    if not entries:
        return
    if not is_run_directory(target):
        foreign = next((name for name in entries if name not in _KNOWN), entries[0])
        raise InvalidFileError(
            f"`directory` must be new or empty, got {target}, which holds {foreign}. Only run directories "
            "are ever replaced; choose another folder."
        )
    if not overwrite:
        raise InvalidFileError(
            f"`directory` must be new or empty, got {target}, which holds an earlier run. "
            "Choose another folder, or pass overwrite=True (`--overwrite`) to replace it."
        )


def _write_files(certificates: Certificates, folder: Path) -> None:
    (folder / CONFIG).write_text(config_text(certificates.setup, certificates.seconds), encoding="utf-8")
    _write_table(certificates, folder / TABLE)
    write_votes(certificates, folder / VOTES)
    record = {"format_version": FORMAT_VERSION, **summary_record(certificates)}
    text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / SUMMARY).write_text(text + "\n", encoding="utf-8")
    (folder / REPORT).write_text(render_report(report_view(certificates)), encoding="utf-8")


def _write_table(certificates: Certificates, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: to_arrow(values, of_lists=name in LISTS) for name, values in to_columns(certificates).items()}
    metadata = {_VERSION_KEY: str(FORMAT_VERSION).encode()}
    table = pa.table(columns).replace_schema_metadata(metadata)
    pq.write_table(table, path, compression="zstd", write_page_checksum=True)


def _read_table(path: Path) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            _refuse_bomb(file.metadata, size=path.stat().st_size)
            table = file.read()
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0]
        raise InvalidFileError(f"{path} cannot be read as Parquet ({reason}). {AGAIN}") from error
    version = (table.schema.metadata or {}).get(_VERSION_KEY)
    check_version(path, int(version) if version and version.isdigit() else version)
    columns: dict[str, Any] = {}
    for name in table.column_names:
        if table[name].null_count:
            raise InvalidFileError(f"{path}: column `{name}` must have no empty cells. {AGAIN}")
        try:
            columns[name] = from_arrow(table[name])
        except ValueError as error:
            raise InvalidFileError(f"{path}: column `{name}` must not be {error}. {AGAIN}") from error
    return columns


def _refuse_bomb(metadata: Any, *, size: int) -> None:
    """Refuse a table that promises more than a file of this size can hold, before memory is taken for it.

    Raises:
        ValueError: If it does.
    """
    promised = sum(metadata.row_group(index).total_byte_size for index in range(metadata.num_row_groups))
    cells = metadata.num_rows * metadata.num_columns
    if not 0 <= promised <= _LARGEST_RATIO * size or not 0 <= cells <= _LARGEST_RATIO * size:
        raise ValueError(f"{metadata.num_rows} rows of {metadata.num_columns} columns in {size} bytes")


def _read_summary(path: Path) -> dict[str, Any]:
    with readable(path, "JSON"):
        record = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(record, dict):
        raise InvalidFileError(f"{path} must hold an object, got {type(record).__name__}. {AGAIN}")
    check_version(path, record.pop("format_version", None))
    return record


def _check_report(path: Path) -> None:
    with readable(path, "a page"):
        complete = path.read_text(encoding="utf-8").rstrip().endswith("</html>")
    if not complete:
        raise InvalidFileError(f"{path} ends before its end. {AGAIN}")


def _certificates(
    folder: Path, config: dict[str, Any], columns: dict[str, Any], votes: dict[str, NDArray[Any]]
) -> Certificates:
    """Return what the files hold, checked as everything that is made in Python is."""
    in_setup = {name: array for name, array in votes.items() if "." in name}
    setup = stored_setup(folder / CONFIG, config, in_setup)
    try:
        in_table = from_columns(columns, setup.smoothing)
    except (KeyError, ValueError) as error:
        raise InvalidFileError(f"{folder / TABLE} lacks a column ({error}). {AGAIN}") from error
    if not np.array_equal(in_table["targets"], votes["targets"]):
        raise InvalidFileError(
            f"{folder / VOTES} and {TABLE} must be about the same targets. They come from different runs."
        )
    arrays = {**in_table, **arrays_of(folder / VOTES, votes, setup.smoothing)}
    added = {spec.name for spec in setup.smoothing.adds}
    try:
        return Certificates(
            setup=setup,
            adds={name: array for name, array in arrays.items() if name in added},
            collective=collective_of(votes),
            neighbourhoods=neighbourhoods_in(folder / VOTES, votes, num_targets=votes["targets"].size),
            seconds=config.get("seconds", {}),
            **{name: array for name, array in arrays.items() if name not in added},
        )
    except (GraycertError, TypeError, ValueError) as error:
        raise InvalidFileError(f"The files in {folder} hold impossible values: {error} {AGAIN}") from error


def _check_agreement(folder: Path, loaded: Certificates, columns: dict[str, Any], summary: dict[str, Any]) -> None:
    expected = to_columns(loaded)
    if list(expected) != list(columns):
        unknown = sorted(set(columns) - set(expected)) or "another order"
        raise InvalidFileError(f"{folder / TABLE} must have the columns of a run, got {unknown}. {AGAIN}")
    for name in DERIVED:  # not read, so they must not say something else
        if name in expected and not _is_same(expected[name], columns[name]):
            raise InvalidFileError(f"{folder / TABLE}: column `{name}` contradicts the others. {AGAIN}")
    if summary.get("num_targets") != len(loaded):
        raise InvalidFileError(
            f"{folder / SUMMARY} is about {summary.get('num_targets')!r} targets, the other files about "
            f"{len(loaded)}. They come from different runs."
        )


def _is_same(expected: Any, stored: Any) -> bool:
    """Return whether two columns are equal, of texts in lists too."""
    if isinstance(stored, list):
        return bool(expected == stored)
    return np.array_equal(np.asarray(expected), stored)
