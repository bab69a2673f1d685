"""One sweep while its parent drives it: which trials are done, and which is next."""

import math
import time
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import count
from numbers import Real

from graycert.errors import InvalidParameterError
from graycert.reproduction.job import Job
from graycert.reproduction.pool import Failure
from graycert.reproduction.sweep.asked import Asked
from graycert.reproduction.sweep.definition import OWN_COLUMNS, Sweep
from graycert.reproduction.sweep.design import AdaptiveDesign
from graycert.reproduction.sweep.tables import FAILED, TRIALS, Row, read_table, write_table


class Course:
    """What a parent knows of a sweep that it drives.

    Nothing but failures, and points that a sampler chose, is kept for it: a trial is done if the result of its job is
    in the store.

    Args:
        sweep: The sweep.
        retry_failed: Run trials again that failed.

    Attributes:
        finished: Rows of the finished trials, by index.
        failed: Rows of those that failed.
    """

    def __init__(self, sweep: Sweep, *, retry_failed: bool) -> None:
        self.sweep = sweep
        self.finished: dict[int, Row] = {}
        self.failed: dict[int, Row] = {}
        self._asked: Asked | None = None
        if isinstance(sweep.design, AdaptiveDesign):
            self._asked = Asked(sweep.folder, directions=sweep.directions, design=sweep.design)
            self.point = self._asked.point
        else:
            self.point = sweep.design.point
        self._limit = math.inf if sweep.budget.trials is None else sweep.budget.trials
        self._best: dict[str, float] = {}
        self._under_way: dict[Job, list[int]] = {}  # several, where their parameters are the same
        self._open: deque[int] = deque()
        self._new = count(self._recall(retry_failed=retry_failed))

    @property
    def num_done(self) -> int:
        """Number of trials, within the budget, that are finished or have failed."""
        return sum(index < self._limit for index in (*self.finished, *self.failed))

    def jobs(self) -> Iterator[Job]:
        """Yield what is left to do, until the budget is spent; its time runs from the first one."""
        seconds = self.sweep.budget.seconds
        ends = math.inf if seconds is None else time.monotonic() + seconds
        while time.monotonic() < ends:
            index = self._open.popleft() if self._open else next(self._new)
            if index >= self._limit:
                return
            job = self.sweep.job(self.point(index))
            self._under_way.setdefault(job, []).append(index)
            if job in self.sweep.lab.results:
                self.take(job, None)
            elif len(self._under_way[job]) == 1:
                yield job

    def take(self, job: Job, failure: Failure | None) -> None:
        """Count the trials of a job that ended."""
        for index in self._under_way.pop(job):
            if failure is None:
                self._finish(index, job)
            else:
                self._fail(index, vars(failure))
        if failure is not None:
            write_table(self.sweep.folder / FAILED, self.failed)

    def collect(self) -> None:
        """Count the trials whose jobs were stored but did not come back, because of an interruption."""
        for job in [job for job in self._under_way if job in self.sweep.lab.results]:
            self.take(job, None)

    def note(self) -> str:
        """Return the name of the sweep and the best values so far."""
        return ", ".join([self.sweep.name, *(f"best {name} {value:.4g}" for name, value in self._best.items())])

    def write_tables(self) -> None:
        """Write the tables of what there is."""
        write_table(self.sweep.folder / TRIALS, self.finished)
        write_table(self.sweep.folder / FAILED, self.failed)

    def _recall(self, *, retry_failed: bool) -> int:
        """Find what earlier calls have done; return the first index of which nothing is known."""
        failed = read_table(self.sweep.folder / FAILED)
        if self._asked is not None:
            known = len(self._asked)
        else:  # points of a random design are not kept: what is beyond budget and tables is found when it is due
            tabulated = (*failed, *read_table(self.sweep.folder / TRIALS))
            known = max([self.sweep.budget.trials or 0, *(index + 1 for index in tabulated)])
        for index in range(known):
            job = self.sweep.job(self.point(index))
            if job in self.sweep.lab.results:
                self._finish(index, job)
            elif index in failed and not retry_failed:
                self._fail(index, {name: failed[index][name] for name in ("error", "traceback")})
            else:
                self._open.append(index)
        return known

    def _finish(self, index: int, job: Job) -> None:
        arrays = self.sweep.lab.results[job]
        self.sweep.tidy(job)
        try:
            found = checked_numbers(self.sweep, self.sweep.numbers(arrays))
        except Exception as error:  # whatever it is, it is told, and the other trials go on
            self._fail(index, {"error": f"{type(error).__name__}: {error}", "traceback": ""})
            return
        for name, direction in self.sweep.directions.items():
            choose = max if direction == "maximize" else min
            self._best[name] = choose(self._best.get(name, found[name]), found[name])
        self.finished[index] = {"index": index, **self.point(index), **found, "seconds": float(arrays["seconds"])}
        if self._asked is not None:
            self._asked.tell(index, found)

    def _fail(self, index: int, reason: Row) -> None:
        self.failed[index] = {"index": index, **self.point(index), **reason}
        if self._asked is not None:
            self._asked.tell(index, None)


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
    for name in dict.fromkeys((*sweep.directions, *found)):
        value = found[name]
        checked[name] = float(value) if isinstance(value, Real) else math.inf
        if math.isinf(checked[name]) or (name in sweep.directions and math.isnan(checked[name])):
            raise InvalidParameterError(f"`numbers` must return finite numbers, got {name} = {value!r}.")
    return checked
