"""`graycert train`: graph and architecture in, weights out."""

import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from graycert._versions import versions
from graycert.cli import graphs, models
from graycert.cli.config_file import resolve
from graycert.cli.configs import TrainConfig
from graycert.cli.console import Console
from graycert.cli.places import check_file, claimed, default_run
from graycert.cli.training import train_model
from graycert.models.names import is_own

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
    models.check_name(settings.model, trained=False)
    place = settings.out or str(default_run("train", settings.graph) / "model.safetensors")
    out = check_file(place, overwrite=settings.overwrite, suffixes=(".safetensors",))
    check_file(out.with_suffix(".json"), overwrite=settings.overwrite, suffixes=(".json",))
    with claimed(out):
        return _trained(settings, out, console)


def _trained(settings: TrainConfig, out: Path, console: Console) -> int:
    data = graphs.load(settings, console)
    split = graphs.make_split(settings, data)
    own = is_own(settings.model)
    model = models.new_model(settings, split)
    record = train_model(settings, model, split, console)
    notes = {
        "graph": {name: value for name, value in graphs.graph_record(data).items() if value is not None},
        "split": graphs.split_record(settings, data),
        "training": record,
        "versions": versions(),
    }
    from graycert.models import save_model, weights_sha256
    from graycert.models.weights import save_weights

    names = data.get("class_names")
    weights = save_weights(model, out, class_names=names, notes=notes) if own else save_model(model, out, notes=notes)
    files = [str(weights), str(weights.with_suffix(".json"))]
    text = "\n".join(
        [
            f"{settings.model}, validation loss {record['best_validation_loss']:.4f} in epoch {record['best_epoch']:,} "
            f"of {record['epochs']:,}.",
            "Written:",
            *(f"  {file}" for file in files),
            f"Next: {_next(settings, weights)}",
        ]
    )
    result = {"command": "train", "files": files, "weights_sha256": weights_sha256(model), "training": record}
    console.result(text, result)
    return 0


def _next(config: TrainConfig, weights: Path) -> str:
    """Return the command that certifies the model on the same graph."""
    model = [config.model, "--weights", str(weights)] if is_own(config.model) else [str(weights)]
    return shlex.join(["graycert", "certify", *graphs.as_flags(config), "--model", *model, "--seed", str(config.seed)])
