"""Which character separates the values of a table."""

import csv
from collections.abc import Sequence
from pathlib import Path

from graycert.data.tables.findings import option
from graycert.data.tables.options import SEPARATORS
from graycert.errors import InvalidFileError

_USUAL = {".csv": ",", ".tsv": "\t"}
_STRONG = (",", ";", "\t", "|")
WORDS = {character: name for name, character in SEPARATORS.items()}


def usual_separator(path: Path) -> str:
    """Return the separator that the name of a file promises."""
    return _USUAL[".tsv" if ".tsv" in path.name.lower() else ".csv"]


def find_separator(path: Path, lines: Sequence[str]) -> str:
    """Return the separator of a table: the one by which all of its first lines have equally many values.

    Args:
        path: The file, whose name promises one.
        lines: The header and some rows, without comments.

    Raises:
        InvalidFileError: If two of them do.
    """
    usual = usual_separator(path)
    whole = [line for line in lines if line.count('"') % 2 == 0]
    counts = {each: [num_values(line, each) for line in whole] for each in _STRONG}
    named = [each for each in _STRONG if counts[each] and counts[each][0] > 1]
    even = [each for each in named if len(set(counts[each])) == 1]
    candidates = even or named
    if len(candidates) > 1 and (even or usual not in named):
        first, second, *_ = candidates
        raise InvalidFileError(
            f"'{path}' could be separated by a {WORDS[first]} or a {WORDS[second]}: either gives every line equally "
            f"many values. Say which with {option('separator', WORDS[first])}."
        )
    if candidates:
        return candidates[0] if len(candidates) == 1 else usual
    by_blanks = {len(line.split()) for line in whole}
    return " " if len(by_blanks) == 1 and by_blanks.pop() > 1 else usual


def values_of(line: str, separator: str) -> list[str]:
    """Return the values of one line."""
    return line.split() if separator == " " else next(csv.reader([line], delimiter=separator), [])


def num_values(line: str, separator: str) -> int:
    """Return how many values a line has."""
    return len(values_of(line, separator))
