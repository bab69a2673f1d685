"""Wall time of each phase of a certification, from its preparation to its conclusion."""

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from graycert.errors import InvalidParameterError

PHASES = ("preparation", "audit", "bounds", "engine", "draws", "cost", "conclusion")
"""In the order in which they begin; "cost" is the pass of the model without smoothing, to compare with."""


class Phases:
    """A stopwatch for phases that may lie inside one another; no second is counted twice.

    Example:
        >>> phases = Phases()
        >>> with phases("preparation"), phases("audit"):
        ...     pass
        >>> list(phases.seconds)
        ['preparation', 'audit']
    """

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._open: list[str] = []
        self._since = 0.0

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Count the time of the block as that of a phase, apart from phases inside the block.

        Args:
            name: One of `PHASES`.
        """
        self._book()
        self._open.append(name)
        try:
            yield
        finally:
            self._book()
            self._open.pop()

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds per phase that has begun, in the order of `PHASES`."""
        return {name: self._seconds[name] for name in PHASES if name in self._seconds}

    def _book(self) -> None:
        now = time.perf_counter()
        if self._open:
            self._seconds[self._open[-1]] = self._seconds.get(self._open[-1], 0.0) + now - self._since
        self._since = now


def check_seconds(seconds: Mapping[str, Any]) -> dict[str, float]:
    """Return seconds per phase in the order of `PHASES`.

    Raises:
        InvalidParameterError: If a phase is not known, or a time is no number >= 0.
    """
    for name, value in seconds.items():
        known = name in PHASES and isinstance(value, float | int) and not isinstance(value, bool)
        if not known or not 0 <= value < math.inf:
            raise InvalidParameterError(
                f"`seconds` must hold a number >= 0 per phase ({', '.join(PHASES)}), got {name!r}: {value!r}."
            )
    return {name: float(seconds[name]) for name in PHASES if name in seconds}


def time_in_words(seconds: Mapping[str, float]) -> str:
    """Return the whole time and that of each phase.

    Example:
        >>> time_in_words({"audit": 0.3, "draws": 1.25})
        '1.6 s: audit 0.30, draws 1.25'
    """
    return f"{sum(seconds.values()):.1f} s: {', '.join(f'{name} {value:.2f}' for name, value in seconds.items())}"
