"""One sweep while its parent drives it: which trials are done, and which is next."""

import math
import numbers
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from filelock import FileLock, Timeout

from graycert.errors import InvalidParameterError
from graycert.reproduction.job import Job
from graycert.reproduction.pool import Failure
from graycert.reproduction.sweep.asked import Asked
from graycert.reproduction.sweep.definition import OWN_COLUMNS, Sweep, keep_settings
from graycert.reproduction.sweep.design import AdaptiveDesign
from graycert.reproduction.sweep.tables import num_tabulated, read_failed, write_failed, write_trials

LOCK = "sweep.lock"  # held by the parent


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A trial to be run.

    Attributes:
        course: Of which sweep.
        index: Index in the sweep.
        job: What it computes.
    """

    course: "Course"
    index: int
    job: Job


class Course:
    """What a parent knows of a sweep that it drives.

    Nothing of it but failures and points that a sampler chose is kept by itself: a trial is done if the result of its
    job is in the store.

    Args:
        sweep: The sweep.
        retry_failed: Forget which trials failed.

    Attributes:
        points: Parameters of all trials that were looked at, by index.
        finished: Numbers of the finished ones.
        failed: Why others failed.
    """

    def __init__(self, sweep: Sweep, *, retry_failed: bool) -> None:
        self.sweep = sweep
        self.points: dict[int, dict[str, float]] = {}
        self.finished: dict[int, dict[str, float]] = {}
        self.failed: dict[int, Failure] = {}
        self._best: dict[str, float] = {}
        self._open: deque[int] = deque()
        self._asked: Asked | None = None
        if isinstance(sweep.design, AdaptiveDesign):
            self._asked = Asked(sweep.folder, directions=sweep.directions, design=sweep.design)
            self._point = self._asked.point
        else:
            self._point = sweep.design.point
        self._num_known = 0
        self._recall(retry_failed=retry_failed)

    @property
    def num_done(self) -> int:
        """Number of trials, within the budget, that are finished or have failed."""
        limit = self.sweep.budget.trials
        return sum(limit is None or index < limit for done in (self.finished, self.failed) for index in done)

    def trials(self) -> Iterator[Trial]:
        """Yield the trials that are left to run, until the budget is spent; the time runs from the first one."""
        budget = self.sweep.budget
        ends = math.inf if budget.seconds is None else time.monotonic() + budget.seconds
        limit = math.inf if budget.trials is None else budget.trials
        while time.monotonic() < ends:
            if not self._open and self._num_known < limit:
                self._open.append(self._num_known)
                self._num_known += 1
            if not self._open:
                return
            index = self._open.popleft()
            job = self._job(index)
            if job in self.sweep.lab.results:  # of another sweep
                self.finish(index, job)
            else:
                yield Trial(course=self, index=index, job=job)

    def finish(self, index: int, job: Job) -> None:
        """Take the result of a trial out of the store."""
        arrays = self.sweep.lab.results[job]
        self.sweep.tidy(job)
        try:
            found = checked_numbers(self.sweep, self.sweep.numbers(arrays))
        except Exception as error:  # whatever it is, it is told, and the other trials go on
            self._count_failure(index, Failure(error=f"{type(error).__name__}: {error}"))
            return
        self.finished[index] = {**found, "seconds": float(arrays["seconds"])}
        for name, direction in self.sweep.directions.items():
            choose = max if direction == "maximize" else min
            self._best[name] = choose(self._best.get(name, found[name]), found[name])
        if self._asked is not None:
            self._asked.tell(index, found)

    def fail(self, index: int, failure: Failure) -> None:
        """Keep why a trial failed."""
        self._count_failure(index, failure)
        write_failed(self.sweep.folder, self.points, self.failed)

    def note(self) -> str:
        """Return the name of the sweep and the best values so far."""
        return ", ".join([self.sweep.name, *(f"best {name} {value:.4g}" for name, value in self._best.items())])

    def write_tables(self) -> None:
        """Write the tables of what there is."""
        first = [*self.sweep.design.ranges, *self.sweep.directions]
        write_trials(self.sweep.folder, self.points, self.finished, first)
        write_failed(self.sweep.folder, self.points, self.failed)

    def _recall(self, *, retry_failed: bool) -> None:
        """Find what earlier calls have done."""
        limit = self.sweep.budget.trials
        failed = read_failed(self.sweep.folder)
        if self._asked is not None:
            known = len(self._asked)
        else:  # points of a random design are not kept: those after the last one known may have been run, too
            known = max(limit or 0, num_tabulated(self.sweep.folder), *(index + 1 for index in failed), 0)
        index = 0
        while index < known or self._asked is None:
            job = self._job(index)
            if job in self.sweep.lab.results:
                self.finish(index, job)
            elif index >= known:
                break
            elif index in failed and not retry_failed:
                self._count_failure(index, failed[index])
            elif limit is None or index < limit:
                self._open.append(index)
            index += 1
        self._num_known = index
        self.write_tables()

    def _count_failure(self, index: int, failure: Failure) -> None:
        self.failed[index] = failure
        if self._asked is not None:
            self._asked.tell(index, None)

    def _job(self, index: int) -> Job:
        self.points[index] = self._point(index)
        return self.sweep.job(self.points[index])


@contextmanager
def open_course(sweep: Sweep, *, retry_failed: bool) -> Iterator[Course]:
    """Drive a sweep while the block runs: no other process does.

    Args:
        sweep: The sweep; its folder is made.
        retry_failed: Run trials again that failed.

    Raises:
        InvalidParameterError: If another process drives it, or the folder holds a sweep with other settings.
        InvalidFileError: If a file in the folder is damaged.
    """
    sweep.folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(sweep.folder / LOCK)  # of the operating system, which a killed process gives back
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InvalidParameterError(
            f"`directory` must be free, but another process runs the sweep in {sweep.folder}. "
            "Wait for it or end it; a killed one leaves nothing to clear away."
        ) from None
    try:
        keep_settings(sweep)
        yield Course(sweep, retry_failed=retry_failed)
    finally:
        lock.release()


def checked_numbers(sweep: Sweep, found: Mapping[str, object]) -> dict[str, float]:
    """Return the numbers of a trial as floats, objective values first.

    Raises:
        InvalidParameterError: If an objective value is missing or not finite, a further number is infinite, something
            is no number, or a name is that of another column.
    """
    missing = [name for name in sweep.directions if name not in found]
    taken = [name for name in found if name in OWN_COLUMNS or name in sweep.design.ranges]
    if missing or taken:
        raise InvalidParameterError(
            f"`numbers` must return {', '.join(sweep.directions)} and no column of the table again, got "
            f"{', '.join(found) or 'nothing'}. Missing: {', '.join(missing) or 'none'}; "
            f"taken: {', '.join(taken) or 'none'}."
        )
    checked = {}
    for name in (*sweep.directions, *(name for name in found if name not in sweep.directions)):
        value = found[name]
        number = float(value) if isinstance(value, numbers.Real) else math.inf
        if math.isinf(number) or (name in sweep.directions and math.isnan(number)):
            raise InvalidParameterError(f"`numbers` must return finite numbers, got {name} = {value!r}.")
        checked[name] = number
    return checked
