"""A result in a few sentences: what it costs, what it certifies, and what a target's own features alone would give."""

from graycert.certificates import Certificates
from graycert.runs.called import told
from graycert.runs.claim import claim
from graycert.runs.cost import cost_paragraphs, warnings_of
from graycert.runs.floor import floor_paragraphs
from graycert.runs.words import NOT_SOUND, shown_rows

BUDGETS = (1, 10)
"""Budgets whose claims are told, as far as there are any."""


def brief_summary(c: Certificates) -> str:
    """Return a result in a few sentences, in the words of its readers, what makes it worthless first."""
    return told(c, _brief)


def _brief(c: Certificates) -> str:
    last = len(shown_rows(c)) - 1
    budgets = [budget for budget in BUDGETS if budget <= last] or [0]
    first = claim(c, budgets[0])
    said = [
        *([] if c.setup.the_rule.is_sound else [NOT_SOUND]),
        *(f"WARNING: {each}" for each in warnings_of(c)),
        *cost_paragraphs(c)[:1],
        *(claim(c, budget)[0] for budget in budgets),
        " ".join(first[1:]),
        *floor_paragraphs(c),
    ]
    return "\n".join(dict.fromkeys(said))
