"""Edges between numbered nodes, read from a table in pieces, and features in a `.npy` file: for large graphs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from graycert.data.arrays import GraphArrays
from graycert.data.edges_in_pieces import EdgeFile
from graycert.data.on_disk import SUFFIX, features_of_file, is_array_file, whole_numbers_of_file
from graycert.data.tables.columns import find_ends
from graycert.data.tables.findings import Findings
from graycert.data.tables.options import TableOptions
from graycert.data.tables.table import made_table
from graycert.errors import InvalidFileError, InvalidParameterError

_ROWS = 2**20  # edges at a time
_OWN = ("source", "target", "label", "class_names", "separator")


def read_numbered(edges: Path, features: Path, options: TableOptions) -> tuple[GraphArrays, EdgeFile]:
    """Return features and labels, and the edges still to be read.

    Args:
        edges: A table in Parquet or CSV (``.gz`` too) with a header, whose columns of sources and targets hold node
            numbers from 0.
        features: The ``.npy`` file: one row per node.
        options: ``label`` names a ``.npy`` file with a class number per node, -1 where it is unknown.

    Raises:
        InvalidFileError: If a file is missing, damaged or ambiguous.
        InvalidParameterError: If an option does not belong to numbered nodes.
    """
    for name in options.stored():
        if name not in _OWN:
            raise InvalidParameterError(
                f"`{name}` says something of a node table, but the nodes are numbers and `nodes` is '{features}'. "
                "Leave it out."
            )
    x = features_of_file(features)
    data = GraphArrays(x=x)
    if options.label:
        if not is_array_file(options.label):
            raise InvalidParameterError(
                f"`label` must be a {SUFFIX} file with a class number per node where `nodes` is one, got "
                f"{options.label!r}."
            )
        data.y = whole_numbers_of_file(Path(options.label).expanduser())
    if options.class_names:
        data.class_names = list(options.class_names)
    ends, remarks = _ends(edges, options)

    def read() -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        with _readable(edges):
            for batch in _batches(edges, options, ends):
                yield _numbers(edges, batch, ends[0]), _numbers(edges, batch, ends[1])

    data.preparation = [f"nodes are numbers: rows of {features.name}", *remarks]
    return data, EdgeFile(name=str(edges), num_nodes=x.shape[0], read=read)


def _ends(edges: Path, options: TableOptions) -> tuple[tuple[str, str], list[str]]:
    """Return the columns of the two ends, and what was assumed of them."""
    findings = Findings()
    with _readable(edges):
        first = next(_batches(edges, options, None), None)
    if first is None:
        raise InvalidFileError(f"'{edges}' must hold at least one edge, got an empty table.")
    table = made_table(f"'{edges}'", "the edge table", pa.Table.from_batches([first.slice(0, 1_000)]), findings)
    found = find_ends(table, options.source, options.target, findings)
    findings.require()
    if found is None:
        raise InvalidFileError(f"'{edges}' must have columns of sources and targets.")
    if edges.suffix.lower() != ".parquet" and all(name.isdigit() for name in found):
        raise InvalidFileError(
            f"'{edges}' must have a header row, got {', '.join(found)} in its first line. If that is an edge, which "
            "would be lost, add the line source,target above it; if not, give these columns other names."
        )
    return found, findings.remarks


def _batches(edges: Path, options: TableOptions, ends: tuple[str, str] | None) -> Iterator[pa.RecordBatch]:
    if edges.suffix.lower() == ".parquet":
        with pq.ParquetFile(edges) as file:
            yield from file.iter_batches(batch_size=_ROWS, columns=None if ends is None else list(ends))
        return
    separator = options.separator or ("\t" if ".tsv" in edges.name.lower() else ",")
    compression = "gzip" if edges.suffix.lower() == ".gz" else None
    with pa.input_stream(str(edges), compression=compression) as stream:
        yield from pa_csv.open_csv(
            stream,
            read_options=pa_csv.ReadOptions(block_size=2**24),
            parse_options=pa_csv.ParseOptions(delimiter=separator),
            convert_options=pa_csv.ConvertOptions(include_columns=[] if ends is None else list(ends)),
        )


def _numbers(edges: Path, batch: pa.RecordBatch, name: str) -> NDArray[Any]:
    column = batch.column(name)
    if not pa.types.is_integer(column.type) or column.null_count:
        raise InvalidFileError(
            f"'{edges}': `{name}` must hold node numbers from 0 where `nodes` is a {SUFFIX} file, got {column.type} "
            f"with {column.null_count:,} gaps. Number the nodes by rows of the features, or pass a node table."
        )
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, EOFError) as error:
        detail = str(error).partition("\n")[0] or type(error).__name__
        raise InvalidFileError(
            f"'{path}' must be a table of edges, but it cannot be read ({detail}). It may be truncated or another "
            "format."
        ) from error
