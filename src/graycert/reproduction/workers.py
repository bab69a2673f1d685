"""Who does jobs: this process, others of this machine, or the Dask cluster on which targets are certified, too."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Literal

from graycert.errors import InvalidParameterError

if TYPE_CHECKING:
    from graycert.problem import Execution

# a worker is one thread: as many as there are cores for each would stand in each other's way, and sums in another order
_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS", "NUMBA")}


@dataclass(frozen=True, kw_only=True)
class Workers:
    """Workers that are there.

    Args:
        kind: "here" is this thread.
        number: How many jobs are done at once.
        client: Of a Dask cluster.
        sees_files: Whether they see the files of this machine.
    """

    kind: Literal["here", "processes", "dask"]
    number: int
    client: Any = None
    sees_files: bool = True

    def is_there(self) -> bool:
        """Return whether there still is someone to ask."""
        return self.client is None or self.client.status == "running"

    def executor(self, number: int) -> AbstractContextManager[Executor]:
        """Open an executor on so many of them, of which nothing is left when it is closed, however it is closed.

        Args:
            number: How many; a cluster gives all that it has.
        """
        if self.kind == "dask":
            return _of_cluster(self.client)
        return _processes(number) if self.kind == "processes" else _here()


@contextmanager
def workers_for(execution: "Execution") -> Iterator[Workers]:
    """Find the workers that are asked for; nothing of them is left but a cluster that was there before.

    Raises:
        InvalidParameterError: If threads would share their random numbers, Dask is not installed, or workers have other
            versions.
        GraycertError: If a scheduler does not answer, or has no workers.
    """
    if execution.backend == "dask":
        with _cluster(execution) as workers:
            yield workers
        return
    number = execution.workers or (1 if execution.backend == "threads" else _num_cores())
    if execution.backend == "threads" and number > 1:
        raise InvalidParameterError(
            f"`workers` must be 1 with threads where models are trained, got {number}: a process has one state of "
            'random numbers. Choose "processes", or leave it out.'
        )
    yield Workers(kind="here" if number == 1 else "processes", number=number)


def _num_cores() -> int:
    from joblib import cpu_count

    return int(cpu_count())


@contextmanager
def _cluster(execution: "Execution") -> Iterator[Workers]:
    """Take the cluster on which targets are certified, too."""
    from graycert.blocks.crews import hired

    with hired(execution) as crew:
        client = crew.settings["client"]
        yield Workers(kind="dask", number=crew.workers, client=client, sees_files=execution.scheduler is None)


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
def _here() -> Iterator[Executor]:
    yield _Here()


@contextmanager
def _of_cluster(client: Any) -> Iterator[Executor]:
    executor = client.get_executor()
    try:
        yield executor
    finally:
        if client.status == "running":
            executor.shutdown(wait=False)


@contextmanager
def _processes(number: int) -> Iterator[Executor]:
    """Open processes of joblib's loky, which start on the first task."""
    from joblib.externals.loky import ProcessPoolExecutor

    ends_with_parent, held = Pipe(duplex=False)
    with ends_with_parent, held:
        executor = ProcessPoolExecutor(number, env=_ONE_THREAD, initializer=_prepare, initargs=(ends_with_parent,))
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
