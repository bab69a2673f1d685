"""What the certificates say, in plain words, and how many targets hold at each radius."""

from dataclasses import asdict
from typing import Any

import numpy as np

from graycert.certificates import Certificates
from graycert.draws import Draws, UntilDecided
from graycert.graph.values_per_edge import argument_and_attribute
from graycert.metrics import abstain_ratio, certified_accuracy, certified_ratio
from graycert.runs.cost import cost, cost_record, warnings_of
from graycert.runs.floor import floor_in_summary, last_radius
from graycert.runs.shares import percent, percent_upward
from graycert.runs.who import knows_attackers, protect_first
from graycert.setup import Setup

MOST_GROUPS = 10
"""Budgets of groups that are named in a sentence."""

EVERY_RADIUS = 20
"""Up to this radius a table has a row for each one."""

NOT_SOUND = (
    "NOT A SOUND CERTIFICATE: the rule of the paper's implementation bounds only one of the other classes, "
    "chosen by few votes. Its failure probability is not α. Use it only to compare with published numbers; "
    "rule='sound' gives a certificate."
)


def statement(certificates: Certificates) -> tuple[str, ...]:
    """Return the paragraphs that say what is and what is not proved."""
    s = certificates.setup
    opening = "" if s.the_rule.is_sound else "NOT PROVED; a sound rule would prove this: "
    return (
        f"{opening}The classifier keeps its prediction for a target with radius ρ, {s.threat.statement} The classifier "
        f"{s.smoothing.classifier(s)}",
        *([assumption(s)] if s.num_layers_assumed else []),
        *([given_per_edge(s)] if s.edge_inputs else []),
        " ".join(part for part in (chance(certificates), _drawn(certificates)) if part),
        _direction(certificates),
        *([collective_text(certificates)] if certificates.collective is not None else []),
        _abstained(certificates),
        *_for_no_class(certificates),
    )


def assumption(setup: Setup) -> str:
    """Return in words what is taken from the user, where the steps of the model cannot be counted."""
    return (
        f"Assumed: in one forward pass no message moves more than {setup.num_layers} times along an edge. The model "
        "moves messages by means that cannot be counted; the number is the user's."
    )


def edge_inputs_in_words(setup: Setup) -> str:
    """Return the names of the values per edge that the model is given, and of the graph's where those differ."""
    pairs = (argument_and_attribute(name) for name in setup.edge_inputs or ())
    return ", ".join(argument if argument == name else f"{argument} (data.{name})" for argument, name in pairs)


def given_per_edge(setup: Setup) -> str:
    """Return in words what is assumed of the values per edge that the model is given."""
    names = edge_inputs_in_words(setup)
    hostile = getattr(setup.threat, "hostile_edge_inputs", False)
    fixed = "" if hostile else "; like the structure, they are fixed: hostile nodes do not change them"
    return (
        f"Each surviving edge brings its own {names} to the model. By the word of the user, these values were not "
        f"computed from features{fixed}. Edges that join the same two nodes in the same direction are deleted together."
    )


def chance(c: Certificates) -> str:
    """Return in words how surely the statements hold."""
    s = c.setup
    if not s.the_rule.is_sound:
        return f"The nominal failure probability α = {s.alpha} per target is NOT guaranteed by this rule."
    own = s.smoothing.chance(c)
    if own is not None:
        return own
    if s.simultaneous:
        return (
            f"The chance that the statement of any of the {len(c):,} targets is wrong is at most α = {s.alpha} over "
            "the samples."
        )
    stopped = ", although sampling stopped when the votes decided" if isinstance(s.draws, UntilDecided) else ""
    return (
        f"Each target's statement, all its radii together, is wrong with probability at most α = {s.alpha} over the "
        f"samples{stopped}. That is per target, not for all targets at once."
    )


def _drawn(c: Certificates) -> str:
    draws = c.setup.draws
    if isinstance(draws, Draws):
        verb = "bound" if c.setup.the_rule.is_sound else "estimate"
        return (
            f"n0 = {draws.num_selection:,} samples chose the class, and n1 = {draws.num_estimation:,} other samples "
            f"{verb} its lead."
        )
    if not isinstance(draws, UntilDecided):
        return ""
    taken, most = c.num_samples, len(c) * draws.max_estimation
    return (
        f"n0 = {draws.num_selection:,} samples chose the class. Then a target took {taken.mean():,.0f} of at most "
        f"{draws.max_estimation:,} other samples on average, in all {percent(most - int(taken.sum()), most)} fewer. "
        f"{int(c.undecided.sum()):,} of {len(c):,} targets were not decided by then: more samples may raise "
        "their radius."
    )


def _direction(c: Certificates) -> str:
    s = c.setup
    examined = "" if s.max_radius is None else f" Radii above {s.max_radius} were not examined."
    if s.the_rule.is_sound:
        return s.smoothing.bound_in_words(s) + examined
    return (
        "Radii may be too large. Only Δ̄(ρ), the probability that a hostile message arrives, is bounded from above "
        f"(bound '{s.bound}').{examined}"
    )


def _abstained(c: Certificates) -> str:
    abstained = int(np.count_nonzero(c.radius < 0))
    if c.setup.draws is None and not abstained:
        return f"Each of the {len(c):,} targets has a prediction."
    if abstained:
        return (
            f"For {abstained:,} of {len(c):,} targets the votes do not single out a class. They have no prediction "
            "(radius -1) and count as wrong and as not certified."
        )
    return f"For each of the {len(c):,} targets the votes single out a class."


def _for_no_class(c: Certificates) -> list[str]:
    for_none, total = c.votes_for_no_class
    if not for_none:
        return []
    return [
        f"In {percent_upward(for_none, total)} of the votes the model's scores single out no class: one is no number, "
        "or several are the largest exactly. They count for no class, and against the reported one as if another had "
        "them: what is said above holds however they are decided."
    ]


def collective_text(certificates: Certificates) -> str:
    """Return in words how many targets survive one adversary."""
    found = certificates.collective
    if found is None:
        return ""
    counts = [
        f"{kept:,} if ρ = {budget:,}"
        for budget, kept in zip(found.budgets.tolist(), found.num_robust.tolist(), strict=True)
    ]
    held = ""
    if found.groups is not None and found.group_budgets is not None:
        size, limits = int(np.count_nonzero(found.groups >= 0)), found.group_budgets.tolist()
        shown = ", ".join(map(str, limits[:MOST_GROUPS])) + (", ..." if len(limits) > MOST_GROUPS else "")
        held = f" (of {size:,} nodes in {len(limits):,} groups at most {shown} per group)"
    solver = " (with the solver's own bound: not checked)" if "milp" in found.proved_by else ""
    drawn = certificates.setup.draws is not None
    surely = "with probability at least 1 - α for all of this together" if drawn else "with certainty"
    return (
        f"One adversary against all: if the same ρ untrusted nodes{held} are hostile for all targets, then, {surely}, "
        f"at least so many of the {len(certificates):,} "
        f"targets keep their prediction{solver}: {', '.join(counts)}. A target with a hostile node closer than the "
        "threat allows counts as lost."
    )


def ratio_table(certificates: Certificates) -> list[dict[str, Any]]:
    """Return the counts per radius 0..the largest one: certified, whole field, and correct if labels are known.

    A target counts in "certified" only if the adversary could choose from at least ρ; in "whole_field" also if it
    holds whatever all that there are do together.
    """
    c = certificates
    last = last_radius(c)
    strict = certified_ratio(c.radius, c.num_eligible, max_radius=last)
    whole = certified_ratio(c.radius, c.num_eligible, max_radius=last, denominator="whole_field")
    rows: list[dict[str, Any]] = [
        {"radius": radius, "certified": int(strict.counts[radius]), "whole_field": int(whole.counts[radius])}
        for radius in range(last + 1)
    ]
    if c.labels is not None:
        correct = certified_accuracy(
            c.radius, c.num_eligible, prediction=c.prediction, labels=c.labels, max_radius=last
        )
        for row in rows:
            row["certified_and_correct"] = int(correct.counts[row["radius"]])
    return rows


def shown_rows(certificates: Certificates) -> list[dict[str, Any]]:
    """Return the rows of the ratio table up to the first radius at which no target is left."""
    rows = ratio_table(certificates)
    end = next((row["radius"] for row in rows if row["radius"] and not row["certified"]), len(rows))
    return rows[: end + 1]


def _has_row(radius: int, last: int) -> bool:
    """Return whether a table shows a radius: each one up to 20, round ones of what is larger, and the last one."""
    return radius <= EVERY_RADIUS or radius == last or radius % 10 ** (len(str(radius)) - 1) == 0


def ratio_texts(certificates: Certificates) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return headings and cells of the ratio table as texts."""
    total = len(certificates)
    labelled = certificates.labels is not None
    columns = (
        "radius ρ",
        "certified",
        *(["certified and correct"] if labelled else []),
        "certified, or whole field",
    )
    rows = []
    shown = shown_rows(certificates)
    for row in shown:
        if not _has_row(row["radius"], shown[-1]["radius"]):
            continue
        cells = [str(row["radius"]), percent(row["certified"], total)]
        if labelled:
            cells.append(percent(row["certified_and_correct"], total))
        cells.append(percent(row["whole_field"], total))
        rows.append(tuple(cells))
    return columns, rows


def table_note(certificates: Certificates) -> str:
    """Return the line that explains the ratio table."""
    unit = certificates.setup.threat.unit
    which = "could attack the target" if unit == "nodes" else "could be changed"
    return (
        f"Shares of all {len(certificates):,} targets, rounded down. Radius 0: targets with a prediction. "
        f"Certified: at least ρ {unit} {which}, and any ρ of them fail. Whole field: also targets with fewer such "
        f"{unit} that hold whatever all of them do."
    )


def _collective_record(c: Certificates) -> list[dict[str, Any]]:
    found = c.collective
    if found is None:
        return []
    columns = (found.budgets.tolist(), found.num_robust.tolist(), found.proved_by)
    names = ("budget", "num_robust", "proved_by")
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def summary_record(certificates: Certificates) -> dict[str, Any]:
    """Return the summary as plain values for summary.json: counts, so that nothing is rounded."""
    c, s = certificates, certificates.setup
    record: dict[str, Any] = {
        "sound": s.the_rule.is_sound,
        "warning": "" if s.the_rule.is_sound else NOT_SOUND,
        "statement": list(statement(c)),
        "smoothing": s.smoothing.name,
        "threat": s.threat.claimed_as,
        "radius_counts": s.threat.unit,
        "rule": s.rule,
        "alpha": None if s.draws is None else s.alpha,
        "simultaneous": s.simultaneous,
        "collective": _collective_record(c),
        "num_targets": len(c),
        "num_abstained": int(np.count_nonzero(c.radius < 0)),
        "num_whole_field": int(np.count_nonzero(c.whole_field)),
        "abstain_ratio": abstain_ratio(c.radius),
        "per_radius": ratio_table(c),
        "warnings": list(warnings_of(c)),
        "cost": cost_record(c),
        "floor": floor_in_summary(c),
        "protect_first": [asdict(each) for each in protect_first(c).nodes] if knows_attackers(c) else [],
    }
    for_none, total = c.votes_for_no_class
    if for_none:
        record["share_for_no_class"] = for_none / total
    found = cost(c)
    if found.labelled:
        record["smoothed_accuracy"] = found.total.smoothed / found.total.targets
    return record
