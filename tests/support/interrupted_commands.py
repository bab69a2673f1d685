"""`graycert certify` in a process of its own, to be interrupted while it is deep in compiled code."""

import os
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from graycert.cli import main
from graycert.sampling.compiled import CompiledEngine
from graycert.smoothing.interception import method
from support.block_processes import PATIENCE, blocks_in, context, kill
from support.commands import write_graph

OPTIONS = (
    *("--graph", "ring.npz", "--targets", "all", "--per-class", "5", "--max-epochs", "2", "--max-radius", "4"),
    *("--block-size", "10", "--out", "run"),
)


def _without_end(function: Callable[..., Any], **larger: int) -> Callable[..., Any]:
    """Call a function as ever, and for all time once there is a finished block."""

    def call(*arguments: Any, **named: Any) -> Any:
        if not blocks_in(Path("run.unfinished")):
            return function(*arguments, **named)
        Path("there").touch()
        while True:
            function(*arguments, **{**named, **larger})

    return call


def _in_bounds() -> None:
    method.evaluate_bounds = _without_end(method.evaluate_bounds)


def _in_draws() -> None:
    CompiledEngine.votes = _without_end(CompiledEngine.votes, num_samples=1_000_000)  # type: ignore[method-assign]


STAGES: dict[str, Callable[[], None]] = {"bounds": _in_bounds, "draws": _in_draws, "": lambda: None}


def _run(folder: str, stage: str, options: tuple[str, ...]) -> None:
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    STAGES[stage]()
    sys.argv = ["graycert", "certify", *OPTIONS, *options]
    with Path("log").open("a", buffering=1) as log:
        sys.stdout = sys.stderr = log
        main.run()


def started(folder: Path, stage: str, *options: str) -> BaseProcess:
    """Start the command on a small graph."""
    folder.mkdir(exist_ok=True)
    if not (folder / "ring.npz").exists():
        write_graph(folder / "ring.npz")
    process: BaseProcess = context().Process(target=_run, args=(str(folder), stage, options))
    process.start()
    return process


def interrupted(process: BaseProcess, number: int) -> float:
    """Send a signal, and return the seconds until the process is gone."""
    assert process.pid is not None
    begun = time.monotonic()
    os.kill(process.pid, number)
    process.join(PATIENCE)
    seconds = time.monotonic() - begun
    kill(process)
    return seconds
