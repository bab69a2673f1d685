"""What a model decides about bounds: how many steps it has, and what its messages depend on."""

from dataclasses import replace
from typing import Any

from graycert.cli import models
from graycert.cli.configs import BoundsConfig
from graycert.models.names import is_own
from graycert.smoothing import InterceptionSmoothing
from graycert.threats import StructuralThreat, Threat


def model_of(config: BoundsConfig, data: Any) -> Any:
    """Return the model that `--model` names, untrained unless it is a file, in evaluation mode.

    Raises:
        InvalidParameterError: If it cannot be made, or the graph has no features to audit it with.
    """
    from graycert.data import validate_data
    from graycert.models import load_model
    from graycert.models.by_name import new_model

    validate_data(data)
    name = str(config.model)
    if name.endswith(models.WEIGHTS_SUFFIX):
        return load_model(name)
    skip = None if is_own(name) else True  # as `graycert certify` builds it
    return new_model(name, data, num_layers=config.num_layers, skip=skip).eval()


def known_of(
    model: Any, config: BoundsConfig, data: Any, *, smoothing: InterceptionSmoothing, threat: Threat, targets: Any
) -> tuple[int, Threat]:
    """Return the number of steps of a model, and the threat with what its messages depend on: audited as to certify.

    Raises:
        UnsoundSetupError: If nothing could be certified of it.
    """
    from graycert.draws import Draws
    from graycert.problem import Problem
    from graycert.setup import Setup

    asked = Setup(
        smoothing=smoothing,
        threat=threat,
        draws=Draws(),
        rule="sound",
        bound=config.bound,
        num_layers=config.num_layers,
    )
    found = smoothing.method.prepare(Problem.of(data, targets, setup=asked, model=model))
    if isinstance(threat, StructuralThreat) and threat.convolution is None:
        threat = replace(threat, convolution=found.setup.convolution)
    return found.num_layers, threat
