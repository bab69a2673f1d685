"""From certificates to what a report shows."""

import dataclasses
from collections.abc import Iterable

import numpy as np

from graycert._parameters import Parameters
from graycert._phases import time_in_words
from graycert.certificates import Certificates
from graycert.metrics.cost import COST_RADII
from graycert.runs.cost import cost, cost_paragraphs, cost_tables, warnings_of
from graycert.runs.page import Curve, ReportView, Table
from graycert.runs.shares import percent, percent_upward
from graycert.runs.who import COLUMNS, knows_attackers, note, protect_first, protect_first_per_target, rows_of
from graycert.runs.words import (
    NOT_SOUND,
    edge_inputs_in_words,
    ratio_texts,
    shown_rows,
    statement,
    table_note,
)
from graycert.setup import Setup

SHOWN_TARGETS = 200
SHOWN_ATTACKERS = 6
_ANY_ONE = {"nodes": "any one hostile node", "edges": "any one deleted edge", "attributes": "any one attribute"}


def report_view(certificates: Certificates, *, shown_targets: int = SHOWN_TARGETS) -> ReportView:
    """Return the plain values of the report page, with the first ``shown_targets`` targets by radius."""
    c = certificates
    return ReportView(
        title=_title(c),
        warning="" if c.setup.the_rule.is_sound else NOT_SOUND,
        alarms=warnings_of(c),
        cost=cost_paragraphs(c),
        breakdowns=tuple(
            (each.title, Table(columns=each.columns, rows=each.rows, note=each.note)) for each in cost_tables(c)
        ),
        protect=_protect(c),
        statement=statement(c),
        figures_at_a_glance=_figures_at_a_glance(c),
        settings=_settings(c),
        ratios=_ratios(c),
        curves=_curves(c),
        targets=_targets(c, shown_targets),
    )


def _title(c: Certificates) -> str:
    graph = c.setup.provenance.get("graph")
    name = graph.get("name") if isinstance(graph, dict) else None
    what = "Certified node predictions" if c.setup.the_rule.is_sound else "Node predictions, NOT soundly certified"
    return f"{what}: {name}" if name else what


def _figures_at_a_glance(c: Certificates) -> tuple[tuple[str, str], ...]:
    total = len(c)
    certified = int(np.count_nonzero(c.radius >= np.minimum(1, c.num_eligible)))
    holds = "hold" if c.setup.the_rule.is_sound else "said to hold, without proof,"
    figures = [
        (f"{total:,}", "targets"),
        (percent(certified, total), f"{holds} against {_ANY_ONE[c.setup.threat.unit]}"),
        (
            percent(int(np.count_nonzero(c.whole_field)), total),
            f"{holds} whatever all eligible {c.setup.threat.unit} do",
        ),
        (percent_upward(int(np.count_nonzero(c.radius < 0)), total), "abstained: no prediction"),
    ]
    found = cost(c)
    if found.labelled:
        of = found.total
        figures[1:1] = [
            *([(percent(of.as_trained, of.targets), "correct as trained")] if of.as_trained is not None else []),
            (percent(of.smoothed, of.targets), "correct when smoothed"),
            (percent(of.certified[0], of.targets), f"certified and correct at ρ = {COST_RADII[0]}"),
        ]
    return tuple(figures)


def _settings(c: Certificates) -> tuple[tuple[str, str], ...]:
    s = c.setup
    fixed = [
        ("Smoothing", s.smoothing.name),
        *_parameters(s.smoothing),
        ("Threat", f"{s.threat.claimed_as}: {s.threat.describe()}"),
        ("Message-passing steps", _steps(s)),
        *([("Values per edge", edge_inputs_in_words(s))] if s.edge_inputs else []),
        *([] if s.draws is None else _parameters(s.draws)),
        ("Failure probability α", _alpha(s)),
        ("Rule", s.rule if s.the_rule.is_sound else f"{s.rule} (NOT SOUND)"),
        ("Bound on Δ", _methods(c)),
        ("Engine", s.engine),
        *_memory(s),
        ("Seed", f"{s.seed}"),
        *([("Time", time_in_words(c.seconds))] if c.seconds else []),
        ("Graph", f"{s.num_nodes:,} nodes, {s.num_edges:,} directed edges"),
        ("Fingerprint", s.graph_fingerprint),
    ]
    return (*fixed, *_flat(s.provenance, ""))


def _alpha(setup: Setup) -> str:
    if setup.draws is None:
        return "none: nothing is drawn"
    return f"{setup.alpha!r} for all targets" if setup.simultaneous else f"{setup.alpha!r} per target"


def _memory(setup: Setup) -> tuple[tuple[str, str], ...]:
    if setup.memory_planned is None or setup.memory_budget is None:
        return ()
    planned, budget = (f"{number / 2**20:,.0f} MiB" for number in (setup.memory_planned, setup.memory_budget))
    return (("Memory of drawing", f"{planned} planned, budget {budget}"),)


def _steps(setup: Setup) -> str:
    if setup.num_layers is None:
        return "not counted: nothing is assumed"
    return f"{setup.num_layers}{' (assumed: the user said so)' if setup.num_layers_assumed else ''}"


def _parameters(chosen: Parameters) -> list[tuple[str, str]]:
    """Return what parameters are called, and their values; of arrays their range."""
    rows, used = [], chosen.stored()[0]
    for each in dataclasses.fields(chosen):
        value, label = getattr(chosen, each.name), each.metadata["label"] or each.metadata["help"].rstrip(".")
        if each.name not in used:
            continue
        if isinstance(value, np.ndarray):
            value = (
                f"{float(value.min())!r}..{float(value.max())!r} (per {each.metadata['per']})" if value.size else "none"
            )
        if value is not None:
            rows.append((label, f"{value:,}" if isinstance(value, int) else str(value)))
    return rows


def _methods(c: Certificates) -> str:
    """Return the bound, and what it took for how many targets."""
    bound = c.setup.bound
    if c.delta_methods is None:
        return bound
    names, counts = np.unique(c.delta_methods, return_counts=True)
    if names.tolist() == [bound]:
        return bound
    taken = ", ".join(f"{name}: {count:,} targets" for name, count in zip(names.tolist(), counts.tolist(), strict=True))
    return f"{bound} ({taken})"


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


def _ratios(c: Certificates) -> Table:
    columns, rows = ratio_texts(c)
    return Table(columns=columns, rows=tuple(rows), note=table_note(c))


def _curves(c: Certificates) -> tuple[Curve, ...]:
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


def _protect(c: Certificates) -> Table | None:
    """Return the nodes that limit the most targets, where some are known."""
    if not knows_attackers(c):
        return None
    found = protect_first(c)
    return Table(columns=COLUMNS, rows=tuple(rows_of(found)), note=note(found))


def _targets(c: Certificates, shown: int) -> Table:
    order = np.lexsort((c.targets, -c.radius))[:shown]
    columns = [
        "target",
        "prediction",
        *(["label"] if c.labels is not None else []),
        "radius",
        f"eligible {c.setup.threat.unit}",
        *(["lower bound", "upper bound"] if c.p_lower is not None else []),
        *(["protect first"] if c.attackers is not None else []),
        "status",
    ]
    rest = len(c) - order.size
    note = f"Radius: that many hostile {c.setup.threat.unit} fail; whole field: all eligible ones together do."
    if c.p_lower is not None:
        note += " Bounds: of the reported class from below, of every other class from above, rounded outward."
    if c.attackers is not None:
        note += " Protect first: the nodes of the most harmful set that is one larger than the radius."
    if rest:
        note += f" {rest:,} more targets are in certificates.parquet."
    protect = protect_first_per_target(c)
    rows = tuple(_target(c, int(index), protect[index]) for index in order)
    return Table(columns=tuple(columns), rows=rows, note=note)


def _shown_names(names: list[str]) -> str:
    shown = ", ".join(names[:SHOWN_ATTACKERS])
    return shown if len(names) <= SHOWN_ATTACKERS else f"{shown}, ..."


def _target(c: Certificates, index: int, protect: list[str]) -> tuple[str, ...]:
    names = c.setup.class_names

    def class_text(number: int) -> str:
        if number < 0:
            return "unknown"
        return names[number] if names and number < len(names) else str(number)

    radius = int(c.radius[index])
    reached = f"at least {radius}" if radius == c.setup.max_radius else f"{radius}"
    name = str(c.targets[index]) if c.node_ids is None else f"{c.node_ids[index]}"
    cells = [
        name,
        class_text(int(c.prediction[index])) if radius >= 0 else "none",
        *([class_text(int(c.labels[index]))] if c.labels is not None else []),
        "whole field" if c.whole_field[index] else reached,
        f"{int(c.num_eligible[index]):,}",
    ]
    if c.p_lower is not None and c.p_upper is not None:
        cells.append(f"{np.floor(c.p_lower[index] * 10_000) / 10_000:.4f}")
        cells.append(f"{np.ceil(c.p_upper[index] * 10_000) / 10_000:.4f}")
    if c.attackers is not None:
        cells.append(_shown_names(protect))
    return (*cells, str(c.status[index]))
