"""Rules: from votes to the lead of the reported class. The mapping from a rule to its margin stands here, once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from graycert._types import FloatArray, IntArray
from graycert._validation import check_choice
from graycert.rules.binary import binary_bounds, binary_margin
from graycert.rules.difference import difference_margin_lower
from graycert.rules.multiclass import intersection_union_bounds, multiclass_margin, paper_bounds
from graycert.statistics import EstimationVotes, SelectionVotes

Needs = Literal["counts", "predictions", "batches", "nothing"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Lead:
    """How far the reported class leads, by votes.

    Attributes:
        p_lower: Lower bound on its probability, shape (num_targets,).
        p_upper: Upper bound on that of every other class (of one of them, if the rule is not sound).
        margin: Lower bound on its lead over every other class, which is compared with 2Δ̄.
    """

    p_lower: FloatArray
    p_upper: FloatArray
    margin: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Rule:
    """A way to conclude from votes.

    Attributes:
        name: What it is called.
        help: What it does, for people who choose.
        needs: What it needs of the estimation votes: "counts" per class, the "predictions" of single samples, the
            "batches" that were looked at, or "nothing" where all is evaluated and nothing drawn.
        is_sound: Whether what it gives are certificates at all.
        lead: Called with selection votes, estimation votes, reported class per target, and α; None where the lead is
            not bounded by counts.
    """

    name: str
    help: str
    needs: Needs
    is_sound: bool = True
    lead: Callable[[SelectionVotes, EstimationVotes, IntArray, float], Lead] | None = None

    def lead_of(self, selection: SelectionVotes, estimation: EstimationVotes, majority: IntArray, alpha: float) -> Lead:
        """Return the lead by counts; of a rule that needs more, the lead that is shown beside its radius.

        Raises:
            ValueError: If the rule has none.
        """
        if self.lead is None:
            raise ValueError(f"rule {self.name!r} does not bound a lead by counts")
        return self.lead(selection, estimation, majority, alpha)


def _sound(selection: SelectionVotes, estimation: EstimationVotes, majority: IntArray, alpha: float) -> Lead:
    del selection
    if estimation.num_classes == 2:
        p_lower, p_upper = binary_bounds(estimation, majority, alpha=alpha)
        return Lead(p_lower=p_lower, p_upper=p_upper, margin=binary_margin(p_lower))
    p_lower, p_upper = intersection_union_bounds(estimation, majority, alpha=alpha)
    return Lead(p_lower=p_lower, p_upper=p_upper, margin=multiclass_margin(p_lower, p_upper))


def _difference(selection: SelectionVotes, estimation: EstimationVotes, majority: IntArray, alpha: float) -> Lead:
    shown = _sound(selection, estimation, majority, alpha)
    margin = difference_margin_lower(estimation, majority, alpha=alpha)
    return Lead(p_lower=shown.p_lower, p_upper=shown.p_upper, margin=margin)


def _paper(selection: SelectionVotes, estimation: EstimationVotes, majority: IntArray, alpha: float) -> Lead:
    runner_up = _paper_runner_up(selection, majority)
    p_lower, p_upper = paper_bounds(estimation, majority, runner_up, alpha=alpha)
    return Lead(p_lower=p_lower, p_upper=p_upper, margin=p_lower - p_upper)


def _paper_runner_up(selection: SelectionVotes, majority: IntArray) -> IntArray:
    """Return the class that the authors' implementation bounds.

    That is the last but one of a stable sort. At a tie for the first place the last but one can be the
    reported class itself; then the last one is bounded, so that two different classes are compared.
    """
    order = np.argsort(selection.counts, axis=1, kind="stable")
    second = order[:, -2]
    return np.where(second == majority, order[:, -1], second)


RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule(
            name="sound",
            help="bounds the probabilities of the reported class and of every other one",
            needs="counts",
            lead=_sound,
        ),
        Rule(
            name="difference",
            help="tests the lead of the reported class at once, slightly tighter from three classes on",
            needs="counts",
            lead=_difference,
        ),
        Rule(
            name="event-aware",
            help="also uses which lost votes no hostile message can have caused: the tightest, for a few seconds more",
            needs="predictions",
            lead=_sound,
        ),
        Rule(
            name="sequential",
            help="bets while votes come in, for draws that stop when a target is decided",
            needs="batches",
        ),
        Rule(
            name="exact",
            help="counts, where everything is evaluated and nothing drawn",
            needs="nothing",
        ),
        Rule(
            name="paper",
            help="the reference implementation's, NOT SOUND: only to compare with published numbers",
            needs="counts",
            is_sound=False,
            lead=_paper,
        ),
    )
}
"""All rules by name."""

COUNT_RULES = tuple(rule.name for rule in RULES.values() if rule.needs == "counts")


def rule_named(name: object) -> Rule:
    """Return a rule.

    Raises:
        InvalidParameterError: If there is none of that name.
    """
    return RULES[
        check_choice("rule", name, tuple(RULES), hint="; ".join(f"{r.name}: {r.help}" for r in RULES.values()) + ".")
    ]
