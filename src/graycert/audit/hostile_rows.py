"""What hostile nodes may hold: rows like the features of the graph, and rows unlike any."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

_ROWS = 2**12  # of the features that are looked at together: they stay in the cache
_STEP = 0.01  # how far "just beyond" a column's range is, of the range


@dataclass(frozen=True)
class HostileRows:
    """Makes hostile rows for a graph.

    Args:
        pool: Features of the graph, shape (num_nodes, num_features).
        low: Smallest value per column.
        high: Largest value per column.
        binary: Whether all features are 0 or 1.
        generator: Draws rows and entries.
    """

    pool: Tensor
    low: Tensor
    high: Tensor
    binary: bool
    generator: torch.Generator

    @classmethod
    def of(cls, x: Tensor, generator: torch.Generator) -> "HostileRows":
        """Look at the features."""
        low, high = x.amin(dim=0), x.amax(dim=0)
        binary = bool((low >= 0).all() and (high <= 1).all())  # most features that are not are known by this
        binary = binary and all(bool((some == some.square()).all()) for some in x.split(_ROWS))  # type: ignore[no-untyped-call]
        return cls(x, low, high, binary, generator)

    def rows(self, kind: str, clean: Tensor) -> Tensor:
        """Return a hostile row of one kind for each row, shape as ``clean``."""
        return KINDS[kind](self, clean)

    def mixed(self, kinds: tuple[str, ...], clean: Tensor, *, offset: int) -> Tensor:
        """Return hostile rows whose kinds take turns."""
        made = torch.empty_like(clean)
        for number, kind in enumerate(kinds):
            part = slice((number + offset) % len(kinds), None, len(kinds))
            made[part] = self.rows(kind, clean[part])
        return made

    @cached_property
    def span(self) -> Tensor:
        """Width of each column's range; where it has none, the largest feature, or 1."""
        width = self.high - self.low
        scale = torch.maximum(self.pool.amax(), -self.pool.amin())
        return torch.where(width > 0, width, torch.where(scale > 0, scale, torch.ones_like(scale)))

    def others(self, clean: Tensor) -> Tensor:
        """Return rows of random other nodes."""
        return self.pool[torch.randint(self.pool.size(0), (clean.size(0),), generator=self.generator)]

    def flipped(self, clean: Tensor) -> Tensor:
        """Return flipped bits, or each entry mirrored within its column's range."""
        return 1 - clean if self.binary else self.low + self.high - clean

    def some_flipped(self, clean: Tensor) -> Tensor:
        """Flip a few entries of each row."""
        return torch.where(self._some(clean, 0.1), self.flipped(clean), clean)

    def within(self, clean: Tensor) -> Tensor:
        """Return uniform values within each column's range."""
        return self.low + (self.high - self.low) * self._uniform(clean)

    def above(self, clean: Tensor) -> Tensor:
        """Return the smallest values that are clearly beyond the ranges."""
        return (self.high + _STEP * self.span).expand_as(clean)

    def below(self, clean: Tensor) -> Tensor:
        """Return the same on the other side."""
        return (self.low - _STEP * self.span).expand_as(clean)

    def one_entry(self, clean: Tensor) -> Tensor:
        """Change one entry of each row to a value beyond the range by the range."""
        chosen = torch.randint(clean.size(1), (clean.size(0), 1), generator=self.generator)
        return clean.clone().scatter_(1, chosen, (self.high + self.span)[chosen])

    def unequal(self, clean: Tensor) -> Tensor:
        """Make half of the entries huge, with both signs, and leave the others."""
        huge = torch.where(self._some(clean, 0.5), 1e4, -1e4).to(clean.dtype)
        return torch.where(self._some(clean, 0.5), huge, clean)

    def between(self, low: float, high: float, clean: Tensor) -> Tensor:
        """Return unequal values between two numbers."""
        return (low + (high - low) * self._uniform(clean)).to(clean.dtype)

    def _uniform(self, clean: Tensor) -> Tensor:
        return torch.rand(clean.shape, generator=self.generator, dtype=torch.float32).to(clean.dtype)

    def _some(self, clean: Tensor, share: float) -> Tensor:
        return torch.rand(clean.shape, generator=self.generator) < share


def _constant(value: Callable[[torch.dtype], float]) -> Callable[[HostileRows, Tensor], Tensor]:
    return lambda _, clean: torch.full_like(clean, value(clean.dtype))


def _between(low: float, high: float) -> Callable[[HostileRows, Tensor], Tensor]:
    return lambda rows, clean: rows.between(low, high, clean)


LIKE: dict[str, Callable[[HostileRows, Tensor], Tensor]] = {
    "another node's row": HostileRows.others,
    "flipped": HostileRows.flipped,
    "a few flipped": HostileRows.some_flipped,
    "within the ranges": HostileRows.within,
    "the smallest values": lambda rows, clean: rows.low.expand_as(clean),
    "the largest values": lambda rows, clean: rows.high.expand_as(clean),
    "just above the ranges": HostileRows.above,
    "just below the ranges": HostileRows.below,
    "one entry": HostileRows.one_entry,
    "ones": _constant(lambda _: 1.0),
    "zeros": _constant(lambda _: 0.0),
}
UNLIKE: dict[str, Callable[[HostileRows, Tensor], Tensor]] = {
    "1e4": _constant(lambda _: 1e4),
    "NaN": _constant(lambda _: float("nan")),
    "infinity": _constant(lambda _: float("inf")),
    "-1e4": _constant(lambda _: -1e4),
    "-infinity": _constant(lambda _: -float("inf")),
    "minus ones": _constant(lambda _: -1.0),
    "the largest finite number": _constant(lambda dtype: torch.finfo(dtype).max),
    "the smallest finite number": _constant(lambda dtype: torch.finfo(dtype).min),
    "unequal entries": HostileRows.unequal,
    "tens": _between(40, 99),
    "hundreds": _between(201, 254),
    "thousands": _between(2_101, 8_999),
    "years": _between(1901, 2099),
    "millions": _between(2e6, 9e6),
    "tiny": _between(1e-9, 1e-8),
    "-999": _constant(lambda _: -999.0),
    "-0": _constant(lambda _: -0.0),
}
KINDS = LIKE | UNLIKE
