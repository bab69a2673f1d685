"""From certificates to what a report shows."""

from typing import TYPE_CHECKING

import numpy as np

from graycert.rules import is_sound
from graycert.runs.page import Curve, ReportView, Table
from graycert.runs.words import (
    NOT_SOUND,
    percent,
    percent_upward,
    ratio_texts,
    shown_rows,
    statement,
    table_note,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from graycert.certificates import NodeCertificates

SHOWN_TARGETS = 200
SHOWN_ATTACKERS = 6


def report_view(certificates: "NodeCertificates", *, shown_targets: int = SHOWN_TARGETS) -> ReportView:
    """Return the plain values of the report page, with the first ``shown_targets`` targets by radius."""
    c = certificates
    return ReportView(
        title=_title(c),
        warning=NOT_SOUND if c.rule == "paper" else "",
        statement=statement(c),
        figures_at_a_glance=_figures_at_a_glance(c),
        settings=_settings(c),
        ratios=_ratios(c),
        curves=_curves(c),
        targets=_targets(c, shown_targets),
    )


def _title(c: "NodeCertificates") -> str:
    graph = c.provenance.get("graph")
    name = graph.get("name") if isinstance(graph, dict) else None
    what = "Certified node predictions" if is_sound(c.rule) else "Node predictions, NOT soundly certified"
    return f"{what}: {name}" if name else what


def _figures_at_a_glance(c: "NodeCertificates") -> tuple[tuple[str, str], ...]:
    total = len(c)
    certified = int(np.count_nonzero(c.radius >= 1))
    holds = "hold" if is_sound(c.rule) else "said to hold, without proof,"
    figures = [
        (f"{total:,}", "targets"),
        (percent(certified, total), f"{holds} against any one hostile node"),
        (
            percent(int(np.count_nonzero(c.whole_field)), total),
            f"{holds} whatever all their eligible nodes do",
        ),
        (percent_upward(int(np.count_nonzero(c.radius < 0)), total), "abstained: no prediction"),
    ]
    if c.labels is not None:
        correct = int(np.count_nonzero((c.prediction == c.labels) & (c.radius >= 0)))
        figures.insert(1, (percent(correct, total), "predicted correctly (clean accuracy)"))
    return tuple(figures)


def _settings(c: "NodeCertificates") -> tuple[tuple[str, str], ...]:
    fixed = [
        ("Edge deletion p_d", c.smoothing.delete_in_words),
        ("Node ablation p_a", c.smoothing.ablate_in_words),
        ("Hostile nodes", c.threat.describe()),
        ("Message-passing steps", f"{c.num_layers}"),
        ("Selection samples n0", f"{c.num_selection:,}"),
        ("Estimation samples n1", f"{c.num_estimation:,}"),
        ("Failure probability α", f"{c.alpha!r} for all targets" if c.simultaneous else f"{c.alpha!r} per target"),
        ("Rule", c.rule if is_sound(c.rule) else f"{c.rule} (NOT SOUND)"),
        ("Bound on Δ", _methods(c)),
        ("Engine", c.engine),
        ("Seed", f"{c.seed}"),
        ("Graph", f"{c.num_nodes:,} nodes, {c.num_edges:,} directed edges"),
        ("Fingerprint", c.graph_fingerprint),
    ]
    return (*fixed, *_flat(c.provenance, ""))


def _methods(c: "NodeCertificates") -> str:
    """Return the method, and which methods it took for how many targets."""
    if c.delta_methods is None:
        return c.method
    names, counts = np.unique(c.delta_methods, return_counts=True)
    if names.tolist() == [c.method]:
        return c.method
    taken = ", ".join(f"{name}: {count:,} targets" for name, count in zip(names.tolist(), counts.tolist(), strict=True))
    return f"{c.method} ({taken})"


def _flat(values: object, prefix: str) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    items: Iterable[tuple[str, object]] = getattr(values, "items", dict)()
    for name, value in sorted(items, key=lambda item: isinstance(item[1], dict)):  # as TOML orders and reads them
        path = f"{prefix}{name}"
        if isinstance(value, dict):
            rows += _flat(value, f"{path}.")
        else:
            rows.append((path, ", ".join(map(str, value)) if isinstance(value, list) else str(value)))
    return rows


def _ratios(c: "NodeCertificates") -> Table:
    columns, rows = ratio_texts(c)
    return Table(columns=columns, rows=tuple(rows), note=table_note(c))


def _curves(c: "NodeCertificates") -> tuple[Curve, ...]:
    rows, total = shown_rows(c), len(c)
    names = {
        "certified": "certified",
        "whole_field": "certified, or whole field",
        "certified_and_correct": "certified and correct",
    }
    return tuple(
        Curve(label=label, values=tuple(row[key] / total for row in rows))
        for key, label in names.items()
        if key in rows[0]
    )


def _targets(c: "NodeCertificates", shown: int) -> Table:
    order = np.lexsort((c.targets, -c.radius))[:shown]
    columns = [
        "target",
        "prediction",
        "radius",
        "eligible nodes",
        "lower bound",
        "upper bound",
        "protect first",
        "status",
    ]
    if c.labels is not None:
        columns.insert(2, "label")
    rest = len(c) - order.size
    note = (
        "Radius: that many hostile nodes fail; whole field: all eligible nodes together do. Bounds: of the "
        "reported class from below, of every other class from above, rounded outward. Protect first: node indices of "
        "the most harmful set that is one larger than the radius."
    )
    if rest:
        note += f" {rest:,} more targets are in certificates.parquet."
    return Table(columns=tuple(columns), rows=tuple(_target(c, int(index)) for index in order), note=note)


def _protect(c: "NodeCertificates", index: int) -> str:
    """Name the nodes of the set that comes closest to breaking the certificate."""
    if c.attackers is None:
        return ""
    nodes = c.attackers[index][c.attackers[index] >= 0]
    shown = ", ".join(str(node) for node in nodes[:SHOWN_ATTACKERS])
    return shown if nodes.size <= SHOWN_ATTACKERS else f"{shown}, ..."


def _target(c: "NodeCertificates", index: int) -> tuple[str, ...]:
    def class_text(number: int) -> str:
        if number < 0:
            return "unknown"
        return c.class_names[number] if c.class_names and number < len(c.class_names) else str(number)

    radius = int(c.radius[index])
    reached = f"at least {radius}" if radius == c.max_radius else f"{radius}"
    name = str(c.targets[index]) if c.node_ids is None else f"{c.node_ids[index]}"
    cells = [
        name,
        class_text(int(c.prediction[index])) if radius >= 0 else "none",
        "whole field" if c.whole_field[index] else reached,
        f"{int(c.num_eligible[index]):,}",
        f"{np.floor(c.p_lower[index] * 10_000) / 10_000:.4f}",
        f"{np.ceil(c.p_upper[index] * 10_000) / 10_000:.4f}",
        _protect(c, index),
        str(c.status[index]),
    ]
    if c.labels is not None:
        cells.insert(2, class_text(int(c.labels[index])))
    return tuple(cells)
