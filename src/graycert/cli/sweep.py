"""`graycert sweep`: how accurate and how robust can a model be, over many smoothing distributions?"""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from pydantic import ValidationError

from graycert.cli import graphs, models
from graycert.cli.config_file import resolve, type_problem
from graycert.cli.configs import GraphConfig, ModelConfig
from graycert.cli.console import Console, about, table
from graycert.cli.declared import workers_of
from graycert.cli.places import default_run, shown, whole
from graycert.cli.sweep_config import SweepConfig
from graycert.errors import InvalidFileError, InvalidParameterError
from graycert.models.names import is_own

if TYPE_CHECKING:
    import pandas as pd

    from graycert.reproduction.smoothing_sweep import SmoothingSweep
    from graycert.reproduction.sweep import Budget, Sweep, SweepResult

_DEFAULTS = SweepConfig()
_SMOOTHED = {"both": "deletion and ablation", "deletion": "deletion", "ablation": "ablation"}
_TRAINING = set(ModelConfig.model_fields) - set(GraphConfig.model_fields) - {"model", "skip"}
_SAMPLERS = ("random", "nsga2", "tpe")
_FIGURES = ("pareto.png", "pareto.pdf")
_SHOWN_RADII = (1, 2, 4, 8)


def sweep(
    *,
    options: Annotated[SweepConfig, Parameter(name="*")] = _DEFAULTS,
    config: str | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    quiet: Annotated[bool, Parameter(name=("--quiet", "-q"), negative=())] = False,
) -> int:
    """Train and certify under many smoothing distributions, and show which are worth using.

    Interrupt or kill it whenever you like: the same command with the same --out goes on where it was.

    Args:
        options: What to sweep over and how.
        config: TOML file with any of these options as keys; flags win over it.
        json: Print one JSON object instead of text.
        quiet: No progress and no remarks on standard error.
    """
    console = Console(as_json=json, quiet=quiet)
    settings = resolve(options, config)
    _check(settings)
    described = _described(settings)
    budget = _budget(settings)
    execution = workers_of(settings)
    out = _destination(settings)
    from graycert.reproduction.style import paper_style

    with paper_style():  # is matplotlib there? Better told now than after the trials
        pass
    planned = _planned(settings, described, budget, out, console)
    from graycert.reproduction.sweep import run_sweep

    result = run_sweep(planned, execution=execution, progress=console.progress, retry_failed=settings.retry_failed)
    if not result.num_finished:
        reason = f"; the first says: {result.failed[0].error}" if result.failed else ""
        raise InvalidParameterError(f"no trial was finished, {len(result.failed)} failed{reason}.")
    trials = _trials(result, described)
    _draw(trials, described, out)
    files = [str(out / name) for name in ("trials.parquet", *_FIGURES)]
    again = _command(settings, config, out, result)
    record = {
        "command": "sweep",
        "out": str(out),
        "files": files,
        "finished": result.num_finished,
        "failed": [{"trial": each.index, "error": each.error} for each in result.failed],
        "best_accuracy": float(trials["clean_accuracy"].max()),
        "dominating": _as_records(trials[trials["dominating"] & trials["within"]]),
        "go_on": again,
    }
    console.result(_text(trials, described, result, files, again), record)
    return 0


def _check(config: SweepConfig) -> None:
    """Check everything that can be checked before a graph is loaded."""
    from graycert._validation import check_choice, check_integer, check_open_unit
    from graycert.bounds import BOUNDS
    from graycert.rules import RULES

    models.check_name(config.model, trained=False)
    check_choice("smooth", config.smooth, tuple(_SMOOTHED))
    check_choice("sampler", config.sampler, _SAMPLERS)
    check_choice("rule", config.rule, tuple(RULES))
    check_choice("bound", config.bound, BOUNDS)
    check_open_unit("alpha", config.alpha, hint="It is a failure probability, e.g. 0.01.")
    check_integer("min_distance", config.min_distance, at_least=0, hint="It counts hops to the target.")


def _described(config: SweepConfig) -> "SmoothingSweep":
    """Return what is swept, with the number of trials left open."""
    from graycert.reproduction.settings import Conclusion, TrainingSettings
    from graycert.reproduction.smoothing_sweep import SmoothingSweep

    skip = config.skip if is_own(config.model) else config.skip is not False
    model = {"graph": _named_graph(config), "architecture": config.model, "skip": bool(skip)}
    try:
        training = TrainingSettings.model_validate({**model, **config.model_dump(include=_TRAINING)})
    except ValidationError as error:
        raise InvalidParameterError(type_problem(error)) from error
    conclusion = Conclusion(min_distance=config.min_distance, bound=config.bound, rule=config.rule, alpha=config.alpha)
    return SmoothingSweep.model_validate(
        {
            "training": training,
            "smoothed": _SMOOTHED[config.smooth],
            "conclusions": (conclusion,),
            "num_selection": config.num_selection,
            "num_estimation": config.num_estimation,
            "seed": config.seed,
        }
    )


def _budget(config: SweepConfig) -> "Budget":
    from graycert.reproduction.sweep import Budget

    return Budget.parse(config.budget)


def _destination(config: SweepConfig) -> Path:
    """Return the folder, which must be new, empty or that of a sweep."""
    from graycert.runs.store import can_write

    out = Path(config.out or default_run("sweep", config.graph)).expanduser().resolve()
    existing = next(folder for folder in (out, *out.parents) if folder.exists())
    if not can_write(existing):
        raise InvalidFileError(f"`--out` must be writable, got {out}, but {existing} is no folder to write to.")
    own = ("lab", ".", "sweep.")  # what a first try may leave that found the split impossible, or was killed
    others = [path.name for path in out.iterdir() if not path.name.startswith(own)] if out.exists() else []
    if others and not (out / "sweep.toml").exists():
        raise InvalidFileError(
            f"`--out` must be a new folder or that of a sweep, got {out}, which holds {min(others)}. Choose another."
        )
    return out


def _planned(
    config: SweepConfig, described: "SmoothingSweep", budget: "Budget", out: Path, console: Console
) -> "Sweep":
    """Return the sweep, once its graph and model turned out to be usable."""
    from graycert.reproduction.lab import Lab
    from graycert.reproduction.sweep import AdaptiveDesign

    lab = Lab(out / "lab", data_root=config.data_root)
    _keep_description(config, lab.folder)
    with about("graph"):
        data = lab.graph(described.training.graph)
    graphs.tell(data, console)
    graphs.refuse_another_split(config, data)
    described.refuse(lab)
    console.say(
        f"graph {data.graph_name}: {data.num_nodes:,} nodes, {data.edge_index.size(1):,} directed edges, "
        f"{lab.split(described.training).test.nodes.numel():,} test nodes"
    )
    design = (
        described.design
        if config.sampler == "random"
        else AdaptiveDesign(ranges=described.design.ranges, seed=described.seed, sampler=config.sampler)
    )
    return described.as_sweep(lab, directory=out, design=design, budget=budget)


def _named_graph(config: SweepConfig) -> str:
    """Return by what name the lab knows the graph: its own, a path, or the description that the sweep keeps."""
    if config.nodes is None and not graphs.options_of_graph(config):
        return whole(config.graph)
    return f"{Path(config.graph).name.split('.')[0]}.toml"


def _keep_description(config: SweepConfig, folder: Path) -> None:
    """Keep in the folder of the lab what was said of the graph, for all workers and later calls."""
    from graycert.data.description import write_description

    name = _named_graph(config)
    if name == whole(config.graph):
        return
    options = graphs.options_of_graph(config)
    nodes = None if config.nodes is None else whole(config.nodes)
    write_description(folder / name, graph=whole(config.graph), nodes=nodes, options=options)


def _trials(result: "SweepResult", described: "SmoothingSweep") -> "pd.DataFrame":
    import pandas as pd

    from graycert.reproduction.pareto_fronts import marked

    return marked(pd.read_parquet(result.table).assign(panel="", line=described.smoothed))


def _draw(trials: "pd.DataFrame", described: "SmoothingSweep", out: Path) -> None:
    from graycert._files import write_atomically
    from graycert.reproduction.pareto_fronts import draw_panel
    from graycert.reproduction.style import add_legend, new_figure, paper_style

    with paper_style():
        figure, axes = new_figure(width=4.4, height=3.2)
        draw_panel(axes[0, 0], trials)
        axes[0, 0].set_title(_title(described))
        add_legend(figure)
        for name in _FIGURES:
            write_atomically(out / name, figure.savefig)


def _title(described: "SmoothingSweep") -> str:
    from graycert.reproduction.kinds.pareto import TITLES, architecture_title

    training = described.training
    graph = TITLES.get(training.graph, Path(training.graph).stem)
    return f"{architecture_title(training.architecture)}{' with skip' if training.skip else ''} on {graph}"


def _text(
    trials: "pd.DataFrame", described: "SmoothingSweep", result: "SweepResult", files: list[str], again: str
) -> str:
    from graycert.reproduction.smoothing_sweep import ROBUSTNESS

    best = trials[trials["dominating"] & trials["within"]].sort_values(ROBUSTNESS)
    parameters = described.parameters
    names = {"train_p_delete": "training p_d", "train_p_ablate": "training p_a", "p_delete": "p_d", "p_ablate": "p_a"}
    columns = ("trial", *(names[name] for name in parameters), "accuracy", "AUCRC", "normalised", "abstained")
    rows = [
        (
            str(int(row["index"])),
            *(f"{row[name]:.3f}" for name in (*parameters, "clean_accuracy")),
            f"{row['aucrc']:.2f}",
            *(f"{row[name]:.3f}" for name in ("normalized_aucrc", "abstain_ratio")),
            *(f"{row[f'certified_ratio_{radius}']:.3f}" for radius in _SHOWN_RADII),
        )
        for _, row in best.iterrows()
    ]
    failed = f", {len(result.failed)} failed ({result.failed[0].error})" if result.failed else ""
    distance = described.conclusions[0].min_distance
    return "\n".join(
        [
            f"{_title(described)}, {described.smoothed} smoothed: {result.num_finished:,} trials{failed}. Hostile "
            f"nodes at distance >= {distance}.",
            "",
            "Trials that no other one dominates, at most 5 % below the best accuracy:",
            "",
            table((*columns, *(f"ρ={radius}" for radius in _SHOWN_RADII)), rows, left=0),
            "",
            "AUCRC: mean certified radius; normalised: mean certified share of the hostile nodes in reach; ρ=1 and so "
            "on: share of the test nodes that hold against so many.",
            "Written:",
            *(f"  {file}" for file in files),
            "Go on with more trials:",
            f"  {again}",
        ]
    )


def _command(config: SweepConfig, file: str | None, out: Path, result: "SweepResult") -> str:
    """Return the command that goes on with twice as many trials."""
    words = ["graycert", "sweep"] + ([] if file is None else ["--config", file])
    told = set(GraphConfig.model_fields) - {"data_root"}
    words += graphs.as_flags(config) if config.model_fields_set & told else []
    for name in SweepConfig.model_fields:
        value = getattr(config, name)
        if name in told or name in ("out", "budget", "retry_failed") or value == getattr(_DEFAULTS, name):
            continue
        flag = name.replace("_", "-")
        words += [f"--{flag}" if value else f"--no-{flag}"] if isinstance(value, bool) else [f"--{flag}", str(value)]
    more = 2 * (result.num_finished + len(result.failed))
    return shlex.join([*words, "--out", shown(out), "--budget", str(more)])


def _as_records(trials: "pd.DataFrame") -> list[dict[str, Any]]:
    kept = trials.drop(columns=["panel", "line", "dominating", "within"])
    return [
        {str(name): None if value != value else value for name, value in row.items()} for row in kept.to_dict("records")
    ]
