"""What is found in tables: problems, all of them in one message, and remarks on what was assumed or changed."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from graycert.errors import InvalidFileError

_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Problems and remarks, gathered while tables are read.

    Attributes:
        problems: What must be decided or mended, each with the option that decides it.
        remarks: What was assumed or changed.
    """

    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def require(self) -> None:
        """Raise all problems there are, in one message.

        Raises:
            InvalidFileError: If there are any.
        """
        if len(self.problems) == 1:
            raise InvalidFileError(self.problems[0])
        if self.problems:
            raise InvalidFileError("\n- ".join([f"{len(self.problems)} problems:", *self.problems]))


def option(name: str, value: str = "...") -> str:
    """Return how an option is given, in Python and on the command line.

    Example:
        >>> option("one_hot", "city")
        'one_hot="city" (--one-hot city)'
    """
    quoted = f"'{value}'" if " " in value else value
    return f'{name}="{value}" (--{name.replace("_", "-")} {quoted})'


def listed(names: Sequence[str], shown: int = 8) -> str:
    """Return names with commas, the first ones of many."""
    more = "" if len(names) <= shown else f" and {len(names) - shown:,} more"
    return ", ".join(f"`{name}`" for name in names[:shown]) + more


def in_rows(values: Sequence[object], rows: Sequence[int], node_ids: Sequence[str] | None, total: int) -> str:
    """Return the first values that are wrong, in which rows, of which nodes."""
    told = [
        f"{value!r} in row {row + 1:,}" + ("" if node_ids is None else f" (node {node_ids[row]!r})")
        for value, row in zip(values[:_SHOWN], rows[:_SHOWN], strict=True)
    ]
    more = f" and {total - len(told):,} more" if total > len(told) else ""
    return ", ".join(told) + more
