"""`graycert train`: graph and architecture in, weights out."""

import shlex
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from graycert._versions import versions
from graycert.cli import distilling, graphs, models
from graycert.cli.config_file import resolve
from graycert.cli.configs import TrainConfig
from graycert.cli.console import Console
from graycert.cli.places import check_file, claimed, default_run
from graycert.cli.training import check_loss, train_model
from graycert.models.names import DEFAULT_TEACHER, is_own

_DEFAULTS = TrainConfig()


def train(
    *,
    options: Annotated[TrainConfig, Parameter(name="*")] = _DEFAULTS,
    config: str | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    quiet: Annotated[bool, Parameter(name=("--quiet", "-q"), negative=())] = False,
) -> int:
    """Train a model under smoothing: weights and what they were made from, for `graycert certify --model FILE`.

    Args:
        options: What to train and how.
        config: TOML file with any of these options as keys; flags win over it.
        json: Print one JSON object instead of text.
        quiet: No progress and no remarks on standard error.
    """
    console = Console(as_json=json, quiet=quiet)
    settings = resolve(options, config)
    if settings.smoothing == "votes":
        settings = distilling.with_teacher(settings)
    if settings.model != DEFAULT_TEACHER or settings.smoothing != "votes":
        models.check_name(settings.model, trained=False)
    check_loss(settings, trains=settings.model != DEFAULT_TEACHER)
    place = settings.out or str(default_run("train", settings.graph) / "model.safetensors")
    out = check_file(place, overwrite=settings.overwrite, suffixes=(".safetensors",))
    check_file(out.with_suffix(".json"), overwrite=settings.overwrite, suffixes=(".json",))
    with claimed(out):
        return _trained(settings, out, console)


def _trained(settings: TrainConfig, out: Path, console: Console) -> int:
    data = graphs.load(settings, console)
    split = graphs.make_split(settings, data)
    model, record = _model(settings, split, console)
    notes = {
        "graph": {name: value for name, value in graphs.graph_record(data).items() if value is not None},
        "split": graphs.split_record(settings, data),
        "training": record,
        "versions": versions(),
    }
    from graycert.models import save_model, weights_sha256
    from graycert.models.weights import OwnModel, save_weights

    names = data.get("class_names")
    if isinstance(model, OwnModel):
        weights = save_model(model, out, notes=notes)
    else:
        weights = save_weights(model, out, class_names=names, notes=notes)
    files = [str(weights), str(weights.with_suffix(".json"))]
    text = "\n".join(
        [
            _told(settings, record),
            "Written:",
            *(f"  {file}" for file in files),
            f"Next: {_next(settings, weights)}",
        ]
    )
    result = {"command": "train", "files": files, "weights_sha256": weights_sha256(model), "training": record}
    console.result(text, result)
    return 0


def _model(settings: TrainConfig, split: Any, console: Console) -> tuple[Any, dict[str, Any]]:
    """Return a trained model and the record of its training."""
    if settings.smoothing == "votes" and settings.model == DEFAULT_TEACHER:
        return distilling.distilled(settings, None, split, console)
    model = models.new_model(settings, split)
    if settings.smoothing == "votes":
        teacher = models.ChosenModel(module=model, needs_training=True, record={}, notes={})
        return distilling.distilled(settings, teacher, split, console)
    return model, train_model(settings, model, split, console)


def _told(settings: TrainConfig, record: dict[str, Any]) -> str:
    if settings.smoothing == "votes":
        told = distilling.told(record)
        return f"{told[0].upper()}{told[1:]}."
    return (
        f"{settings.model}, validation loss {record['best_validation_loss']:.4f} in epoch {record['best_epoch']:,} "
        f"of {record['epochs']:,}."
    )


def _next(config: TrainConfig, weights: Path) -> str:
    """Return the command that certifies the model on the same graph."""
    if config.smoothing == "votes":
        model = ["--smoothing", "votes", "--model", str(weights)]
    else:
        model = ["--model", *([config.model, "--weights"] if is_own(config.model) else []), str(weights)]
    return shlex.join(["graycert", "certify", *graphs.as_flags(config), *model, "--seed", str(config.seed)])
