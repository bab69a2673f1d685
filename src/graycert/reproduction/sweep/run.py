"""Sweeps on one pool of workers; killed at any moment, they go on where they were."""

import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from graycert._validation import check_integer
from graycert.errors import InvalidFileError, InvalidParameterError
from graycert.reproduction.job import Job
from graycert.reproduction.live import Live, live, write_line
from graycert.reproduction.pool import Backend, Failure, WorkerDiedError, compute, processes
from graycert.reproduction.sweep.budget import Budget
from graycert.reproduction.sweep.course import Course, Trial, open_course
from graycert.reproduction.sweep.definition import Sweep
from graycert.reproduction.sweep.tables import TRIALS

_DEATHS = 3  # of its worker, until a trial counts as failed
_SHOWN_FAILURES = 5
_TABLES_EVERY = 60.0  # seconds


@dataclass(frozen=True, kw_only=True)
class FailedTrial:
    """A trial that failed.

    Attributes:
        index: Index in the sweep.
        params: Value of each parameter.
        error: Type and message of what it raised.
    """

    index: int
    params: dict[str, float]
    error: str


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    """What a sweep has come to.

    Attributes:
        directory: Folder of the sweep.
        num_finished: Trials with results, of this call and earlier ones.
        failed: Trials that failed.
        table: Path of trials.parquet.
    """

    directory: Path
    num_finished: int
    failed: tuple[FailedTrial, ...]
    table: Path


def run_sweep(
    sweep: Sweep,
    *,
    workers: int = 1,
    progress: bool = False,
    retry_failed: bool = False,
    backend: Backend = processes,
) -> SweepResult:
    """Run a sweep until its budget is spent; see ``run_sweeps``."""
    return run_sweeps([sweep], workers=workers, progress=progress, retry_failed=retry_failed, backend=backend)[0]


def run_sweeps(
    sweeps: Sequence[Sweep],
    *,
    workers: int = 1,
    progress: bool = False,
    retry_failed: bool = False,
    backend: Backend = processes,
) -> list[SweepResult]:
    """Run sweeps one after the other with a single pool of workers, until the budget of each is spent.

    A sweep whose folder holds trials already goes on: finished trials are kept, those that were lost with a killed
    process are run again with the same parameters, and a larger budget adds trials. All workers work on the first
    sweep that has a trial left. Where a worker is killed, all that was under way is run again, the second time by a
    single worker, so that a trial which is too large for the machine is found out; it counts as failed after that.

    Args:
        sweeps: In different folders, of one lab; the budgets are all numbers of trials or all times. Times count one
            after the other.
        workers: Number of workers, >= 1.
        progress: Tell on standard error how it goes.
        retry_failed: Run trials again that failed in an earlier call.
        backend: Where they work; see ``graycert.reproduction.pool``.

    Returns:
        One result per sweep, in the same order.

    Raises:
        InvalidParameterError: If an argument is outside its domain, Optuna is needed and not installed, another process
            drives one of the sweeps, or a folder holds a sweep with other settings.
        InvalidFileError: If a file of a sweep is damaged.
        GraycertError: If workers cannot be started.
        KeyboardInterrupt: After an interruption; finished trials are kept and the tables written.
    """
    size = check_integer("workers", workers, at_least=1)
    if not sweeps:
        return []
    _check_together(sweeps)
    try:
        with ExitStack() as stack:
            courses = [stack.enter_context(open_course(sweep, retry_failed=retry_failed)) for sweep in sweeps]
            shown = stack.enter_context(_live(courses, size=size, shown=progress))
            _Drive(courses, shown, size=size, backend=backend).run()
            results = [_result(course) for course in courses]
    except OSError as error:
        raise InvalidFileError(
            f"a sweep cannot be written ({error}). Make room or choose another folder; what was written is kept."
        ) from error
    if progress:
        for sweep, result in zip(sweeps, results, strict=True):
            write_line(_closing(result, sweep.name))
    return results


class _Drive:
    """The parent's side: hands out jobs and takes results until nothing is left to do."""

    def __init__(self, courses: Sequence[Course], shown: Live, *, size: int, backend: Backend) -> None:
        self._courses = courses
        self._live = shown
        self._size = size
        self._backend = backend
        self._lab = courses[0].sweep.lab
        self._under_way: dict[Job, list[Trial]] = {}  # several, where their parameters are the same
        self._deaths: Counter[Job] = Counter()
        self._again: deque[Job] = deque()
        self._suspects: deque[Job] = deque()
        self._tabulated = time.monotonic()

    def run(self) -> None:
        """Run all trials; on an interruption, keep what is finished."""
        jobs = self._jobs()
        try:
            while not self._compute(chain(_drained(self._again), jobs), size=self._size):
                while self._suspects:
                    self._compute(_drained(self._suspects), size=1)
        except KeyboardInterrupt as interruption:
            advice = "Interrupted. Finished trials are kept: run the same again to go on."
            self._live.say(advice)
            interruption.add_note(advice)
            raise
        finally:
            self._collect()
            self._write_tables()

    def _jobs(self) -> Iterator[Job]:
        """Yield what is to be computed, sweep by sweep."""
        for course in self._courses:
            for trial in course.trials():
                same = self._under_way.setdefault(trial.job, [])
                same.append(trial)
                if len(same) == 1:
                    yield trial.job

    def _compute(self, jobs: Iterator[Job], *, size: int) -> bool:
        """Do jobs; return whether all are done, and no worker died."""
        computed = compute(jobs, self._lab, num_workers=size, backend=self._backend, pulse=self._tick)
        try:
            with closing(computed):
                for job, failure in computed:
                    self._take(job, failure)
        except WorkerDiedError as died:
            self._collect()
            for job in died.jobs:
                if job in self._under_way:
                    self._count_death(job)
            return False
        return True

    def _take(self, job: Job, failure: Failure | None) -> None:
        """Count a job that ended."""
        for trial in self._under_way.pop(job):
            course = trial.course
            if failure is None:
                course.finish(trial.index, job)
            else:
                course.fail(trial.index, failure)
            if trial.index in course.failed:
                self._live.say(f"{course.sweep.name}: trial {trial.index} failed: {course.failed[trial.index].error}")
            self._live.done(course.note())

    def _collect(self) -> None:
        """Take what was stored just before its worker was killed."""
        for job in [job for job in self._under_way if job in self._lab.results]:
            self._take(job, None)

    def _count_death(self, job: Job) -> None:
        """Give up a job whose workers die again and again, for instance because memory does not suffice."""
        self._deaths[job] += 1
        if self._deaths[job] < _DEATHS:
            (self._suspects if self._deaths[job] == _DEATHS - 1 else self._again).append(job)
        else:
            self._take(job, Failure(error=f"WorkerDied: {_DEATHS} workers were killed with it (out of memory?)"))

    def _tick(self) -> None:
        self._live.tick()
        if time.monotonic() - self._tabulated > _TABLES_EVERY:
            self._write_tables()

    def _write_tables(self) -> None:
        self._tabulated = time.monotonic()
        for course in self._courses:
            course.write_tables()


def _check_together(sweeps: Sequence[Sweep]) -> None:
    folders = [sweep.folder.resolve() for sweep in sweeps]
    for folder in folders:
        if folders.count(folder) > 1:
            raise InvalidParameterError(f"`sweeps` must have a folder each, got {folder} twice. Name another one.")
    if len({(sweep.lab.folder.resolve(), sweep.lab.data_root) for sweep in sweeps}) > 1:
        raise InvalidParameterError("`sweeps` must be of one lab, got several. Run them in a call for each.")
    if len({sweep.budget.trials is None for sweep in sweeps}) > 1:
        raise InvalidParameterError(
            "`sweeps` must all have a number of trials or all a time as budget, got both. Run them in two calls."
        )


def _drained(queue: deque[Job]) -> Iterator[Job]:
    while queue:
        yield queue.popleft()


@contextmanager
def _live(courses: Sequence[Course], *, size: int, shown: bool) -> Iterator[Live]:
    num_done = sum(course.num_done for course in courses)
    trials, seconds = _total([course.sweep.budget for course in courses])
    say = write_line if shown else None
    with live(
        "sweep", unit="trials", total=trials, seconds=seconds, num_done=num_done, shown=shown, say=say
    ) as showing:
        names = courses[0].sweep.name if len(courses) == 1 else f"{len(courses)} sweeps"
        planned = f"{num_done} of {trials} trials done" if trials else f"{num_done} trials done, {seconds:g} s to go"
        showing.say(f"{names}: {planned}; {size} workers")
        yield showing


def _total(budgets: Sequence[Budget]) -> tuple[int | None, float | None]:
    """Return the sum of all trials, or of all times."""
    if budgets[0].trials is not None:
        return sum(budget.trials or 0 for budget in budgets), None
    return None, sum(budget.seconds or 0.0 for budget in budgets)


def _result(course: Course) -> SweepResult:
    return SweepResult(
        directory=course.sweep.folder,
        num_finished=len(course.finished),
        failed=tuple(
            FailedTrial(index=index, params=course.points[index], error=course.failed[index].error)
            for index in sorted(course.failed)
        ),
        table=course.sweep.folder / TRIALS,
    )


def _closing(result: SweepResult, name: str) -> str:
    failures = [f"{trial.index} ({trial.error})" for trial in result.failed[:_SHOWN_FAILURES]]
    if len(result.failed) > _SHOWN_FAILURES:
        failures.append(f"{len(result.failed) - _SHOWN_FAILURES} more in failed.parquet")
    failed = f", {len(result.failed)} failed: {'; '.join(failures)}" if failures else ""
    return f"{name}: {result.num_finished} trials finished{failed}; {result.table}"
