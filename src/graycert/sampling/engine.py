"""What every engine that draws votes offers."""

from collections.abc import Callable
from typing import Protocol

from graycert._types import IntArray
from graycert.sampling.streams import Purpose

Progress = Callable[[int], None]


class Engine(Protocol):
    """Draws votes for a fixed model, graph, targets and smoothing. Attributes: its name, for people, and C."""

    @property
    def name(self) -> str:
        """Which evaluation this is, for people."""
        ...

    @property
    def num_classes(self) -> int:
        """Number C of classes."""
        ...

    @property
    def draws_at_once(self) -> int | None:
        """Draws that are evaluated together; None if that differs from target to target.

        Votes of stages that begin at multiples of it are, bit by bit, those of one call: scores may be rounded
        differently in another company.
        """
        ...

    def votes(
        self,
        seed: int,
        purpose: Purpose,
        *,
        num_samples: int,
        first_sample: int = 0,
        progress: Progress | None = None,
    ) -> IntArray:
        """Return votes per target and class, int64 (num_targets, num_classes).

        Sample numbers ``first_sample ... first_sample + num_samples - 1`` of the stream are drawn. What a row lacks to
        ``num_samples`` are votes for no class (`graycert.sampling.scores`).
        """
        ...
