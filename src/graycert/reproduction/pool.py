"""Jobs on the workers that certify, too, each of which keeps its graphs and models."""

import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from graycert._files import is_no_room, write_atomically
from graycert.errors import GraycertError, InvalidParameterError
from graycert.reproduction.job import Job
from graycert.reproduction.lab import Lab
from graycert.reproduction.live import live
from graycert.reproduction.workers import Workers, workers_for

if TYPE_CHECKING:
    from graycert.problem import Execution

_ONE_AT_A_TIME = threading.Lock()
_OF_ONE_CERTIFICATION = ("device", "engine", "batch_size", "memory", "folder", "block_size")
_PULSE = 0.5  # seconds between signs of life
_DEATHS = 3  # of its worker, until a job counts as failed; of jobs in a row, until there is no sense in going on


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a job has no result.

    Attributes:
        error: Type and message of what it raised.
        traceback: Where.
    """

    error: str
    traceback: str = ""


Done = tuple[Job, Failure | None]

_DIED = Failure(error=f"WorkerDied: {_DEATHS} workers were killed with it (out of memory?)")


@contextmanager
def workers_for_jobs(execution: "Execution | None", lab: Lab) -> Iterator[Workers]:
    """Find the workers that are asked for, which must see the folder of the lab.

    Raises:
        InvalidParameterError: If they do not, if something is asked for that has no effect here, if Dask is not
            installed, or if workers have other versions.
        GraycertError: If a scheduler does not answer, or has no workers.
    """
    if execution is None:
        yield Workers(kind="here", number=1)
        return
    usual = type(execution)()
    idle = [name for name in _OF_ONE_CERTIFICATION if getattr(execution, name) != getattr(usual, name)]
    if idle:
        raise InvalidParameterError(
            f"`execution` must say who works and nothing else, got {', '.join(idle)}, idle here. Leave it out."
        )
    with workers_for(execution) as workers:
        if not workers.sees_files:
            refuse_blind_workers(workers.client.run(_sees, _left_in(lab.folder)))
        yield workers


def _left_in(folder: Path) -> Path:
    """Leave something in a folder that workers can look for."""
    file = folder.absolute() / "lab.txt"
    if not file.exists():
        write_atomically(file, lambda path: path.write_text("Results and models of experiments.\n", encoding="utf-8"))
    return file


def _sees(file: Path) -> bool:
    return file.is_file()


def refuse_blind_workers(sees: Mapping[str, bool]) -> None:
    """Refuse workers that do not see the folder where results go.

    Args:
        sees: Whether each one does, by its name.

    Raises:
        InvalidParameterError: If one does not.
    """
    blind = [name for name, there in sees.items() if not there]
    if blind:
        raise InvalidParameterError(
            f"`scheduler` must have workers that see the folder of the results, got {', '.join(blind)}, which do not. "
            "Put it, and files of graphs, where all machines have them under the same path."
        )


def compute(
    jobs: Iterable[Job],
    lab: Lab,
    *,
    workers: Workers,
    pulse: Callable[[], object] = lambda: None,
) -> Generator[Done, None, None]:
    """Do jobs; yield each when it is done and stored, in the order in which they end, or with the reason if it failed.

    When a worker is killed, all that was under way is done again, for the third time by a single worker: so the job
    that is too large for the machine is found out. It has failed if that worker is killed, too.

    Args:
        jobs: All different. The next is taken when a worker is free for it and all that ended were yielded, no sooner.
        lab: Where results go. Each worker has a lab of its own on the same folder for its life.
        workers: See `workers_for_jobs`.
        pulse: Called about twice a second, or after each job where this thread does them.

    Raises:
        GraycertError: If workers cannot start, are killed whatever they do, or a scheduler is lost.
    """
    waiting = iter(jobs)
    deaths: Counter[Job] = Counter()
    again, alone = deque[Job](), deque[Job]()
    num_given_up = 0
    while True:
        under_way: dict[Future[Failure | None], Job] = {}
        one_by_one = bool(alone)
        queue, size = (_drained(alone), 1) if one_by_one else (chain(_drained(again), waiting), workers.number)
        try:
            for done in _compute(queue, under_way, lab, workers, size, pulse):
                num_given_up = num_given_up + 1 if _gave_up(done) else 0
                yield done
                _stop_if(num_given_up == _DEATHS)
            if not one_by_one:
                return
        except BrokenExecutor as error:
            if type(error).__name__ != "TerminatedWorkerError":  # loky's, for one that is gone without a word
                raise GraycertError(
                    f"worker processes cannot start ({error}). What they wrote above says why; the module of a job "
                    "must be importable without side effects."
                ) from error
        for job in under_way.values():
            deaths[job] += 1
            if job in lab.results:  # just before
                yield job, None
            elif deaths[job] < _DEATHS:
                (alone if deaths[job] == _DEATHS - 1 else again).append(job)
            else:
                num_given_up += 1
                yield job, _DIED
        _stop_if(num_given_up == _DEATHS)


def _gave_up(done: Done) -> bool:
    return done[1] is _DIED


def _stop_if(hopeless: bool) -> None:
    if hopeless:
        raise GraycertError(
            "worker processes are killed again and again (out of memory?). What was done is kept: run the command "
            "again to go on, with fewer `--workers`."
        )


def _compute(
    jobs: Iterator[Job],
    under_way: dict[Future[Failure | None], Job],
    lab: Lab,
    workers: Workers,
    size: int,
    pulse: Callable[[], object],
) -> Iterator[Done]:
    """Do jobs until a worker is killed, which leaves some in ``under_way``."""
    here = workers.kind == "here"
    task = partial(_attempt, lab) if here else partial(_attempt_there, lab.folder.absolute(), lab.data_root)
    with workers.executor(size) as executor:
        while True:
            for job in islice(jobs, size - len(under_way)):
                under_way[executor.submit(task, job)] = job
            if not under_way:
                return
            done, _ = wait(under_way, timeout=_PULSE, return_when=FIRST_COMPLETED)
            if not workers.is_there() or any(future.cancelled() for future in done):
                raise GraycertError(
                    "the connection to the scheduler is lost. What was done is kept: the same call goes on once it is "
                    "back."
                )
            for future in sorted(done, key=lambda each: each.exception() is not None):
                died = type(future.exception()).__name__ == "KilledWorker"  # Dask's, after it tried it several times
                failure = _DIED if died else future.result()
                yield under_way.pop(future), failure
            pulse()


def _drained(queue: deque[Job]) -> Iterator[Job]:
    while queue:
        yield queue.popleft()


def keep(job: Job) -> None:
    """Leave what a job has left behind."""
    del job


def run_jobs(
    jobs: Iterable[Job],
    folder: Path,
    *,
    data_root: str | None = None,
    execution: "Execution | None" = None,
    progress: bool = False,
    say: Callable[[str], None] | None = None,
    tidy: Callable[[Job], object] = keep,
) -> dict[Job, str]:
    """Do all jobs that were not done; what is done is stored at once, so an interrupted run goes on where it was.

    Args:
        jobs: Some may be equal.
        folder: Folder of the lab.
        data_root: Folder with graph files; None takes GRAYCERT_DATA.
        execution: Who works; this process if it is left out.
        progress: Show a progress bar on standard error if it is a terminal.
        say: Told of each job that failed and, where there is no terminal for a bar, now and then how far it is.
        tidy: Called with each job that is stored, e.g. to remove what only it needed.

    Returns:
        Jobs that failed, with the reason. The others are stored.

    Raises:
        InvalidParameterError: If these workers cannot be had, see `workers_for_jobs`.
        GraycertError: If workers cannot start, are killed whatever they do, or are lost; what was done is stored.
    """
    lab = Lab(folder, data_root=data_root)
    failed: dict[Job, str] = {}
    open_jobs: list[Job] = []
    for job in dict.fromkeys(jobs):
        if job in lab.results:
            tidy(job)
        else:
            open_jobs.append(job)
    if not open_jobs:
        return failed
    with (
        workers_for_jobs(execution, lab) as workers,
        live("computing", unit="jobs", total=len(open_jobs), shown=progress, say=say) as shown,
        closing(compute(open_jobs, lab, workers=workers, pulse=shown.tick)) as done,
    ):
        for job, failure in done:
            if failure is None:
                tidy(job)
            else:
                failed[job] = failure.error
                if say is not None:
                    say(f"{job.job} job {job.key} failed: {failure.error}")
            shown.done(job.job)
    return failed


def _attempt_there(folder: Path, data_root: str | None, job: Job) -> Failure | None:
    with _ONE_AT_A_TIME:  # a worker of a cluster may have several threads, and one state of random numbers
        return _attempt(_lab_of_process(folder, data_root), job)


@lru_cache(maxsize=1)
def _lab_of_process(folder: Path, data_root: str | None) -> Lab:
    return Lab(folder, data_root=data_root)


def _attempt(lab: Lab, job: Job) -> Failure | None:
    """Do a job; return the reason if it failed, so that the others go on, unless there is no room for results."""
    try:
        lab.do(job)
    except Exception as failure:  # whatever it is, it is told and the other jobs are done
        if is_no_room(failure):
            raise
        return Failure(error=f"{type(failure).__name__}: {failure}", traceback=traceback.format_exc())
    return None
