"""`graycert bounds`: what the graph alone allows, whatever the model."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from graycert.cli import graphs
from graycert.cli.config_file import resolve
from graycert.cli.configs import BoundsConfig
from graycert.cli.console import Console, table
from graycert.cli.node_files import read_nodes, read_trusted
from graycert.cli.places import check_file, write_file

_DEFAULTS = BoundsConfig()


def bounds(
    *,
    options: Annotated[BoundsConfig, Parameter(name="*")] = _DEFAULTS,
    config: str | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    quiet: Annotated[bool, Parameter(name=("--quiet", "-q"), negative=())] = False,
) -> int:
    """Bound Δ, the chance that a hostile message arrives, and with it the radius that any model could reach.

    No model and no features are needed. A node whose Δ̄(ρ) is 1/2 or more cannot be certified at ρ with this bound,
    even if every vote agrees.

    Args:
        options: Which nodes and which smoothing.
        config: TOML file with any of these options as keys; flags win over it.
        json: Print one JSON object instead of text.
        quiet: No remarks on standard error.
    """
    console = Console(as_json=json, quiet=quiet)
    settings = resolve(options, config)
    smoothing = _check(settings)
    place = settings.out
    out = None if place is None else check_file(place, overwrite=settings.overwrite, suffixes=(".csv", ".parquet"))
    data = graphs.load(settings, console)
    found, threat = _evaluate(settings, smoothing, data, console)
    rows = _rows(found)
    if out is not None:
        frame = _frame(found, data)
        is_csv = out.suffix.lower() == ".csv"
        write_file(out, lambda path: _write(frame, path, as_csv=is_csv))
    record = {
        "command": "bounds",
        "graph": graphs.graph_record(settings, data),
        "options": settings.model_dump(exclude={"out", "overwrite", "data_root"}),
        "num_targets": int(found.targets.size),
        "num_inexact_path_counts": int((~found.path_counts_exact).sum()),
        "num_never_attacked": int((found.num_eligible == 0).sum()),
        "per_radius": rows,
        "files": [] if out is None else [str(out)],
    }
    console.result(_text(settings, found, threat, rows, out), record)
    return 0


def _check(config: BoundsConfig) -> Any:
    from graycert._validation import check_integer
    from graycert.bounds.evaluation import check_method
    from graycert.smoothing.interception.parameters import InterceptionSmoothing

    check_integer("num_layers", config.num_layers, at_least=1)
    check_integer("min_distance", config.min_distance, at_least=0, hint="It counts hops to the target.")
    check_integer("max_radius", config.max_radius, at_least=1)
    check_method(config.method, num_layers=config.num_layers)
    return InterceptionSmoothing(p_delete=config.p_delete, p_ablate=config.p_ablate)


def _evaluate(config: BoundsConfig, smoothing: Any, data: Any, console: Console) -> tuple[Any, Any]:
    import numpy as np

    from graycert.bounds.evaluation import PATH_METHODS, evaluate_deltas
    from graycert.bounds.two_level import load_kernels
    from graycert.graph import as_adjacency
    from graycert.threats.node_features import NodeFeatureThreat

    named = None if config.targets == "all" else read_nodes(config.targets, data, flag="targets")
    threat = NodeFeatureThreat(min_distance=config.min_distance, trusted=read_trusted(config.trusted, data))
    if config.method not in PATH_METHODS:
        load_kernels(console.say)
    found = evaluate_deltas(
        as_adjacency(data),
        np.arange(int(data.num_nodes)) if named is None else named,
        smoothing=smoothing,
        threat=threat,
        num_layers=config.num_layers,
        max_radius=config.max_radius,
        method=config.method,
    )
    return found, threat


def _rows(found: Any) -> list[dict[str, Any]]:
    """Return per radius how many targets any model could certify, and how Δ̄ is distributed."""
    import numpy as np

    from graycert.bounds import largest_certifiable_radius

    largest = largest_certifiable_radius(found.delta_upper)
    rows = []
    for radius in range(1, found.delta_upper.shape[1] + 1):
        column = found.delta_upper[:, radius - 1]
        low, median, high = np.quantile(column, [0.0, 0.5, 1.0], method="higher").tolist()
        reachable = int(np.count_nonzero(largest >= radius))
        attackable = int(np.count_nonzero((largest >= radius) & (found.num_eligible >= radius)))
        rows.append(
            {
                "radius": radius,
                "certifiable": reachable,
                "certifiable_and_attackable": attackable,
                "delta_upper_min": low,
                "delta_upper_median": median,
                "delta_upper_max": high,
            }
        )
    return rows


def _text(config: BoundsConfig, found: Any, threat: Any, rows: list[dict[str, Any]], out: Path | None) -> str:
    total = int(found.targets.size)
    last = next((index for index, row in enumerate(rows) if row["certifiable_and_attackable"] == 0), len(rows) - 1)
    cells = [
        (
            str(row["radius"]),
            f"{row['certifiable_and_attackable']:,}",
            f"{row['certifiable']:,}",
            _upward(row["delta_upper_min"]),
            _upward(row["delta_upper_median"]),
            _upward(row["delta_upper_max"]),
        )
        for row in rows[: last + 1]
    ]
    columns = ("radius ρ", "certifiable", "or whole field", "smallest Δ̄(ρ)", "median", "largest")
    parts = [
        f"{total:,} nodes, p_d = {config.p_delete}, p_a = {config.p_ablate}, {config.num_layers} message-passing "
        f"steps, hostile nodes {threat.describe()}, method '{config.method}'{_taken(config.method, found)}.",
        table(columns, cells, left=0),
        "Certifiable: Δ̄(ρ) < 1/2 and at least ρ nodes could attack; more is impossible for any model and any number "
        "of votes with this bound. Whole field: also nodes with fewer attackers. Δ̄ is rounded upward.",
    ]
    inexact = int((~found.path_counts_exact).sum())
    if inexact:
        parts.append(f"For {inexact:,} nodes paths were over-counted by walks: their Δ̄ holds but is looser.")
    if out is not None:
        parts.append(f"Written: {out}")
    return "\n\n".join(parts)


def _taken(method: str, found: Any) -> str:
    """Return which methods were taken for how many nodes, where it is not the one asked for."""
    import numpy as np

    names, counts = np.unique(found.methods, return_counts=True)
    if names.tolist() == [method]:
        return ""
    return " (" + ", ".join(f"{name}: {count:,}" for name, count in zip(names, counts, strict=True)) + ")"


def _upward(value: float) -> str:
    import math

    return f"{math.ceil(value * 10_000) / 10_000:.4f}"


def _frame(found: Any, data: Any) -> Any:
    import pandas as pd

    from graycert.bounds import largest_certifiable_radius

    columns: dict[str, Any] = {"target": found.targets}
    node_ids = data.get("node_ids")
    if node_ids is not None:
        columns["node_id"] = [str(node_ids[index]) for index in found.targets]
    largest = largest_certifiable_radius(found.delta_upper)
    columns |= {
        "largest_radius": largest,
        "whole_field": largest >= found.num_eligible,
        "num_eligible": found.num_eligible,
        "receptive_field_size": found.receptive_field_size,
        "path_counts_exact": found.path_counts_exact,
        "delta_method": found.methods,
    }
    for index in range(found.delta_upper.shape[1]):
        columns[f"delta_{index + 1}"] = found.delta_upper[:, index]
    return pd.DataFrame(columns)


def _write(frame: Any, path: Path, *, as_csv: bool) -> None:
    if as_csv:
        frame.to_csv(path, index=False)  # floats with all their digits
    else:
        frame.to_parquet(path, index=False)
