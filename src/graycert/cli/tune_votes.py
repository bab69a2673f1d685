"""`graycert tune --smoothing votes`: graph and model in; a table of settings and the line to certify with out."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graycert.cli import distilling, graphs, models
from graycert.cli.configs import TuneConfig
from graycert.cli.console import Console
from graycert.cli.declared import bounded_threats, made, refuse_foreign
from graycert.cli.node_files import read_masks
from graycert.cli.places import claimed, default_run, shown
from graycert.cli.training import check_loss
from graycert.draws import Draws
from graycert.errors import InvalidFileError, InvalidParameterError
from graycert.models.names import DEFAULT_TEACHER
from graycert.threats import NodeFeatureThreat

if TYPE_CHECKING:
    from graycert.tuning import VotesTuning

_OF_INTERCEPTION = ("want", "settings", "training", "sampler", "budget", "backend", "workers", "scheduler")
_TABLE, _WEIGHTS = "settings.csv", "model.safetensors"


def run(config: TuneConfig, console: Console) -> int:
    """Do the work of the command."""
    named = config.model_fields_set
    foreign = next((name for name in _OF_INTERCEPTION if name in named), None)
    if foreign is not None:
        raise InvalidParameterError(
            f"`--{foreign}` belongs to --smoothing interception, got it with votes. Leave it out."
        )
    if config.alpha != TuneConfig.model_fields["alpha"].default:
        raise InvalidParameterError(
            f"`--alpha` belongs to --smoothing interception, got {config.alpha!r} with votes, where nothing is "
            "drawn. Leave it out."
        )
    if config.threat != NodeFeatureThreat.name:
        raise InvalidParameterError(f"`--threat` must be {NodeFeatureThreat.name} for votes, got {config.threat}.")
    refuse_foreign(config, (NodeFeatureThreat,), among=(*bounded_threats().values(), Draws))
    config = distilling.with_teacher(config)
    if config.model != DEFAULT_TEACHER:
        models.check_name(config.model)
    check_loss(config, trains=models.is_new(config))
    out = Path(config.out or default_run("tune", config.graph)).expanduser().resolve()
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise InvalidFileError(f"`--out` must be a new or empty folder, got {out}. Choose another.")
    with claimed(out):
        return _tuned(config, out, console)


def _tuned(config: TuneConfig, out: Path, console: Console) -> int:
    from graycert.models import save_model
    from graycert.tuning import tune_votes

    data = graphs.load(config, console)
    split = graphs.make_split(config, data)
    chosen = distilling.choose(config, data, console)
    threat = made(
        NodeFeatureThreat,
        config,
        defaults={NodeFeatureThreat: {"min_distance": 0}},
        **read_masks(NodeFeatureThreat, config, data),
    )
    module, record = chosen.module, chosen.notes.get("training")
    if chosen.distils:
        module, record = distilling.distilled(config, chosen.teacher, split, console)
    tuning = tune_votes(module, split, threat=threat, progress=console.progress)
    files = [_written(tuning, out / _TABLE)]
    model: Any = config.model
    if chosen.distils:
        notes = {"split": graphs.split_record(config, data), "training": record, "tuning": dict(tuning.chosen)}
        model = save_model(module, out / _WEIGHTS, notes=notes)
        files.append(model)
    line = _certify_line(config, tuning, shown(Path(model)) if chosen.distils else model)
    text = [str(tuning), "", f"Written to {shown(out)}:", *(f"  {file.name}" for file in files), "Next:", f"  {line}"]
    rows = tuning.table.astype(object).to_dict("records")
    said = {"command": "tune", "out": str(out), "files": list(map(str, files)), "settings": rows, "certify": line}
    console.result("\n".join(text), {**said, "chosen": dict(tuning.chosen)})
    return 0


def _written(tuning: "VotesTuning", file: Path) -> Path:
    from graycert._files import write_atomically

    write_atomically(file, lambda path: tuning.table.to_csv(path, index=False))
    return file


def _certify_line(config: TuneConfig, tuning: "VotesTuning", model: str) -> str:
    """Return the command that certifies with the recommended setting."""
    words = ["graycert", "certify", *graphs.as_flags(config), "--smoothing", "votes", "--model", model]
    words += [] if config.weights is None else ["--weights", config.weights]
    for name, value in tuning.chosen.items():
        flag = f"--{name.replace('_', '-')}"
        words += ([flag] if value else []) if isinstance(value, bool) else [flag, f"{value:g}"]
    for name in ("min_distance", "trusted", "seed", "split", "per_class", "test_fraction"):
        if name in config.model_fields_set and getattr(config, name) is not None:
            words += [f"--{name.replace('_', '-')}", str(getattr(config, name))]
    return shlex.join(words)
