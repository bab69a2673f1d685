"""One target in words: what decides it, who could do most, and what one more radius would need."""

import math
from typing import Any

import numpy as np

from graycert._types import NO_CLASS, FloatArray, IntArray
from graycert.certificates import Certificates
from graycert.errors import InvalidParameterError
from graycert.rules import simultaneous_level
from graycert.rules.rule import Rule
from graycert.runs.called import told
from graycert.runs.cost import class_word
from graycert.runs.shares import aligned
from graycert.runs.who import protect_first_per_target
from graycert.statistics import EstimationVotes, SelectionVotes

MORE_DRAWS = (2, 4, 10, 100)
"""How many times as many draws are tried."""

NO_ATTACK = "no attack is known, as none was looked for"
"""What a missing proof does not say."""

MOST_CLASSES = 4
"""Classes whose votes are named."""


def explain(c: Certificates, node: int | str) -> str:
    """Do the work of `Certificates.explain`."""
    row = row_of(c, node)
    return told(c, lambda result: _explained(result, row))


def _explained(c: Certificates, row: int) -> str:
    parts = [
        _who(c, row),
        predicted_in_words(c, row),
        _votes(c, row),
        _lead(c, row),
        _holds(c, row),
        _delta_table(c, row),
        _could_do_most(c, row),
        _one_more(c, row),
    ]
    return "\n".join(part for part in parts if part)


def row_of(c: Certificates, node: int | str) -> int:
    """Return the place of a target, named by its index or its name.

    Raises:
        InvalidParameterError: If it is no target, or several have the name.
    """
    if c.node_ids is not None and isinstance(node, str):
        found = np.flatnonzero(c.node_ids == node)
    else:
        number = int(node) if str(node).isdecimal() else -1
        found = np.flatnonzero(c.targets == number)
    if found.size != 1:
        known = c.targets[:3].tolist() if c.node_ids is None else c.node_ids[:3].tolist()
        example = ", ".join(map(repr, known))
        kind = "index" if c.node_ids is None else "name (text) or index (number)"
        raise InvalidParameterError(
            f"`node` must be the {kind} of one of the {len(c):,} targets, such as {example}, got {node!r}, which "
            f"{'is none' if not found.size else f'{found.size} of them have'}."
        )
    return int(found[0])


def _who(c: Certificates, row: int) -> str:
    return f"Target {c.targets[row]}" if c.node_ids is None else f"Target {c.node_ids[row]} (index {c.targets[row]})"


def predicted_in_words(c: Certificates, row: int) -> str:
    """Say which class is predicted, and what else is known of the target's class."""
    if c.radius[row] < 0:
        said = (
            f"No prediction: the votes do not single out a class; most of the first ones are for "
            f"'{class_word(c, int(c.prediction[row]))}'."
        )
    else:
        said = f"Prediction: '{class_word(c, int(c.prediction[row]))}'."
    if c.labels is not None and c.labels[row] >= 0:
        said += f" True class: '{class_word(c, int(c.labels[row]))}'."
    for words, classes in (
        ("The model as trained, without smoothing", c.prediction_as_trained),
        ("On the graph without edges it", c.prediction_without_messages),
        ("From its own features alone the floor", c.prediction_of_floor),
    ):
        if classes is not None:
            says = "singles out no class" if classes[row] < 0 else f"says '{class_word(c, int(classes[row]))}'"
            said += f" {words} {says}."
    return said


def _votes(c: Certificates, row: int) -> str:
    """Say how the votes fell; where nothing is drawn, the evaluations."""
    counts, none, what = votes_of(c, row)
    total = int(counts.sum()) + none
    if not total:
        return ""
    order = np.argsort(-counts, kind="stable")
    named = [f"{counts[each]:,} for '{class_word(c, int(each))}'" for each in order[:MOST_CLASSES] if counts[each]]
    rest = int(counts[order[MOST_CLASSES:]].sum())
    named += [f"{rest:,} for others"] if rest else []
    named += [f"{none:,} for no class"] if none else []
    return f"Votes: of {total:,} {what}, {', '.join(named)}."


def votes_of(c: Certificates, row: int) -> tuple[Any, int, str]:
    """Return how many estimation votes, or evaluations, are for each class and for none, and what they are called."""
    if c.estimation_votes is not None and c.estimation_votes[row].any():
        none = 0 if c.estimation_no_class is None else int(c.estimation_no_class[row])
        return c.estimation_votes[row], none, "estimation draws"
    for spec in c.setup.smoothing.adds:
        array = c.adds.get(spec.name)
        if array is not None and spec.at_most == "classes" and spec.shape[:1] == ("targets",):
            classes = array[row].ravel()
            counts = np.bincount(classes[classes != NO_CLASS], minlength=c.setup.num_classes)
            return counts, int(np.count_nonzero(classes == NO_CLASS)), "evaluations"
    return np.zeros(c.setup.num_classes, dtype=np.int64), 0, ""


def _lead(c: Certificates, row: int) -> str:
    margin = proved_lead(c, row)
    bounds = ""
    if c.p_lower is not None and c.p_upper is not None:
        low, high = math.floor(c.p_lower[row] * 1e4) / 1e4, math.ceil(c.p_upper[row] * 1e4) / 1e4
        bounds = f" (its probability is at least {low:.4f}, that of every other class at most {high:.4f})"
    if margin is None:
        return f"Bounds{bounds[1:]}." if bounds else ""
    proved = "proved" if c.setup.the_rule.is_sound else "said, without proof,"
    return f"Lead: {proved} at least {math.floor(margin * 1e4) / 1e4:.4f}{bounds}."


def _holds(c: Certificates, row: int) -> str:
    radius, eligible, unit = int(c.radius[row]), int(c.num_eligible[row]), c.setup.threat.unit
    one = unit.removesuffix("s")
    field = f"{eligible:,} {unit} may be hostile (receptive field: {int(c.receptive_field_size[row]):,} nodes)"
    if radius < 0:
        return f"Certificate: none; {field}."
    if c.whole_field[row]:
        return f"Certificate: it holds whatever all of them do together; {field}."
    if not radius:
        return f"Certificate: radius 0: not proved against even one hostile {one}; {NO_ATTACK}; {field}."
    at_least = "at least " if radius == c.setup.max_radius else ""
    whom = f"one hostile {one}" if radius == 1 else f"{radius} hostile {unit}"
    return f"Certificate: radius {at_least}{radius}: it holds against any {whom}; {field}."


def _delta_table(c: Certificates, row: int) -> str:
    """Show Δ̄ up to the first radius that is not certified."""
    if c.delta_upper is None or c.radius[row] < 0:
        return ""
    last = min(int(c.radius[row]) + 1, int(c.num_eligible[row]), c.delta_upper.shape[1])
    rows = [
        (
            str(rho),
            f"{math.ceil(c.delta_upper[row, rho - 1] * 1e4) / 1e4:.4f}",
            f"{math.ceil(2 * c.delta_upper[row, rho - 1] * 1e4) / 1e4:.4f}",
            "yes" if rho <= c.radius[row] else "no",
        )
        for rho in range(1, last + 1)
    ]
    return aligned(("radius ρ", "Δ̄(ρ)", "lead needed, more than", "holds"), rows) if rows else ""


def _could_do_most(c: Certificates, row: int) -> str:
    if c.attackers is None:
        return ""
    names = protect_first_per_target(c)[row]
    if not names:
        return ""
    if len(names) == 1:
        return f"Protect first: {names[0]}; it is not proved against this one, and {NO_ATTACK}."
    return f"Protect first: {', '.join(names)}; it is not proved against these together, and {NO_ATTACK}."


def _one_more(c: Certificates, row: int) -> str:
    """Say how much lead, how many votes or how many draws one more radius would need."""
    said, needed = one_more_in_words(c, row, proved_lead(c, row))
    return said if needed is None else f"{said.removesuffix('.')}: {_by_votes(c, row, needed)}."


def one_more_in_words(c: Certificates, row: int, margin: float | None) -> tuple[str, float | None]:
    """Say how much lead one more radius would need.

    Args:
        c: A result.
        row: Position of the target.
        margin: Lead that is proved of it by numbers of votes, or None.

    Returns:
        The sentence, and the lead that is needed where more votes could give it; else None.
    """
    radius = int(c.radius[row])
    if c.whole_field[row]:
        return "Nothing more is needed.", None
    if radius == c.setup.max_radius:
        return f"Larger radii than {radius} were not looked at (max_radius).", None
    needed = 0.0
    if radius >= 0:
        if c.delta_upper is None or radius >= c.delta_upper.shape[1]:
            return "", None
        needed = 2.0 * float(c.delta_upper[row, radius])
    what = "A prediction" if radius < 0 else f"Radius {radius + 1}"
    if needed >= 1.0:
        return (
            f"{what} is out of reach of any votes: Δ̄({radius + 1}) is 1/2 or more. Trust some of these nodes, or "
            "smooth more (higher p_delete, p_ablate)."
        ), None
    start = f"{what} needs a lead of more than {math.ceil(needed * 1e4) / 1e4:.4f}"
    if margin is None or c.setup.the_rule.needs != "counts":
        return f"{start} by the rule 'sound'; by the rule '{c.setup.rule}' it may need less.", None
    return f"{start}, {math.ceil((needed - margin) * 1e4) / 1e4:.4f} more than is proved.", needed


def _by_votes(c: Certificates, row: int, needed: float) -> str:
    counts, none, _ = votes_of(c, row)
    total, first = int(counts.sum()) + none, int(c.prediction[row])
    second = int(np.argsort(-np.where(np.arange(counts.size) == first, -1, counts), kind="stable")[0])
    low, high = int(counts[first]), total

    def margin_with(votes: int) -> float:
        table = np.zeros((1, counts.size), dtype=np.int64)
        table[0, first], table[0, second] = votes, total - votes
        return _margin_of(c, row, table, np.zeros(1, dtype=np.int64))

    if margin_with(total) <= needed:
        by_votes = f"even {total:,} votes of {total:,} would not do"
    else:
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if margin_with(middle) > needed else (middle, high)
        by_votes = f"{high:,} of {total:,} votes would do, if all others were for '{class_word(c, second)}'"
    if c.setup.smoothing.needs_graph:  # only some of its targets are drawn for
        return by_votes
    share = (int(counts[first]) - int(counts[second]) - none) / total
    enough = next(
        (
            factor
            for factor in MORE_DRAWS
            if share > needed and _margin_of(c, row, counts[None] * factor, np.array([none * factor])) > needed
        ),
        None,
    )
    if enough is not None:
        return f"{by_votes}; or {enough} times as many draws with the same shares"
    return f"{by_votes}; more draws with the same shares would {'hardly' if share > needed else 'not'} do"


def proved_lead(c: Certificates, row: int) -> float | None:
    """Return the lead that is proved of a target by numbers of votes; None where it is not."""
    if c.setup.the_rule.lead is None or c.estimation_votes is None or not c.estimation_votes[row].any():
        return None
    none = 0 if c.estimation_no_class is None else int(c.estimation_no_class[row])
    return _margin_of(c, row, c.estimation_votes[[row]], np.array([none]))


def _margin_of(c: Certificates, row: int, estimation: Any, no_class: Any) -> float:
    return float(leads(c, np.array([row]), estimation, no_class)[0])


def margins(c: Certificates) -> FloatArray | None:
    """Return the leads that are proved of all targets by numbers of votes, NaN where there are none; None without."""
    if c.setup.the_rule.lead is None or c.estimation_votes is None:
        return None
    rows = np.flatnonzero(c.estimation_votes.any(axis=1))
    found = np.full(len(c), np.nan)
    if rows.size:
        none = np.zeros(len(c), dtype=np.int64) if c.estimation_no_class is None else c.estimation_no_class
        found[rows] = leads(c, rows, c.estimation_votes[rows], none[rows])
    return found


def leads(c: Certificates, rows: IntArray, estimation: Any, no_class: Any) -> FloatArray:
    """Return the leads that votes would prove of some targets by the rule of a result."""
    assert c.selection_votes is not None
    rule: Rule = c.setup.the_rule
    kept = None if c.selection_no_class is None else c.selection_no_class[rows]
    level = simultaneous_level(c.setup.alpha, len(c)) if c.setup.simultaneous else c.setup.alpha
    return rule.lead_of(
        SelectionVotes.drawn(c.selection_votes[rows], kept),
        EstimationVotes.drawn(estimation, no_class),
        c.prediction[rows],
        level,
    ).margin
