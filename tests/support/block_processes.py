"""Certifications in processes of their own, to be killed."""

import multiprocessing
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psutil

import graycert
from graycert.certification import certify
from support.attributed_graphs import random_graph

NUM_TARGETS = 120
PATIENCE = 600.0  # seconds after which a process that should have done something is taken to hang


def certified(**execution: Any) -> graycert.Certificates:
    """Certify every node of a small graph, each in a block of its own."""
    data = random_graph(num_nodes=NUM_TARGETS, num_pairs=300)
    return certify(
        graycert.build_model("gcn", data, seed=1),
        data,
        smoothing=graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.7),
        threat=graycert.NodeFeatureThreat(),
        draws=graycert.Draws(num_selection=100, num_estimation=1_000),
        seed=7,
        execution=graycert.Execution(block_size=1, progress=False, say=lambda _: None, **execution),
    )


def _run(folder: str, execution: dict[str, Any]) -> None:
    """Certify, and save the run beside the folder; what is printed goes into a file."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with Path(f"{folder}.log").open("a") as log:
        sys.stdout = sys.stderr = log
        certified(folder=folder, **execution).save(f"{folder}.run")


@contextmanager
def running(folder: Path, **execution: Any) -> Iterator[BaseProcess]:
    """Start a certification; nothing of it outlives the block. Python and torch are loaded once for all of them."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["support.warm_blocks"])
    process = context.Process(target=_run, args=(str(folder), execution))
    process.start()
    try:
        yield process
    finally:
        workers = workers_of(process)
        process.kill()
        process.join(PATIENCE)
        _, left = psutil.wait_procs(workers, PATIENCE)
        assert not left, "workers outlive their parent"


def workers_of(process: BaseProcess) -> list[psutil.Process]:
    """Return the worker processes of a certification."""
    with suppress(psutil.Error):
        return [each for each in psutil.Process(process.pid).children() if "popen_loky" in " ".join(each.cmdline())]
    return []


def blocks_in(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the finished blocks, with what changes if one is written again."""
    found = {}
    for file in folder.glob("block-*.npz"):
        with suppress(FileNotFoundError):
            found[file.name] = (file.stat().st_ino, file.stat().st_mtime_ns)
    return found


def wait_for(condition: Callable[[], bool], process: BaseProcess) -> None:
    """Wait until something is so while the process lives."""
    ends = time.monotonic() + PATIENCE
    while not condition():
        assert process.is_alive(), f"it has ended with {process.exitcode}"
        assert time.monotonic() < ends, "nothing happens"
        time.sleep(0.002)
