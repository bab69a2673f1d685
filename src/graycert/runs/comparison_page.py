"""Two results on one page: what became of the targets that both have, drawn and told."""

from collections.abc import Callable

import numpy as np

from graycert.certificates import Certificates
from graycert.metrics.ratios import certified_ratio
from graycert.runs.claim import claim
from graycert.runs.compare import CHANGES, Comparison, Side, compare, value_in_words
from graycert.runs.page.document import Curves, Document, Grid, Section
from graycert.runs.page.view_data import Table
from graycert.runs.shares import percent

MOST_TARGETS = 200
"""Targets of one change that are listed."""

MOST_RADII = 12
"""Radii that are told apart one by one; where there are larger ones, rows are of 0, 1 to 2, 3 to 9, 10 to 29, ..."""


def comparison_page(before: Certificates, after: Certificates, *, names: tuple[str, str]) -> Document:
    """Return what `compare` finds as a page.

    Args:
        before: A result.
        after: Another one.
        names: What the two are called.

    Raises:
        InvalidParameterError: If the two cannot be compared.
    """
    found = compare(before, after)
    counts, say = found.counts, found.called.say
    told = ", ".join(f"{counts[each]:,} {each}" for each in CHANGES)
    sides = tuple(zip(names, (before, after), strict=True))
    changed = tuple(
        table for each in ("worse", "another prediction", "better") if (table := _changed(found, each)) is not None
    )
    return Document(
        title=f"Two runs: {names[0]} and {names[1]}",
        warnings=tuple(each for each in found.notes if each.startswith("NOT SOUND")),
        sections=(
            Section(
                title="What changed",
                paragraphs=(
                    say(f"{found.targets.size:,} targets are in both runs: {told}."),
                    *(say(each) for each in found.notes if not each.startswith("NOT SOUND")),
                ),
                tables=((say("Shares of the targets of both"), _shares(found, names)),),
            ),
            Section(title="From radius to radius", grid=_moves(found, names)),
            Section(
                title=say("How many of all its targets each run certifies"),
                paragraphs=[f"{name}: {say(claim(c, 1)[0])}" for name, c in sides],
                curves=_curves(sides, say),
            ),
            *([Section(title=say("Which targets changed"), tables=changed)] if changed else []),
            Section(
                title="What the two were made from",
                paragraphs=() if found.settings else ("No setting differs.",),
                tables=(("Settings that differ", _settings(found, names)),) if found.settings else (),
            ),
        ),
    )


def _shares(found: Comparison, names: tuple[str, str]) -> Table:
    shown = [each for each in found.before.counts if each in found.after.counts]
    say = found.called.say
    rows = tuple((say(each), percent(*found.before.counts[each]), percent(*found.after.counts[each])) for each in shown)
    return Table(columns=(say("targets"), *names), rows=rows)


def _moves(found: Comparison, names: tuple[str, str]) -> Grid:
    """Count targets by radius before and after."""
    largest = max(int(side.radius[~side.whole_field].max(initial=1)) for side in (found.before, found.after))
    starts = _starts(largest)
    words = ["none", *map(_radii_in_words, starts, [*starts[1:], largest + 1]), "whole field"]
    places = [_place(side, starts) for side in (found.before, found.after)]
    table = np.zeros((len(words), len(words)), dtype=np.int64)
    np.add.at(table, tuple(places), 1)
    return Grid(
        columns=(f"{names[0]} (down), {names[1]} (across)", *words),
        rows=tuple((word, tuple(row)) for word, row in zip(words, table.tolist(), strict=True)),
        note=found.called.say(
            "Targets of both by certified radius. Above the diagonal of equal radii the second run certifies more, "
            "below it less, if the prediction is the same."
        ),
    )


def _starts(largest: int) -> list[int]:
    """Return the smallest radius of each row."""
    if largest <= MOST_RADII:
        return list(range(largest + 1))
    steps = (digit * 10**power for power in range(len(str(largest))) for digit in (1, 3))
    return [0, *(step for step in steps if step <= largest)]


def _radii_in_words(start: int, following: int) -> str:
    return f"{start:,}" if following == start + 1 else f"{start:,} to {following - 1:,}"


def _place(side: Side, starts: list[int]) -> "np.typing.NDArray[np.int64]":
    rows = np.searchsorted(starts, side.radius, side="right")
    return np.where(side.whole_field, len(starts) + 1, rows)


def _curves(sides: tuple[tuple[str, Certificates], ...], say: Callable[[str], str]) -> Curves:
    looked = [c.setup.max_radius for _, c in sides if c.setup.max_radius is not None]
    last = min([*looked, max(1, *(int(c.radius.max()) for _, c in sides)) + 1])
    shares = tuple(
        tuple(
            float(count) / len(c)
            for count in certified_ratio(c.radius, c.num_eligible, max_radius=last, denominator="whole_field").counts
        )
        for _, c in sides
    )
    unit = sides[0][1].setup.threat.unit
    return Curves(
        names=tuple(name for name, _ in sides),
        shares=shares,
        beside=say(f"ρ: hostile {unit}; the whole field included"),
    )


def _changed(found: Comparison, change: str) -> tuple[str, Table] | None:
    rows = np.flatnonzero(found.change == change)
    if not rows.size:
        return None
    rows = rows[np.argsort(-np.abs(found.after.radius[rows] - found.before.radius[rows]), kind="stable")]
    cells = tuple(
        (str(found.targets[row]), *(side.told(row, found.called) for side in (found.before, found.after)))
        for row in rows[:MOST_TARGETS].tolist()
    )
    rest = rows.size - len(cells)
    note = f"{rest:,} more: `graycert compare` with `--out` writes all of them." if rest > 0 else ""
    say = found.called.say
    return say(change.capitalize()), Table(columns=(say("target"), "before", "after"), rows=cells, note=note)


def _settings(found: Comparison, names: tuple[str, str]) -> Table:
    rows = tuple((name, value_in_words(a), value_in_words(b)) for name, a, b in found.settings)
    return Table(columns=("setting", *names), rows=rows)
