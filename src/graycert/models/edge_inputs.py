"""Values per edge beside the features of nodes, such as edge weights: they follow surviving edges into ``forward``.

An edge list then has a third row, which says for each edge which row of the values is its own. Whoever deletes, sorts
or copies columns of such a list takes it along and need not know of it: a wrapped model reads the values there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from graycert.errors import InvalidParameterError
from graycert.graph.edge_order import order_by_target
from graycert.graph.values_per_edge import (
    EdgeInputNames,
    argument_and_attribute,
    distinct_rows,
    edge_input_names,
    values_per_edge,
)
from graycert.models.forward_arguments import refuse_unsaid, takes

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
    def of_graph(cls, data: Any, names: EdgeInputNames) -> tuple["EdgeInputs", Tensor]:
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


def with_edge_inputs(
    model: Any, data: Any, names: EdgeInputNames | None, *, in_order: bool = True
) -> tuple[Any, Tensor]:
    """Return a model as it is called, and the edges that it is called with, sorted by target and source, on the CPU.

    Args:
        model: The model.
        data: The graph.
        names: Values per edge that it is given; none: model and edges are what they were.
        in_order: Whether edges are sorted, and copied; else they are as they were handed in.

    Returns:
        The model, and int64 (2, num_edges), or (3, num_edges) for a model that is given values per edge.
    """
    edge_index = data.edge_index.detach().cpu()
    if not names:
        return model, sorted_edges(edge_index) if in_order else edge_index
    inputs, rows = EdgeInputs.of_graph(data, names)
    edges = torch.cat([edge_index, rows.unsqueeze(0)])
    return GivenEdgeInputs(model, inputs), sorted_edges(edges) if in_order else edges


def sorted_edges(edges: Tensor) -> Tensor:
    """Sort columns by target, then source, then values, so that nothing depends on their order."""
    lanes = edges.numpy()
    if lanes.shape[0] > 2:
        return edges[:, torch.from_numpy(np.lexsort((*lanes[2:], lanes[0], lanes[1])))]
    order = order_by_target(lanes, num_nodes=int(lanes.max(initial=-1)) + 1)
    return edges.clone() if order is None else torch.from_numpy(np.take(lanes, order, axis=1))


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


def chosen_edge_inputs(model: Any, data: Any, names: EdgeInputNames | None) -> tuple[str, ...] | None:
    """Return the names of the edge inputs that a caller chose; refuse if there are some and nobody chose.

    A model that takes an edge input and is called without it is another model than the one that was trained, so which
    are passed on is never guessed.

    Args:
        model: The model.
        data: The graph.
        names: What the caller said: names, a mapping from arguments to attributes, none at all, or None if nothing.

    Returns:
        See `edge_input_names`; None if nothing was said and there is nothing to say.

    Raises:
        InvalidParameterError: If a name is not one of a tensor per edge that ``forward`` takes.
        UnsoundSetupError: ``edge-inputs-unsaid``.
    """
    if names is None:
        refuse_unsaid(model, data)
        return None
    chosen = edge_input_names(names)
    for argument, _ in map(argument_and_attribute, chosen):
        if not takes(model, argument):
            raise InvalidParameterError(
                f"`edge_inputs` must name arguments of forward(x, edge_index, ...), got {argument!r}, which "
                f"{type(model).__name__}.forward does not take. Where the tensor has another name, write "
                f'edge_inputs={{"ARGUMENT": "{argument}"}}.'
            )
    if chosen:
        values_per_edge(data, chosen)
    return chosen
