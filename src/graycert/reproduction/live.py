"""How far long work is, on standard error: a bar on a terminal, now and then a line elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from graycert._progress import Advance, progress_bar

_EVERY = 30.0  # seconds between lines


class Live:
    """Counts what is done and shows it.

    Args:
        unit: Plural name of what is counted.
        total: How many there are; None if time is the limit.
        advance: Moves the bar.
        say: Takes lines; None where there is a bar, or nothing to be told.
    """

    def __init__(self, *, unit: str, total: int | None, advance: Advance, say: Callable[[str], None] | None) -> None:
        self._unit = unit
        self._total = total
        self._advance = advance
        self._say = say
        self._num_before = self._num_done = 0
        self._note = ""
        self._started = self._last_line = time.monotonic()

    def before(self, amount: int) -> None:
        """Count those that were done before, which say nothing about the rate."""
        self._num_before += amount
        self._advance(amount)

    def done(self, note: str) -> None:
        """Count one that ended; ``note`` says what of it is worth knowing."""
        self._num_done += 1
        self._note = note
        self._advance(1, note)

    def tick(self) -> None:
        """Write a line now and then, where lines are written."""
        now = time.monotonic()
        if now - self._last_line >= _EVERY:
            self._last_line = now
            self.say(f"{self._counted()}, {self._speed(now - self._started)}, {self._note}".rstrip(", "))

    def say(self, text: str) -> None:
        """Write a line, where lines are written."""
        if self._say is not None:
            self._say(text)

    def _counted(self) -> str:
        of = f" of {self._total:,}" if self._total is not None else ""
        return f"{self._num_before + self._num_done:,}{of} {self._unit} done"

    def _speed(self, elapsed: float) -> str:
        rate = f"{3600 * self._num_done / elapsed:,.0f} per hour"
        if self._total is None or not self._num_done:
            return rate
        left = elapsed * (self._total - self._num_before - self._num_done) / self._num_done
        return f"{rate}, about {left / 60:.1f} min left"


@contextmanager
def live(work: str, *, unit: str, total: int | None, shown: bool, say: Callable[[str], None] | None) -> Iterator[Live]:
    """Show progress while the block runs.

    Args:
        work: What is being done, e.g. "computing".
        unit: Plural name of what is counted, e.g. "jobs".
        total: How many there are; None if time is the limit.
        shown: Whether a bar is wanted.
        say: Takes lines where standard error is no terminal; None if none are wanted.
    """
    is_terminal = sys.stderr.isatty()
    with progress_bar(work, total=total, unit=unit, shown=shown and is_terminal) as advance:
        yield Live(unit=unit, total=total, advance=advance, say=None if is_terminal else say)


def write_line(text: str) -> None:
    """Write a line on standard error."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
