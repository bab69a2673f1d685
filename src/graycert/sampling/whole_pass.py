"""What one pass of a model over the whole graph takes, and whether that is much."""

from typing import Any

from torch import Tensor, nn

MUCH = 2**28
"""Bytes from which on a model that is known for certain makes no such pass at once."""

_MESSAGES = 2  # per edge and channel of a forward pass: as gathered, and as weighted


def pass_bytes(model: Any, x: Tensor, *, num_edges: int) -> int:
    """Return the bytes of a pass over a graph: the model's own copy of the features, messages of the widest layer."""
    return int(x.element_size()) * (x.numel() + _MESSAGES * widest_layer(model) * num_edges)


def takes_much(model: Any, x: Tensor, *, num_edges: int) -> bool:
    """Return whether a pass takes more than `MUCH`; of model and graph alone, not of the machine."""
    return pass_bytes(model, x, num_edges=num_edges) > MUCH


def widest_layer(model: Any) -> int:
    """Return the most outputs of a linear map of a model, which is how wide its messages are at most; 1 if it has none.

    Example:
        >>> widest_layer(nn.Sequential(nn.Linear(3, 16), nn.Linear(16, 2)))
        16
    """
    modules = model.modules() if isinstance(model, nn.Module) else ()
    matrices = (each for module in modules for each in module.parameters(recurse=False) if each.dim() == 2)
    return max((int(each.size(0)) for each in matrices), default=1)
