"""Messages as wide as the features, a part of the receivers at a time: the same sums for a bounded amount of memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GINConv, GraphConv, SAGEConv

_WIDE = (SAGEConv, GraphConv, GINConv)  # they send rows as they are given, before any linear map
_BYTES = 2**26  # of messages at a time
_SENT = {"x", "edge_weight"}


@contextmanager
def messages_in_parts(model: nn.Module) -> Iterator[None]:
    """Let the layers of a recognised model that send rows as they are given aggregate some receivers after others.

    SAGEConv on 1,000 features sends 1,000 numbers over every edge: more than the graph takes itself. What a node
    aggregates does not depend on who else does, so the model's scores are the same, bit by bit.

    Args:
        model: Its layers are changed meanwhile.
    """
    layers: list[Any] = [each for each in model.modules() if type(each) in _WIDE and "propagate" not in vars(each)]
    for layer in layers:
        layer.propagate = partial(_propagate, layer.propagate)
    try:
        yield
    finally:
        for layer in layers:
            del layer.propagate


def _propagate(propagate: Callable[..., Tensor], edge_index: Any, *, size: Any = None, **sent: Any) -> Tensor:
    cuts = _cuts(edge_index, size, sent)
    if len(cuts) <= 1:
        return propagate(edge_index, size=size, **sent)
    (x, receivers), weights = sent["x"], sent.get("edge_weight")
    aggregated = torch.empty_like(receivers)
    first_edges = torch.searchsorted(edge_index[1], torch.tensor(cuts)).tolist()
    for nodes, edges in zip(pairwise(cuts), pairwise(first_edges), strict=True):
        low, into = nodes[0], slice(*edges)
        some = {"x": (x, receivers[slice(*nodes)])}
        if weights is not None:
            some["edge_weight"] = weights[into]
        inside = torch.stack([edge_index[0, into], edge_index[1, into] - low])
        aggregated[slice(*nodes)] = propagate(inside, size=None, **some, **_missing(sent))
    return aggregated


def _missing(sent: dict[str, Any]) -> dict[str, None]:
    """Return what is passed on although it is None."""
    return {name: None for name, value in sent.items() if value is None}


def _cuts(edge_index: Any, size: Any, sent: dict[str, Any]) -> list[int]:
    """Return where to cut the receivers, from 0 to their number; nothing where they are not to be cut."""
    x = sent.get("x")
    if size is not None or not set(sent) <= _SENT or not isinstance(edge_index, Tensor) or edge_index.is_sparse:
        return []
    if not isinstance(x, tuple) or not all(isinstance(each, Tensor) and each.dim() == 2 for each in x):
        return []
    rows, width, target = x[1].size(0), x[0].size(1), edge_index[1]
    most = max(1, _BYTES // (width * x[0].element_size()))  # messages at a time
    if x[1].shape != x[0].shape or target.numel() <= most or not bool((target[1:] >= target[:-1]).all()):
        return []
    ends = torch.searchsorted(target, torch.arange(1, rows + 1))  # messages to the first 1, 2, ... receivers
    cuts = [0]
    while cuts[-1] < rows:
        before = int(ends[cuts[-1] - 1]) if cuts[-1] else 0
        cuts.append(max(cuts[-1] + 1, int(torch.searchsorted(ends, before + most, right=True))))
    return cuts
