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
        num_done: How many were done before.
        total: How many there are in all, or None if time is the limit.
        seconds: The time, or None.
        advance: Moves the bar, which counts units or seconds.
        say: Takes lines; None where there is a bar, or nothing to be told.
    """

    def __init__(
        self,
        *,
        unit: str,
        num_done: int,
        total: int | None,
        seconds: float | None,
        advance: Advance,
        say: Callable[[str], None] | None,
    ) -> None:
        self._unit = unit
        self._before = num_done
        self._total = total
        self._seconds = seconds
        self._advance = advance
        self._say = say
        self._num_new = 0
        self._shown_seconds = 0
        self._note = ""
        self._started = self._last_line = time.monotonic()

    def done(self, note: str) -> None:
        """Count one that ended; ``note`` says what of it is worth knowing."""
        self._num_new += 1
        self._note = note
        if self._seconds is None:
            self._advance(1, self._text())
        self.tick()

    def tick(self) -> None:
        """Show that time goes by."""
        now = time.monotonic()
        if self._seconds is not None:
            elapsed = int(min(now - self._started, self._seconds))
            self._advance(elapsed - self._shown_seconds, self._text())
            self._shown_seconds = elapsed
        if self._say is not None and now - self._last_line >= _EVERY:
            self._last_line = now
            self._say(f"{self._text()}; {self._time_left()}")

    def say(self, text: str) -> None:
        """Write a line, where lines are written."""
        if self._say is not None:
            self._say(text)

    def _text(self) -> str:
        of = f" of {self._total:,}" if self._total is not None else ""
        note = f", {self._note}" if self._note else ""
        return f"{self._before + self._num_new:,}{of} {self._unit}, {self._per_hour():,.0f} per hour{note}"

    def _per_hour(self) -> float:
        return 3600 * self._num_new / max(time.monotonic() - self._started, 1e-9)

    def _time_left(self) -> str:
        if self._seconds is not None:
            left = self._seconds - (time.monotonic() - self._started)
        elif self._total is not None and self._num_new:
            left = 3600 * (self._total - self._before - self._num_new) / self._per_hour()
        else:
            return "none done yet"
        return f"about {max(left, 0) / 60:.1f} min left"


@contextmanager
def live(
    work: str,
    *,
    unit: str,
    total: int | None,
    seconds: float | None = None,
    num_done: int = 0,
    shown: bool,
    say: Callable[[str], None] | None,
) -> Iterator[Live]:
    """Show progress while the block runs.

    Args:
        work: What is being done, e.g. "computing".
        unit: Plural name of what is counted, e.g. "jobs".
        total: How many there are in all, or None if time is the limit.
        seconds: The time, or None.
        num_done: How many were done before.
        shown: Whether a bar is wanted.
        say: Takes lines where standard error is no terminal; None if none are wanted.
    """
    is_terminal = sys.stderr.isatty()
    amount, of = (total, unit) if total is not None else (int(seconds or 0), "s")
    with progress_bar(work, total=amount, unit=of, shown=shown and is_terminal) as advance:
        if total is not None:
            advance(num_done)
        yield Live(
            unit=unit,
            num_done=num_done,
            total=total,
            seconds=seconds,
            advance=advance,
            say=None if is_terminal else say,
        )


def write_line(text: str) -> None:
    """Write a line on standard error."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
