"""Values per edge beside the features of nodes, such as edge weights: they follow surviving edges into ``forward``.

An edge list then has a third row, which says for each edge which row of the values is its own. Whoever deletes, sorts
or copies columns of such a list takes it along and need not know of it: a wrapped model reads the values there.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.graph.values_per_edge import distinct_rows, values_per_edge
from graycert.models.calling import AdaptedClassifier

_PROBES = 3


@dataclass(frozen=True, eq=False)
class EdgeInputs:
    """Distinct rows of values per edge; edges with equal values share one. A copy is the same object.

    Args:
        values: Tensor per name, shape (num_rows, ...), num_rows >= 1.
    """

    values: Mapping[str, Tensor]

    def __post_init__(self) -> None:
        """Let nobody replace a tensor."""
        object.__setattr__(self, "values", MappingProxyType(dict(self.values)))

    def __deepcopy__(self, memo: Any) -> "EdgeInputs":
        """Share what never changes."""
        return self

    @classmethod
    def of_graph(cls, data: Any, names: tuple[str, ...]) -> tuple["EdgeInputs", Tensor]:
        """Return the values of a graph's edges, and which row each column of ``edge_index`` has, int64 (num_edges,).

        Raises:
            InvalidParameterError: If a name is not that of finite values per edge.
        """
        arrays = values_per_edge(data, names)
        first, rows = distinct_rows(arrays)
        values = {name: torch.from_numpy(np.ascontiguousarray(array[first])) for name, array in arrays.items()}
        return cls(values), torch.from_numpy(rows)

    @property
    def num_rows(self) -> int:
        """Number of distinct rows."""
        return next(iter(self.values.values())).size(0)

    def of(self, rows: Tensor) -> dict[str, Tensor]:
        """Return new tensors with the values of some rows, int64 (num_edges,), on their device."""
        return {name: table[rows] for name, table in self._on(rows.device).items()}

    def _on(self, device: torch.device) -> Mapping[str, Tensor]:
        if device not in self._placed:
            self._placed[device] = {name: table.to(device) for name, table in self.values.items()}
        return self._placed[device]

    @cached_property
    def _placed(self) -> dict[torch.device, Mapping[str, Tensor]]:
        return {}


class GivenEdgeInputs(nn.Module):
    """A model that is called with ``(x, edges)``, edges int64 (3, num_edges), and gives its model what the rows say.

    Args:
        model: ``forward(x, edge_index, **edge_inputs)``.
        inputs: The values.
    """

    def __init__(self, model: nn.Module, inputs: EdgeInputs) -> None:
        super().__init__()
        self.model, self.inputs = model, inputs

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        """Return class scores, shape (num_nodes, num_classes)."""
        scores: Tensor = self.model(x, edges[:2], **self.inputs.of(edges[2]))
        return scores

    def __getattr__(self, name: str) -> Any:
        """Offer what a node classifier may offer, as the model does."""
        if name in ("ablation_token", "skip", "skip_logits"):
            return getattr(self._modules["model"], name)
        return super().__getattr__(name)


def with_edge_inputs(model: Any, data: Any, names: Sequence[str] | None) -> tuple[Any, Tensor]:
    """Return a model as it is called, and the edges that it is called with, sorted by target and source, on the CPU.

    Args:
        model: The model.
        data: The graph.
        names: Values per edge that it is given; none: model and edges are what they were.

    Returns:
        The model, and int64 (2, num_edges), or (3, num_edges) for a model that is given values per edge.
    """
    edge_index = data.edge_index.detach().cpu()
    if not names:
        return model, sorted_edges(edge_index)
    inputs, rows = EdgeInputs.of_graph(data, tuple(names))
    return GivenEdgeInputs(model, inputs), sorted_edges(torch.cat([edge_index, rows.unsqueeze(0)]))


def sorted_edges(edges: Tensor) -> Tensor:
    """Sort columns by target, then source, then values, so that nothing depends on their order."""
    lanes = edges.numpy()
    return edges[:, torch.from_numpy(np.lexsort((*lanes[2:], lanes[0], lanes[1])))]


def probed_edges(model: Any, edge_index: Tensor) -> Iterator[Tensor]:
    """Yield edges of another graph as a model takes them: with values of the graph's edges, if it is given any.

    Values could hide an edge, as a weight of zero does. So all edges have the same ones, for several of these, before
    they have random ones.

    Args:
        model: The model.
        edge_index: int64 (2, num_edges).
    """
    if not isinstance(model, GivenEdgeInputs):
        yield edge_index
        return
    num_edges, num_rows = edge_index.size(1), model.inputs.num_rows
    generator = torch.Generator().manual_seed(0)
    for row in {0, num_rows - 1, *torch.randint(num_rows, (_PROBES,), generator=generator).tolist()}:
        yield torch.cat([edge_index, torch.full((1, num_edges), row)])
    yield torch.cat([edge_index, torch.randint(num_rows, (1, num_edges), generator=generator)])
    probed: Any = getattr(model.model, "typed_probes", None)
    if (
        probed is not None and "edge_type" in model.inputs.values
    ):  # messages move on from relation to relation only where their types fit
        for rows in probed(edge_index, model.inputs.values["edge_type"]):
            yield torch.cat([edge_index, rows.unsqueeze(0)])


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
            f'`edge_inputs` must be a tuple of names, got {names!r}. Write edge_inputs=("{names}",).'
        )
    chosen = tuple(names)
    if len(set(chosen)) != len(chosen) or not all(isinstance(name, str) for name in chosen):
        raise InvalidParameterError(f"`edge_inputs` must be distinct names of tensors of `data`, got {chosen!r}.")
    for name in chosen:
        if not takes(model, name):
            raise InvalidParameterError(
                f"`edge_inputs` must name arguments of forward(x, edge_index, ...), got {name!r}, which "
                f"{type(model).__name__}.forward does not take."
            )
    if chosen:
        values_per_edge(data, chosen)
    return chosen


def possible_edge_inputs(model: Any, data: Any) -> tuple[str, ...]:
    """Return the names of tensors of ``data`` with a row per edge that ``forward`` takes beside features and edges.

    Those that a preparation left out count, too.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from torch_geometric.nn import GCNConv, SAGEConv
        >>> data = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]), edge_weight=torch.ones(2))
        >>> possible_edge_inputs(GCNConv(2, 2), data), possible_edge_inputs(SAGEConv(2, 2), data)
        (('edge_weight',), ())
    """
    num_edges = int(data.edge_index.size(1))
    present = [
        name
        for name, value in data.to_dict().items()
        if name not in ("x", "edge_index") and isinstance(value, Tensor) and value.shape[:1] == (num_edges,)
    ]
    left_out = data.get("left_out_per_edge") or []
    return tuple(name for name in dict.fromkeys([*present, *left_out]) if takes(model, name))


def takes(model: Any, name: str) -> bool:
    """Return whether ``forward`` takes an argument of a name beside features and edges, as far as its signature says.

    Of an adapted model (`graycert.as_node_classifier`) its own ``forward`` counts, and what the ``call`` takes.

    Example:
        >>> from torch_geometric.nn import GCNConv
        >>> [takes(GCNConv(2, 2), name) for name in ("edge_weight", "edge_attr", "x")]
        [True, False, False]
    """
    if isinstance(model, AdaptedClassifier) and not isinstance(model.call, str):
        return takes(model.model, name) or (model.call is not None and _names(model.call, name, beside=3))
    return _names(model.forward, name, beside=2) if callable(getattr(model, "forward", None)) else True


def _names(function: Any, name: str, *, beside: int) -> bool:
    """Return whether a function has a parameter of a name, after the first ones; True where it does not say."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError, AttributeError):  # compiled code that does not say
        return True
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return any(
        each.kind is inspect.Parameter.VAR_KEYWORD or (each.kind in named and number >= beside and each.name == name)
        for number, each in enumerate(parameters)
    )


def _refuse_unsaid(model: Any, data: Any) -> None:
    found = possible_edge_inputs(model, data)
    if found:
        listed = ", ".join(
            f"`data.{name}`" if name in data else f"`{name}` (which its preparation left out: set `data.{name}` anew)"
            for name in found
        )
        raise UnsoundSetupError(
            "edge-inputs-unsaid",
            f"`data` has {listed}, and `forward` takes an argument of that name: called without it, the model may be "
            "another one than was trained. Say which values per edge it is to be given: "
            f"edge_inputs={found!r}, or edge_inputs=() for none.",
        )
