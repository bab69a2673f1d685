"""Live progress of sweeps: a bar on a terminal, now and then a line elsewhere; both on standard error."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from graycert._progress import Advance, progress_bar
from graycert.reproduction.sweep.budget import Budget
from graycert.reproduction.sweep.definition import Sweep

_EVERY = 30.0  # seconds between lines


class Live:
    """Counts what is done and shows it.

    Args:
        num_done: Trials done before.
        total: Trials to be done in all, or None if the budget is a time.
        seconds: The budget of time, or None.
        advance: Moves the bar, which counts trials or seconds.
        lines: Write lines instead.
    """

    def __init__(
        self, *, num_done: int, total: int | None, seconds: float | None, advance: Advance, lines: bool
    ) -> None:
        self._before = num_done
        self._total = total
        self._seconds = seconds
        self._advance = advance
        self._lines = lines
        self._num_new = 0
        self._shown_seconds = 0
        self._started = self._last_line = time.monotonic()
        self._best: dict[str, dict[str, float]] = {}
        self._name = "sweep"

    def done(self, sweep: Sweep, results: Mapping[str, float] | None) -> None:
        """Count a trial that ended, with its results if it has any."""
        self._num_new += 1
        self._name = sweep.name
        best = self._best.setdefault(sweep.name, {})
        for name, direction in sweep.directions.items() if results else ():
            assert results is not None
            choose = max if direction == "maximize" else min
            best[name] = choose(best.get(name, results[name]), results[name])
        if self._seconds is None:
            self._advance(1, self._note())

    def tick(self) -> None:
        """Show that time goes by."""
        now = time.monotonic()
        if self._seconds is not None:
            elapsed = int(min(now - self._started, self._seconds))
            self._advance(elapsed - self._shown_seconds, self._note())
            self._shown_seconds = elapsed
        if self._lines and now - self._last_line >= _EVERY:
            self._last_line = now
            self.say(f"{self._note()}, {self._time_left()}")

    def say(self, text: str) -> None:
        """Write a line, where lines are written."""
        if self._lines:
            write_line(text)

    def _note(self) -> str:
        of = f" of {self._total}" if self._total is not None else ""
        best = "".join(f", best {name} {value:.4g}" for name, value in self._best.get(self._name, {}).items())
        return f"{self._name}: {self._before + self._num_new}{of} trials, {self._per_hour():,.0f} per hour{best}"

    def _per_hour(self) -> float:
        return 3600 * self._num_new / max(time.monotonic() - self._started, 1e-9)

    def _time_left(self) -> str:
        if self._seconds is not None:
            left = self._seconds - (time.monotonic() - self._started)
        elif self._total is not None and self._num_new:
            left = 3600 * (self._total - self._before - self._num_new) / self._per_hour()
        else:
            return "no trial done yet"
        return f"about {max(left, 0) / 60:.1f} min left"


@contextmanager
def live(budgets: Sequence[Budget], *, num_done: int, shown: bool) -> Iterator[Live]:
    """Show progress while the block runs.

    Args:
        budgets: Those of all sweeps, all of the same kind.
        num_done: Trials done before.
        shown: Whether anything is shown.
    """
    trials, seconds = total_budget(budgets)
    is_terminal = sys.stderr.isatty()
    amount, unit = (trials, "trials") if trials is not None else (int(seconds or 0), "s")
    with progress_bar("sweep", total=amount, unit=unit, shown=shown and is_terminal) as advance:
        if trials is not None:
            advance(num_done)
        lines = shown and not is_terminal
        yield Live(num_done=num_done, total=trials, seconds=seconds, advance=advance, lines=lines)


def total_budget(budgets: Sequence[Budget]) -> tuple[int | None, float | None]:
    """Return the sum of all trials, or of all times."""
    if budgets[0].trials is not None:
        return sum(budget.trials or 0 for budget in budgets), None
    return None, sum(budget.seconds or 0.0 for budget in budgets)


def write_line(text: str) -> None:
    """Write a line on standard error."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
