"""Jobs on several processes, each of which keeps its graphs and models."""

import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from graycert._progress import progress_bar
from graycert.errors import GraycertError
from graycert.reproduction.job import Job
from graycert.reproduction.lab import Lab

_EVERY = 30.0  # seconds between lines


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
    """
    lab = Lab(folder, data_root=data_root)
    open_jobs = [job for job in dict.fromkeys(jobs) if job not in lab.results]
    failed: dict[Job, str] = {}
    if not open_jobs:
        return failed

    def note(job: Job, reason: str | None) -> None:
        if reason is not None:
            failed[job] = reason
            if say is not None:
                say(f"{job.job} job {job.key} failed: {reason}")

    with progress_bar("computing", total=len(open_jobs), unit="jobs", shown=progress) as advance:
        if num_workers == 1:
            for job in open_jobs:
                note(job, _attempt(lab, job))
                advance(1, job.job)
            return failed
        context = multiprocessing.get_context("spawn")  # torch and Numba do not survive a fork
        with ProcessPoolExecutor(num_workers, context, _start, (folder, data_root)) as pool:
            told = time.monotonic()
            try:
                waiting: dict[Future[str | None], Job] = {pool.submit(_do, job): job for job in open_jobs}
                while waiting:
                    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in done:
                        job = waiting.pop(future)
                        note(job, future.result())
                        advance(1, job.job)
                    if say is not None and time.monotonic() - told >= _EVERY and not sys.stderr.isatty():
                        told = time.monotonic()
                        say(f"{len(open_jobs) - len(waiting)} of {len(open_jobs)} jobs done")
            except BrokenProcessPool:
                raise GraycertError(
                    "a worker process was killed (out of memory?). What was done is kept: run the command again to go "
                    "on, with fewer `--workers`."
                ) from None
            except BaseException:  # interrupted: what is not stored by now is done again next time
                pool.shutdown(wait=False, cancel_futures=True)
                for worker in multiprocessing.active_children():
                    worker.kill()
                raise
    return failed


_LAB: Lab | None = None


def _start(folder: Path, data_root: str | None) -> None:
    """Prepare a worker: one thread each, deaf to Ctrl-C, which its parent hears, and gone when the parent is."""
    global _LAB
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()

    torch.set_num_threads(1)
    _LAB = Lab(folder, data_root=data_root)


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)  # a killed parent leaves its workers waiting for jobs for ever


def _do(job: Job) -> str | None:
    assert _LAB is not None
    return _attempt(_LAB, job)


def _attempt(lab: Lab, job: Job) -> str | None:
    """Do a job; return the reason if it failed, so that the others go on."""
    try:
        lab.do(job)
    except Exception as failure:  # whatever it is, it is told and the other jobs are done
        return f"{type(failure).__name__}: {failure}"
    return None
