"""A graph as two tables, in CSV, TSV or Parquet: one of edges, one of nodes with features and labels."""

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from graycert.data.checks import first_repeated
from graycert.errors import InvalidFileError

TABLE_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")
_ID_COLUMNS = ("id", "node", "node_id")
_LABEL_COLUMN = "label"


def is_table(path: Path) -> bool:
    """Say whether the name of the file is that of a table."""
    return path.name.lower().endswith(TABLE_SUFFIXES)


def read_tables(edges: Path, nodes: Path | None) -> Data:
    """Read an edge table and, for anything that needs features, a node table.

    Edge table: columns ``source`` and ``target`` (or, if it has neither, the first two); other columns are
    left out. Node table: the node id in ``id``, ``node`` or ``node_id`` (or else the first column),
    optionally ``label``, and features in all other columns, which must be numbers. Node ids are texts, also
    ``NA`` and ``007``, and are kept as ``data.node_ids``; the nodes have the order of the node table, or
    without one that of their first mention.

    Labels that are all whole numbers are class numbers (-1 or empty = unknown). Other labels are names:
    classes are numbered in their alphabetical order, and the names kept as ``data.class_names``.

    Raises:
        InvalidFileError: If a table is damaged, has no header, a feature is not a finite number, a node id
            occurs twice, or an edge names a node that the node table lacks.
    """
    sources, targets, extra = _read_edges(edges)
    data = Data() if nodes is None else _read_nodes(nodes)
    if nodes is None:
        data.node_ids = list(dict.fromkeys(name for pair in zip(sources, targets, strict=True) for name in pair))
        data.num_nodes = len(data.node_ids)
    position = {name: i for i, name in enumerate(data.node_ids)}
    for row, pair in enumerate(zip(sources, targets, strict=True)):
        for name in pair:
            if name not in position:
                raise InvalidFileError(
                    f"'{edges}' must name only nodes of '{nodes}', got {name!r} in row {row + 1}. Add the "
                    "node, or check for spaces and leading zeros."
                )
    pairs = [[position[name] for name in sources], [position[name] for name in targets]]
    data.edge_index = torch.tensor(pairs, dtype=torch.long).reshape(2, len(sources))
    if extra:
        data.preparation = [f"left out columns of the edge table: {', '.join(extra)}"]
    return data


def _read_edges(path: Path) -> tuple[list[str], list[str], list[str]]:
    frame = _read_frame(path, text_columns=None)
    named = [column for column in ("source", "target") if column in frame.columns]
    if len(named) == 1 or frame.shape[1] < 2:
        raise InvalidFileError(
            f"'{path}' must have the columns source and target, got {', '.join(frame.columns) or 'none'}."
        )
    columns = named or [str(column) for column in frame.columns[:2]]
    if not named and any(_is_number(column) for column in columns):
        raise InvalidFileError(
            f"'{path}' must have a header row, got {', '.join(columns)}. Add the line source,target at the top."
        )
    sources, targets = (_texts(path, frame, column) for column in columns)
    return sources, targets, [str(column) for column in frame.columns if column not in columns]


def _read_nodes(path: Path) -> Data:
    header = _read_header(path)
    id_column = next((column for column in _ID_COLUMNS if column in header), header[0])
    if _is_number(id_column):
        raise InvalidFileError(f"'{path}' must have a header row, got {', '.join(header[:3])}. Add column names.")
    frame = _read_frame(path, text_columns=[id_column, _LABEL_COLUMN])
    if frame.empty:
        raise InvalidFileError(f"'{path}' must have at least one node, got an empty table.")
    node_ids = _texts(path, frame, id_column)
    repeated = first_repeated(node_ids)
    if repeated is not None:
        raise InvalidFileError(f"'{path}' must list each node once, got the id {repeated!r} more than once.")
    data = Data(num_nodes=len(node_ids))
    data.node_ids = node_ids
    feature_columns = [column for column in frame.columns if column not in (id_column, _LABEL_COLUMN)]
    if feature_columns:
        columns = [_numbers(path, frame[column], node_ids) for column in feature_columns]
        data.x = torch.from_numpy(np.stack(columns, axis=1))
    if _LABEL_COLUMN in frame.columns:
        _set_labels(path, data, frame[_LABEL_COLUMN], node_ids)
    return data


def _numbers(path: Path, column: "pd.Series[Any]", node_ids: list[str]) -> NDArray[np.float32]:
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    with np.errstate(over="ignore"):
        values = numbers.astype(np.float32)
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        row = int(wrong[0])
        raise InvalidFileError(
            f"'{path}': the feature `{column.name}` must be a finite number for every node, got "
            f"{column.iloc[row]!r} for the node {node_ids[row]!r}. Encode texts as numbers, fill gaps, or "
            "drop the column."
        )
    return values


def _set_labels(path: Path, data: Data, column: "pd.Series[Any]", node_ids: list[str]) -> None:
    labels = ["" if pd.isna(value) else _label_text(value) for value in column]
    known = [label for label in labels if label]
    if all(label.lstrip("-").isdecimal() for label in known):
        numbers = [int(label) if label else -1 for label in labels]
        limit = max(1_000, len(node_ids))
        wrong = next((row for row, number in enumerate(numbers) if not -1 <= number < limit), None)
        if wrong is not None:
            raise InvalidFileError(
                f"'{path}': `label` must be a class number in [0, {limit - 1}], or -1 or empty if unknown, "
                f"got {numbers[wrong]} for the node {node_ids[wrong]!r}. Write codes as names, e.g. with a "
                "letter in front."
            )
    else:
        data.class_names = sorted(set(known))
        number_of = {name: i for i, name in enumerate(data.class_names)}
        numbers = [number_of[label] if label else -1 for label in labels]
    data.y = torch.tensor(numbers, dtype=torch.long)


def _label_text(value: object) -> str:
    if isinstance(value, float) and value.is_integer():  # whole numbers with gaps come as floats from Parquet
        return str(int(value))
    return str(value).strip()


def _texts(path: Path, frame: pd.DataFrame, column: str) -> list[str]:
    values = frame[column]
    missing = values.isna() | (values.astype(str) == "")
    if missing.any():
        row = int(np.flatnonzero(missing.to_numpy())[0])
        raise InvalidFileError(f"'{path}': `{column}` must be a node id in every row, got none in row {row + 1}.")
    return [str(value) for value in values.tolist()]


def _read_frame(path: Path, *, text_columns: list[str] | None) -> pd.DataFrame:
    """Read a table; ``text_columns`` of a text file are not interpreted (None: no column is)."""
    try:
        if path.suffix.lower() == ".parquet":
            frame = pd.read_parquet(path, engine="pyarrow")
        else:
            kinds: Any = str if text_columns is None else dict.fromkeys(text_columns, str)
            # index_col=False: rows with one field more than the header would otherwise shift all columns.
            frame = pd.read_csv(
                path,
                sep=_separator(path),
                dtype=kinds,
                keep_default_na=False,
                index_col=False,
                low_memory=False,
            )
    except (ValueError, OSError, EOFError, zlib.error, pd.errors.ParserWarning) as error:
        raise InvalidFileError(
            f"'{path}' must be a table in {path.suffix.lstrip('.')} format, but it cannot be read ({error}). "
            "It may be empty, truncated or another format."
        ) from error
    frame.columns = pd.Index([str(column) for column in frame.columns])
    return frame


def _read_header(path: Path) -> list[str]:
    if path.suffix.lower() == ".parquet":
        columns = _read_frame(path, text_columns=[]).columns
    else:
        try:
            columns = pd.read_csv(path, sep=_separator(path), nrows=0, index_col=False).columns
        except (ValueError, OSError, EOFError, zlib.error) as error:
            raise InvalidFileError(
                f"'{path}' must be a table with a header row, but it cannot be read ({error})."
            ) from error
    if len(columns) == 0:
        raise InvalidFileError(f"'{path}' must have at least a column of node ids, got none.")
    return [str(column) for column in columns]


def _separator(path: Path) -> str:
    return "\t" if ".tsv" in path.name.lower() else ","


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
