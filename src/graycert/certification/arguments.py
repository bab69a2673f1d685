"""What every orchestrator checks of the arguments that they have in common."""

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from graycert._validation import check_targets
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.models.protocol import has_skip
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats.node_features import NodeFeatureThreat


def check_types(smoothing: object, threat: object) -> None:
    """Refuse what is not a smoothing and a threat."""
    if not isinstance(smoothing, InterceptionSmoothing) or not isinstance(threat, NodeFeatureThreat):
        raise InvalidParameterError(
            "`smoothing` must be an InterceptionSmoothing and `threat` a NodeFeatureThreat, got "
            f"{type(smoothing).__name__} and {type(threat).__name__}."
        )


def target_nodes(targets: ArrayLike | Tensor | None, *, num_nodes: int) -> NDArray[np.int64]:
    """Return the targets, nodes or a mask, as distinct node indices; all nodes if there are none."""
    if targets is None:
        return np.arange(num_nodes, dtype=np.int64)
    if isinstance(targets, Tensor):
        targets = targets.cpu().numpy()
    nodes = np.asarray(targets)
    if nodes.dtype == np.bool_ and nodes.shape == (num_nodes,):  # a mask, as PyTorch Geometric's data.test_mask
        nodes = np.flatnonzero(nodes)
    return check_targets(nodes, num_nodes=num_nodes)


def refuse_exposed_target(model: nn.Module, threat: NodeFeatureThreat, nodes: NDArray[np.int64]) -> None:
    """The skip connection shows the target's own features in every draw: nothing intercepts them."""
    if not has_skip(model) or not threat.includes_target:
        return
    if threat.trusted is not None and threat.trusted.size > nodes.max() and bool(threat.trusted[nodes].all()):
        return
    raise UnsoundSetupError(
        "skip-exposes-target",
        "The model has a skip connection, so the target's own features reach its output in every draw, and a threat "
        "that contains the target cannot be certified. Use NodeFeatureThreat(min_distance=1), or a model without "
        "skip connection.",
    )


def device_named(device: str | torch.device | None) -> torch.device | None:
    """Return the device, which must exist on this machine."""
    if device is None:
        return None
    try:
        where = torch.device(device)
        torch.empty(0, device=where)
    except (RuntimeError, AssertionError) as error:
        raise InvalidParameterError(
            f"`device` must name a device of this machine, got {str(device)!r} ({str(error).splitlines()[0]}). "
            "Leave it out to use the CPU."
        ) from error
    return where
