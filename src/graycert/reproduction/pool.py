"""Jobs on several processes, each of which keeps its graphs and models."""

import os
import signal
import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from graycert._files import is_no_room
from graycert.errors import GraycertError
from graycert.reproduction.job import Job
from graycert.reproduction.lab import Lab
from graycert.reproduction.live import live

Backend = Callable[[int], AbstractContextManager[Executor]]
"""Opens an executor with so many workers, of which nothing is left when it is closed, however it is closed."""

_PULSE = 0.5  # seconds between signs of life
_DEATHS = 3  # of its worker, until a job counts as failed; of jobs in a row, until there is no sense in going on
# a worker is one thread: as many as there are cores for each would stand in each other's way, and sums in another order
_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS", "NUMBA")}


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


@contextmanager
def processes(num_workers: int) -> Iterator[Executor]:
    """Open workers on this machine: processes of joblib's loky, which start on the first job."""
    from joblib.externals.loky import ProcessPoolExecutor

    ends_with_parent, held = Pipe(duplex=False)
    with ends_with_parent, held:
        executor = ProcessPoolExecutor(num_workers, env=_ONE_THREAD, initializer=_prepare, initargs=(ends_with_parent,))
        try:
            yield executor
        finally:
            executor.shutdown(kill_workers=True)  # they are idle, or nobody waits for what they do


class _Here(Executor):
    """Does what is submitted at once, in this thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return what is done already."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # whoever asks for the result is told
            future.set_exception(error)
        return future


@contextmanager
def this_process(num_workers: int) -> Iterator[Executor]:
    """Open the one worker that shares what is in memory: this process."""
    del num_workers
    yield _Here()


def _prepare(ends_with_parent: "Connection[None, None]") -> None:
    """Make a worker deaf to Ctrl-C, which its parent hears, and let it be gone when its parent is."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def leave() -> None:
        ends_with_parent.poll(None)  # nothing is ever sent: this is the end of the parent, however it came
        os._exit(1)  # a killed parent leaves its workers waiting for jobs for ever

    threading.Thread(target=leave, daemon=True).start()


def compute(
    jobs: Iterable[Job],
    lab: Lab,
    *,
    num_workers: int,
    backend: Backend = processes,
    pulse: Callable[[], object] = lambda: None,
) -> Generator[Done, None, None]:
    """Do jobs; yield each when it is done and stored, in the order in which they end, or with the reason if it failed.

    When a worker is killed, all that was under way is done again, for the third time by a single worker: so the job
    that is too large for the machine is found out. It has failed if that worker is killed, too.

    Args:
        jobs: All different. The next is taken when a worker is free for it and all that ended were yielded, no sooner.
        lab: Where results go. Each worker has a lab of its own on the same folder for its life.
        num_workers: Number of workers, >= 1.
        backend: Where they work. ``concurrent.futures`` is what a backend must speak, as Dask's
            ``Client.get_executor`` does.
        pulse: Called about twice a second.

    Raises:
        GraycertError: If workers cannot start, or are killed whatever they do.
    """
    waiting = iter(jobs)
    deaths: Counter[Job] = Counter()
    again, alone = deque[Job](), deque[Job]()
    num_given_up = 0
    while True:
        under_way: dict[Future[Failure | None], Job] = {}
        one_by_one = bool(alone)
        queue, size = (_drained(alone), 1) if one_by_one else (chain(_drained(again), waiting), num_workers)
        try:
            for done in _compute(queue, under_way, lab, backend, size, pulse):
                num_given_up = 0
                yield done
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
                yield job, Failure(error=f"WorkerDied: {_DEATHS} workers were killed with it (out of memory?)")
        if num_given_up == _DEATHS:
            raise GraycertError(
                "worker processes are killed again and again (out of memory?). What was done is kept: run the command "
                "again to go on, with fewer `--workers`."
            )


def _compute(
    jobs: Iterator[Job],
    under_way: dict[Future[Failure | None], Job],
    lab: Lab,
    backend: Backend,
    num_workers: int,
    pulse: Callable[[], object],
) -> Iterator[Done]:
    """Do jobs until a worker is killed, which leaves some in ``under_way``."""
    with backend(num_workers) as executor:
        while True:
            for job in islice(jobs, num_workers - len(under_way)):
                under_way[executor.submit(_attempt_there, lab.folder, lab.data_root, job)] = job
            if not under_way:
                return
            done, _ = wait(under_way, timeout=_PULSE, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=lambda each: each.exception() is not None):
                failure = future.result()
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
    num_workers: int = 1,
    progress: bool = False,
    say: Callable[[str], None] | None = None,
    tidy: Callable[[Job], object] = keep,
) -> dict[Job, str]:
    """Do all jobs that were not done; what is done is stored at once, so an interrupted run goes on where it was.

    Args:
        jobs: Some may be equal.
        folder: Folder of the lab.
        data_root: Folder with graph files; None takes GRAYCERT_DATA.
        num_workers: Processes; 1 works in this one.
        progress: Show a progress bar on standard error if it is a terminal.
        say: Told of each job that failed and, where there is no terminal for a bar, now and then how far it is.
        tidy: Called with each job that is stored, e.g. to remove what only it needed.

    Returns:
        Jobs that failed, with the reason. The others are stored.

    Raises:
        GraycertError: If workers cannot start, or are killed whatever they do; what was done is stored.
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
    with live("computing", unit="jobs", total=len(open_jobs), shown=progress, say=say) as shown:
        here = ((job, _attempt(lab, job)) for job in open_jobs)
        there = compute(open_jobs, lab, num_workers=num_workers, pulse=shown.tick)
        with closing(here if num_workers == 1 else there) as done:
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
