"""One loop over blocks, and what works on them: threads, or processes of this machine."""

import os
import signal
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from typing import Any

from joblib import Parallel, cpu_count, delayed, parallel_config

from graycert.blocks.sending import Here, Sent, in_files
from graycert.blocks.work import Outcome, certified_block
from graycert.errors import GraycertError
from graycert.problem import Execution, Problem

DEATHS = 3
"""How often workers may be killed without a block getting done in between, before it is given up."""

_LOOKS = 0.3  # seconds between looks of a worker whether its parent is still there


def num_workers(execution: Execution) -> int:
    """Return how many blocks are worked on at once on this machine."""
    if execution.workers is not None:
        return execution.workers
    return 1 if execution.backend == "threads" else int(cpu_count())


def finished(
    problem: Problem, blocks: Mapping[int, slice], *, workers: int
) -> Generator[tuple[int, Outcome], None, None]:
    """Yield blocks as they get done, in any order. Blocks of killed workers are begun again.

    Args:
        problem: The problem, prepared.
        blocks: Rows of targets, by number of the block.
        workers: How many blocks are worked on at once.

    Raises:
        GraycertError: If workers are killed whatever they do.
        InvalidParameterError: If the model cannot be sent to workers.
    """
    left, deaths = dict(blocks), 0
    with _opened(problem, workers) as (sent, settings):
        while left:
            tasks = [delayed(_done)(sent, number, rows) for number, rows in left.items()]
            loop = Parallel(n_jobs=workers, batch_size=1, pre_dispatch="all", return_as="generator_unordered")
            try:
                with parallel_config(**settings), closing(loop(tasks)) as results:
                    for number, outcome in results:
                        deaths = 0
                        del left[number]
                        yield number, outcome
            except Exception as error:
                if not _is_death(error):
                    raise
                deaths += 1
                if deaths == DEATHS:
                    raise GraycertError(
                        f"workers are killed again and again ({type(error).__name__}; out of memory?). Finished blocks "
                        "are kept: the same call goes on, with fewer workers or less `memory`."
                    ) from error


@contextmanager
def _opened(problem: Problem, workers: int) -> Iterator[tuple[Sent, dict[str, Any]]]:
    """Give the problem as workers get it, and what joblib is told."""
    if problem.execution.backend == "threads" or (problem.execution.backend == "processes" and workers == 1):
        yield Here(problem), {"backend": "sequential" if workers == 1 else "threading"}
        return
    with ExitStack() as stack:
        sent = stack.enter_context(in_files(problem))
        stack.callback(_dismiss)
        threads = max(1, int(cpu_count()) // workers)
        yield sent, {"backend": "loky", "inner_max_num_threads": threads}


def _done(sent: Sent, number: int, rows: slice) -> tuple[int, Outcome]:
    if not isinstance(sent, Here):
        _settle()
    return number, certified_block(sent.problem(), rows)


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


def _is_death(error: Exception) -> bool:
    """Whether a worker is gone without a word: errors of loky, which need not be loaded."""
    return type(error).__name__ in ("TerminatedWorkerError", "BrokenProcessPool")


def _dismiss() -> None:
    """End the processes, which would wait for more for minutes."""
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(kill_workers=True)
