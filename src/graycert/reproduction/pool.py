"""Jobs on several processes, each of which keeps its graphs and models."""

import os
import signal
import threading
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

from graycert.errors import GraycertError
from graycert.reproduction.job import Job
from graycert.reproduction.lab import Lab
from graycert.reproduction.live import live

Backend = Callable[[int], AbstractContextManager[Executor]]
"""Opens an executor with so many workers, of which nothing is left when it is closed, however it is closed."""

_PULSE = 0.5  # seconds between signs of life
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


class WorkerDiedError(GraycertError):
    """A worker process was killed, and what was under way with it.

    Args:
        jobs: What was under way. Some of it may have been stored just before.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        super().__init__(
            "a worker process was killed (out of memory?). What was done is kept: run the command again to go on, "
            "with fewer `--workers`."
        )
        self.jobs = tuple(jobs)


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
) -> Generator[tuple[Job, Failure | None], None, None]:
    """Do jobs; yield each when it is done, in the order in which they end, with the reason if it failed.

    Results are in the store before a job is yielded.

    Args:
        jobs: All different. The next is taken when a worker is free for it and all that ended were yielded, no sooner.
        lab: Where results go. Each worker has a lab of its own on the same folder for its life.
        num_workers: Number of workers, >= 1.
        backend: Where they work. ``concurrent.futures`` is what a backend must speak, as Dask's
            ``Client.get_executor`` does.
        pulse: Called about twice a second.

    Raises:
        WorkerDiedError: If a worker was killed.
        GraycertError: If workers cannot start.
    """
    waiting = iter(jobs)
    under_way: dict[Future[Failure | None], Job] = {}
    with backend(num_workers) as executor:
        try:
            while True:
                for job in islice(waiting, num_workers - len(under_way)):
                    under_way[executor.submit(_attempt_there, lab.folder, lab.data_root, job)] = job
                if not under_way:
                    return
                done, _ = wait(under_way, timeout=_PULSE, return_when=FIRST_COMPLETED)
                for future in sorted(done, key=lambda each: each.exception() is not None):
                    failure = future.result()
                    yield under_way.pop(future), failure
                pulse()
        except BrokenExecutor as error:
            if type(error).__name__ == "TerminatedWorkerError":  # loky's, for one that is gone without a word
                raise WorkerDiedError(list(under_way.values())) from error
            raise GraycertError(
                f"worker processes cannot start ({error}). What they wrote above says why; the module of a job must be "
                "importable without side effects."
            ) from error


def run_jobs(
    jobs: Sequence[Job],
    folder: Path,
    *,
    data_root: str | None = None,
    num_workers: int = 1,
    progress: bool = False,
    say: Callable[[str], None] | None = None,
) -> dict[Job, str]:
    """Do all jobs that were not done; what is done is stored at once, so an interrupted run goes on where it was.

    Args:
        jobs: Some may be equal.
        folder: Folder of the lab.
        data_root: Folder with graph files; None takes GRAYCERT_DATA.
        num_workers: Processes; 1 works in this one.
        progress: Show a progress bar on standard error if it is a terminal.
        say: Told of each job that failed and, where there is no terminal for a bar, now and then how far it is.

    Returns:
        Jobs that failed, with the reason. The others are stored.

    Raises:
        WorkerDiedError: If a worker was killed; what was done is stored.
    """
    lab = Lab(folder, data_root=data_root)
    open_jobs = [job for job in dict.fromkeys(jobs) if job not in lab.results]
    failed: dict[Job, str] = {}
    if not open_jobs:
        return failed
    with live("computing", unit="jobs", total=len(open_jobs), shown=progress, say=say) as shown:
        here = ((job, _attempt(lab, job)) for job in open_jobs)
        there = compute(open_jobs, lab, num_workers=num_workers, pulse=shown.tick)
        with closing(here if num_workers == 1 else there) as done:
            for job, failure in done:
                if failure is not None:
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
    """Do a job; return the reason if it failed, so that the others go on."""
    try:
        lab.do(job)
    except Exception as failure:  # whatever it is, it is told and the other jobs are done
        return Failure(error=f"{type(failure).__name__}: {failure}", traceback=traceback.format_exc())
    return None
