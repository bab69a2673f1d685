"""A result as text for a terminal: what it costs, what is proved, and how many targets hold at each radius."""

from graycert.certificates import Certificates
from graycert.runs.called import called_of, told
from graycert.runs.claim import claim
from graycert.runs.cost import cost_paragraphs, cost_tables, warnings_of
from graycert.runs.shares import aligned, counted
from graycert.runs.who import knows_attackers, protect_first
from graycert.runs.words import NOT_SOUND, ratio_texts, shown_rows, statement, table_note

FIRST_NAMED = 5
"""Nodes to protect first that a summary names."""

Part = str | tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]]
"""A paragraph, or a table: what stands above it or "", its headings and its rows."""


def summary_text(certificates: Certificates) -> str:
    """Return what it costs, what is proved, and the table, as text for a terminal; warnings come first.

    Where readers have words of their own, the claim is told in these, before the exact statement.
    """
    words = called_of(certificates)
    unsound = (NOT_SOUND,) if not certificates.setup.the_rule.is_sound else ()
    before, after = told(certificates, lambda c: (_before_the_statement(c, bool(words.kinds)), _after(c)))
    return "\n\n".join(map(_text, (*unsound, *before, *statement(certificates), *after, *unsound)))


def _text(part: Part) -> str:
    if isinstance(part, str):
        return part
    title, columns, rows = part
    return f"{title}:\n{aligned(columns, rows)}" if title else aligned(columns, rows)


def _before_the_statement(c: Certificates, with_claim: bool) -> tuple[Part, ...]:
    tables = cost_tables(c)
    return (
        *(f"WARNING: {each}" for each in warnings_of(c)),
        *cost_paragraphs(c),
        *((each.title, each.columns, each.rows) for each in tables),
        *(each.note for each in tables[:1]),
        *(claim(c, min(1, len(shown_rows(c)) - 1)) if with_claim else ()),
    )


def _after(c: Certificates) -> tuple[Part, ...]:
    columns, rows = ratio_texts(c)
    return (
        ("", columns, tuple(rows)),
        table_note(c),
        *([_whom_to_protect(c)] if knows_attackers(c) else []),
    )


def _whom_to_protect(c: Certificates) -> str:
    found = protect_first(c, top=FIRST_NAMED)
    named = ", ".join(f"{each.name} ({counted(each.targets, 'target')})" for each in found.nodes)
    return (
        f"Protect first, because they limit the most targets: {named}. More of it: certificates.protect_first(data), "
        "graycert inspect."
    )
