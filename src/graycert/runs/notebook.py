"""What a notebook shows of certificates."""

from html import escape

from graycert.certificates import Certificates
from graycert.runs.cost import cost_paragraphs, cost_tables, warnings_of
from graycert.runs.words import NOT_SOUND, ratio_texts, statement, table_note

_STYLE = "border-left: 4px solid; padding-left: 0.7em; max-width: 60em"


def to_html(c: Certificates) -> str:
    """Return what is proved and what it costs as HTML without scripts or styles of its own; every name is text."""
    unsound = [] if c.setup.the_rule.is_sound else [NOT_SOUND]
    alarms = [f"<p style='{_STYLE}'><strong>{escape(each)}</strong></p>" for each in (*unsound, *warnings_of(c))]
    first, *rest = statement(c)
    details = "".join(f"<p>{escape(each)}</p>" for each in rest)
    parts = [
        *alarms,
        f"<p><strong>{escape(repr(c))}</strong></p>",
        f"<p>{escape(first)}</p>",
        *(f"<p>{escape(each)}</p>" for each in cost_paragraphs(c)),
        _table(*ratio_texts(c)),
        *(f"<p>{escape(each.title)}</p>{_table(each.columns, list(each.rows))}" for each in cost_tables(c)[:1]),
        f"<details><summary>What exactly is proved</summary>{details}<p>{escape(table_note(c))}</p></details>",
    ]
    return f"<div>{''.join(parts)}</div>"


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    head = "".join(f"<th scope='col'>{escape(each)}</th>" for each in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
