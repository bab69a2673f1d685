"""Certifications in processes of their own, to be killed."""

import asyncio
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psutil

import graycert
import graycert.blocks.folder
from graycert import blocks
from graycert.certification import certify
from graycert.errors import GraycertError
from graycert.smoothing.votes_so_far import VotesSoFar
from support.attributed_graphs import random_graph

NUM_TARGETS = 120
PATIENCE = 600.0  # seconds after which a process that should have done something is taken to hang
RESULTS = ("certificates.parquet", "votes.npz", "summary.json")

Written = dict[str, tuple[int, int]]
"""What changes of each finished block's file if it is written again."""


def certified(num_estimation: int = 1_000, **execution: Any) -> graycert.Certificates:
    """Certify every node of a small graph, each in a block of its own."""
    data = random_graph(num_nodes=NUM_TARGETS, num_pairs=300)
    return certify(
        graycert.build_model("gcn", data, seed=1),
        data,
        smoothing=graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.7),
        threat=graycert.NodeFeatureThreat(),
        draws=graycert.Draws(num_selection=100, num_estimation=num_estimation),
        seed=7,
        execution=graycert.Execution(**{"block_size": 1, "progress": False, "say": lambda _: None, **execution}),
    )


def _run(folder: str, execution: dict[str, Any]) -> None:
    """Certify, and save the run beside the folder; what is printed goes into a file.

    ``every`` says how many seconds pass between times at which votes are kept.
    """
    if "every" in execution:
        blocks.folder.VotesSoFar = partial(VotesSoFar, every=execution.pop("every"))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with Path(f"{folder}.log").open("a") as log:
        sys.stdout = sys.stderr = log
        try:
            certified(folder=folder, **execution).save(f"{folder}.run")
        except GraycertError as error:
            log.write(str(error))
            sys.exit(error.exit_status)


@contextmanager
def running(folder: Path, **execution: Any) -> Iterator[BaseProcess]:
    """Start a certification; nothing of it outlives the block. Python and torch are loaded once for all of them."""
    process = _started(_run, str(folder), execution)
    try:
        yield process
    finally:
        kill(process)


def kill(process: BaseProcess) -> None:
    """Kill a certification, whose workers have to notice."""
    workers = workers_of(process)
    process.kill()
    process.join(PATIENCE)
    _, left = psutil.wait_procs(workers, PATIENCE)
    assert not left, "workers outlive their parent"


@cache
def context() -> Any:
    """Return what starts processes that have loaded Python and torch already."""
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # all that the process that is forked knows of ours
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(["support.warm_blocks"])
    return made


def workers_of(process: BaseProcess) -> list[psutil.Process]:
    """Return the worker processes of a certification."""
    kinds = ("popen_loky", "spawn_main")
    with suppress(psutil.Error):
        children = psutil.Process(process.pid).children()
        return [each for each in children if any(kind in " ".join(each.cmdline()) for kind in kinds)]
    return []


class Cluster:
    """A scheduler with two workers, in processes that belong to nobody who certifies."""

    def __init__(self) -> None:
        ours, theirs = multiprocessing.Pipe()
        self.scheduler = _started(_schedule, theirs)
        self.workers: list[BaseProcess] = []
        assert ours.poll(PATIENCE), "the scheduler does not start"
        self.address: str = ours.recv()
        self.hire()

    def hire(self) -> None:
        """Start as many workers as are missing."""
        self.workers += [_started(_work, self.address) for _ in range(2 - len(self.workers))]

    def kill(self, workers: Sequence[BaseProcess]) -> None:
        """Kill some of the workers, all of them before one of them is known to be gone."""
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.join(PATIENCE)
            self.workers.remove(worker)


def _started(function: Callable[..., None], *arguments: object) -> BaseProcess:
    process: BaseProcess = context().Process(target=function, args=arguments)
    process.start()
    return process


def _schedule(asks: Any) -> None:
    import distributed

    async def serve() -> None:
        async with distributed.Scheduler(host="127.0.0.1", dashboard=False) as scheduler:
            asks.send(scheduler.address)
            await scheduler.finished()

    asyncio.run(serve())


def _work(address: str) -> None:
    import distributed

    async def serve() -> None:
        async with distributed.Worker(address, nthreads=1, dashboard=False) as worker:
            await worker.finished()

    asyncio.run(serve())


@contextmanager
def a_cluster() -> Iterator[Cluster]:
    """Start a cluster; nothing of it outlives the block."""
    made = Cluster()
    try:
        yield made
    finally:
        made.kill(tuple(made.workers))
        kill(made.scheduler)


@cache
def undisturbed(num_estimation: int = 1_000, **execution: Any) -> dict[str, bytes]:
    """Return the results of a certification that nothing happens to."""
    with tempfile.TemporaryDirectory() as folder:
        return results(certified(num_estimation, **execution).save(Path(folder) / "run"))


def results(run: Path) -> dict[str, bytes]:
    """Return the files of a run that may not depend on what happened."""
    return {name: (run / name).read_bytes() for name in RESULTS}


def blocks_in(folder: Path) -> Written:
    """Return the finished blocks."""
    found = {}
    for file in folder.glob("block-*.npz"):
        with suppress(FileNotFoundError):
            found[file.name] = (file.stat().st_ino, file.stat().st_mtime_ns)
    return found


def assert_kept(before: Written, folder: Path) -> Written:
    """Check that no block that was finished has been written again."""
    now = blocks_in(folder)
    assert before.items() <= now.items()
    return now


def assert_goes_on_to_its_end(folder: Path, kept: Written, *, num_estimation: int = 1_000, **execution: Any) -> None:
    """Certify what is left: equal bytes in the end, and nothing computed twice."""
    assert len(kept) < NUM_TARGETS, "it was finished before it was killed"
    with running(folder, num_estimation=num_estimation, **execution) as process:
        process.join(PATIENCE)
        assert process.exitcode == 0
    assert_kept(kept, folder)
    assert results(Path(f"{folder}.run")) == undisturbed(num_estimation)


def wait_for(condition: Callable[[], bool], process: BaseProcess) -> None:
    """Wait until something is so while the process lives."""
    ends = time.monotonic() + PATIENCE
    while not condition():
        assert process.is_alive(), f"it has ended with {process.exitcode}"
        assert time.monotonic() < ends, "nothing happens"
        time.sleep(0.002)


def wait_for_blocks(folder: Path, least: int, process: BaseProcess) -> None:
    """Wait until so many blocks are finished, and the folder is there."""
    wait_for(lambda: folder.exists() and len(blocks_in(folder)) >= least, process)
