"""Values per edge beside the features of nodes, such as edge weights: which there are, and who has to name them."""

import inspect
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from graycert.errors import InvalidParameterError, UnsoundSetupError


def chosen_edge_inputs(model: Any, data: Any, names: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the names of the edge inputs that a caller chose; refuse if there are some and nobody chose.

    A model that takes an edge input and is called without it is another model than the one that was trained, so which
    are passed on is never guessed.

    Args:
        model: The model.
        data: The graph.
        names: What the caller said: names, none at all, or None if nothing.

    Raises:
        InvalidParameterError: If a name is not one of a tensor per edge that ``forward`` takes.
        UnsoundSetupError: ``edge-inputs-unsaid``.
    """
    if names is None:
        _refuse_unsaid(model, data)
        return None
    if isinstance(names, str):
        raise InvalidParameterError(
            f'`edge_inputs` must be a tuple of names, got the text {names!r}. Write edge_inputs=("{names}",).'
        )
    chosen = tuple(names)
    if chosen:
        raise UnsoundSetupError(
            "no-proof",
            f"Values per edge cannot be given to a model yet, got `edge_inputs` {chosen!r}. Write edge_inputs=() to "
            "certify the model without them.",
        )
    if len(set(chosen)) != len(chosen) or not all(isinstance(name, str) for name in chosen):
        raise InvalidParameterError(f"`edge_inputs` must be distinct names of tensors of `data`, got {chosen!r}.")
    return chosen


def possible_edge_inputs(model: Any, data: Any) -> tuple[str, ...]:
    """Return the names of tensors of ``data`` with a row per edge that ``forward`` takes beside features and edges.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from torch_geometric.nn import GCNConv, SAGEConv
        >>> data = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]), edge_weight=torch.ones(2))
        >>> possible_edge_inputs(GCNConv(2, 2), data), possible_edge_inputs(SAGEConv(2, 2), data)
        (('edge_weight',), ())
    """
    num_edges = int(data.edge_index.size(1))
    return tuple(
        name
        for name, value in data.to_dict().items()
        if name not in ("x", "edge_index")
        and isinstance(value, Tensor)
        and value.dim() > 0
        and value.size(0) == num_edges
        and takes(model, name)
    )


def takes(model: Any, name: str) -> bool:
    """Return whether ``forward`` takes an argument of a name beside features and edges, as far as its signature says.

    Example:
        >>> from torch_geometric.nn import GCNConv
        >>> [takes(GCNConv(2, 2), name) for name in ("edge_weight", "edge_attr", "x")]
        [True, False, False]
    """
    try:
        parameters = list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):  # compiled code that does not say
        return True
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return any(
        each.kind is inspect.Parameter.VAR_KEYWORD or (each.kind in named and number >= 2 and each.name == name)
        for number, each in enumerate(parameters)
    )


def _refuse_unsaid(model: Any, data: Any) -> None:
    found = possible_edge_inputs(model, data)
    if found:
        listed = ", ".join(f"`data.{name}`" for name in found)
        raise UnsoundSetupError(
            "edge-inputs-unsaid",
            f"`data` has {listed}, and `forward` takes an argument of that name: called without it, the model may be "
            "another one than was trained. Say which values per edge it is to be given: certify(..., edge_inputs=()) "
            "for none.",
        )
