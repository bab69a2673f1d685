"""A result for who has to decide, on one page of sentences: what is safe, what is not, what it cost, what to do."""

import dataclasses

import numpy as np

from graycert._called import Called
from graycert.certificates import Certificates
from graycert.runs.called import called_of, told, words_explained
from graycert.runs.checklist import assumptions
from graycert.runs.claim import NOT_PROVED, claim
from graycert.runs.cost import cost_under_its_heading, warnings_of
from graycert.runs.explain import NO_ATTACK
from graycert.runs.next_steps import next_steps
from graycert.runs.page.document import Document, Section
from graycert.runs.shares import counted, percent, percent_upward
from graycert.runs.terms import Term, terms
from graycert.runs.who import knows_attackers, protect_first
from graycert.runs.words import NOT_SOUND, shown_rows

FURTHER = (3, 10)
"""Budgets besides 1 that are named, as far as there are any."""

WORDS = ("targets", "smoothed classifier", "ρ, certified radius", "abstained", "floor", "confidence")
"""Words of a report that this page uses, too."""

NAMED = 5
"""Nodes to watch that are named."""


def decision(c: Certificates, *, called: Called | None = None) -> Document:
    """Return a result as one page of sentences.

    Args:
        c: A result.
        called: What readers call the parts of a graph; None for the words of the result.
    """
    words = called_of(c) if called is None else called
    page = told(c, _decision, words)
    if not words.kinds:
        return page
    said = tuple(f"{each.word}: {each.meaning}" for each in words_explained(words))
    last = page.sections[-1]
    return dataclasses.replace(
        page, sections=(*page.sections[:-1], dataclasses.replace(last, items=(*last.items, *said)))
    )


def _decision(c: Certificates) -> Document:
    graph = c.setup.provenance.get("graph")
    name = graph.get("name") if isinstance(graph, dict) else None
    sections = (
        Section(title="What is safe", paragraphs=(*claim(c, min(1, _last(c))), *_further(c))),
        Section(title="What is not", paragraphs=_open(c)),
        Section(title="What it costs", paragraphs=cost_under_its_heading(c)),
        Section(title="Whom to watch", paragraphs=_watch(c)),
        Section(title="What to do next", items=next_steps(c)),
        Section(title="What has to be true for all of this", items=assumptions(c)),
        Section(title="What the words mean", items=tuple(f"{each.word}: {each.meaning}" for each in _used(terms(c)))),
    )
    return Document(
        title=f"For a decision: {name}" if name else "For a decision",
        warnings=(*([] if c.setup.the_rule.is_sound else [NOT_SOUND]), *warnings_of(c)),
        sections=tuple(each for each in sections if each.paragraphs or each.items),
    )


def _used(known: tuple[Term, ...]) -> tuple[Term, ...]:
    """Return the words that this page uses."""
    return tuple(each for each in known if each.word in WORDS)


def _last(c: Certificates) -> int:
    return len(shown_rows(c)) - 1


def _further(c: Certificates) -> list[str]:
    """Say how many hold against more hostile ones."""
    holds = {
        budget: int(np.count_nonzero(c.radius >= np.minimum(budget, c.num_eligible)))
        for budget in FURTHER
        if budget <= _last(c)
    }
    if not holds:
        return []
    proved = "" if c.setup.the_rule.is_sound else NOT_PROVED
    return [
        f"{proved}{count:,} ({percent(count, len(c))}) hold {c.setup.threat.against(budget)}."
        for budget, count in holds.items()
    ]


def _open(c: Certificates) -> tuple[str, ...]:
    """Say what is not certified, and what is wrong all the same."""
    total, unit = len(c), c.setup.threat.unit
    abstained = int(np.count_nonzero(c.radius < 0))
    open_at_one = int(np.count_nonzero((c.radius == 0) & ~c.whole_field))
    sentences = []
    if open_at_one:
        one = "one hostile node" if unit == "nodes" else f"one of these {unit}"
        sentences.append(
            f"For {counted(open_at_one, 'target')} ({percent_upward(open_at_one, total)}) nothing is proved against "
            f"even {one}; {NO_ATTACK}. Do not let such a prediction decide alone."
        )
    if abstained:
        sentences.append(
            f"{counted(abstained, 'target')} ({percent_upward(abstained, total)}) without a prediction: another way to "
            "decide is needed, such as a person."
        )
    if c.labels is not None and (c.labels >= 0).any():
        wrong = int(
            np.count_nonzero(
                (c.labels >= 0)
                & (c.radius >= np.minimum(1, c.num_eligible))
                & (c.radius >= 0)
                & (c.prediction != c.labels)
            )
        )
        if wrong:
            sentences.append(
                f"Of the predictions that hold against any one hostile {unit.removesuffix('s')}, {wrong:,} "
                f"{'is' if wrong == 1 else 'are'} wrong: a certificate says "
                "that a prediction does not change, not that it is right."
            )
    return tuple(sentences) or ("Nothing that was asked about is open.",)


def _watch(c: Certificates) -> tuple[str, ...]:
    if not knows_attackers(c):
        return ()
    found = protect_first(c, top=NAMED)
    named = ", ".join(f"{each.name} ({counted(each.targets, 'target')})" for each in found.nodes)
    return (
        f"These could do most, because they limit the most targets: {named}. They are not accused of anything; whether "
        "they could change a prediction is not said.",
    )
