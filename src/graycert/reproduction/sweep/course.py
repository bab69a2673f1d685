"""One sweep while its parent drives it."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from graycert.errors import InvalidParameterError
from graycert.reproduction.sweep.definition import Sweep, keep_settings, read_settings
from graycert.reproduction.sweep.export import write_tables
from graycert.reproduction.sweep.journal import JOURNAL, Journal, is_failed, is_finished, is_running

LOCK = "sweep.lock"  # held by the parent


class Course:
    """What a parent knows of a sweep that it drives.

    Args:
        sweep: The sweep.
        journal: Its journal.

    Attributes:
        has_free: Whether a trial may still be free; set to False by whoever finds none.
        tables_are_written: Whether the tables hold all there is.
    """

    def __init__(self, sweep: Sweep, journal: Journal) -> None:
        self.sweep = sweep
        self.journal = journal
        self.has_free = self.num_to_do > 0
        self.tables_are_written = False
        self._ends = math.inf

    @property
    def limit(self) -> int | None:
        """Number of trials in the budget."""
        return self.sweep.budget.trials

    @property
    def num_done(self) -> int:
        """Number of trials, within the budget, that are finished or have failed."""
        done = [index for index, trial in self.journal.latest().items() if is_finished(trial) or is_failed(trial)]
        return len(done) if self.limit is None else sum(index < self.limit for index in done)

    @property
    def num_to_do(self) -> float:
        """Number of trials left; infinite if the budget is a time."""
        return math.inf if self.limit is None else self.limit - self.num_done

    @property
    def may_start(self) -> bool:
        """Whether a trial may be started now."""
        return self.has_free and time.monotonic() < self._ends

    def start(self) -> None:
        """Let the time run, if it does not yet."""
        if self.sweep.budget.seconds is not None and self._ends == math.inf:
            self._ends = time.monotonic() + self.sweep.budget.seconds

    def release_lost(self) -> list[int]:
        """Free the trials of dead processes; return their indices."""
        lost = self.journal.release_lost()
        self.has_free |= bool(lost)
        return lost

    def is_under_way(self) -> bool:
        """Return whether some process, perhaps one that a killed parent has left, runs a trial."""
        return any(is_running(trial) for trial in self.journal.latest().values())

    def write_tables(self) -> Path:
        """Write the tables of what there is; return the path of the first."""
        self.tables_are_written = True
        return write_tables(self.journal, self.sweep.folder, read_settings(self.sweep.folder))


@contextmanager
def open_course(sweep: Sweep, *, retry_failed: bool) -> Iterator[Course]:
    """Drive a sweep while the block runs: no other process does.

    Args:
        sweep: The sweep; its folder is made.
        retry_failed: Free the trials that raised.

    Raises:
        InvalidParameterError: If another process drives it, or the folder holds a sweep with other settings.
        InvalidFileError: If a file in the folder is damaged.
    """
    sweep.folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(sweep.folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InvalidParameterError(
            f"`directory` must be free, but {_driver(sweep)} runs the sweep in {sweep.folder}. "
            "Wait for it or end it; a killed one leaves nothing to clear away."
        ) from None
    try:
        keep_settings(sweep)
        journal = Journal(sweep.folder, name=sweep.name, directions=sweep.directions, design=sweep.design)
        journal.sign()
        journal.release_lost()
        if retry_failed:
            journal.retry_failed()
        yield Course(sweep, journal)
    finally:
        lock.release()


def _driver(sweep: Sweep) -> str:
    """Name the process that drives a sweep, as far as it can be known."""
    if not (sweep.folder / JOURNAL).is_file():
        return "another process"
    driver = Journal(sweep.folder, name=sweep.name, directions=sweep.directions).signed()
    return f"process {driver['pid']} on {driver['host']}" if driver else "another process"
