"""How much a sweep may do: a number of trials, or a stretch of wall time."""

import re
from dataclasses import dataclass

from graycert._validation import check_integer, check_positive
from graycert.errors import InvalidParameterError

_SECONDS = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
}
_TRIALS = ("", "trial", "trials")


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Either a number of trials or a stretch of time.

    Args:
        trials: The sweep ends when its trials 0..trials − 1 have been run, in this call or earlier ones.
        seconds: No trial starts later than this after the first start of this call; those under way are finished.

    Raises:
        InvalidParameterError: If not exactly one is given, or it is not positive.

    Example:
        >>> Budget.parse("30min")
        Budget(trials=None, seconds=1800.0)
        >>> Budget.parse("200")
        Budget(trials=200, seconds=None)
    """

    trials: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        if (self.trials is None) is (self.seconds is None):
            raise InvalidParameterError(
                f"`budget` must be either trials or seconds, got trials={self.trials!r} and seconds={self.seconds!r}. "
                "Give one of them."
            )
        if self.trials is not None:
            check_integer("trials", self.trials, at_least=1)
        if self.seconds is not None:
            check_positive("seconds", self.seconds)

    @classmethod
    def parse(cls, text: str) -> "Budget":
        """Return the budget that a text like "200", "200 trials", "90 s", "30min" or "2h" stands for.

        Raises:
            InvalidParameterError: If it stands for none.
        """
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text.lower(), re.ASCII)
        number, unit = found.groups() if found else ("", None)
        if unit in _TRIALS and number.isdigit() and int(number) > 0:
            return cls(trials=int(number))
        if unit in _SECONDS and float(number) > 0:
            return cls(seconds=float(number) * _SECONDS[unit])
        raise InvalidParameterError(
            f"`budget` must be a whole number of trials or a time, got {text!r}. "
            'Write "200", "200 trials", "90 s", "30min" or "2h".'
        )
