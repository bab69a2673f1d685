"""Objectives of sweeps that cost milliseconds and load no torch; worker processes import this module."""

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


def paraboloid(params: Mapping[str, float]) -> dict[str, float]:
    """Return two values in conflict, a number and one that is undefined at times."""
    x, y = params["x"], params["y"]
    return {"accuracy": 1 - x * x, "robustness": x * (1 - y), "sum": x + y, "ratio": float("nan") if x < 0.5 else y / x}


@dataclass(frozen=True, kw_only=True)
class Logged:
    """Wait, then note in a file that the parameters were run."""

    log: str
    seconds: float = 0.0

    def __call__(self, params: Mapping[str, float]) -> dict[str, float]:
        time.sleep(self.seconds)
        with Path(self.log).open("a") as file:
            file.write(f"{params['x']!r}\n")  # one short write: whole lines, whoever else writes
        return paraboloid(params)


@dataclass(frozen=True, kw_only=True)
class FailsAbove:
    """Raise where x is large, unless a file says that it was mended."""

    threshold: float
    mended: str = ""

    def __call__(self, params: Mapping[str, float]) -> dict[str, float]:
        if params["x"] > self.threshold and not (self.mended and Path(self.mended).exists()):
            raise ArithmeticError(f"{params['x']:.3f} is too large")
        return paraboloid(params)


@dataclass(frozen=True, kw_only=True)
class KillsItself:
    """End the worker process where x is large."""

    threshold: float

    def __call__(self, params: Mapping[str, float]) -> dict[str, float]:
        if params["x"] > self.threshold:
            os.kill(os.getpid(), signal.SIGKILL)
        return paraboloid(params)


@dataclass(frozen=True, kw_only=True)
class Returns:
    """Return the same, whatever the parameters are."""

    results: tuple[tuple[str, object], ...]

    def __call__(self, params: Mapping[str, float]) -> dict[str, object]:
        return dict(self.results)
