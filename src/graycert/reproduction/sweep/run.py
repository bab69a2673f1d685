"""Run sweeps with one pool of worker processes; killed at any moment, they go on where they were."""

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from graycert._validation import check_integer
from graycert.errors import InvalidFileError, InvalidParameterError
from graycert.reproduction.sweep.course import Course, open_course
from graycert.reproduction.sweep.definition import Sweep
from graycert.reproduction.sweep.journal import is_failed, is_finished
from graycert.reproduction.sweep.live import Live, live, total_budget, write_line
from graycert.reproduction.sweep.pool import Pool, Worker
from graycert.reproduction.sweep.worker import Order, Report

_POLL = 0.5  # seconds between looks at workers that a killed parent has left
_DEATHS = 3  # of its worker, until a trial counts as failed
_SHOWN_FAILURES = 5


@dataclass(frozen=True, kw_only=True)
class FailedTrial:
    """A trial that raised.

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
        failed: Trials that raised.
        table: Path of trials.parquet.
    """

    directory: Path
    num_finished: int
    failed: tuple[FailedTrial, ...]
    table: Path


def run_sweep(sweep: Sweep, *, workers: int = 1, progress: bool = False, retry_failed: bool = False) -> SweepResult:
    """Run a sweep until its budget is spent; see ``run_sweeps``."""
    return run_sweeps([sweep], workers=workers, progress=progress, retry_failed=retry_failed)[0]


def run_sweeps(
    sweeps: Sequence[Sweep], *, workers: int = 1, progress: bool = False, retry_failed: bool = False
) -> list[SweepResult]:
    """Run sweeps one after the other with a single pool of processes, until the budget of each is spent.

    A sweep whose folder holds trials already goes on: finished trials are kept, those that were lost with a killed
    process are run again with the same parameters, and a larger budget adds trials. All workers work on the first
    sweep that has a trial left.

    Args:
        sweeps: In different folders; the budgets are all numbers of trials or all times. Times count one after the
            other.
        workers: Number of worker processes, >= 1.
        progress: Tell on standard error how it goes.
        retry_failed: Run trials again that raised in an earlier call.

    Returns:
        One result per sweep, in the same order.

    Raises:
        InvalidParameterError: If an argument is outside its domain, Optuna is not installed, another process drives
            one of the sweeps, or a folder holds a sweep with other settings.
        InvalidFileError: If a file of a sweep is damaged.
        GraycertError: If workers cannot be started.
        KeyboardInterrupt: After an interruption; finished trials are kept and the tables written.
    """
    size = check_integer("workers", workers, at_least=1)
    if not sweeps:
        return []
    _check_together(sweeps)
    try:
        results = _run(sweeps, size=size, progress=progress, retry_failed=retry_failed)
    except OSError as error:
        raise InvalidFileError(
            f"a sweep cannot be written ({error}). Make room or choose another folder; what was written is kept."
        ) from error
    if progress:
        for sweep, result in zip(sweeps, results, strict=True):
            write_line(_closing(result, sweep.name))
    return results


def _run(sweeps: Sequence[Sweep], *, size: int, progress: bool, retry_failed: bool) -> list[SweepResult]:
    with ExitStack() as stack:
        courses = [stack.enter_context(open_course(sweep, retry_failed=retry_failed)) for sweep in sweeps]
        num_done = sum(course.num_done for course in courses)
        with live([sweep.budget for sweep in sweeps], num_done=num_done, shown=progress) as shown:
            shown.say(_opening(sweeps, num_done=num_done, size=size))
            pool = Pool(sweeps, size=int(min(size, sum(course.num_to_do for course in courses))))
            _Drive(courses, shown, pool).run()
        return [_result(course) for course in courses]


class _Drive:
    """The parent's side: hands out orders and takes reports until nothing is left to do."""

    def __init__(self, courses: Sequence[Course], shown: Live, pool: Pool) -> None:
        self._courses = courses
        self._live = shown
        self._pool = pool
        self._deaths: Counter[tuple[int, int]] = Counter()

    def run(self) -> None:
        """Run all trials; on an interruption, keep what is finished."""
        try:
            while self._is_work_left():
                self._hand_out()
                for worker, report in self._pool.reports(_POLL):
                    self._take(worker, report)
                self._write_tables()
                self._live.tick()
            self._pool.end()
        except KeyboardInterrupt as interruption:
            self._pool.kill()
            for course in self._courses:
                course.release_lost()
                course.write_tables()
            advice = "Interrupted. Finished trials are kept: run the same again to go on."
            self._live.say(advice)
            interruption.add_note(advice)
            raise
        finally:
            self._pool.kill()

    def _is_work_left(self) -> bool:
        if any(course.may_start for course in self._courses) or self._busy():
            return True
        # trials of workers that a killed parent has left: they end by themselves, or die
        return any(course.release_lost() or course.is_under_way() for course in self._courses)

    def _busy(self) -> set[int]:
        """Return which sweeps a worker works on."""
        return {worker.sweep for worker in self._pool.workers if worker.sweep is not None}

    def _hand_out(self) -> None:
        """Give each waiting worker a trial of the first sweep that has one."""
        if any(course.may_start for course in self._courses):
            self._pool.fill()
        for worker in self._pool.workers:
            position = next((p for p, course in enumerate(self._courses) if course.may_start), None)
            if worker.has_started and worker.sweep is None and position is not None:
                course = self._courses[position]
                course.start()
                course.tables_are_written = False
                self._pool.order(worker, Order(sweep=position, limit=course.limit))

    def _take(self, worker: Worker, report: Report | None) -> None:
        position, worker.sweep = worker.sweep, None
        if position is None:
            return  # it has just started, or died while it waited
        course = self._courses[position]
        if report is None:
            for index in course.release_lost():
                self._count_death(position, index, worker.process.exitcode)
        elif report.outcome == "nothing":
            course.has_free = False
        elif report.outcome in ("finished", "failed"):
            self._live.done(course.sweep, report.results)
            if report.reason:
                self._live.say(f"{course.sweep.name}: trial {report.index} failed: {report.reason}")

    def _count_death(self, position: int, index: int, status: int | None) -> None:
        """Give up a trial whose workers die again and again, for instance because memory does not suffice."""
        self._deaths[position, index] += 1
        if self._deaths[position, index] >= _DEATHS:
            message = f"{_DEATHS} worker processes died of it, the last with exit status {status}"
            self._courses[position].journal.give_up(index, {"type": "WorkerDied", "message": message, "traceback": ""})
            self._live.done(self._courses[position].sweep, None)

    def _write_tables(self) -> None:
        """Write the tables of sweeps that have come to an end, before later ones do."""
        busy = self._busy()
        for position, course in enumerate(self._courses):
            if not (course.may_start or position in busy or course.tables_are_written):
                course.write_tables()


def _check_together(sweeps: Sequence[Sweep]) -> None:
    folders = [sweep.folder.resolve() for sweep in sweeps]
    for folder in folders:
        if folders.count(folder) > 1:
            raise InvalidParameterError(f"`sweeps` must have a folder each, got {folder} twice. Name another one.")
    if len({sweep.budget.trials is None for sweep in sweeps}) > 1:
        raise InvalidParameterError(
            "`sweeps` must all have a number of trials or all a time as budget, got both. Run them in two calls."
        )


def _result(course: Course) -> SweepResult:
    latest = course.journal.latest()
    errors = {index: trial.user_attrs["error"] for index, trial in latest.items() if is_failed(trial)}
    return SweepResult(
        directory=course.sweep.folder,
        num_finished=sum(is_finished(trial) for trial in latest.values()),
        failed=tuple(
            FailedTrial(index=index, params=dict(latest[index].params), error=f"{error['type']}: {error['message']}")
            for index, error in errors.items()
        ),
        table=course.write_tables(),
    )


def _opening(sweeps: Sequence[Sweep], *, num_done: int, size: int) -> str:
    names = sweeps[0].name if len(sweeps) == 1 else f"{len(sweeps)} sweeps"
    trials, seconds = total_budget([sweep.budget for sweep in sweeps])
    planned = f"{num_done} of {trials} trials done" if trials else f"{num_done} trials done, {seconds:g} s to go"
    return f"{names}: {planned}; {size} worker processes"


def _closing(result: SweepResult, name: str) -> str:
    failures = [f"{trial.index} ({trial.error})" for trial in result.failed[:_SHOWN_FAILURES]]
    if len(result.failed) > _SHOWN_FAILURES:
        failures.append(f"{len(result.failed) - _SHOWN_FAILURES} more in failed.parquet")
    failed = f", {len(result.failed)} failed: {'; '.join(failures)}" if failures else ""
    return f"{name}: {result.num_finished} trials finished{failed}; {result.table}"
