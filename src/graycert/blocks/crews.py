"""What works on blocks: threads of this process, processes of this machine, or the workers of a Dask cluster."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from joblib import cpu_count

from graycert._versions import versions
from graycert.blocks.same_versions import refuse_other_versions
from graycert.blocks.sending import Here, Sent, in_bytes, in_files
from graycert.blocks.work import Outcome, certified_block
from graycert.errors import GraycertError, InvalidParameterError
from graycert.problem import Execution, Problem

_LOOKS = 0.3  # seconds between looks of a worker whether its parent is still there
_ANSWERS = 30  # seconds for a scheduler to answer, and for a first worker to be there

Task = Callable[[Sent, int, slice], tuple[int, Outcome]]


@dataclass(frozen=True, kw_only=True)
class Crew:
    """Workers that are there.

    Args:
        workers: How many blocks are worked on at once.
        send: Gives a problem as these workers get it.
        settings: Name of the backend, and what it needs to be told.
        task: What they do.
        is_there: Whether there still is someone to ask.
    """

    workers: int
    send: Callable[[Problem], AbstractContextManager[Sent]]
    settings: Mapping[str, Any]
    task: Task
    is_there: Callable[[], bool] = field(default=lambda: True)

    @property
    def elsewhere(self) -> bool:
        """Whether they are other processes."""
        return self.settings["backend"] in ("loky", "dask")

    def told(self, sent: Sent) -> dict[str, Any]:
        """Return what joblib is told, with what it hands out once."""
        if self.settings["backend"] != "dask":
            return dict(self.settings)
        from graycert.blocks.dask_tasks import DaskTasks, handed_out

        client = self.settings["client"]
        return {"backend": DaskTasks(client, handed_out(client, sent, _ANSWERS))}


@contextmanager
def hired(execution: Execution) -> Iterator[Crew]:
    """Open the workers that are asked for; nothing of them is left but a cluster that was there before.

    Raises:
        InvalidParameterError: If Dask is not installed, or workers have other versions.
        GraycertError: If a scheduler does not answer, or has no workers.
    """
    if execution.backend == "dask":
        with _cluster(execution) as crew:
            yield crew
        return
    many = execution.workers or (1 if execution.backend == "threads" else int(cpu_count()))
    if execution.backend == "threads" or many == 1:
        kind = "sequential" if many == 1 else "threading"
        yield Crew(workers=many, send=lambda problem: nullcontext(Here(problem)), settings={"backend": kind}, task=done)
        return
    settings = {"backend": "loky", "inner_max_num_threads": max(1, int(cpu_count()) // many)}
    yield Crew(workers=many, send=_to_children, settings=settings, task=done_by_child)


@contextmanager
def _cluster(execution: Execution) -> Iterator[Crew]:
    try:
        import distributed
    except ImportError as error:
        raise InvalidParameterError(
            '`backend` must not be "dask" without Dask, which is not installed. Install graycert[cluster], or choose '
            '"processes".'
        ) from error
    local = execution.scheduler is None
    many = execution.workers or int(cpu_count())
    try:
        client = (
            distributed.Client(n_workers=many, threads_per_worker=1, dashboard_address=":0", env=_threads(many))
            if local
            else distributed.Client(execution.scheduler, timeout=_ANSWERS, set_as_default=False)
        )
    except (OSError, ValueError) as error:
        raise GraycertError(
            f"the scheduler {execution.scheduler} does not answer ({error}). Is it running, and is the address right? "
            "Finished blocks are kept."
        ) from error
    with _closed_at_the_end(client):
        refuse_other_versions(_versions_there(client))
        yield Crew(
            workers=execution.workers or sum(client.ncores().values()),
            send=in_files if local else _as_bytes,
            settings={"backend": "dask", "client": client},
            task=done,
            is_there=lambda: client.status == "running",
        )


@contextmanager
def _closed_at_the_end(client: Any) -> Iterator[None]:
    """Close a client, and the cluster that it has started; who interrupts does not wait for it."""
    with ExitStack() as left:
        left.callback(client.close)
        try:
            yield
        except KeyboardInterrupt:
            threading.Thread(target=left.pop_all().close, daemon=True).start()
            raise


def _threads(workers: int) -> dict[str, str]:
    """Return what gives each of some workers of this machine its share of the cores."""
    share = str(max(1, int(cpu_count()) // workers))
    return {"NUMBA_NUM_THREADS": share, "OMP_NUM_THREADS": share, "MKL_NUM_THREADS": share}


def _versions_there(client: Any) -> dict[str, dict[str, str]]:
    import distributed

    try:
        client.wait_for_workers(1, timeout=_ANSWERS)
        found: dict[str, dict[str, str]] = client.run(versions)
    except (TimeoutError, distributed.TimeoutError) as error:
        raise GraycertError(
            f"the scheduler has no workers after {_ANSWERS} s. Start some with `dask worker`. Finished blocks are kept."
        ) from error
    except Exception as error:  # whatever a worker without graycert says
        raise InvalidParameterError(
            f"`scheduler` must have workers with graycert, got {type(error).__name__}: {error}. Install the same "
            "version on all of them."
        ) from error
    return found


@contextmanager
def _to_children(problem: Problem) -> Iterator[Sent]:
    """Give files, and end the processes that read them, which would wait for more for minutes."""
    from joblib.externals.loky import get_reusable_executor

    with in_files(problem) as sent:
        try:
            yield sent
        finally:
            get_reusable_executor().shutdown(kill_workers=True)


@contextmanager
def _as_bytes(problem: Problem) -> Iterator[Sent]:
    yield in_bytes(problem)


def done(sent: Sent, number: int, rows: slice) -> tuple[int, Outcome]:
    """Certify a block."""
    return number, certified_block(sent.problem(), rows, number)


def done_by_child(sent: Sent, number: int, rows: slice) -> tuple[int, Outcome]:
    """Certify a block in a process that has no life of its own."""
    _settle()
    return done(sent, number, rows)


@cache
def _settle() -> None:
    """Make this process deaf to Ctrl-C, which its parent hears, and let it be gone when its parent is."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()

    def leave() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOKS)
        os._exit(1)

    threading.Thread(target=leave, daemon=True).start()
