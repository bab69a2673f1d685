"""One loop over blocks, whatever works on them."""

import warnings
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from joblib import Parallel, delayed, parallel_config

from graycert.blocks.crews import Crew
from graycert.blocks.work import Outcome
from graycert.errors import GraycertError
from graycert.problem import Problem

DEATHS = 3
"""How often workers may be killed without a block getting done in between, before it is given up."""


def finished(problem: Problem, blocks: Mapping[int, slice], crew: Crew) -> Generator[tuple[int, Outcome], None, None]:
    """Yield blocks as they get done, in any order. Blocks of killed workers are begun again.

    Args:
        problem: The problem, prepared.
        blocks: Rows of targets, by number of the block.
        crew: Who works on them.

    Raises:
        GraycertError: If workers are killed whatever they do, or a scheduler is lost.
        InvalidParameterError: If the model cannot be sent to workers.
    """
    left, deaths = dict(blocks), 0
    if not left:
        return
    with crew.send(problem) as sent:
        while left:
            tasks = [delayed(crew.task)(sent, number, rows) for number, rows in left.items()]
            try:
                with parallel_config(**crew.told(sent)):  # of which a loop is told when it is made
                    loop = Parallel(
                        n_jobs=crew.workers, batch_size=1, pre_dispatch="all", return_as="generator_unordered"
                    )
                    with _left_when_told(loop(tasks)) as results:
                        for number, outcome in results:
                            deaths = 0
                            del left[number]
                            yield number, outcome
            except Exception as error:
                if not crew.is_there():
                    raise GraycertError(
                        "the connection to the scheduler is lost. Finished blocks are kept: the same call goes on once "
                        "it is back."
                    ) from error
                if not _is_death(error):
                    raise
                deaths += 1
                if deaths == DEATHS:
                    raise GraycertError(
                        f"workers are killed again and again ({type(error).__name__}; out of memory?). Finished blocks "
                        "are kept: the same call goes on, with fewer workers or less `memory`."
                    ) from error


@contextmanager
def _left_when_told(results: Generator[Any, None, None]) -> Iterator[Generator[Any, None, None]]:
    """Close a loop of joblib, which warns of blocks that nobody waits for: who interrupts a run wants that."""
    try:
        yield results
    finally:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"\d+ tasks ", UserWarning)
            results.close()


def _is_death(error: Exception) -> bool:
    """Whether a worker is gone without a word: errors of loky and Dask, which need not be loaded."""
    return type(error).__name__ in ("TerminatedWorkerError", "BrokenProcessPool", "KilledWorker", "LostError")
