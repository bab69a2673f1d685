"""What a notebook shows of certificates."""

from dataclasses import dataclass
from html import escape

from graycert.certificates import Certificates
from graycert.runs.called import called_of, told
from graycert.runs.claim import claim
from graycert.runs.cost import cost_paragraphs, cost_tables, warnings_of
from graycert.runs.page import Table
from graycert.runs.words import NOT_SOUND, ratio_texts, shown_rows, statement, table_note

_STYLE = "border-left: 4px solid; padding-left: 0.7em; max-width: 60em"


def to_html(c: Certificates) -> str:
    """Return what is proved and what it costs as HTML without scripts or styles of its own; every name is text."""
    words = called_of(c)
    unsound = [] if c.setup.the_rule.is_sound else [NOT_SOUND]
    shown = told(c, _shown)
    first, *rest = statement(c)
    if words.kinds:
        first, rest = " ".join(shown.claim), [first, *rest]
    alarms = [f"<p style='{_STYLE}'><strong>{escape(each)}</strong></p>" for each in (*unsound, *shown.warnings)]
    details = "".join(f"<p>{escape(each)}</p>" for each in rest)
    parts = [
        *alarms,
        f"<p><strong>{escape(repr(c))}</strong></p>",
        f"<p>{escape(first)}</p>",
        *(f"<p>{escape(each)}</p>" for each in shown.cost),
        _table(shown.ratios.columns, shown.ratios.rows),
        *(f"<p>{escape(title)}</p>{_table(each.columns, each.rows)}" for title, each in shown.tables),
        f"<details><summary>What exactly is proved</summary>{details}<p>{escape(shown.ratios.note)}</p></details>",
    ]
    return f"<div>{''.join(parts)}</div>"


@dataclass(frozen=True, kw_only=True)
class _Shown:
    warnings: tuple[str, ...]
    claim: tuple[str, ...]
    cost: tuple[str, ...]
    ratios: Table
    tables: tuple[tuple[str, Table], ...]


def _shown(c: Certificates) -> _Shown:
    columns, rows = ratio_texts(c)
    return _Shown(
        warnings=warnings_of(c),
        claim=claim(c, min(1, len(shown_rows(c)) - 1)),
        cost=cost_paragraphs(c),
        ratios=Table(columns=columns, rows=tuple(rows), note=table_note(c)),
        tables=tuple((each.title, Table(columns=each.columns, rows=each.rows)) for each in cost_tables(c)[:1]),
    )


def _table(columns: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> str:
    head = "".join(f"<th scope='col'>{escape(each)}</th>" for each in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
