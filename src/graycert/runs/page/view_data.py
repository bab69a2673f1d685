"""What a report shows, as plain values: the page and the figure know nothing else."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of texts.

    Attributes:
        columns: Headings.
        rows: One tuple of texts per row, as many as there are headings.
        note: A line below the table, or "".
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A step curve over the radius.

    Attributes:
        label: Name in the legend.
        values: Shares in [0, 1] at ρ = 0, 1, 2, ...
    """

    label: str
    values: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class ReportView:
    """A whole report.

    Attributes:
        title: Heading.
        warning: What makes the certificates worthless, in capitals, or "".
        statement: Paragraphs that say what is proved.
        figures_at_a_glance: (value, what it is) of the few numbers that matter most.
        settings: (name, value) of what the certificates were made from.
        ratios: Certified ratio and accuracy per radius.
        curves: The same as curves.
        targets: The first targets by radius.
        alarms: What makes the certified classifier useless, though its certificates hold.
        cost: Paragraphs that say what the guarantee costs in accuracy.
        protect: The nodes that limit the most targets, or None.
        breakdowns: (title, table) of the same by class and degree.
    """

    title: str
    warning: str
    statement: tuple[str, ...]
    figures_at_a_glance: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]
    ratios: Table
    curves: tuple[Curve, ...]
    targets: Table
    alarms: tuple[str, ...] = ()
    cost: tuple[str, ...] = ()
    breakdowns: tuple[tuple[str, Table], ...] = ()
    protect: Table | None = None
