"""What the certificates say, in plain words, and how many targets hold at each radius."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graycert.rules import is_sound
from graycert.metrics import abstain_ratio, certified_accuracy, certified_ratio, clean_accuracy

if TYPE_CHECKING:
    from graycert.certificates import NodeCertificates

NOT_SOUND = (
    "NOT A SOUND CERTIFICATE: the rule of the paper's implementation bounds only one of the other classes, "
    "chosen by few votes. Its failure probability is not α. Use it only to compare with published numbers; "
    "rule='sound' gives a certificate."
)


def statement(certificates: "NodeCertificates") -> tuple[str, ...]:
    """Return the paragraphs that say what is and what is not proved."""
    c = certificates
    abstained = int(np.count_nonzero(c.radius < 0))
    if is_sound(c.rule):
        opening, verb = "", "bound"
        chance = (
            f"The chance that the statement of any of the {len(c):,} targets is wrong is at most α = {c.alpha} over "
            "the samples."
            if c.simultaneous
            else "Each target's statement, all its radii together, is wrong with probability at most α = "
            f"{c.alpha} over the samples. That is per target, not for all targets at once."
        )
        direction = (
            "Radii are lower bounds: Δ̄(ρ), the probability that a hostile message arrives, is bounded from "
            f"above (method '{c.method}'), so a prediction may hold further than stated."
        )
    else:
        opening, verb = "NOT PROVED; a sound rule would prove this: ", "estimate"
        chance = f"The nominal failure probability α = {c.alpha} per target is NOT guaranteed by this rule."
        direction = (
            "Radii may be too large. Only Δ̄(ρ), the probability that a hostile message arrives, is bounded "
            f"from above (method '{c.method}')."
        )
    return (
        f"{opening}The smoothed classifier keeps its prediction for a target with radius ρ, whatever the "
        f"features of up to ρ hostile nodes ({c.threat.describe()}) are set to. The graph structure is "
        f"fixed. The smoothed classifier is the majority vote of the {c.num_layers}-step model over random "
        f"graphs in which each edge is deleted with probability p_d = {c.smoothing.delete_in_words} and the "
        f"features of each node are ablated with probability p_a = {c.smoothing.ablate_in_words}; nothing is said "
        "about the model without smoothing.",
        f"{chance} n0 = {c.num_selection:,} samples chose the class, and n1 = {c.num_estimation:,} other "
        f"samples {verb} its lead.",
        f"{direction} Radii above {c.max_radius} were not examined.",
        *([collective_text(c)] if c.collective is not None else []),
        f"For {abstained:,} of {len(c):,} targets the votes do not single out a class. They have no "
        "prediction (radius -1) and count as wrong and as not certified."
        if abstained
        else f"For each of the {len(c):,} targets the votes single out a class.",
    )


def collective_text(certificates: "NodeCertificates") -> str:
    """Return in words how many targets survive one adversary."""
    found = certificates.collective
    if found is None:
        return ""
    counts = [
        f"{kept:,} if ρ = {budget:,}"
        for budget, kept in zip(found.budgets.tolist(), found.num_robust.tolist(), strict=True)
    ]
    solver = " (with the solver's own bound: not checked)" if "milp" in found.proved_by else ""
    return (
        "One adversary against all: if the same ρ untrusted nodes are hostile for all targets, then, with probability "
        f"at least 1 - α for all of this together, at least so many of the {len(certificates):,} targets keep their "
        f"prediction{solver}: {', '.join(counts)}. A target with a hostile node closer than the threat allows counts "
        "as lost."
    )


def ratio_table(certificates: "NodeCertificates") -> list[dict[str, Any]]:
    """Return the counts per radius 0..max_radius: certified, whole field, and correct if labels are known.

    A target counts in "certified" only if at least ρ nodes could attack it; in "whole_field" also if it
    holds whatever all of its fewer eligible nodes do.
    """
    c = certificates
    last = c.max_radius
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


def percent(count: int, total: int) -> str:
    """Return a share in percent with one decimal, never rounded up.

    Example:
        >>> percent(2, 3), percent(999_999, 1_000_000), percent(0, 0)
        ('66.6 %', '99.9 %', '0.0 %')
    """
    tenths = 1_000 * count // total if total else 0
    return f"{tenths // 10}.{tenths % 10} %"


def percent_upward(count: int, total: int) -> str:
    """Return a share of something bad in percent with one decimal, never rounded down.

    Example:
        >>> percent_upward(1, 3_000)
        '0.1 %'
    """
    tenths = -(-1_000 * count // total) if total else 0
    return f"{tenths // 10}.{tenths % 10} %"


def shown_rows(certificates: "NodeCertificates") -> list[dict[str, Any]]:
    """Return the rows of the ratio table up to the first radius at which no target is left."""
    rows = ratio_table(certificates)
    end = next((row["radius"] for row in rows if row["radius"] and not row["certified"]), len(rows))
    return rows[: end + 1]


def ratio_texts(certificates: "NodeCertificates") -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
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
    for row in shown_rows(certificates):
        cells = [str(row["radius"]), percent(row["certified"], total)]
        if labelled:
            cells.append(percent(row["certified_and_correct"], total))
        cells.append(percent(row["whole_field"], total))
        rows.append(tuple(cells))
    return columns, rows


def table_note(certificates: "NodeCertificates") -> str:
    """Return the line that explains the ratio table."""
    return (
        f"Shares of all {len(certificates):,} targets, rounded down. Radius 0: targets with a prediction. "
        "Certified: at least ρ nodes could attack the target, and any ρ of them fail. Whole field: also "
        "targets with fewer such nodes that hold whatever all of them do."
    )


def shares_in_words(radius: NDArray[np.int64], num_eligible: NDArray[np.int64], *, max_radius: int) -> str:
    """Return the share of targets with a prediction, and those certified at each radius up to the first without any."""
    counts = certified_ratio(radius, num_eligible, max_radius=max_radius).counts.tolist()
    shown = next((rho for rho, count in enumerate(counts) if rho and not count), max_radius)
    shares = ", ".join(f"ρ = {rho}: {percent(counts[rho], radius.size)}" for rho in range(1, shown + 1))
    return (
        f"Targets with a prediction: {percent(counts[0], radius.size)}. Certified against ρ of at least ρ nodes that "
        f"could attack, rounded down: {shares}."
    )


def summary_text(certificates: "NodeCertificates") -> str:
    """Return the statement and the table as text for a terminal."""
    columns, rows = ratio_texts(certificates)
    widths = [max(len(text) for text in texts) for texts in zip(columns, *rows, strict=True)]
    lines = ["  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in (columns, *rows)]
    warning = [NOT_SOUND] if certificates.rule == "paper" else []
    accuracy = []
    if certificates.labels is not None:
        share = clean_accuracy(certificates.radius, prediction=certificates.prediction, labels=certificates.labels)
        correct = round(share * len(certificates))
        accuracy = [f"Clean accuracy (abstaining is wrong): {percent(correct, len(certificates))}."]
    parts = [
        *warning,
        *statement(certificates),
        *accuracy,
        "\n".join(lines),
        table_note(certificates),
        *warning,
    ]
    return "\n\n".join(parts)


def _collective_record(c: "NodeCertificates") -> list[dict[str, Any]]:
    found = c.collective
    if found is None:
        return []
    columns = (found.budgets.tolist(), found.num_robust.tolist(), found.proved_by)
    names = ("budget", "num_robust", "proved_by")
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def summary_record(certificates: "NodeCertificates") -> dict[str, Any]:
    """Return the summary as plain values for summary.json: counts, so that nothing is rounded."""
    c = certificates
    record: dict[str, Any] = {
        "sound": is_sound(c.rule),
        "warning": NOT_SOUND if c.rule == "paper" else "",
        "statement": list(statement(c)),
        "rule": c.rule,
        "alpha": c.alpha,
        "simultaneous": c.simultaneous,
        "collective": _collective_record(c),
        "num_targets": len(c),
        "num_abstained": int(np.count_nonzero(c.radius < 0)),
        "num_whole_field": int(np.count_nonzero(c.whole_field)),
        "abstain_ratio": abstain_ratio(c.radius),
        "per_radius": ratio_table(c),
    }
    if c.labels is not None:
        record["clean_accuracy"] = clean_accuracy(c.radius, prediction=c.prediction, labels=c.labels)
    return record
