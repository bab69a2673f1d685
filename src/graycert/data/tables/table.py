"""A table as it was read: columns by name, from a file or a frame; nothing is interpreted yet."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graycert.data.tables.findings import Findings, listed, option

_NAMELESS = re.compile(r"^(Unnamed: \d+|__index_level_\d+__)$")


@dataclass(frozen=True, kw_only=True)
class Table:
    """Columns of equal length.

    Attributes:
        name: What problems call the table: its quoted path, or "the node table".
        called: What remarks call it, wherever it lies: "the node table" or "the edge table".
        columns: By name, in order.
        num_rows: Their length.
    """

    name: str
    called: str
    columns: Mapping[str, pa.ChunkedArray]
    num_rows: int

    def without(self, names: set[str]) -> "Table":
        """Return the table without some columns."""
        kept = {name: column for name, column in self.columns.items() if name not in names}
        return Table(name=self.name, called=self.called, columns=kept, num_rows=self.num_rows)

    def texts(self, name: str) -> pa.ChunkedArray:
        """Return a column as texts; whole floats as whole numbers, and what is missing as an empty text."""
        return as_texts(self.columns[name])

    def counts_rows(self, name: str) -> bool:
        """Whether a column only counts the rows, from 0 or 1."""
        if self.num_rows < 2:
            return False
        texts = self.texts(name)
        return any(texts[0].as_py() == str(start) and _counts(texts, start) for start in (0, 1))


def made_table(name: str, called: str, arrow: pa.Table, findings: Findings) -> Table:
    """Return a table with distinct names and without blanks around its values; what is wrong or changed is noted."""
    names = [str(each).strip() or f"Unnamed: {position}" for position, each in enumerate(arrow.column_names)]
    repeated = sorted({each for number, each in enumerate(names) if each in names[:number]})
    if repeated:
        findings.problems.append(f"{name} must name each column once, got {listed(repeated)} more than once.")
    columns = {each: _trimmed(arrow.column(position)) for position, each in enumerate(names)}
    padded = [each for each, (_, changed) in columns.items() if changed]
    if padded:
        findings.remarks.append(f"removed blanks around values of {called}: {listed(padded)}")
    return _without_empty(
        Table(
            name=name,
            called=called,
            columns={each: column for each, (column, _) in columns.items()},
            num_rows=arrow.num_rows,
        ),
        findings,
    )


def leave_out_nameless(table: Table, findings: Findings) -> Table:
    """Return the table without columns that have no name, if they are empty or only count the rows."""
    left_out = set()
    for name in table.columns:
        if not _NAMELESS.match(name):
            continue
        if table.counts_rows(name):
            findings.remarks.append(f"left out the nameless column of {table.called}, which counts the rows")
        elif _is_empty(table.texts(name)):
            findings.remarks.append(f"left out the nameless column of {table.called}, which is empty")
        else:
            findings.problems.append(
                f"{table.name} must name its columns, got one without a name (`{name}`), which starts with "
                f"{table.texts(name)[0].as_py()!r}. Name it in the header, or leave it out: {option('drop', name)}."
            )
        left_out.add(name)
    return table.without(left_out)


def is_nameless(name: str) -> bool:
    """Whether a column has no name of its own."""
    return bool(_NAMELESS.match(name))


def as_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Do the work of `Table.texts`."""
    kind = column.type
    if pa.types.is_boolean(kind):
        column = pc.if_else(column, "True", "False")
    elif pa.types.is_floating(kind):
        values = column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()
        finite = values[values == values]
        if finite.size == 0 or ((abs(finite) < 2**53) & (finite == finite.round())).all():
            column = pc.cast(pc.if_else(pc.is_nan(column), None, column), pa.int64())
        column = pc.if_else(pc.equal(pc.cast(column, pa.string()), "nan"), None, pc.cast(column, pa.string()))
    elif not pa.types.is_string(kind):
        try:
            column = pc.cast(column, pa.string())
        except pa.ArrowNotImplementedError:  # lists and the like
            column = pa.chunked_array([pa.array([None if each is None else str(each) for each in column.to_pylist()])])
    return pc.fill_null(column, "")


def is_text(column: pa.ChunkedArray) -> bool:
    """Whether a column holds texts."""
    return bool(pa.types.is_string(column.type))


def _trimmed(column: Any) -> tuple[pa.ChunkedArray, bool]:
    """Return a column with plain texts without blanks around them, and whether there were any."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or "view" in str(column.type)):
        return column, False
    column = column.cast(pa.string())
    trimmed = pc.utf8_trim(column, " \t\r\n\u00a0\ufeff\u200b")
    return trimmed, bool(pc.any(pc.not_equal(trimmed, column)).as_py())


def _without_empty(table: Table, findings: Findings) -> Table:
    """Leave out rows without any value."""
    empty: Any = None
    for name, column in table.columns.items():
        nothing = pc.is_null(column) if not is_text(column) else pc.equal(table.texts(name), "")
        empty = nothing if empty is None else pc.and_(empty, nothing)
        if not pc.any(empty).as_py():
            return table
    if empty is None:
        return table
    kept = pc.invert(empty)
    number = int(pc.sum(empty).as_py())
    findings.remarks.append(f"left out empty rows of {table.called}: {number:,}")
    columns = {name: column.filter(kept) for name, column in table.columns.items()}
    return Table(name=table.name, called=table.called, columns=columns, num_rows=table.num_rows - number)


def _counts(texts: pa.ChunkedArray, start: int) -> bool:
    import numpy as np

    expected = pc.cast(pa.array(np.arange(start, start + len(texts))), pa.string())
    return bool(pc.all(pc.equal(texts, expected)).as_py())


def _is_empty(texts: pa.ChunkedArray) -> bool:
    return bool(pc.all(pc.equal(texts, "")).as_py()) if len(texts) else False
