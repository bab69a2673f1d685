"""Blocks as tasks of a Dask cluster, for the loop of joblib."""

import time
from collections.abc import Callable
from concurrent.futures import CancelledError as Cancelled
from typing import Any

from joblib import ParallelBackendBase


class LostError(ConnectionError):
    """A task that nobody works on any more, since the cluster has forgotten it."""


def handed_out(client: Any, sent: Any, patience: float) -> Any:
    """Give the problem to the cluster, and return it as the cluster holds it, a future.

    One worker gets it, and each other that needs it has it once from one that does: a scheduler that is told to copy it
    to all of them tries for ever if one dies meanwhile. Workers that die, all of them together even, are waited for.

    Args:
        client: Of the cluster.
        sent: The problem as workers get it.
        patience: Seconds after which workers that do not come back are given up.

    Raises:
        LostError: If none was there for so long.
    """
    ends = time.monotonic() + patience
    while True:
        try:
            client.wait_for_workers(1, timeout=patience)
            return client.scatter(sent, hash=False)
        except (OSError, KeyError, Cancelled) as error:  # TimeoutError is an OSError
            if client.status != "running" or time.monotonic() > ends:
                raise LostError("the cluster has no workers that take the problem") from error


class DaskTasks(ParallelBackendBase):  # type: ignore[misc]
    """Hands each block to a Dask cluster, and hears of it whatever becomes of it.

    The backend that joblib brings waits forever for tasks of a scheduler that is gone.

    Args:
        client: Of the cluster.
        sent: The problem as the cluster holds it, a future; it stands for the first argument of every task.
    """

    supports_retrieve_callback = True

    def __init__(self, client: Any = None, sent: Any = None, **others: Any) -> None:
        super().__init__(**others)
        self._client, self._sent, self._tasks = client, sent, list[Any]()

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Return how many tasks joblib takes to run side by side; if that were one, it would run them itself."""
        return max(2, n_jobs)

    def submit(self, func: Any, callback: Callable[[Any], None] | None = None) -> Any:
        """Hand over a batch of one task."""
        ((task, (_, *arguments), named),) = func.items
        future = self._client.submit(task, self._sent, *arguments, **named, pure=False)
        self._tasks.append(future)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Any) -> list[Any]:
        """Return what became of a batch.

        Raises:
            LostError: If the cluster has forgotten it.
        """
        import distributed

        try:
            return [out.result()]
        except (Cancelled, distributed.CancelledError) as error:
            raise LostError("the cluster has forgotten a block") from error

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Let the cluster forget what is not done yet."""
        del ensure_ready
        if self._client.status == "running":
            self._client.cancel(self._tasks, asynchronous=False)
        self._tasks.clear()
