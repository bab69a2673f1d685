"""What ``forward`` takes beside features and edges, and which tensors of a graph it might have been trained with."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor, nn

from graycert.errors import UnsoundSetupError
from graycert.models.calling import AdaptedClassifier

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_ANY_NUMBER = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_OF_NODES = {"batch", "input_id", "n_id", "node_ids", "node_type", "pos", "x", "y"}
_OF_NO_EDGE = {
    *_OF_NODES,
    *("batch_size", "mask", "num_edges", "num_graphs", "num_nodes", "ptr", "return_attention_weights", "size"),
    *("num_sampled_edges_per_hop", "num_sampled_nodes_per_hop"),
}


def takes(model: Any, name: str) -> bool:
    """Return whether ``forward`` takes an argument of a name beside features and edges, as far as its signature says.

    Of an adapted model (`graycert.as_node_classifier`) its own ``forward`` counts, and what the ``call`` takes.

    Example:
        >>> from torch_geometric.nn import GCNConv
        >>> [takes(GCNConv(2, 2), name) for name in ("edge_weight", "edge_attr", "x")]
        [True, False, False]
    """
    return any(
        each is None or each.kind is each.VAR_KEYWORD or (each.kind in _NAMED and each.name == name)
        for each in _parameters(model)
    )


def free_arguments(model: Any) -> tuple[str, ...]:
    """Return the arguments beside features and edges that may be values per edge, by name and default.

    ``**`` or ``*`` stands for arguments of any name, and for ones that cannot be named.

    Example:
        >>> from torch_geometric.nn import GATConv, GCNConv, SAGEConv
        >>> [free_arguments(conv(2, 2)) for conv in (GCNConv, GATConv, SAGEConv)]
        [('edge_weight',), ('edge_attr',), ()]
    """
    found: dict[str, None] = {}
    for parameter in _parameters(model):
        if parameter is None or parameter.kind is parameter.VAR_KEYWORD:
            found["**"] = None
        elif parameter.kind not in _NAMED:
            found["*"] = None
        elif parameter.name not in _OF_NO_EDGE and parameter.default in (None, parameter.empty):
            found[parameter.name] = None
    return tuple(found)


def tensors_per_edge(data: Any) -> tuple[str, ...]:
    """Return the names of tensors of ``data`` with a row per edge, and of those that a preparation left out.

    Where there are as many nodes as edges, those that are known to be of nodes do not count.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> tensors_per_edge(Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]), amount=torch.ones(2)))
        ('amount',)
    """
    num_edges = int(data.edge_index.size(1))
    both = num_edges == int(data.x.size(0))
    present = [
        name
        for name, value in data.to_dict().items()
        if name not in ("x", "edge_index")
        and isinstance(value, Tensor)
        and value.shape[:1] == (num_edges,)
        and not (both and is_of_nodes(name))
    ]
    return tuple(dict.fromkeys([*present, *(data.get("left_out_per_edge") or [])]))


def is_of_nodes(name: str) -> bool:
    """Return whether an attribute of a graph is, by its name, one of nodes."""
    return name in _OF_NODES or name.endswith("_mask")


def refuse_unsaid(model: Any, data: Any) -> None:
    """Refuse a graph with tensors per edge that ``forward`` may take, by their name or by another one.

    Raises:
        UnsoundSetupError: ``edge-inputs-unsaid``.
    """
    per_edge, free = tensors_per_edge(data), free_arguments(model)
    same = tuple(name for name in per_edge if takes(model, name))
    if not per_edge or not (same or free):
        return
    listed = ", ".join(
        f"`data.{name}`" if name in data else f"`{name}` (which its preparation left out: set `data.{name}` anew)"
        for name in same or per_edge
    )
    if same:
        why, line = "takes an argument of that name", repr(same)
    elif free[0] != "*":
        why = f"takes `{'`, `'.join(name for name in free if name != '*')}`"
        line = f'{{"{free[0]}": "{per_edge[0]}"}} (argument of forward: tensor of `data`)'
    else:
        why = "takes more than features and edges"
        call = f"call=lambda model, x, edge_index, {per_edge[0]}: ..."
        line = f'("{per_edge[0]}",) with graycert.as_node_classifier(model, {call})'
    raise UnsoundSetupError(
        "edge-inputs-unsaid",
        f"`data` has {listed}, and `forward` {why}: called without it, the model may be another one than was trained. "
        f"Say which values per edge it is to be given: edge_inputs={line}, or edge_inputs=() (--without-edge-inputs) "
        "for none.",
    )


def _parameters(model: Any) -> Iterator[inspect.Parameter | None]:
    """Yield the parameters of what is called beside features and edges; None for those of what does not say."""
    if not isinstance(model, AdaptedClassifier) or isinstance(model.call, str):
        yield from _beyond(getattr(model, "forward", None), 2)
        return
    if model.call is not None:
        yield from _beyond(model.call, 3)
    inner: Any = model.model
    if not isinstance(inner, nn.ModuleList | nn.ModuleDict):
        yield from _parameters(inner)
    elif (
        isinstance(inner, nn.ModuleList) and model.call is None
    ):  # a head gets nothing but what the module before it returns
        yield from _parameters(inner[0])


def _beyond(function: Callable[..., Any] | None, first: int) -> Iterator[inspect.Parameter | None]:
    try:
        parameters = list(inspect.signature(function).parameters.values()) if callable(function) else [None]
    except (TypeError, ValueError, AttributeError):  # compiled code that does not say
        parameters = [None]
    for number, parameter in enumerate(parameters):
        if parameter is None or number >= first or parameter.kind in _ANY_NUMBER:
            yield parameter
