"""Tables from files (CSV, TSV, Parquet) and frames (pandas, Arrow, whatever exports Arrow), read by Arrow."""

import gzip
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from graycert.data.tables.findings import Findings
from graycert.data.tables.options import SEPARATORS
from graycert.data.tables.separators import WORDS, find_separator, usual_separator, values_of
from graycert.data.tables.table import Table, made_table
from graycert.errors import InvalidFileError

_HEAD = 1 << 18
_BLOCK = 1 << 22
_SAMPLED = 100


def read_table(source: Any, *, called: str, separator: str | None, findings: Findings) -> Table:
    """Read a table; what cannot be read is refused, what was left out is added to ``findings``.

    Args:
        source: A path or a frame.
        called: What the table is, "the edge table" or "the node table".
        separator: The character between values of a text file; None finds it.
        findings: Where problems and remarks go.

    Raises:
        InvalidFileError: If it cannot be read at all.
    """
    if not isinstance(source, Path):
        return made_table(called, called, _of_frame(source, findings), findings)
    with _readable(source):
        is_parquet = source.suffix.lower() == ".parquet"
        arrow = pq.read_table(source) if is_parquet else _text(source, called, separator, findings)
        return made_table(f"'{source}'", called, arrow, findings)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, OSError, EOFError, pa.ArrowException) as error:
        detail = str(error).partition("\n")[0] or type(error).__name__
        if "UTF8" in detail or isinstance(error, UnicodeDecodeError):
            raise InvalidFileError(
                f"'{path}' must be a table in UTF-8, but it cannot be read ({detail}). Save it again as UTF-8, e.g. "
                "with iconv -f latin1 -t utf-8."
            ) from error
        kind = path.suffix.lstrip(".") if path.suffix != ".gz" else "".join(path.suffixes).lstrip(".")
        raise InvalidFileError(
            f"'{path}' must be a table in {kind} format, but it cannot be read ({detail}). It may be empty, truncated "
            "or another format."
        ) from error


def _of_frame(frame: Any, findings: Findings) -> pa.Table:
    if isinstance(frame, pa.Table):
        return frame
    if hasattr(frame, "iloc"):  # pandas, whose index may have a name, thus be a column
        if any(name is not None for name in frame.index.names):
            frame = frame.reset_index()
        elif not _counts(frame.index):
            findings.remarks.append("left out the nameless index of a data frame")
        frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
        try:
            return pa.Table.from_pandas(frame, preserve_index=False)
        except (pa.ArrowException, ValueError) as error:
            raise InvalidFileError(
                f"the data frame must have columns of one type each, got a mixture ({str(error).splitlines()[0]})."
            ) from error
    return pa.table(frame)


def _counts(index: Any) -> bool:
    return len(index) == 0 or (index.dtype.kind in "iu" and bool((index.to_numpy() == np.arange(len(index))).all()))


@dataclass(frozen=True, kw_only=True)
class _Head:
    """What the first lines of a text file say.

    Attributes:
        encoding: Of the file.
        skipped: Lines before the rows: comments, blanks, and the header.
        header: Names of the columns.
        separator: Between values.
    """

    encoding: str
    skipped: int
    header: list[str]
    separator: str


def _text(path: Path, called: str, separator: str | None, findings: Findings) -> pa.Table:
    head = _look(path, called, separator, findings)
    names = [name.strip() or f"Unnamed: {position}" for position, name in enumerate(head.header)]
    if all(_is_number(name) for name in names) or _is_number(names[0]):
        raise InvalidFileError(
            f"'{path}' must have a header row, got {', '.join(names[:3])} in its first line. Add a line with names of "
            "columns at the top: source and target for edges, id for nodes."
        )
    numbered = [str(position) for position in range(len(names))]  # names may repeat, which is told later
    comments: list[str] = []
    ragged: list[Any] = []

    def unusual(row: Any) -> str:
        (comments if row.text.lstrip().startswith("#") else ragged).append(row)
        return "skip"

    arrow = pa_csv.read_csv(
        _stream(path, head),
        read_options=pa_csv.ReadOptions(
            skip_rows=head.skipped, column_names=numbered, encoding=head.encoding, block_size=_BLOCK
        ),
        parse_options=pa_csv.ParseOptions(
            delimiter=head.separator, newlines_in_values=True, invalid_row_handler=unusual, ignore_empty_lines=True
        ),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(numbered, pa.string()), strings_can_be_null=False, null_values=[]
        ),
    )
    if comments:
        findings.remarks.append(f"left out lines of comments within {called}: {len(comments):,}")
    if ragged:
        first = ragged[0]
        text = first.text if len(first.text) <= 80 else first.text[:79] + "…"
        findings.problems.append(
            f"'{path}' must have {first.expected_columns} values in every line, as in its header, got "
            f"{first.actual_columns} in {text!r} ({len(ragged):,} such lines). Quote values that hold a "
            f"{WORDS.get(head.separator, 'separator')}, or say which separator it is: separator=... (--separator)."
        )
    _remark_on_cells(called, arrow, findings)
    return arrow.rename_columns(names)


def _look(path: Path, called: str, separator: str | None, findings: Findings) -> _Head:
    with (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rb") as stream:
        start = stream.read(_HEAD)
    encoding = "utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    if encoding == "utf-16":
        findings.remarks.append(f"read {called} as UTF-16")
    text = start.decode(encoding, errors="ignore" if len(start) == _HEAD else "strict")
    lines = [line.rstrip("\r") for line in text.split("\n")]
    if len(start) == _HEAD:
        lines.pop()  # cut off
    skipped = 0
    while skipped < len(lines) and (not lines[skipped].strip() or lines[skipped].lstrip().startswith("#")):
        skipped += 1
    hint = re.fullmatch(r"sep=(.)", lines[skipped]) if skipped < len(lines) else None
    if hint:  # as Excel writes it
        separator, skipped = separator or hint[1], skipped + 1
    if skipped == len(lines):
        raise ValueError("it has no line but comments and blanks" if text.strip() else "it is empty")
    comments = sum(line.lstrip().startswith("#") for line in lines[:skipped])
    if comments:
        findings.remarks.append(f"left out lines of comments at the top of {called}: {comments:,}")
    sample = [line for line in lines[skipped:] if line.strip() and not line.lstrip().startswith("#")][:_SAMPLED]
    found = separator or find_separator(path, sample)
    if separator is None and found != usual_separator(path):
        findings.remarks.append(f"read {called} with a {WORDS[found]} between values")
    header = values_of(lines[skipped], found)
    return _Head(
        encoding="utf-8" if encoding == "utf-8-sig" else encoding,
        skipped=skipped + 1,
        header=[name.strip() for name in header],
        separator=found,
    )


def _stream(path: Path, head: _Head) -> Any:
    """Return what Arrow reads: the file, unpacked by Arrow; runs of blanks are made single ones first."""
    if head.separator != SEPARATORS["blank"]:
        return pa.input_stream(str(path), compression="gzip" if path.suffix.lower() == ".gz" else None)
    with (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rb") as stream:
        lines = stream.read().decode(head.encoding).split("\n")
    text = "\n".join(" ".join(line.split()) for line in lines)
    return io.BytesIO(text.encode(head.encoding))


def _remark_on_cells(called: str, arrow: pa.Table, findings: Findings) -> None:
    import pyarrow.compute as pc

    if arrow.num_columns and arrow.num_rows:
        marked = int(pc.sum(pc.starts_with(arrow.column(0), "#")).as_py() or 0)
        if marked:
            findings.remarks.append(f"kept rows of {called} that begin with #: {marked:,}")
    broken = sum(int(pc.sum(pc.match_substring(column, "\n")).as_py() or 0) for column in arrow.columns)
    if broken:
        findings.remarks.append(
            f"{called} has line breaks within {broken:,} quoted values; is every quotation mark closed?"
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
