"""A sweep on a pool of workers; killed at any moment, it goes on where it was."""

import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from graycert._files import is_no_room
from graycert.errors import InvalidFileError, InvalidParameterError, WriteError
from graycert.reproduction.live import Live, live, write_line
from graycert.reproduction.pool import compute, workers_for_jobs
from graycert.reproduction.sweep.course import Course
from graycert.reproduction.sweep.definition import Sweep, keep_settings
from graycert.reproduction.sweep.tables import TRIALS
from graycert.reproduction.workers import Workers

if TYPE_CHECKING:
    from graycert.problem import Execution

LOCK = "sweep.lock"  # of the operating system, held by the parent: a killed one gives it back
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
    execution: "Execution | None" = None,
    progress: bool = False,
    retry_failed: bool = False,
) -> SweepResult:
    """Run a sweep until its budget is spent.

    A sweep whose folder holds trials already goes on: finished trials are kept, those that were lost with a killed
    process are run again with the same parameters, and a larger budget adds trials.

    Args:
        sweep: The sweep; its folder is made.
        execution: Who works: this process if it is left out, or `Execution(backend="processes", workers=2)`, or the
            workers of a Dask cluster. Results are the same.
        progress: Tell on standard error how it goes.
        retry_failed: Run trials again that failed in an earlier call.

    Returns:
        What it has come to, also in earlier calls.

    Raises:
        InvalidParameterError: If an argument is outside its domain, Optuna is needed and not installed, another process
            drives the sweep, its folder holds a sweep with other settings, or the workers cannot be had.
        InvalidFileError: If a file of the sweep is damaged or cannot be written.
        WriteError: If there is no room; finished trials are kept.
        GraycertError: If workers cannot be started, are killed whatever they do, or a scheduler is lost.
        KeyboardInterrupt: After an interruption; finished trials are kept and the tables written.
    """
    try:
        sweep.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(sweep.folder / LOCK, timeout=0):
            keep_settings(sweep)
            course = Course(sweep, retry_failed=retry_failed)
            limit = sweep.budget.trials
            say = write_line if progress else None
            with (
                workers_for_jobs(execution, sweep.lab) as workers,
                live("sweep", unit="trials", total=limit, shown=progress, say=say) as shown,
            ):
                _drive(course, shown, workers)
    except Timeout:
        raise InvalidParameterError(
            f"`directory` must be free, but another process runs the sweep in {sweep.folder}. "
            "Wait for it or end it; a killed one leaves nothing to clear away."
        ) from None
    except (OSError, WriteError) as error:
        if isinstance(error, WriteError) or is_no_room(error):
            raise WriteError(
                f"the sweep cannot be written ({error}). Finished trials are kept in {sweep.folder}; "
                "make room, and the same command goes on with the others."
            ) from error
        raise InvalidFileError(
            f"the sweep cannot be written ({error}). Make room or choose another folder; what was written is kept."
        ) from error
    return SweepResult(
        directory=sweep.folder,
        num_finished=len(course.finished),
        failed=tuple(
            FailedTrial(index=index, params=course.point(index), error=row["error"])
            for index, row in sorted(course.failed.items())
        ),
        table=sweep.folder / TRIALS,
    )


def _drive(course: Course, shown: Live, workers: Workers) -> None:
    """Run all trials; write the tables now and then, and at the end, however it comes."""
    sweep = course.sweep
    written = time.monotonic()

    def pulse() -> None:
        nonlocal written
        shown.tick()
        if time.monotonic() - written > _TABLES_EVERY:
            course.write_tables()
            written = time.monotonic()

    shown.before(course.num_done)
    of, seconds = f" of {sweep.budget.trials}" if sweep.budget.trials else "", sweep.budget.seconds
    to_go = f", {seconds:g} s to go" if seconds else ""
    shown.say(f"{sweep.name}: {course.num_done}{of} trials done{to_go}; {workers.number} workers")
    computed = compute(course.jobs(), sweep.lab, workers=workers, pulse=pulse)
    try:
        with closing(computed):
            for job, failure in computed:
                course.take(job, failure)
                if failure is not None:
                    shown.say(f"{sweep.name}: a trial failed: {failure.error}")
                shown.done(course.note())
    except KeyboardInterrupt as interruption:
        advice = "Interrupted. Finished trials are kept: run the same again to go on."
        shown.say(advice)
        interruption.add_note(advice)
        raise
    finally:
        course.collect()
        course.write_tables()
