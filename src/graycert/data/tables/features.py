"""Columns of numbers, and what is said about those that hold something else."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from graycert.data.tables.findings import Findings, in_rows, listed, option
from graycert.data.tables.options import TableOptions
from graycert.data.tables.table import Table, is_text

_GAPS = pa.array(["", "nan", "na", "n/a", "<na>", "none", "null", "?", "nat"], pa.string())
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_DATE = r"^[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}([ T].*)?$"
_DECIMAL_COMMA = r"^[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?$"
_MOST_VALUES = 1_000
_EXACT = 2**24

DIFFERENT = 1_000
"""Ratio of the deviations of two features from which on a remark says that they differ in scale."""


@dataclass(frozen=True, kw_only=True)
class _Numbers:
    """One column.

    Attributes:
        values: Its numbers, NaN where there is none, float64, shape (num_rows,).
        gaps: Where it has no value, bool.
        wrong: Where it has a value that is no finite number, bool.
    """

    values: NDArray[np.float64]
    gaps: NDArray[np.bool_]
    wrong: NDArray[np.bool_]


def features_of(
    table: Table, columns: Sequence[str], options: TableOptions, node_ids: list[str], findings: Findings
) -> NDArray[np.float32] | None:
    """Return the features, float32, shape (num_rows, num_features), or None if there are none or with problems."""
    before = len(findings.problems)
    blocks: list[tuple[list[str], NDArray[np.float32]]] = []
    filled: list[str] = []
    truths: list[str] = []
    rounded: list[str] = []
    for name in columns:
        column = table.columns[name]
        if name in options.one_hot:
            blocks += _one_hot(table, name, findings)
        elif pa.types.is_list(column.type) or pa.types.is_fixed_size_list(column.type) or _is_large_list(column):
            blocks += _vectors(table, name, findings)
        else:
            found = _numbers(column, name, truths)
            _complain(table, name, found, options, node_ids, findings)
            if len(findings.problems) == before:
                blocks.append(([name], _filled(name, found, options, filled)))
                rounded += [name] if _is_rounded(found.values) else []
    if len(findings.problems) > before or not blocks:
        return None
    _remark(table, columns, blocks, findings, truths=truths, filled=filled, rounded=rounded, fill=options.fill)
    return _joined(table.num_rows, [block for _, block in blocks])


def _joined(num_rows: int, blocks: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    x = np.empty((num_rows, sum(1 if block.ndim == 1 else block.shape[1] for block in blocks)), dtype=np.float32)
    place = 0
    for block in blocks:
        width = 1 if block.ndim == 1 else block.shape[1]
        x[:, place : place + width] = block.reshape(num_rows, width)
        place += width
    return x


def _numbers(column: pa.ChunkedArray, name: str, truths: list[str]) -> _Numbers:
    if pa.types.is_boolean(column.type):
        truths.append(name)
        column = pc.cast(column, pa.int8())
    if not is_text(column):
        return _typed_numbers(column)
    gaps = pc.is_in(pc.utf8_lower(column), value_set=_GAPS)
    present = pc.if_else(gaps, None, column)
    try:
        numbers, wrong = pc.cast(present, pa.float64()), None
    except pa.ArrowInvalid:
        lower = pc.utf8_lower(present)
        truth = pc.fill_null(pc.is_in(lower, value_set=pa.array(["true", "false"], pa.string())), False)
        if pc.all(pc.or_(truth, gaps)).as_py():
            truths.append(name)
            numbers, wrong = pc.cast(pc.if_else(gaps, None, pc.equal(lower, "true")), pa.int8()), None
        else:
            right = pc.fill_null(pc.match_substring_regex(present, _NUMBER), False)
            numbers = pc.cast(pc.if_else(right, present, None), pa.float64())
            wrong = pc.and_(pc.invert(right), pc.invert(gaps)).to_numpy()
    return _checked(numbers, gaps.to_numpy(), wrong)


def _typed_numbers(column: pa.ChunkedArray) -> _Numbers:
    try:
        if pa.types.is_temporal(column.type):
            raise pa.ArrowInvalid("a time")
        numbers = pc.cast(column, pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        nothing = np.full(len(column), np.nan)
        gaps = pc.is_null(column).to_numpy()
        return _Numbers(values=nothing, gaps=gaps, wrong=~gaps)
    gaps = pc.or_(pc.is_null(numbers), pc.fill_null(pc.is_nan(numbers), False)).to_numpy()
    return _checked(numbers, gaps, None)


def _checked(numbers: pa.ChunkedArray, gaps: NDArray[np.bool_], wrong: NDArray[np.bool_] | None) -> _Numbers:
    values = np.asarray(numbers.to_numpy(), dtype=np.float64)
    wrong = np.zeros(values.size, dtype=np.bool_) if wrong is None else wrong
    with np.errstate(over="ignore", invalid="ignore"):
        infinite = ~np.isfinite(values.astype(np.float32)) & ~gaps
    return _Numbers(values=values, gaps=gaps, wrong=wrong | infinite)


def _complain(
    table: Table, name: str, found: _Numbers, options: TableOptions, node_ids: list[str], findings: Findings
) -> None:
    where = f"the feature `{name}` of {table.name}"
    if found.gaps.all() and table.num_rows:
        findings.problems.append(f"{where} must be a finite number for every node, got no value. {_leave_out(name)}")
        return
    if found.wrong.any():
        rows = np.flatnonzero(found.wrong)
        texts = table.texts(name).take(pa.array(rows))
        shown = in_rows([texts[i].as_py() for i in range(min(3, rows.size))], rows.tolist()[:3], node_ids, rows.size)
        findings.problems.append(
            f"{where} must be a finite number for every node, got {shown}. {_advice(name, table, texts)}"
        )
    if found.gaps.any() and options.fill is None:
        rows = np.flatnonzero(found.gaps)
        values = [table.texts(name)[int(row)].as_py() for row in rows[:3]]
        findings.problems.append(
            f"{where} must be a finite number for every node, got "
            f"{in_rows(values, rows.tolist()[:3], node_ids, rows.size)}. Fill gaps with {option('fill', 'median')} or "
            f"{option('fill', 'zero')}, or leave it out: {option('drop', name)}."
        )


def _advice(name: str, table: Table, texts: pa.ChunkedArray) -> str:
    if pa.types.is_temporal(table.columns[name].type) or _all_match(texts, _DATE):
        return f"Write dates as numbers, e.g. of days. {_leave_out(name)}"
    if _all_match(texts, _DECIMAL_COMMA):
        return (
            "Write a point, not a comma, before decimals, or pass the frame that "
            f'pandas.read_csv(..., decimal=",") reads. {_leave_out(name)}'
        )
    if _all_match(texts, _NUMBER) or _all_match(texts, r"(?i)^[+-]?inf(inity)?$"):
        return f"Features are at most 3.4e38. {_leave_out(name)}"
    distinct = pc.unique(table.texts(name))
    values = len(distinct) - int(pc.sum(pc.is_in(pc.utf8_lower(distinct), value_set=_GAPS)).as_py() or 0)
    if values > _MOST_VALUES:
        return f"It has {values:,} different values. {_leave_out(name)}"
    return (
        f"Make one feature of each of its {values:,} values with {option('one_hot', name)}, or leave it out: "
        f"{option('drop', name)}."
    )


def _all_match(texts: pa.ChunkedArray, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _leave_out(name: str) -> str:
    return f"Leave it out with {option('drop', name)}."


def _filled(name: str, found: _Numbers, options: TableOptions, filled: list[str]) -> NDArray[np.float32]:
    values = found.values
    if found.gaps.any():
        by = float(np.median(values[~found.gaps])) if options.fill == "median" else 0.0
        values = np.where(found.gaps, by, values)
        filled.append(f"{int(found.gaps.sum()):,} in `{name}` by {by:g}")
    return values.astype(np.float32)


def _one_hot(table: Table, name: str, findings: Findings) -> list[tuple[list[str], NDArray[np.float32]]]:
    encoded = pc.dictionary_encode(table.texts(name).combine_chunks())
    words = encoded.dictionary.to_pylist()
    values = sorted(word for word in words if word.casefold() not in set(_GAPS.to_pylist()))
    if len(values) > _MOST_VALUES:
        findings.problems.append(
            f"`one_hot` must name columns of at most {_MOST_VALUES:,} values, got `{name}` of {table.name} with "
            f"{len(values):,}. {_leave_out(name)}"
        )
        return []
    place = {value: number for number, value in enumerate(values)}
    of_word = np.array([place.get(word, -1) for word in words] or [-1])
    codes = of_word[encoded.indices.to_numpy()] if table.num_rows else np.empty(0, dtype=np.int64)
    block = (codes[:, None] == np.arange(len(values))).astype(np.float32)
    none = int((codes < 0).sum())
    gaps = f"; {none:,} nodes have none of them" if none else ""
    findings.remarks.append(f"made `{name}` into {len(values):,} features, one for each value{gaps}")
    return [([f"{name}={value}" for value in values], block)] if values else []


def _vectors(table: Table, name: str, findings: Findings) -> list[tuple[list[str], NDArray[np.float32]]]:
    column = table.columns[name].combine_chunks()
    lengths = set(pc.unique(pc.list_value_length(column)).to_pylist())
    problem = f"the feature `{name}` of {table.name} must hold lists of equally many finite numbers"
    if len(lengths) != 1 or None in lengths or 0 in lengths:
        findings.problems.append(f"{problem}, got lengths {sorted(map(str, lengths))}. {_leave_out(name)}")
        return []
    width = int(lengths.pop())
    try:
        flat = pc.cast(pc.list_flatten(column), pa.float64()).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        flat = np.array([np.nan])
    with np.errstate(over="ignore", invalid="ignore"):
        block = flat.astype(np.float32)
    if block.size != width * table.num_rows or not np.isfinite(block).all():
        findings.problems.append(f"{problem}, got something else. {_leave_out(name)}")
        return []
    return [([f"{name}[{i}]" for i in range(width)], block.reshape(table.num_rows, width))]


def _is_large_list(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_large_list(column.type))


def _remark(
    table: Table,
    columns: Sequence[str],
    blocks: list[tuple[list[str], NDArray[np.float32]]],
    findings: Findings,
    *,
    truths: list[str],
    filled: list[str],
    rounded: list[str],
    fill: str | None,
) -> None:
    if truths:
        findings.remarks.append(f"read true and false as 1 and 0: {listed(truths)}")
    if filled:
        findings.remarks.append(f"filled gaps ({fill}): {', '.join(filled)}")
    if rounded:
        findings.remarks.append(f"rounded numbers that 32 bits cannot tell apart: {listed(rounded)}")
    counters = [name for name in columns if table.num_rows > 2 and table.counts_rows(name)]
    if counters:
        findings.remarks.append(
            f"{listed(counters)} only counts the rows and is a feature all the same; leave it out with "
            f"{option('drop', counters[0])}"
        )
    width = sum(len(names) for names, _ in blocks)
    findings.remarks.append(f"features: {width:,} ({listed(columns)})")
    _remark_scales(blocks, findings)


def _remark_scales(blocks: list[tuple[list[str], NDArray[np.float32]]], findings: Findings) -> None:
    """Say where features are of such different size that the largest ones drown the others."""
    sizes = {
        name: float(size)
        for names, block in blocks
        if len(block)
        for name, size in zip(names, block.reshape(len(block), -1).std(axis=0, dtype=np.float64), strict=True)
        if size
    }
    if not sizes:
        return
    small, large = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
    if sizes[large] >= DIFFERENT * sizes[small]:
        findings.remarks.append(
            f"features differ in scale: `{large}` varies by {sizes[large]:.3g}, `{small}` by {sizes[small]:.3g}; most "
            "models learn little from the small ones. Bring columns to one scale first, by their mean and deviation "
            "over training nodes"
        )


def _is_rounded(values: NDArray[np.float64]) -> bool:
    """Whether whole numbers are no longer exact as features, or a number other than 0 became 0."""
    values = values[np.isfinite(values)]
    with np.errstate(over="ignore"):
        stored = values.astype(np.float32)
    large = (np.abs(values) > _EXACT) & (values == np.round(values)) & (stored != values)
    return bool((large | ((stored == 0) & (values != 0))).any())
