"""A page of sentences, tables and curves, as plain values; it needs no script."""

from collections.abc import Sequence
from dataclasses import dataclass

from graycert.runs.page.view_data import Table

WIDTH, HEIGHT, EDGE = 600, 280, 66
"""Size of curves in units of their drawing, and room for what stands beside the axes."""


@dataclass(frozen=True, kw_only=True)
class Curves:
    """Shares over whole numbers from 0 on, one curve per name.

    Attributes:
        names: Name of each curve.
        shares: Its values in [0, 1], one per number; all of one length, at least one.
        beside: What the numbers are.
    """

    names: tuple[str, ...]
    shares: tuple[tuple[float, ...], ...]
    beside: str

    @property
    def ticks(self) -> tuple[tuple[float, int], ...]:
        """(x, number) of what is written below the axis."""
        last = len(self.shares[0]) - 1
        return tuple((self._x(number), number) for number in range(0, last + 1, max(1, -(-(last + 1) // 12))))

    @property
    def points(self) -> tuple[str, ...]:
        """The points of each curve as SVG takes them."""
        return tuple(
            " ".join(f"{self._x(place):.1f},{HEIGHT - share * (HEIGHT - 20):.1f}" for place, share in enumerate(values))
            for values in self.shares
        )

    def _x(self, number: int) -> float:
        last = max(1, len(self.shares[0]) - 1)
        return round(EDGE + (WIDTH - EDGE - 20) * number / last, 1)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Counts by row and column.

    Attributes:
        columns: Headings, that of the rows first.
        rows: Heading and counts per row.
        note: A line below.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int, ...]], ...]
    note: str

    def shade(self, count: int) -> int:
        """Return how dark a count is shown, 0 to 4."""
        most = max((each for _, counts in self.rows for each in counts), default=0)
        return 0 if not count else min(4, 1 + 4 * (count - 1) // max(1, most))


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of a page under a heading; what is empty is left out.

    Attributes:
        title: Heading.
        paragraphs: Sentences.
        items: A list, numbered.
        tables: (title, table).
        curves: Curves, or None.
        grid: Counts, or None.
    """

    title: str
    paragraphs: Sequence[str] = ()
    items: Sequence[str] = ()
    tables: tuple[tuple[str, Table], ...] = ()
    curves: Curves | None = None
    grid: Grid | None = None


@dataclass(frozen=True, kw_only=True)
class Document:
    """A whole page.

    Attributes:
        title: Heading.
        warnings: What makes the rest worthless.
        sections: Its parts.
    """

    title: str
    warnings: tuple[str, ...]
    sections: tuple[Section, ...]
