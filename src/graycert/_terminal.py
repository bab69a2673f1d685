"""Text that fits the terminal where there is one: tables and paragraphs."""

import sys
import textwrap
from collections.abc import Sequence
from io import StringIO
from shutil import get_terminal_size


def shown_width() -> int | None:
    """Return the width of the terminal that standard output is; None if it is a file, a pipe or a notebook."""
    return get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else None


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def table_text(columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 0) -> str:
    """Return aligned text; cells are folded where a terminal is too narrow for the table.

    Args:
        columns: Headings.
        rows: Cells, one per heading.
        left: So many first columns are aligned to the left, the others to the right.
    """
    widths = [max(map(len, texts)) for texts in zip(columns, *rows, strict=True)]
    width = shown_width()
    if width is not None and sum(widths) + 2 * (len(widths) - 1) > width:
        return _folded(columns, rows, left=left, width=width)
    lines = [
        "  ".join(
            text.ljust(size) if place < left else text.rjust(size)
            for place, (text, size) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (columns, *rows)
    ]
    return "\n".join(lines)


def wrapped(text: str) -> str:
    """Return a text whose lines end between words, where a terminal is too narrow for them."""
    width = shown_width()
    if width is None:
        return text
    lines = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()))
        parts = textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        lines += parts if len(line) > width else [line]
    return "\n".join(lines)


def _folded(columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int, width: int) -> str:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="none")
    for place, heading in enumerate(columns):
        table.add_column(Text(heading), justify="left" if place < left else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    page = StringIO()
    Console(file=page, width=width, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines())
