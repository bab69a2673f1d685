"""What is a table, told without loading what reads it."""

from pathlib import Path

TABLE_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")


def is_table(path: Path) -> bool:
    """Say whether the name of the file is that of a table."""
    return path.name.lower().endswith(TABLE_SUFFIXES)


def is_frame(value: object) -> bool:
    """Say whether it is a data frame: of pandas, or anything that exports an Arrow table."""
    return hasattr(value, "__arrow_c_stream__") or (hasattr(value, "iloc") and hasattr(value, "columns"))
