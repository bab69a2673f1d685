"""`graycert bounds`: what the graph alone allows, whatever the model."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from graycert.cli import graphs, models
from graycert.cli.bounds_grid import GridAsked
from graycert.cli.config_file import resolve
from graycert.cli.configs import NO_NEGATIVE, BoundsConfig
from graycert.cli.console import Console, table
from graycert.cli.declared import (
    BOUNDS_DEFAULTS,
    Kind,
    as_options,
    bounded_threats,
    bounds_config,
    made,
    refuse_foreign,
)
from graycert.cli.node_files import read_masks, read_nodes
from graycert.cli.places import check_file, claimed, write_file
from graycert.cli.repetition import WHERE
from graycert.smoothing import InterceptionSmoothing
from graycert.threats import THREATS, NodeFeatureThreat, Threat

if TYPE_CHECKING:
    from graycert.bounds import DeltaBounds


def bounds_command() -> Callable[..., int]:
    """Return the command, with the options of interception smoothing and the threats that it has bounds for."""
    kind = bounds_config()
    defaults = kind()

    def bounds(
        *,
        options: BoundsConfig = defaults,
        config: str | None = None,
        json: Annotated[bool, NO_NEGATIVE] = False,
        quiet: Annotated[bool, Parameter(name=("--quiet", "-q"), negative=())] = False,
    ) -> int:
        """Bound Δ, the chance that a hostile message arrives, and with it the radius that any model could reach.

        No model and no features are needed; of a model only its depth and kind count. A node whose Δ̄(ρ) is 1/2 or
        more cannot be certified at ρ with this bound, even if every vote agrees. With --grid, many p_d and p_a are
        compared: how many nodes could be certified, and which pairs are worth trying for a wanted radius.

        Args:
            options: Which nodes and which smoothing.
            config: TOML file with any of these options as keys; flags win over it.
            json: Print one JSON object instead of text.
            quiet: No remarks on standard error.
        """
        return _run(resolve(options, config), Console(as_json=json, quiet=quiet))

    bounds.__annotations__["options"] = Annotated[kind, Parameter(name="*")]
    return bounds


def _run(config: BoundsConfig, console: Console) -> int:
    asked = GridAsked.of(config)
    smoothing, _ = _made(config, {})
    place = config.out
    out = None if place is None else check_file(place, overwrite=config.overwrite, suffixes=(".csv", ".parquet"))
    with nullcontext() if out is None else claimed(out):
        if asked is not None:
            data = _graph(config, console)
            targets, num_layers, threat = _about(config, smoothing, data, console)
            return asked.run(config, data, console, targets=targets, num_layers=num_layers, threat=threat, out=out)
        return _bounded(config, smoothing, out, console)


def _bounded(config: BoundsConfig, smoothing: InterceptionSmoothing, out: Path | None, console: Console) -> int:
    data = _graph(config, console)
    found = _evaluate(config, smoothing, data, console)
    rows = _rows(found)
    if out is not None:
        frame = _frame(found, data)
        is_csv = out.suffix.lower() == ".csv"
        write_file(out, lambda path: _write(frame, path, as_csv=is_csv))
    options = {**config.model_dump(exclude=WHERE), **as_options(smoothing), **as_options(found.threat)}
    options["num_layers"] = found.num_layers
    record = {
        "command": "bounds",
        "graph": graphs.graph_record(data),
        "options": options,
        "num_targets": int(found.targets.size),
        "num_inexact_path_counts": int((~found.path_counts_exact).sum()),
        "num_never_attacked": int((found.num_eligible == 0).sum()),
        "per_radius": rows,
        "files": [] if out is None else [str(out)],
    }
    console.result(_text(found, rows, out), record)
    return 0


def _graph(config: BoundsConfig, console: Console) -> Any:
    """Return the graph, as arrays unless a model is to be called on it."""
    return graphs.load_arrays(config, console) if config.model is None else graphs.load(config, console)


def _made(
    config: BoundsConfig, masks: Mapping[str, Any], *, distance: int | None = None
) -> tuple[InterceptionSmoothing, Threat]:
    """Return smoothing and threat; what does not fit is refused before the graph is loaded.

    Args:
        config: The options.
        masks: Which nodes options name.
        distance: Hops to the nearest hostile nodes, if no option says it and a model does.
    """
    from graycert.bounds import check_bound

    threat = THREATS[config.threat]
    among: list[Kind] = [InterceptionSmoothing, *bounded_threats().values()]
    refuse_foreign(config, (InterceptionSmoothing, threat), among=among)
    if config.model is None:
        check_bound(config.bound, num_layers=_steps(config))
    else:
        models.check_name(config.model)
    usual: Mapping[Kind, Mapping[str, Any]] = BOUNDS_DEFAULTS
    if distance is not None:
        usual = {NodeFeatureThreat: {"min_distance": distance}}
    return made(InterceptionSmoothing, config), made(threat, config, defaults=usual, **masks)


def _steps(config: BoundsConfig) -> int:
    return 2 if config.num_layers is None else config.num_layers


def _evaluate(config: BoundsConfig, smoothing: InterceptionSmoothing, data: Any, console: Console) -> "DeltaBounds":
    from graycert.bounds import delta_bounds

    targets, num_layers, threat = _about(config, smoothing, data, console)
    return delta_bounds(
        data,
        targets,
        smoothing=smoothing,
        threat=threat,
        num_layers=num_layers,
        max_radius=config.max_radius,
        bound=config.bound,
    )


def _about(
    config: BoundsConfig, smoothing: InterceptionSmoothing, data: Any, console: Console
) -> tuple[Any, int, Threat]:
    """Return targets, steps and threat that the bounds are about, and load what the bound needs."""
    import numpy as np

    from graycert.bounds import PATH_BOUNDS
    from graycert.bounds.two_level import load_kernels

    named = None if config.targets == "all" else read_nodes(config.targets, data, flag="targets")
    targets = np.arange(int(data.num_nodes)) if named is None else named
    masks = read_masks(THREATS[config.threat], config, data)
    num_layers, threat = _steps(config), _made(config, masks)[1]
    if config.model is not None:
        from graycert.cli.bounded_model import known_of, model_of
        from graycert.models.protocol import has_skip

        model = model_of(config, data)
        threat = _made(config, masks, distance=int(has_skip(model)))[1]
        num_layers, threat = known_of(model, config, data, smoothing=smoothing, threat=threat, targets=targets)
    if config.bound not in PATH_BOUNDS:
        load_kernels(console.say)
    return targets, num_layers, threat


def _rows(found: "DeltaBounds") -> list[dict[str, Any]]:
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


def _text(found: "DeltaBounds", rows: list[dict[str, Any]], out: Path | None) -> str:
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
        f"{total:,} nodes, p_d = {found.smoothing.delete_in_words}, p_a = {found.smoothing.ablate_in_words}, "
        f"{found.num_layers} message-passing steps, hostile nodes {found.threat.describe()}, bound "
        f"'{found.bound}'{_taken(found)}.",
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


def _taken(found: "DeltaBounds") -> str:
    """Return which bounds were taken for how many nodes, where it is not the one asked for."""
    import numpy as np

    names, counts = np.unique(found.methods, return_counts=True)
    if names.tolist() == [found.bound]:
        return ""
    return " (" + ", ".join(f"{name}: {count:,}" for name, count in zip(names, counts, strict=True)) + ")"


def _upward(value: float) -> str:
    import math

    return f"{math.ceil(value * 10_000) / 10_000:.4f}"


def _frame(found: "DeltaBounds", data: Any) -> Any:
    import numpy as np
    import pandas as pd

    from graycert.bounds import largest_certifiable_radius

    columns: dict[str, Any] = {"target": found.targets}
    node_ids = data.get("node_ids")
    if node_ids is not None:
        columns["node_id"] = [str(node_ids[index]) for index in found.targets]
    largest = largest_certifiable_radius(found.delta_upper)
    columns |= {
        "largest_radius": np.minimum(largest, found.num_eligible),
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
