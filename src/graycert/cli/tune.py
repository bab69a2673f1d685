"""`graycert tune`: graph, model and what is wanted in; a table of settings and the line to certify with out."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from graycert.cli import graphs, models, tune_votes
from graycert.cli.config_file import resolve
from graycert.cli.configs import NO_NEGATIVE, TuneConfig
from graycert.cli.console import Console
from graycert.cli.declared import bounded_threats, made, options_of, refuse_foreign, tune_config, workers_of
from graycert.cli.node_files import read_masks
from graycert.cli.places import claimed, default_run, shown
from graycert.cli.training import check_loss, train_model
from graycert.errors import InvalidFileError, InvalidParameterError
from graycert.threats import NodeFeatureThreat

if TYPE_CHECKING:
    from graycert.tuning import Tuning

_SETTINGS, _FIGURE, _WEIGHTS = "settings.csv", "front.png", "model.safetensors"


def tune_command() -> Callable[..., int]:
    """Return the command, with the options of all threats that there are now."""
    kind = tune_config()
    defaults = kind()

    def tune(
        *,
        options: TuneConfig = defaults,
        config: str | None = None,
        json: Annotated[bool, NO_NEGATIVE] = False,
        quiet: Annotated[bool, Parameter(name=("--quiet", "-q"), negative=())] = False,
    ) -> int:
        """Choose settings on the validation nodes: try some, show what each costs and gives, recommend one.

        A model that was trained already is tried under each setting; one that is new is also trained under several.

        Args:
            options: What to try, and what is wanted.
            config: TOML file with any of these options as keys; flags win over it.
            json: Print one JSON object instead of text.
            quiet: No progress and no remarks on standard error.
        """
        return _run(resolve(options, config), Console(as_json=json, quiet=quiet))

    tune.__annotations__["options"] = Annotated[kind, Parameter(name="*")]
    return tune


def _run(config: TuneConfig, console: Console) -> int:
    from graycert.draws import Draws
    from graycert.tuning.choosing import DRAWS
    from graycert.tuning.want import Want

    if config.smoothing == "votes":
        return tune_votes.run(config, console)
    models.check_name(config.model)
    check_loss(config, trains=models.is_new(config))
    Want.parse(config.want)
    threat = bounded_threats()[config.threat]
    refuse_foreign(config, (threat, Draws), among=(*bounded_threats().values(), Draws))
    asked = {
        "draws": made(Draws, config, defaults={Draws: DRAWS.stored()[0]}),
        "settings": _pairs("settings", config.settings),
        "training": _pairs("training", config.training),
        "edge_inputs": config.edge_inputs,
        "execution": workers_of(config),
        **config.model_dump(include={"want", "sampler", "budget", "alpha", "seed", "num_layers"}),
    }
    out = destination(config)
    with claimed(out):
        return _tuned(config, asked, out, console)


def _tuned(config: TuneConfig, asked: dict[str, Any], out: Path, console: Console) -> int:
    from graycert.tuning import tune

    data = graphs.load(config, console)
    split = graphs.make_split(config, data)
    trains = models.is_new(config)
    model, skip = _model(config, data, split, console, trains=trains)
    kind = bounded_threats()[config.threat]
    threat = made(
        kind, config, defaults={NodeFeatureThreat: {"min_distance": int(skip)}}, **read_masks(kind, config, data)
    )
    tuning = tune(
        model,
        data,
        validation=split.validation.original[split.validation.nodes],
        threat=threat,
        directory=out,
        progress=console.progress,
        **asked,
    )
    for failure in tuning.failed:
        console.warn(f"a setting failed: {failure}")
    files = [str(_written(tuning, out / _SETTINGS)), *_drawn(tuning, out / _FIGURE, console)]
    files += [str(_kept_model(tuning, config, data, out))] if trains else []
    line = _certify_line(config, tuning, out, trains=trains)
    text = [*tuning.lines(), "", tuning.recommendation(), "", f"Written to {shown(out)}:"]
    text += [*(f"  {Path(file).name}" for file in files), "Next:", f"  {line}"]
    record = {
        "command": "tune",
        "out": str(out),
        "files": files,
        "settings": tuning.table.astype(object).where(tuning.table.notna(), None).to_dict("records"),
        "is_reached": tuning.is_reached,
        "failed": list(tuning.failed),
        "certify": line,
    }
    console.result("\n".join(text), record)
    return 0


def _model(config: TuneConfig, data: Any, split: Any, console: Console, *, trains: bool) -> tuple[Any, bool]:
    """Return the model, or what trains one, and whether a target's own features are always shown."""
    from graycert.models.protocol import has_skip

    if not trains:
        chosen = models.choose(config, data, console)
        made_on = chosen.notes.get("split")
        if isinstance(made_on, dict) and made_on != graphs.split_record(config, data):
            console.warn(
                f"the weights were trained on another split ({made_on}), so these validation nodes may have been "
                "trained on, and every setting may look better than it is."
            )
        return chosen.module, chosen.skip

    told = TuneConfig.model_validate(config.model_dump(include=set(TuneConfig.model_fields)))
    return Trained(told, split, console), has_skip(models.new_model(config, split))


@dataclass(frozen=True)
class Trained:
    """Trains a model under a smoothing as the options say, in this process or in another.

    Args:
        config: The options, but for those that `graycert.cli.declared` adds.
        split: What to train on.
        console: Told how it goes.
    """

    config: TuneConfig
    split: Any
    console: Console

    def __call__(self, smoothing: Any) -> Any:
        """Return a new model, trained."""
        under = {"train_p_delete": smoothing.p_delete, "train_p_ablate": smoothing.p_ablate}
        module = models.new_model(self.config, self.split)
        train_model(self.config.model_copy(update=under), module, self.split, self.console)
        return module


def _pairs(option: str, text: str | None) -> list[tuple[float, float]] | None:
    if text is None:
        return None
    try:
        return [(float(p_d), float(p_a)) for p_d, p_a in (pair.split(":") for pair in text.split(","))]
    except ValueError:
        raise InvalidParameterError(
            f"`--{option}` must be pairs P_D:P_A with commas between them, got {text!r}. Write 0:0.6,0.3:0.8."
        ) from None


def destination(config: TuneConfig) -> Path:
    """Return the folder, which must be new, empty or that of a tuning."""
    out = Path(config.out or default_run("tune", config.graph)).expanduser().resolve()
    if out.exists() and not (out.is_dir() and ((out / "sweep.toml").exists() or not any(out.iterdir()))):
        raise InvalidFileError(f"`--out` must be a new folder or that of a tuning, got {out}. Choose another.")
    return out


def _written(tuning: "Tuning", file: Path) -> Path:
    from graycert._files import write_atomically

    write_atomically(file, lambda path: tuning.table.to_csv(path, index=False))
    return file


def _drawn(tuning: "Tuning", file: Path, console: Console) -> list[str]:
    """Draw the front, where matplotlib is there."""
    try:
        return [str(tuning.figure(file))]
    except InvalidParameterError as error:
        console.warn(f"{file.name} is not drawn: {error}")
        return []


def _kept_model(tuning: "Tuning", config: TuneConfig, data: Any, out: Path) -> Path:
    """Keep the weights of the recommended setting, which are certified next."""
    from graycert._versions import versions
    from graycert.models import save_model
    from graycert.models.weights import OwnModel, save_weights

    training = tuning.training
    notes = {
        "graph": {name: value for name, value in graphs.graph_record(data).items() if value is not None},
        "split": graphs.split_record(config, data),
        "training": {} if training is None else training.stored()[0],
        "versions": versions(),
    }
    if isinstance(tuning.model, OwnModel):
        return save_model(tuning.model, out / _WEIGHTS, notes=notes)
    return save_weights(tuning.model, out / _WEIGHTS, class_names=data.get("class_names"), notes=notes)


def _certify_line(config: TuneConfig, tuning: "Tuning", out: Path, *, trains: bool) -> str:
    """Return the command that certifies with the recommended setting."""
    weights = shown(out / _WEIGHTS) if trains else config.weights
    own = ":" in config.model
    model = [config.model] if own or weights is None else [weights]
    words = ["graycert", "certify", *graphs.as_flags(config), "--model", *model]
    words += ["--weights", str(weights)] if own and weights is not None else []
    words += ["--p-delete", f"{tuning.smoothing.p_delete:g}", "--p-ablate", f"{tuning.smoothing.p_ablate:g}"]
    words += ["--threat", config.threat]
    for name in options_of(bounded_threats()[config.threat]):
        value = getattr(config, name)
        words += [] if value is None else [f"--{name.replace('_', '-')}", str(value)]
    for name in ("seed", "split", "per_class", "test_fraction", "num_layers", "alpha"):
        if name in config.model_fields_set:
            words += [f"--{name.replace('_', '-')}", str(getattr(config, name))]
    words += ["--without-edge-inputs"] if config.without_edge_inputs else []
    return shlex.join(words)
