"""Sweeps in processes of their own, to be killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from graycert.problem import Execution
from graycert.reproduction.sweep import AdaptiveDesign, Budget, RandomDesign, Sweep
from support.sweep_jobs import RANGES, toy_sweep

PROGRAM = """
import sys
from graycert.problem import Execution
from graycert.reproduction.sweep import run_sweep
from support.sweep_processes import logged_sweep
sweep = logged_sweep(sys.argv[1], trials=int(sys.argv[2]), sampler=sys.argv[3])
run_sweep(sweep, execution=Execution(backend="processes", workers=2), progress=True)
assert "torch" not in sys.modules
"""
TWO = Execution(backend="processes", workers=2)
PATIENCE = 300.0  # seconds after which a process that should have done something is taken to hang


def logged_sweep(folder: str | Path, *, trials: int, sampler: str = "random") -> Sweep:
    """Return a sweep whose trials wait a moment and note in a file beside its folder that they were run."""
    return toy_sweep(
        Path(folder),
        name="logged",
        design=RandomDesign(ranges=RANGES, seed=5)
        if sampler == "random"
        else AdaptiveDesign(ranges=RANGES, seed=5, sampler=sampler),
        budget=Budget(trials=trials),
        options={"log": f"{folder}.log", "wait": 0.05},
    )


def _heed_interrupts() -> None:
    """Undo what a shell does to programs in its background, which is inherited: they ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def running_sweep(folder: Path, *, trials: int, sampler: str = "random") -> "Iterator[subprocess.Popen[bytes]]":
    """Start a sweep with two workers as the leader of a process group; nothing of it outlives the block."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    with (
        Path(f"{folder}.err").open("ab") as errors,
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(folder), str(trials), sampler],
            env=environment,
            stderr=errors,
            start_new_session=True,
            preexec_fn=_heed_interrupts,
        ) as process,
    ):
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def workers_of(parent: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    """Return the worker processes of a sweep."""
    try:
        return [child for child in psutil.Process(parent.pid).children() if "popen_loky" in " ".join(child.cmdline())]
    except psutil.Error:
        return []


def kill_all(parent: "subprocess.Popen[bytes]") -> None:
    """Kill parent and workers at once."""
    os.killpg(parent.pid, signal.SIGKILL)
    parent.wait(PATIENCE)


def kill_parent(parent: "subprocess.Popen[bytes]") -> None:
    """Kill the parent only; its workers must end by themselves."""
    workers = workers_of(parent)
    parent.kill()
    parent.wait(PATIENCE)
    _, left = psutil.wait_procs(workers, PATIENCE)
    assert not left, "workers outlive their parent"


def kill_a_worker(parent: "subprocess.Popen[bytes]") -> None:
    """Kill a worker only, as soon as there is one."""
    wait_until(lambda: bool(workers_of(parent)))
    workers_of(parent)[0].kill()


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    ends = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < ends, "nothing happens"
        time.sleep(0.005)
