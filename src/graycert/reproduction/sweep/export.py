"""The trials of a sweep as tables."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graycert._files import write_atomically
from graycert.errors import InvalidFileError
from graycert.reproduction.sweep.definition import read_settings
from graycert.reproduction.sweep.journal import JOURNAL, Journal, is_failed, is_finished

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

TRIALS, FAILED = "trials.parquet", "failed.parquet"


def export_sweep(directory: str | Path) -> Path:
    """Write the finished trials of a sweep as trials.parquet, those that failed as failed.parquet.

    May be called at any time, also while the sweep runs. Columns of the first: ``index``, the parameters, the objective
    values, further numbers, ``seconds``, ``worker``; of the second: ``index``, the parameters, ``error``,
    ``traceback``. Rows in order of ``index``. Without failures there is no second file.

    Args:
        directory: Folder of the sweep.

    Returns:
        The path of trials.parquet.

    Raises:
        InvalidFileError: If the folder holds no sweep, or a file of it is damaged.
    """
    folder = Path(directory).expanduser().absolute()
    settings = read_settings(folder)
    if not (folder / JOURNAL).is_file():
        raise InvalidFileError(f"{folder / JOURNAL} is missing: no trial was ever started. Run the sweep first.")
    journal = Journal(folder, name=settings["name"], directions=dict(settings["directions"]))
    return write_tables(journal, folder, settings)


def write_tables(journal: Journal, folder: Path, settings: Mapping[str, Any]) -> Path:
    """Write the tables of a sweep that is open; ``settings`` as in sweep.toml."""
    objectives = [name for name, _ in settings["directions"]]
    parameters = [entry["name"] for entry in settings["design"]["ranges"]]
    with journal.lock:  # one writer at a time
        latest = journal.latest()
        finished = {index: _finished_row(trial, objectives) for index, trial in latest.items() if is_finished(trial)}
        failed = {index: _failed_row(trial) for index, trial in latest.items() if is_failed(trial)}
        _write(folder / TRIALS, finished, [*parameters, *objectives], ["seconds", "worker"])
        if failed:
            _write(folder / FAILED, failed, parameters, ["error", "traceback"])
        else:
            (folder / FAILED).unlink(missing_ok=True)
    return folder / TRIALS


def _finished_row(trial: "FrozenTrial", objectives: list[str]) -> dict[str, Any]:
    attributes = trial.user_attrs
    further = {name: float("nan") if value is None else value for name, value in attributes["numbers"].items()}
    worker = f"{attributes['worker']['host']}:{attributes['worker']['pid']}"
    values = dict(zip(objectives, trial.values, strict=True))
    return {**trial.params, **values, **further, "seconds": attributes["seconds"], "worker": worker}


def _failed_row(trial: "FrozenTrial") -> dict[str, Any]:
    error = trial.user_attrs["error"]
    return {**trial.params, "error": f"{error['type']}: {error['message']}", "traceback": error["traceback"]}


def _write(file: Path, rows: Mapping[int, Mapping[str, Any]], first: list[str], last: list[str]) -> None:
    import pandas as pd

    further = dict.fromkeys(name for row in rows.values() for name in row if name not in {*first, *last})
    table = pd.DataFrame(
        {name: [row.get(name, float("nan")) for row in rows.values()] for name in (*first, *further, *last)}
    )
    table.insert(0, "index", pd.Series(list(rows), dtype="int64"))
    for name in (*first, *further, *(name for name in last if name == "seconds")):
        table[name] = table[name].astype("float64")
    for rest in file.parent.glob(f".{file.name}.*"):  # of a process that was killed while it wrote
        rest.unlink()
    write_atomically(file, lambda path: table.to_parquet(path, index=False))
