"""A column of labels: class numbers or names, or unknown."""

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graycert._types import IntArray
from graycert.data.tables.findings import Findings, listed, option
from graycert.data.tables.table import Table

UNKNOWN = (
    *("", "unknown", "unlabeled", "unlabelled", "missing", "undefined"),
    *("nan", "none", "null", "na", "n/a", "<na>", "nat", "?", "-", "-1", "-1.0"),
)
_WHOLE = re.compile(r"^[+-]?\d{1,18}(\.0+)?$")
_NUMBER = re.compile(r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
_MANY = 20


@dataclass(frozen=True, kw_only=True)
class Labels:
    """Classes of nodes.

    Attributes:
        y: Class number of each node, -1 if unknown, int64, shape (num_rows,).
        class_names: Name of each class, or None where labels are numbers.
    """

    y: IntArray
    class_names: list[str] | None


def labels_of(table: Table, column: str, class_names: tuple[str, ...], findings: Findings) -> Labels | None:
    """Return the classes of the nodes, or None with a problem; how they are numbered is a remark."""
    encoded = pc.dictionary_encode(table.texts(column).combine_chunks())
    words = encoded.dictionary.to_pylist()
    where = f"`{column}` of {table.name}"
    known = [word for word in words if word in class_names or word.casefold() not in UNKNOWN]
    numbering = _numbering(where, known, class_names, table.num_rows, findings)
    if numbering is None:
        return None
    number_of, names = numbering
    table_of = np.array([number_of.get(word, -1) for word in words] or [-1], dtype=np.int64)
    y = table_of[encoded.indices.to_numpy()] if table.num_rows else np.empty(0, dtype=np.int64)
    unknown = int((y < 0).sum())
    if unknown:
        written = [word for word in words if word not in number_of]
        findings.remarks.append(
            f"unknown labels: {unknown:,} of {y.size:,} ({unknown / y.size:.0%}), written "
            f"{', '.join(repr(word) for word in written[:6])}"
        )
    if names is None and number_of:
        findings.remarks.append(_as_written(sorted(set(number_of.values()))))
    elif names:
        how = "as class_names says" if class_names else "in alphabetical order"
        told = ", ".join(f"{number} = {name}" for number, name in enumerate(names[:20]))
        more = f" and {len(names) - 20:,} more" if len(names) > 20 else ""
        absent = [name for number, name in enumerate(names) if number not in set(number_of.values())]
        none = f"; no node is {listed(absent)}" if absent else ""
        findings.remarks.append(f"classes are numbered {how}: {told}{more}{none}")
    return Labels(y=y, class_names=names)


def holds_only(texts: pa.ChunkedArray, class_names: tuple[str, ...]) -> bool:
    """Whether a column holds nothing but names of classes and words for unknown labels, and some of the former."""
    words = set(pc.unique(texts).to_pylist())
    return bool(words & set(class_names)) and all(word.casefold() in UNKNOWN for word in words - set(class_names))


def _numbering(
    where: str, known: list[str], class_names: tuple[str, ...], num_rows: int, findings: Findings
) -> tuple[dict[str, int], list[str] | None] | None:
    """Return the class number of each word, and the names of the classes if words are names."""
    whole = bool(known) and all(_WHOLE.match(word) for word in known)
    if class_names:
        return _as_said(where, known, class_names, whole, findings)
    if whole:
        return _class_numbers(where, known, num_rows, findings)
    problem = _no_names(known, num_rows)
    if problem:
        findings.problems.append(
            f"{where} must hold classes, got {problem}. Choose another column with {option('label')}, or list the "
            f"classes with {option('class_names')}."
        )
        return None
    names = sorted(known)
    return {name: number for number, name in enumerate(names)}, names


def _as_said(
    where: str, known: list[str], class_names: tuple[str, ...], whole: bool, findings: Findings
) -> tuple[dict[str, int], list[str]] | None:
    names, missing = list(class_names), sorted(set(known) - set(class_names))
    if whole and len(missing) == len(known):  # class numbers, which get names
        numbers = {word: int(float(word)) for word in known}
        wrong = sorted(word for word, number in numbers.items() if not 0 <= number < len(names))
        if not wrong:
            return numbers, names
        missing = wrong
    if missing:
        findings.problems.append(
            f"`class_names` must name every label in {where}, got {', '.join(names)} without {listed(missing)}. Add "
            "them, or write them as unknown."
        )
        return None
    return {name: number for number, name in enumerate(names) if name in known}, names


def _class_numbers(
    where: str, known: list[str], num_rows: int, findings: Findings
) -> tuple[dict[str, int], None] | None:
    numbers, limit = {word: int(float(word)) for word in known}, max(1_000, num_rows)
    wrong = [word for word, number in numbers.items() if not 0 <= number < limit]
    if wrong:
        findings.problems.append(
            f"{where} must hold class numbers in [0, {limit - 1:,}], got {wrong[0]}. If they are names, say so with "
            f"{option('class_names', ','.join(sorted(known, key=lambda word: numbers[word])[:3]) + ',...')}; if the "
            f"column is no label, choose another with {option('label')}."
        )
        return None
    return numbers, None


def _no_names(known: list[str], num_rows: int) -> str:
    """Return why words are no names of classes, or an empty text."""
    numbers = [word for word in known if _NUMBER.match(word.replace(",", "."))]
    if known and len(numbers) == len(known):
        return f"numbers that are not whole, such as {next(w for w in numbers if not _WHOLE.match(w))!r}"
    same: dict[str, str] = {}
    for word in known:
        other = same.setdefault(word.casefold(), word)
        if other != word:
            return f"{other!r} and {word!r}, which differ in capitals only"
    if len(known) > max(_MANY, num_rows // 2):
        return f"{len(known):,} different texts in {num_rows:,} rows"
    return ""


def _as_written(numbers: list[int]) -> str:
    told = ", ".join(str(number) for number in numbers[:20]) + (", ..." if len(numbers) > 20 else "")
    empty = sorted(set(range(numbers[-1] + 1)) - set(numbers)) if numbers else []
    if not empty:
        return f"classes are numbered as written: {told}"
    which = ", ".join(str(number) for number in empty[:8]) + (", ..." if len(empty) > 8 else "")
    names = ",".join(str(number) for number in numbers[:20])
    return (
        f"classes are numbered as written: {told}; no node has class {which}. If the model has {len(numbers)} outputs, "
        f"name the classes in their order: {option('class_names', names)}"
    )
