"""Sweeps whose trials cost milliseconds and load no torch; worker processes import this module."""

import os
import signal
import time
from pathlib import Path
from typing import Any, ClassVar

from graycert.reproduction.job import Job
from graycert.reproduction.lab import Lab
from graycert.reproduction.sweep import Budget, RandomDesign, Sweep

RANGES = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


class Paraboloid(Job):
    """Two values in conflict, a number and one that is undefined at times.

    Args:
        x: In [0, 1].
        y: In [0, 1].
        log: A file in which to note that this was run.
        wait: Seconds that it takes.
        fails_above: Raise where x is larger, unless the file ``mended`` is there.
        kills_above: End the worker where x is larger.
    """

    job: ClassVar[str] = "paraboloid"
    one_thread: ClassVar[bool] = False

    x: float
    y: float
    log: str = ""
    wait: float = 0.0
    fails_above: float = 1.0
    mended: str = ""
    kills_above: float = 1.0

    @property
    def graphs(self) -> tuple[str, ...]:
        return ()

    def run(self, lab: Lab) -> dict[str, Any]:
        del lab
        time.sleep(self.wait)
        if self.x > self.kills_above:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.x > self.fails_above and not (self.mended and Path(self.mended).exists()):
            raise ArithmeticError(f"{self.x:.3f} is too large")
        if self.log:
            with Path(self.log).open("a") as file:
                file.write(f"{self.x!r}\n")  # one short write: whole lines, whoever else writes
        return paraboloid(self.x, self.y)


def paraboloid(x: float, y: float) -> dict[str, float]:
    """Return what the job computes."""
    return {"accuracy": 1 - x * x, "robustness": x * (1 - y), "sum": x + y, "ratio": float("nan") if x < 0.5 else y / x}


def numbers(arrays: dict[str, Any]) -> dict[str, float]:
    """Return the numbers of a trial."""
    return {name: float(value) for name, value in arrays.items() if name != "seconds"}


def toy_sweep(folder: Path, *, lab: Lab | None = None, options: dict[str, Any] | None = None, **changed: Any) -> Sweep:
    """Return a sweep over paraboloids, ``options`` being further settings of each."""
    given: dict[str, Any] = {
        "directory": folder,
        "name": folder.name,
        "lab": lab or Lab(Path(f"{folder}.lab")),
        "job": lambda point: Paraboloid(**point, **(options or {})),
        "numbers": numbers,
        "directions": {"accuracy": "maximize", "robustness": "minimize"},
        "design": RandomDesign(ranges=RANGES, seed=1),
        "budget": Budget(trials=3),
    }
    return Sweep(**{**given, **changed})
