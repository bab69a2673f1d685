"""One progress bar for all long work, with rate and time left: on standard error, where it is seen."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from graycert._terminal import in_notebook

_REMEMBERED = 3_600.0  # seconds of work from which rate and time left are told: one report may take minutes


class Advance(Protocol):
    """Reports finished work to a progress bar."""

    def __call__(self, amount: int, note: str = "") -> None:
        """Add ``amount`` finished units; ``note`` replaces the text after the name of the work."""
        ...


@contextmanager
def progress_bar(work: str, *, total: int | None, unit: str, shown: bool) -> Iterator[Advance]:
    """Show a bar while the block runs.

    Args:
        work: What is being done, e.g. "drawing".
        total: Number of units; None if it is not known.
        unit: Plural name of a unit, e.g. "draws".
        shown: Whether a bar is wanted; without a terminal or a notebook there is none anyhow.
    """
    if not shown:
        yield _silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        """Units per second, or per hour."""

        def render(self, task: Any) -> Text:
            if not task.speed:
                return Text("")
            return Text(f"{task.speed:,.0f} {unit}/s" if task.speed >= 1 else f"{3600 * task.speed:,.0f} {unit}/h")

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    # a notebook shows one line as a terminal does, without further packages
    console = Console(stderr=True, force_jupyter=False, force_terminal=True if in_notebook() else None)
    with Progress(
        *columns,
        console=console,
        transient=True,
        disable=not console.is_terminal,
        speed_estimate_period=_REMEMBERED,
    ) as bar:
        task = bar.add_task(work, total=total)

        def advance(amount: int, note: str = "") -> None:
            bar.update(task, advance=amount, description=f"{work}, {note}" if note else work)

        yield advance


def say_where_seen(sentence: str) -> None:
    """Write a line to standard error where progress is seen: on a terminal, or in a notebook."""
    if in_notebook() or (sys.stderr is not None and sys.stderr.isatty()):
        print(sentence, file=sys.stderr, flush=True)  # noqa: T201 (where progress bars are, too)


def _silent(amount: int, note: str = "") -> None:
    """Do nothing with a report."""
    del amount, note
