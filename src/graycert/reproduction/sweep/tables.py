"""The trials of a sweep as tables: ``index``, the parameters, and what came of it, a row per trial."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graycert._files import write_atomically
from graycert.errors import InvalidFileError
from graycert.reproduction.sweep.definition import remove_rests

TRIALS, FAILED = "trials.parquet", "failed.parquet"

Row = Mapping[str, Any]


def write_table(file: Path, rows: Mapping[int, Row]) -> None:
    """Write rows in order of their index; without rows there is no file."""
    import pandas as pd

    remove_rests(file)
    if rows:
        table = pd.DataFrame.from_records([dict(rows[index]) for index in sorted(rows)])
        write_atomically(file, lambda path: table.to_parquet(path, index=False))
    else:
        file.unlink(missing_ok=True)


def read_table(file: Path) -> dict[int, Row]:
    """Return the rows of a table, none if it is not there, by their index.

    Raises:
        InvalidFileError: If the file is damaged.
    """
    import pandas as pd

    if not file.is_file():
        return {}
    try:
        rows: list[dict[str, Any]] = pd.read_parquet(file).to_dict("records")  # type: ignore[assignment]
        return {row["index"]: row for row in rows}
    except (OSError, ValueError, KeyError) as error:
        raise InvalidFileError(f"{file} is damaged ({error}). Delete it: what is not in it is tried again.") from error
