"""Models of single nodes on the command line: `--model` names the teacher, unless it is a model of single nodes."""

import time
from dataclasses import replace
from typing import Any, TypeVar

from graycert.cli import models
from graycert.cli.configs import TrainingConfig, WeightsConfig
from graycert.cli.console import Console
from graycert.cli.training import train_model
from graycert.models.names import DEFAULT_TEACHER, PER_NODE, is_own
from graycert.smoothing import SMOOTHINGS

_OF_STUDENTS = ("max_epochs", "patience")
_OF_TEACHERS = (*_OF_STUDENTS, "learning_rate", "weight_decay")

ConfigT = TypeVar("ConfigT", bound=TrainingConfig)


def distils(smoothing: str) -> bool:
    """Return whether a smoothing is made of a model of single nodes, which is distilled."""
    return SMOOTHINGS[smoothing].learns_by == "distillation"


def with_teacher(config: ConfigT) -> ConfigT:
    """Return the options with the default teacher where none is named, trained without interception unless told so."""
    named = config.model_fields_set
    changes: dict[str, Any] = {} if named & {"model", "weights"} else {"model": DEFAULT_TEACHER}
    changes |= {name: 0.0 for name in ("train_p_delete", "train_p_ablate") if name not in named}
    return config.model_copy(update=changes)


def choose(config: WeightsConfig, data: Any, console: Console) -> models.ChosenModel:
    """Return a model of single nodes that is there already, or one that is to be distilled, with its teacher."""
    if config.model == DEFAULT_TEACHER:
        return _to_be_distilled(data, teacher=None)
    found = models.choose(config, data, console)
    if is_own(config.model) and config.weights is None:
        found = replace(found, needs_training=True)
    return found if _sees_single_nodes(found.module, data) else _to_be_distilled(data, teacher=found)


def distilled(
    config: TrainingConfig, teacher: models.ChosenModel | None, split: Any, console: Console
) -> tuple[Any, dict[str, Any]]:
    """Return a model of single nodes and the record of its training; a teacher that is new is trained first."""
    from graycert.training import default_teacher, distill

    started, record = time.perf_counter(), None
    if teacher is None:
        console.say("training a teacher")
        module = default_teacher(split, seed=config.seed, progress=console.progress, **_said(config, *_OF_TEACHERS))
    else:
        module = teacher.module
        record = train_model(config, module, split, console) if teacher.needs_training else teacher.notes
    console.say("distilling it into a model of single nodes")
    student = distill(
        split,
        module,
        edge_inputs=config.edge_inputs,
        seed=config.seed,
        progress=console.progress,
        **_said(config, *_OF_STUDENTS),
    )
    found = {
        "distilled_from": config.model,
        "seed": config.seed,
        "validation_accuracy": _accuracy(student, split),
        "teacher_validation_accuracy": _accuracy(module, split),
        "seconds": time.perf_counter() - started,
    }
    console.say(told(found))
    return student, {**found, "teacher": record} if record else found


def without_unsaid(config: TrainingConfig, options: dict[str, Any]) -> dict[str, Any]:
    """Return options without those that were not given and for which distillation has defaults of its own."""
    return {
        name: value for name, value in options.items() if name not in _OF_TEACHERS or name in config.model_fields_set
    }


def _said(config: TrainingConfig, *names: str) -> dict[str, Any]:
    """Return the options of these names that were given; where none was, distillation has defaults of its own."""
    return {name: getattr(config, name) for name in names if name in config.model_fields_set}


def told(record: dict[str, Any]) -> str:
    """Say how a distilled model does."""
    own, teacher = record["validation_accuracy"], record["teacher_validation_accuracy"]
    return (
        f"distilled from {record['distilled_from']} in {record['seconds']:.1f} s: right on {own:.1%} of the validation "
        f"nodes, its teacher on {teacher:.1%}"
    )


def _to_be_distilled(data: Any, *, teacher: models.ChosenModel | None) -> models.ChosenModel:
    """Return a model that stands for the one to come, as far as refusals ask."""
    from graycert.models.build import dimensions
    from graycert.models.node_model import NodeModel, NodeModelConfig

    num_features, num_classes = dimensions(data)
    stub = NodeModelConfig(
        num_features=num_features, num_classes=num_classes, hidden_channels=1, members=1, input_dropout=0, dropout=0
    )
    record = {"name": PER_NODE, "weights": None, "config": None}
    return models.ChosenModel(
        module=NodeModel(stub), needs_training=True, record=record, notes={}, teacher=teacher, distils=True
    )


def _sees_single_nodes(module: Any, data: Any) -> bool:
    """Return whether edges make no difference to a model on its graph; the audit of `certify` tests the rest."""
    import torch

    from graycert.sampling import evaluation_mode

    if getattr(module, "num_layers", None) == 0:
        return True
    try:
        with torch.inference_mode(), evaluation_mode(module):
            with_edges, without = (module(data.x, edges) for edges in (data.edge_index, data.edge_index[:, :0]))
    except Exception:  # whatever a model raises that needs more than features and edges
        return False
    return isinstance(without, torch.Tensor) and torch.equal(with_edges, without)


def _accuracy(module: Any, split: Any) -> float:
    """Return the share of the validation nodes that a model is right on."""
    import torch

    from graycert.sampling import evaluation_mode
    from graycert.sampling.voting import skip_logits_of

    part = split.validation
    with torch.inference_mode(), evaluation_mode(module):
        scores, skip = module(part.data.x, part.data.edge_index), skip_logits_of(module, part.data.x)
    right = (scores if skip is None else scores + skip).argmax(dim=1) == part.data.y
    return float(right[part.nodes].double().mean())
