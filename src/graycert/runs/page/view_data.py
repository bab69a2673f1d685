"""What a report shows, as plain values: the page knows nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graycert._called import Called
from graycert.runs.terms import Term

Pairs = tuple[tuple[str, str], ...]


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
class ReportView:
    """A whole report.

    Attributes:
        title: Heading.
        unit: What a budget counts, in the plural.
        warning: What makes the certificates worthless, in capitals, or "".
        alarms: What makes the certified classifier useless, though its certificates hold.
        claim: What holds at the smallest budget, in sentences.
        figures_at_a_glance: (value, what it is) of the few numbers that matter most and depend on no budget.
        terms: Words, and what they mean.
        next_steps: What to do next.
        cost: Paragraphs that say what the guarantee costs in accuracy.
        breakdowns: (title, table) of the same by class and degree.
        ratios: Certified ratio and accuracy per radius.
        protect: The nodes that limit the most targets, or None.
        targets_note: The line below the table of targets.
        statement: Paragraphs that say what is proved.
        assumptions: What has to be true for the claim to hold.
        files: (name, what it is) of the files of a run.
        redone: What checking redoes, and what not.
        settings: (name, value) of what the certificates were made from.
        data: What the page's script shows, see `graycert.runs.page_data`.
        called: What readers call the parts of a graph.
    """

    title: str
    unit: str
    warning: str
    alarms: tuple[str, ...]
    claim: tuple[str, ...]
    figures_at_a_glance: Pairs
    terms: tuple[Term, ...]
    next_steps: tuple[str, ...]
    cost: tuple[str, ...]
    breakdowns: tuple[tuple[str, Table], ...]
    ratios: Table
    protect: Table | None
    targets_note: str
    statement: tuple[str, ...]
    assumptions: tuple[str, ...]
    files: Pairs
    redone: tuple[str, ...]
    settings: Pairs
    data: Mapping[str, Any]
    called: Called = field(default_factory=Called)
