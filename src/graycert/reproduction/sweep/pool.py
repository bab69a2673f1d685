"""Worker processes that live over all sweeps: starting one costs seconds, because it loads torch."""

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from graycert.errors import GraycertError
from graycert.reproduction.sweep.definition import Sweep
from graycert.reproduction.sweep.worker import Order, Report, work

_THREADS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")
_PATIENCE = 5.0  # seconds that a waiting worker gets to end
_STARTS = 3  # attempts in a row to start a worker


@dataclass(kw_only=True, eq=False)
class Worker:
    """A worker process as its parent sees it.

    Attributes:
        process: The process.
        connection: The way to it.
        sweep: Position of the sweep it works on; None while it waits for an order.
        has_started: Whether it has reported at all.
    """

    process: BaseProcess
    connection: "Connection[Order | None, Report]"
    sweep: int | None = None
    has_started: bool = False


class Pool:
    """A number of worker processes.

    Args:
        sweeps: What they may be told to work on.
        size: Number of processes.
    """

    def __init__(self, sweeps: Sequence[Sweep], *, size: int) -> None:
        self._sweeps = list(sweeps)
        self._size = size
        self._failed_starts = 0
        self.workers: list[Worker] = []

    def fill(self) -> None:
        """Start the workers that are missing."""
        context = multiprocessing.get_context("spawn")  # torch and Numba do not survive a fork
        with _threads(max(1, (os.cpu_count() or 1) // self._size)):
            while len(self.workers) < self._size:
                here, there = context.Pipe()
                process = context.Process(target=work, args=(there, self._sweeps))
                process.start()
                there.close()  # so that this end sees it when the worker dies
                self.workers.append(Worker(process=process, connection=here))

    def order(self, worker: Worker, order: Order) -> None:
        """Tell a waiting worker to run a trial."""
        worker.sweep = order.sweep
        self._send(worker, order)

    def reports(self, timeout: float) -> list[tuple[Worker, Report | None]]:
        """Return what workers report within ``timeout`` seconds, None for one that died; it is no longer in the pool.

        Raises:
            GraycertError: If workers die before they have even started.
        """
        by_connection = {worker.connection: worker for worker in self.workers}
        if not by_connection:
            time.sleep(timeout)
        found: list[tuple[Worker, Report | None]] = []
        for connection in wait(list(by_connection), timeout):
            worker = by_connection[connection]  # type: ignore[index]
            try:
                found.append((worker, worker.connection.recv()))
                worker.has_started = True
                self._failed_starts = 0
            except (EOFError, OSError):
                self._bury(worker)
                found.append((worker, None))
        return found

    def end(self) -> None:
        """Let all workers go; they must be waiting."""
        for worker in self.workers:
            self._send(worker, None)
        for worker in self.workers:
            worker.process.join(_PATIENCE)
        self.kill()

    def kill(self) -> None:
        """End all workers at once, whatever they do."""
        for worker in self.workers:
            worker.process.kill()
        for worker in self.workers:
            worker.process.join()
            worker.connection.close()
        self.workers.clear()

    def _send(self, worker: Worker, order: Order | None) -> None:
        with suppress(OSError):  # it is dead, as the next `reports` will tell
            worker.connection.send(order)

    def _bury(self, worker: Worker) -> None:
        worker.process.kill()
        worker.process.join()
        worker.connection.close()
        self.workers.remove(worker)
        if not worker.has_started:
            self._failed_starts += 1
            if self._failed_starts >= _STARTS:
                raise GraycertError(
                    f"worker processes end before they begin (exit status {worker.process.exitcode}). What they wrote "
                    "above says why; the module of the objective must be importable without side effects."
                )


@contextmanager
def _threads(number: int) -> Iterator[None]:
    """Let processes that start in the block use so many threads each, unless the environment says how many."""
    unset = [name for name in _THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(unset, str(number)))
    try:
        yield
    finally:
        for name in unset:
            del os.environ[name]
