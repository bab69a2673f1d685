"""`graycert certify`: graph and model in, certificates out."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from graycert._called import Called
from graycert._versions import versions
from graycert.cli import distilling, graphs, models
from graycert.cli import floor as floors
from graycert.cli.conditions import Conditions, Judgement
from graycert.cli.config_file import resolve
from graycert.cli.configs import NO_NEGATIVE, CertifyConfig
from graycert.cli.console import Console, about
from graycert.cli.declared import Chosen, certify_config, every_kind, made, made_draws, refuse_foreign
from graycert.cli.node_files import read_masks, read_nodes
from graycert.cli.places import claimed, default_run, shown
from graycert.cli.repetition import complete_options
from graycert.cli.training import check_loss, train_model
from graycert.cli.unfinished import place_of, unfinished
from graycert.draws import AnyDraws
from graycert.errors import InvalidParameterError
from graycert.models.names import DEFAULT_TEACHER, PER_NODE, is_own
from graycert.smoothing import SMOOTHINGS, Smoothing
from graycert.threats import NodeFeatureThreat, Threat

if TYPE_CHECKING:
    from graycert.certificates import Certificates
    from graycert.problem import Execution


def certify_command() -> Callable[..., int]:
    """Return the command, with the options of all smoothings, threats and draws that there are now."""
    kind = certify_config()
    defaults = kind()

    def certify(
        *,
        options: CertifyConfig = defaults,
        config: str | None = None,
        json: Annotated[bool, NO_NEGATIVE] = False,
        quiet: Annotated[bool, Parameter(name=("--quiet", "-q"), negative=())] = False,
    ) -> int:
        """Certify predictions: train a model (unless weights are given), draw votes, and write a run directory.

        Args:
            options: What to certify and how.
            config: TOML file with any of these options as keys (p_delete = 0.31); flags win over it. The
                config.toml of a run repeats the run.
            json: Print one JSON object instead of text.
            quiet: No progress and no remarks on standard error.
        """
        return _run(resolve(options, config), Console(as_json=json, quiet=quiet))

    certify.__annotations__["options"] = Annotated[kind, Parameter(name="*")]
    return certify


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What the options ask for, checked before a graph is loaded; the threat follows when nodes and model are known."""

    chosen: Chosen
    smoothing: Smoothing
    threat: Threat
    draws: AnyDraws | None
    rule: str
    execution: "Execution"
    conditions: Conditions

    @classmethod
    def by(cls, config: CertifyConfig, console: Console) -> "_Asked":
        from graycert.problem import Execution

        if config.model != DEFAULT_TEACHER or not distilling.distils(config.smoothing):
            models.check_name(config.model)
        check_loss(
            config, trains=models.is_new(config) and (distilling.distils(config.smoothing) or not is_own(config.model))
        )
        floors.check_option(config)
        with about("call"):
            Called.of(config.call)
        conditions = Conditions.of(config.fail_under, config.junit)
        chosen = Chosen.of(dict(config))
        refuse_foreign(config, chosen.kinds, among=every_kind())
        smoothing = made(chosen.smoothing, config)
        _check_labels_option(config, smoothing)
        draws = made_draws(chosen, config, smoothing)
        threat = _threat(config, chosen, skip=True, masks={})
        _refuse_idle(config, smoothing, _threat(config, chosen, skip=False, masks={}), draws)
        rule = config.rule or smoothing.default_rule(threat, draws)
        smoothing.check(threat=threat, rule=rule, draws=draws, bound=config.bound)
        if config.collective:
            smoothing.cell(threat.name, rule, "one adversary").require()
        execution = Execution(
            device=None if config.device == "auto" else config.device,
            engine=config.engine,
            batch_size=config.batch_size,
            memory=None if config.memory is None else config.memory * 2**20,
            progress=console.progress,
            say=console.say,
            block_size=config.block_size,
            backend=config.backend,
            workers=config.workers,
            scheduler=config.scheduler,
        )
        execution = _placed(config, execution)
        return cls(
            chosen=chosen,
            smoothing=smoothing,
            threat=threat,
            draws=draws,
            rule=rule,
            execution=execution,
            conditions=conditions,
        )


def _check_labels_option(config: CertifyConfig, smoothing: Smoothing) -> None:
    if config.spread_labels and not hasattr(smoothing, "label_propagation"):
        raise InvalidParameterError(
            f"`--spread-labels` belongs to --smoothing votes, got it with --smoothing {smoothing.name}. Leave it out."
        )


def _refuse_idle(config: CertifyConfig, smoothing: Smoothing, threat: Threat, draws: AnyDraws | None) -> None:
    """Refuse options that have no effect on what is certified; a stored run repeats the usual values of all of them."""
    idle = dict(smoothing.idle(threat))
    effective = [
        *(["label_weight"] if config.spread_labels else []),
        *(["gamma", "gate"] if getattr(config, "trusted", None) else []),
    ]
    idle = {name: belongs for name, belongs in idle.items() if name not in effective}
    if draws is None:
        drawn = [name for name, kind in SMOOTHINGS.items() if kind.draws_allowed]
        idle |= dict.fromkeys(("alpha", "simultaneous"), f"what is drawn (--smoothing {', '.join(drawn)})")
    if distilling.distils(config.smoothing) and config.model == DEFAULT_TEACHER:
        idle["skip"] = "a model that passes messages (--model gat, gcn, gatv2 or sma)"
    usual = {each.name: each.default for each in fields(smoothing)}
    for name, belongs in idle.items():
        value = getattr(config, name, None)
        if value is not None and value not in (type(config).model_fields[name].default, usual.get(name)):
            raise InvalidParameterError(
                f"`--{name.replace('_', '-')}` belongs to {belongs}, got it with --smoothing {smoothing.name}, where "
                "it has no effect. Leave it out."
            )


def _run(config: CertifyConfig, console: Console) -> int:
    if distilling.distils(config.smoothing):
        config = distilling.with_teacher(config)
    asked = _Asked.by(config, console)
    out, replaced = _destination(config)
    asked.conditions.refuse_within(out)
    with claimed(out):
        return _certified(config, asked, out, console, replaced=replaced)


def _certified(config: CertifyConfig, asked: _Asked, out: Path, console: Console, *, replaced: bool) -> int:
    data = graphs.load(config, console)
    targets = config.targets or ("test" if data.get("y") is not None else "all")
    named = read_nodes(targets, data, flag="targets") if targets not in ("test", "all") else None
    masks = read_masks(asked.chosen.threat, config, data)
    choose = distilling.choose if distilling.distils(config.smoothing) else models.choose
    chosen = choose(config, data, console)
    needs_split = chosen.needs_training or config.spread_labels or config.floor == floors.DISTILL
    split = graphs.make_split(config, data) if needs_split else None
    nodes = graphs.test_nodes(config, data) if targets == "test" else named
    threat = _threat(config, asked.chosen, skip=chosen.skip, masks=masks)
    smoothing: Any = asked.smoothing
    arguments = {
        "smoothing": replace(smoothing, label_propagation=split) if config.spread_labels else smoothing,
        "threat": threat,
        "draws": asked.draws,
        "rule": asked.rule,
        "edge_inputs": config.edge_inputs,
        **config.model_dump(include={"bound", "alpha", "simultaneous", "max_radius", "seed", "num_layers"}),
    }
    _refuse(chosen, data, nodes, arguments, asked.conditions, with_floor=config.floor is not None)
    _warn_of_another_split(chosen, graphs.split_record(config, data), targets, console)
    options = complete_options(
        config.model_copy(update=graphs.undrawn(config, data)),
        (asked.smoothing, threat, asked.draws),
        smoothing=asked.smoothing.name,
        threat=threat.name,
        rule=asked.rule,
        targets=targets,
        floor=floors.option_of(config),
    )
    if chosen.distils:
        options = distilling.without_unsaid(config, options)
    floor = floors.choose(config, data, split, console)
    with unfinished(out, options, overwrite=config.overwrite) as run:
        trained = None
        if chosen.needs_training:
            module, trained = run.trained(lambda: _trained(config, chosen, split, console))
            record = models.record_of(module, PER_NODE) if chosen.distils else chosen.record
            chosen = replace(chosen, module=module, record=record)
        certificates = _certificates(
            config,
            chosen,
            data,
            nodes,
            replace(asked.execution, folder=run.folder),
            {
                **arguments,
                "floor": floor,
                "called": config.call,
                "provenance": _provenance(config, data, chosen, targets, trained, options),
            },
        )
        folder = _saved(certificates, out, overwrite=replaced)
        if chosen.is_builtin:
            _keep_model(chosen, certificates, folder)
        floors.keep(floor, folder)
    judgement = asked.conditions.judge(certificates, suite=f"graycert certify {shown(folder)}")
    _tell(certificates, folder, judgement, console, brief=config.brief)
    return judgement.tell()


def _trained(
    config: CertifyConfig, chosen: models.ChosenModel, split: Any, console: Console
) -> tuple[Any, dict[str, Any]]:
    """Return the trained model and the record of its training."""
    if chosen.distils:
        return distilling.distilled(config, chosen.teacher, split, console)
    record = train_model(config, chosen.module, split, console)
    return chosen.module, record


def _provenance(
    config: CertifyConfig,
    data: Any,
    chosen: models.ChosenModel,
    targets: str,
    trained: dict[str, Any] | None,
    options: dict[str, Any],
) -> dict[str, Any]:
    from graycert.models import weights_sha256

    of_split = chosen.needs_training or targets == "test"
    return {
        "graph": graphs.graph_record(data),
        "split": {**graphs.split_record(config, data), "targets": targets} if of_split else None,
        "model": {**chosen.record, "weights_sha256": weights_sha256(chosen.module)},
        "training": trained or chosen.notes.get("training"),
        "versions": versions(),
        "options": options,
    }


def _saved(certificates: "Certificates", out: Path, *, overwrite: bool) -> Path:
    """Return the folder of the run; where something else has taken its place meanwhile, nothing is lost."""
    from graycert.errors import InvalidFileError

    with about("out"):
        try:
            return certificates.save(out, overwrite=overwrite)
        except InvalidFileError as error:
            number = 2
            while (other := out.with_name(f"{out.name}-{number}")).exists():
                number += 1
            kept = certificates.save(other)
            raise InvalidFileError(f"{error} What was certified is kept in {kept}.") from error


def _threat(config: CertifyConfig, chosen: Chosen, *, skip: bool, masks: dict[str, Any]) -> Threat:
    """Return the threat; by default hostile nodes are not the target where its own features are always shown."""
    distance = int(skip or chosen.smoothing.shows_target)
    return made(chosen.threat, config, defaults={NodeFeatureThreat: {"min_distance": distance}}, **masks)


def _destination(config: CertifyConfig) -> tuple[Path, bool]:
    """Return the folder of the run, and whether a run there is replaced: also one whose clearing up was cut short."""
    from graycert.runs.store import check_destination

    with about("out"):
        out = Path(config.out or default_run("certify", config.graph)).expanduser().resolve()
        replaced = config.overwrite or place_of(out).is_dir()
        return check_destination(out, overwrite=replaced), replaced


def _refuse(
    chosen: models.ChosenModel,
    data: Any,
    nodes: Any,
    arguments: dict[str, Any],
    conditions: Conditions,
    *,
    with_floor: bool,
) -> None:
    """Refuse before training what the form of the model rules out, and conditions that nothing could meet."""
    from graycert.data import validate_data
    from graycert.problem import Problem
    from graycert.sampling.floor import refuse_exposed
    from graycert.setup import Setup

    validate_data(data)
    setup = Setup(**arguments)
    conditions.check(setup, data)
    problem = Problem.of(data, nodes, setup=setup, model=chosen.module)
    setup.smoothing.method.refuse(problem)
    if with_floor:
        refuse_exposed(problem)


def _placed(config: CertifyConfig, execution: "Execution") -> "Execution":
    """Return where to compute, which must exist, with the device that "auto" stands for."""
    if config.device == "auto":
        import torch

        execution = replace(execution, device="cuda" if torch.cuda.is_available() else "cpu")
    execution.place()
    return execution


def _warn_of_another_split(chosen: models.ChosenModel, split: dict[str, Any], targets: str, console: Console) -> None:
    """Certificates hold anyhow, but accuracy on nodes that were trained on says little."""
    made_on = chosen.notes.get("split")
    if targets == "test" and isinstance(made_on, dict) and made_on != split:
        advice = f"; pass --seed {made_on['seed']}" if "seed" in made_on else ""
        console.warn(
            f"the weights were trained on another split ({made_on}), so these test nodes may have been trained on. The "
            f"certificates hold, the accuracy may flatter{advice}."
        )


def _certificates(
    config: CertifyConfig,
    chosen: models.ChosenModel,
    data: Any,
    nodes: Any,
    execution: "Execution",
    arguments: dict[str, Any],
) -> "Certificates":
    from graycert.certification import certify

    certificates = certify(chosen.module, data, targets=nodes, execution=execution, **arguments)
    if config.collective:
        certificates = certificates.replace(collective=certificates.against_one_adversary(data))
    return certificates


def _keep_model(chosen: models.ChosenModel, certificates: "Certificates", folder: Path) -> None:
    from graycert.models import save_model

    provenance = certificates.setup.provenance
    kept = {name: provenance.get(name) for name in ("graph", "training", "versions")}
    split = provenance["split"] if chosen.needs_training else chosen.notes.get("split") or {}
    kept["split"] = {name: value for name, value in split.items() if name != "targets"}
    notes = {name: value for name, value in kept.items() if value}
    save_model(chosen.module, folder / "model.safetensors", notes=notes)


def _tell(certificates: "Certificates", folder: Path, judgement: Judgement, console: Console, *, brief: bool) -> None:
    from graycert._phases import time_in_words
    from graycert.runs.brief import brief_summary
    from graycert.runs.floor import with_folder
    from graycert.runs.words import summary_record

    files = sorted(str(path) for path in folder.iterdir())
    said = (
        [brief_summary(certificates), "", f"Everything else: {shown(folder / 'report.html')}"]
        if brief
        else [
            certificates.summary(),
            "",
            f"Written to {shown(folder)}:",
            *(f"  {Path(file).name}" for file in files),
        ]
    )
    text = with_folder("\n".join([*said, *judgement.lines]), shown(folder))
    record = {"command": "certify", "out": str(folder), "files": files, "summary": summary_record(certificates)}
    record |= {"seconds": dict(certificates.seconds), **judgement.record}
    console.say(f"certified in {time_in_words(certificates.seconds)}")
    console.result(text, record)
