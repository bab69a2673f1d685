"""The trials of a sweep as tables."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graycert._files import write_atomically
from graycert.errors import InvalidFileError
from graycert.reproduction.pool import Failure

TRIALS, FAILED = "trials.parquet", "failed.parquet"

Rows = Mapping[int, Mapping[str, float]]


def write_trials(folder: Path, points: Rows, numbers: Rows, first: Sequence[str]) -> None:
    """Write trials.parquet: ``index``, the parameters, the objective values, further numbers, ``seconds``.

    Args:
        folder: Folder of the sweep.
        points: Parameters of each trial.
        numbers: Numbers of each finished trial, of which ``seconds`` is one.
        first: Names of parameters and objective values.
    """
    rows = {index: {**points[index], **numbers[index]} for index in sorted(numbers)}
    further = dict.fromkeys(name for row in rows.values() for name in row if name not in {*first, "seconds"})
    names = (*first, *further, "seconds")
    columns = {name: [float(row.get(name, float("nan"))) for row in rows.values()] for name in names}
    _write(folder / TRIALS, list(rows), columns)


def write_failed(folder: Path, points: Rows, failures: Mapping[int, Failure]) -> None:
    """Write failed.parquet: ``index``, the parameters, ``error``, ``traceback``; without failures there is none."""
    if not failures:
        (folder / FAILED).unlink(missing_ok=True)
        return
    rows = {index: {**points[index], **vars(failures[index])} for index in sorted(failures)}
    names = next(iter(rows.values()))
    _write(folder / FAILED, list(rows), {name: [row[name] for row in rows.values()] for name in names})


def read_failed(folder: Path) -> dict[int, Failure]:
    """Return which trials failed.

    Raises:
        InvalidFileError: If the file is damaged.
    """
    return {
        index: Failure(error=error, traceback=trace)
        for index, error, trace in _read(folder / FAILED, ["index", "error", "traceback"])
    }


def num_tabulated(folder: Path) -> int:
    """Return the number of trials up to the last one that is in trials.parquet.

    Raises:
        InvalidFileError: If the file is damaged.
    """
    return max((index + 1 for (index,) in _read(folder / TRIALS, ["index"])), default=0)


def _read(file: Path, columns: list[str]) -> list[tuple[Any, ...]]:
    import pandas as pd

    if not file.is_file():
        return []
    try:
        return list(pd.read_parquet(file, columns=columns).itertuples(index=False, name=None))
    except (OSError, ValueError) as error:
        raise InvalidFileError(f"{file} is damaged ({error}). Delete it: it is made again.") from error


def _write(file: Path, indices: list[int], columns: Mapping[str, Sequence[Any]]) -> None:
    import pandas as pd

    table = pd.DataFrame({"index": indices, **columns}).astype({"index": "int64"})
    for rest in file.parent.glob(f".{file.name}.*"):  # of a process that was killed while it wrote
        rest.unlink()
    write_atomically(file, lambda path: table.to_parquet(path, index=False))
