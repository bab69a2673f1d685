"""A model of single nodes as the floor of a certificate: may it be one, and what does it say of the targets?"""

from typing import Any

import torch
from torch import Tensor, nn

from graycert._types import IntArray
from graycert.errors import InvalidParameterError
from graycert.models.weights import OwnModel, weights_sha256
from graycert.problem import Problem, check_class_names
from graycert.sampling.alone import scores_alone
from graycert.sampling.scores import voted_class
from graycert.sampling.voting import evaluation_mode

HOW = "node_model = graycert.distill(split), and floor=node_model"


def check_floor(floor: nn.Module, problem: Problem) -> None:
    """Refuse what says nothing at every ρ: a model that remembers or may not fit, or a target that may be hostile.

    Raises:
        InvalidParameterError: If it is refused.
    """
    if not isinstance(floor, OwnModel):
        raise InvalidParameterError(
            f"`floor` must come from distill or build_model, of which it is known that they remember nothing, got "
            f"{type(floor).__name__}. Distil it: graycert.distill(split, teacher=model)."
        )
    refuse_exposed(problem)
    num_features = int(problem.data.x.size(1))
    if floor.config.num_features != num_features:
        raise InvalidParameterError(
            f"`floor` must take {num_features} features for this graph, got a model for {floor.config.num_features}. "
            f"Write {HOW}."
        )
    check_class_names(floor.class_names, getattr(problem.data, "class_names", None))
    known = problem.model.config.num_classes if isinstance(problem.model, OwnModel) else floor.config.num_classes
    refuse_other_classes(floor, known)


def refuse_exposed(problem: Problem) -> None:
    """Refuse a floor where a target may be hostile itself.

    Raises:
        InvalidParameterError: If one may.
    """
    if problem.exposed().any():
        raise InvalidParameterError(
            "`floor` must be left out where a target may be hostile itself, got a threat that includes targets: their "
            "own features are then the adversary's. Leave it out, or exclude the target: "
            "NodeFeatureThreat(min_distance=1), --min-distance 1."
        )


def refuse_other_classes(floor: Any, num_classes: int) -> None:
    """Refuse a floor with other classes than the model.

    Raises:
        InvalidParameterError: If it has.
    """
    if floor.config.num_classes != num_classes:
        raise InvalidParameterError(
            f"`floor` must have the {num_classes} classes of the model, got {floor.config.num_classes}. Write {HOW}."
        )


def floor_record(floor: Any) -> dict[str, Any]:
    """Return what is stored of a floor: what it is, and the hash of its weights."""
    return {"architecture": floor.config.architecture, "weights_sha256": weights_sha256(floor)}


def scores_of_floor(floor: nn.Module, x: Tensor, targets: IntArray) -> Tensor:
    """Return the scores of each target, shown to the floor alone, shape (num_targets, num_classes), on the CPU."""
    where = next(each.device for each in floor.parameters())
    with torch.inference_mode(), evaluation_mode(floor):
        return scores_alone(floor, x.to(where), targets).cpu()


def predictions_of_floor(floor: nn.Module, x: Tensor, targets: IntArray) -> IntArray:
    """Return the class of each target by the floor, int64 (num_targets,); -1 where its scores single out none."""
    classes: IntArray = voted_class(scores_of_floor(floor, x, targets)).numpy()
    return classes
