"""Where a command speaks: results on standard output, everything else on standard error."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_FLAGS = {
    "`source`": "`--graph`",
    "`nodes`": "`--nodes`",
    "`directory`": "`--out`",
    "`num_selection`": "`--n0`",
    "`num_estimation`": "`--n1`",
    "`device`": "`--device`",
    "`data_root`": "`--data-root`",
    "overwrite=True": "--overwrite",
    "NodeFeatureThreat(min_distance=1)": "--min-distance 1",
    "a model without skip connection": "--no-skip",
    "`num_layers`": "`--num-layers`",
}


def in_flags(message: str) -> str:
    """Return a message of the library with its argument names as the flags of the command line."""
    for name, flag in _FLAGS.items():
        message = message.replace(name, flag)
    return message


@dataclass(frozen=True, kw_only=True)
class Console:
    """The voice of one command.

    Args:
        as_json: Print one JSON object instead of text.
        quiet: Say nothing on standard error but errors and warnings.
    """

    as_json: bool = False
    quiet: bool = False

    def say(self, message: str) -> None:
        """Tell what is going on."""
        if not self.quiet:
            print(in_flags(message), file=sys.stderr, flush=True)  # noqa: T201 (this is the place that prints)

    def warn(self, message: str) -> None:
        """Tell what the user should know even when nothing else is told."""
        print(f"warning: {in_flags(message)}", file=sys.stderr, flush=True)  # noqa: T201

    def result(self, text: str, record: dict[str, Any]) -> None:
        """Print the result: ``text``, or ``record`` if JSON was asked for."""
        print(json.dumps(record, ensure_ascii=False, allow_nan=False) if self.as_json else text)  # noqa: T201

    @property
    def progress(self) -> bool:
        """Whether progress bars are wanted."""
        return not self.quiet


def error(message: str) -> None:
    """Print an error as one short paragraph."""
    print(f"error: {' '.join(in_flags(message).split())}", file=sys.stderr, flush=True)  # noqa: T201


def table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], *, left: int = 1) -> str:
    """Return aligned text; the first ``left`` columns to the left, the others to the right."""
    widths = [max(map(len, texts)) for texts in zip(columns, *rows, strict=True)]
    lines = []
    for row in (columns, *rows):
        cells = [
            text.ljust(width) if index < left else text.rjust(width)
            for index, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
