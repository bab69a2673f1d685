"""From certificates to what a report shows."""

import dataclasses
from collections.abc import Iterable

import numpy as np

from graycert._called import Called
from graycert._parameters import Parameters
from graycert._phases import time_in_words
from graycert.certificates import Certificates
from graycert.metrics.cost import COST_RADII
from graycert.runs.called import called_of, told, words_explained
from graycert.runs.checklist import assumptions, files_in_words, redone
from graycert.runs.cost import cost, cost_tables, cost_under_its_heading, warnings_of
from graycert.runs.floor import LABEL, OF_LABELS, floor_of_labels, floor_of_run
from graycert.runs.next_steps import next_steps
from graycert.runs.page import ReportView, Table
from graycert.runs.page_data import MOST_TARGETS, page_data
from graycert.runs.shares import percent, percent_upward
from graycert.runs.terms import terms
from graycert.runs.who import COLUMNS, knows_attackers, note, protect_first, rows_of
from graycert.runs.words import (
    NOT_SOUND,
    edge_inputs_in_words,
    ratio_texts,
    statement,
    table_note,
)
from graycert.setup import Setup


def report_view(certificates: Certificates, *, called: Called | None = None) -> ReportView:
    """Return the plain values of the report page.

    Args:
        certificates: A result.
        called: What readers call the parts of a graph; None for the words of the result, as in a run's own page.
    """
    words = called_of(certificates) if called is None else called
    view = told(certificates, _view, words)
    explained = (*view.terms, *words_explained(words))
    forms = [[form, place] for place, each in enumerate(explained) for form in each.forms]
    return dataclasses.replace(
        view, called=words, terms=explained, data={**view.data, "called": words.words, "terms": forms}
    )


def _view(c: Certificates) -> ReportView:
    data = page_data(c)
    return ReportView(
        title=_title(c),
        unit=c.setup.threat.unit,
        warning="" if c.setup.the_rule.is_sound else NOT_SOUND,
        alarms=warnings_of(c),
        claim=tuple(data["claims"][min(1, data["last"])]),
        figures_at_a_glance=_figures_at_a_glance(c),
        terms=terms(c),
        next_steps=next_steps(c),
        cost=cost_under_its_heading(c),
        breakdowns=tuple(
            (each.title, Table(columns=each.columns, rows=each.rows, note=each.note)) for each in cost_tables(c)
        ),
        ratios=_ratios(c),
        protect=_protect(c),
        targets_note=_targets_note(c),
        statement=statement(c),
        assumptions=assumptions(c),
        files=files_in_words(c),
        redone=redone(c),
        settings=_settings(c),
        data=data,
    )


def _title(c: Certificates) -> str:
    graph = c.setup.provenance.get("graph")
    name = graph.get("name") if isinstance(graph, dict) else None
    what = "Certified node predictions" if c.setup.the_rule.is_sound else "Node predictions, NOT soundly certified"
    return f"{what}: {name}" if name else what


def _figures_at_a_glance(c: Certificates) -> tuple[tuple[str, str], ...]:
    total = len(c)
    holds = "hold" if c.setup.the_rule.is_sound else "said to hold, without proof,"
    whole = f"{holds} whatever all eligible {c.setup.threat.unit} do"
    figures = [
        (f"{total:,}", "targets"),
        (percent(int(np.count_nonzero(c.whole_field)), total), whole),
        (percent_upward(int(np.count_nonzero(c.radius < 0)), total), "abstained: no prediction"),
    ]
    found, floor = cost(c), floor_of_run(c)
    if found.labelled:
        of = found.total
        figures[1:1] = [
            *([(percent(of.as_trained, of.targets), "correct as trained")] if of.as_trained is not None else []),
            (percent(of.smoothed, of.targets), "correct when smoothed"),
            (percent(of.certified[0], of.targets), f"certified and correct at ρ = {COST_RADII[0]}"),
        ]
        if floor is not None:
            figures.append((percent(floor.correct, floor.targets), f"correct {LABEL}, at every ρ"))
        memory = floor_of_labels(c)
        if memory is not None:
            figures.append((percent(memory.correct, memory.targets), f"correct {OF_LABELS}, at every ρ"))
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


def _protect(c: Certificates) -> Table | None:
    """Return the nodes that limit the most targets, where some are known."""
    if not knows_attackers(c):
        return None
    found = protect_first(c)
    return Table(columns=COLUMNS, rows=tuple(rows_of(found)), note=note(found))


def _targets_note(c: Certificates) -> str:
    unit = c.setup.threat.unit
    parts = [f"Radius: that many hostile {unit} fail; whole field: all that could be hostile fail together."]
    if c.setup.max_radius is not None:
        parts.append(f"A radius of {c.setup.max_radius} means at least that: farther was not looked.")
    if c.p_lower is not None:
        parts.append("Bounds: of the reported class from below, of every other class from above, rounded outward.")
    if len(c) > MOST_TARGETS:
        parts.append(
            f"Shown are the {MOST_TARGETS:,} targets that withstand least; the other {len(c) - MOST_TARGETS:,} are in "
            "certificates.parquet. Numbers, curves and tables above are about all of them."
        )
    return " ".join(parts)
