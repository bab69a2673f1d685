"""Where a command speaks: results on standard output, everything else on standard error."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from shutil import get_terminal_size
from typing import Any

from graycert._terminal import table_text, wrapped
from graycert.errors import InvalidFileError, InvalidParameterError


@contextmanager
def about(option: str) -> Iterator[None]:
    """Say in every complaint about what an option names that it is about the option."""
    try:
        yield
    except (InvalidFileError, InvalidParameterError) as error:
        raise type(error)(f"`--{option}`: {error}") from error


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
            print(message, file=sys.stderr, flush=True)  # noqa: T201 (this is the place that prints)

    def warn(self, message: str) -> None:
        """Tell what the user should know even when nothing else is told."""
        print(f"warning: {message}", file=sys.stderr, flush=True)  # noqa: T201

    def result(self, text: str, record: dict[str, Any]) -> None:
        """Print the result: ``text``, or ``record`` if JSON was asked for."""
        print(json.dumps(record, ensure_ascii=False, allow_nan=False) if self.as_json else wrapped(text))  # noqa: T201

    @property
    def progress(self) -> bool:
        """Whether progress bars are wanted."""
        return not self.quiet


def error(message: str) -> None:
    """Print an error as one short paragraph, with a line for each item of a list."""
    lines = [" ".join(part.split()) for part in message.split("\n- ")]
    print("error: " + "\n- ".join(lines), file=sys.stderr, flush=True)  # noqa: T201


def table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], *, left: int = 1) -> str:
    """Return aligned text; the first ``left`` columns to the left, the others to the right."""
    return table_text(columns, rows, left=left)


def markdown(text: str) -> str:
    """Return Markdown as plain text that fits the terminal, or COLUMNS."""
    from io import StringIO

    from rich.console import Console as Terminal
    from rich.markdown import Markdown

    page = StringIO()
    Terminal(file=page, width=get_terminal_size().columns, color_system=None).print(Markdown(text, hyperlinks=False))
    return "\n".join(line.rstrip() for line in page.getvalue().rstrip("\n").splitlines())
