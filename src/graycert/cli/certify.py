"""`graycert certify`: graph and model in, certificates out."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from graycert._versions import versions
from graycert.cli import graphs, models
from graycert.cli.config_file import resolve
from graycert.cli.configs import CertifyConfig
from graycert.cli.console import Console
from graycert.cli.node_files import read_nodes, read_trusted
from graycert.cli.places import default_run, shown
from graycert.cli.provenance import weights_sha256
from graycert.cli.training import check_training, train_model

_NOT_SETTINGS = {"out", "overwrite", "data_root"}  # where files are says nothing about what was done

_DEFAULTS = CertifyConfig()


def certify(
    *,
    options: Annotated[CertifyConfig, Parameter(name="*")] = _DEFAULTS,
    config: str | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    quiet: Annotated[bool, Parameter(name=("--quiet", "-q"), negative=())] = False,
) -> int:
    """Certify predictions: train a model (unless weights are given), draw votes, and write a run directory.

    Args:
        options: What to certify and how.
        config: TOML file with any of these options as keys (p_delete = 0.31); flags win over it.
        json: Print one JSON object instead of text.
        quiet: No progress and no remarks on standard error.
    """
    console = Console(as_json=json, quiet=quiet)
    settings = resolve(options, config)
    _check(settings)
    out = _destination(settings)
    data = graphs.load(settings, console)
    targets = settings.targets or ("test" if data.get("y") is not None else "all")
    named = read_nodes(targets, data, flag="targets") if targets not in ("test", "all") else None
    trusted = read_trusted(settings.trusted, data)
    chosen = models.choose(settings, data, console)
    split = graphs.make_split(settings, data) if chosen.needs_training else None
    nodes = graphs.test_nodes(settings, data) if targets == "test" else named
    threat = _threat(settings, chosen, trusted, data, nodes)
    trained = train_model(settings, chosen.module, split, console) if chosen.needs_training else None
    _warn_of_another_split(chosen, settings, targets, console)
    certificates = _certify(
        settings,
        chosen,
        data,
        nodes,
        threat,
        console,
        {
            "graph": graphs.graph_record(settings, data),
            "split": _split_record(settings, targets) if split is not None or targets == "test" else None,
            "model": {**chosen.record, "weights_sha256": weights_sha256(chosen.module)},
            "training": trained or chosen.notes.get("training"),
            "versions": versions(),
            "options": settings.model_dump(exclude=_NOT_SETTINGS),
        },
    )
    folder = certificates.save(out, overwrite=settings.overwrite)
    if chosen.is_builtin:
        _keep_model(chosen, certificates, folder)
    files = sorted(str(path) for path in folder.iterdir())
    text = "\n".join(
        [certificates.summary(), "", f"Written to {shown(folder)}:", *(f"  {Path(file).name}" for file in files)]
    )
    console.result(text, {"command": "certify", "out": str(folder), "files": files, "summary": _summary(certificates)})
    return 0


def _check(config: CertifyConfig) -> None:
    """Check everything that can be checked before a graph is loaded or a model trained."""
    from graycert._validation import check_choice, check_integer, check_open_unit
    from graycert.bounds.evaluation import METHODS
    from graycert.rules import RULES
    from graycert.smoothing.interception.parameters import InterceptionSmoothing

    check_training(config)
    InterceptionSmoothing(p_delete=config.p_delete, p_ablate=config.p_ablate)
    if config.min_distance is not None:
        check_integer("min_distance", config.min_distance, at_least=0, hint="It counts hops to the target.")
    check_integer("n0", config.n0, at_least=1, hint="It is the number of draws that choose the class.")
    check_integer("n1", config.n1, at_least=1, hint="It is the number of draws that bound its lead.")
    check_open_unit("alpha", config.alpha, hint="It is a failure probability, e.g. 0.01.")
    check_choice("rule", config.rule, RULES)
    if config.collective:
        from graycert.certification.collective import refuse_unsound_rule

        refuse_unsound_rule(config.rule)
    check_choice("method", config.method, METHODS)
    check_integer("max_radius", config.max_radius, at_least=1)
    if config.engine != "auto":
        from graycert.sampling import ENGINES

        check_choice("engine", config.engine, ENGINES)
    if config.batch_size is not None:
        check_integer("batch_size", config.batch_size, at_least=1)
    models.check_name(config.model)


def _split_record(config: CertifyConfig, targets: str) -> dict[str, Any]:
    return {**graphs.split_record(config), "targets": targets}


def _destination(config: CertifyConfig) -> Path:
    from graycert.runs.store import check_destination

    return check_destination(config.out or default_run("certify", config.graph), overwrite=config.overwrite)


def _threat(config: CertifyConfig, chosen: models.ChosenModel, trusted: Any, data: Any, nodes: Any) -> Any:
    """Return the threat, refused before training if the model cannot be certified against it."""
    import numpy as np

    from graycert.certification.arguments import refuse_exposed_target
    from graycert.threats.node_features import NodeFeatureThreat

    distance = config.min_distance if config.min_distance is not None else int(chosen.skip)
    threat = NodeFeatureThreat(min_distance=distance, trusted=trusted)
    everywhere = np.arange(int(data.num_nodes)) if nodes is None else np.asarray(nodes)
    refuse_exposed_target(chosen.module, threat, everywhere)
    return threat


def _warn_of_another_split(chosen: models.ChosenModel, config: CertifyConfig, targets: str, console: Console) -> None:
    """Certificates hold anyhow, but accuracy on nodes that were trained on says little."""
    made = chosen.notes.get("split")
    if targets == "test" and isinstance(made, dict) and made != graphs.split_record(config):
        console.warn(
            f"the weights were trained on another split ({made}), so these test nodes may have been trained on. The "
            f"certificates hold, the accuracy may flatter; pass --seed {made.get('seed')}."
        )


def _certify(
    config: CertifyConfig,
    chosen: models.ChosenModel,
    data: Any,
    nodes: Any,
    threat: Any,
    console: Console,
    provenance: dict[str, Any],
) -> Any:
    from graycert.certification import certify as certify_nodes
    from graycert.certification.collective import DEFAULT_BUDGETS
    from graycert.smoothing.interception.parameters import InterceptionSmoothing

    return certify_nodes(
        chosen.module,
        data,
        smoothing=InterceptionSmoothing(p_delete=config.p_delete, p_ablate=config.p_ablate),
        targets=nodes,
        threat=threat,
        num_layers=config.num_layers,
        num_selection=config.n0,
        num_estimation=config.n1,
        alpha=config.alpha,
        simultaneous=config.simultaneous,
        collective=DEFAULT_BUDGETS if config.collective else None,
        rule=config.rule,
        method=config.method,
        max_radius=config.max_radius,
        seed=config.seed,
        device=_device(config.device),
        batch_size=config.batch_size,
        engine=config.engine,
        progress=console.progress,
        say=console.say,
        provenance=provenance,
    )


def _device(name: str | None) -> str | None:
    import torch

    if name != "auto":
        return name
    return "cuda" if torch.cuda.is_available() else "cpu"


def _keep_model(chosen: models.ChosenModel, certificates: Any, folder: Path) -> None:
    from graycert.models import save_model

    kept = {name: certificates.provenance.get(name) for name in ("graph", "training", "versions")}
    split = certificates.provenance["split"] if chosen.needs_training else chosen.notes.get("split") or {}
    kept["split"] = {name: value for name, value in split.items() if name != "targets"}
    notes = {name: value for name, value in kept.items() if value}
    save_model(chosen.module, folder / "model.safetensors", notes=notes)


def _summary(certificates: Any) -> dict[str, Any]:
    from graycert.runs.words import summary_record

    return summary_record(certificates)
