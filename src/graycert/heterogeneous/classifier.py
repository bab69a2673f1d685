"""A model of a heterogeneous graph as a node classifier of one graph, whose edges carry their relation."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from graycert.errors import InvalidParameterError
from graycert.graph.typed_nodes import TypedNodes
from graycert.models.calling import AdaptedClassifier, per_class
from graycert.models.forward_arguments import takes

EDGE_TYPE = "edge_type"
_WALKS = 4


class HeteroClassifier(nn.Module):
    r"""Calls ``model(x_dict, edge_index_dict)`` with what the edges of one graph show.

    A node has a copy for each type that an edge shows it to be of; one without in-edges has a copy of the target type,
    too, and one without edges a copy of every type. On a graph whose edges fit the types of its nodes, the copies that
    a node has besides its own receive no message of another node and send none; the scores are those of the copy of the
    target type. So a message moves along edges alone, whatever edges are given, and nothing has to know the type of a
    node: engines that cut, copy and merge graphs need not carry it.

    Args:
        model: ``forward(x_dict, edge_index_dict)`` -> scores of the target type, or a dict of them by type.
        types: Node types, their columns, relations, and further values per edge.
        target_type: The type whose nodes are classified.
    """

    source_types: Tensor
    receiver_types: Tensor

    def __init__(self, model: nn.Module, types: TypedNodes, target_type: str) -> None:
        super().__init__()
        self.model, self.types, self.target_type = model, types, target_type
        sources, receivers = types.ends
        self.register_buffer("source_types", torch.from_numpy(sources), persistent=False)
        self.register_buffer("receiver_types", torch.from_numpy(receivers), persistent=False)

    def forward(self, x: Tensor, edge_index: Tensor, edge_type: Tensor, **edge_inputs: Tensor) -> Tensor:
        """Return class scores, shape (num_nodes, num_classes); zeros for nodes that are of other types."""
        shown = self._copies(x.size(0), edge_index, edge_type)
        place = shown.cumsum(dim=1) - 1
        x_dict = {name: self._rows(x, shown[number], name) for number, name in enumerate(self.types.node_types)}
        lengths, edges = dict(self.types.lengths), {}
        inputs: dict[str, dict[Any, Tensor]] = {name: {} for name in edge_inputs}
        for number, relation in enumerate(self.types.relations):
            own = edge_type == number
            source, receiver = edge_index[:, own]
            edges[relation] = torch.stack(
                [place[self.source_types[number], source], place[self.receiver_types[number], receiver]]
            )
            for name, values in edge_inputs.items():
                width = lengths[name][number]
                if width is not None:
                    inputs[name][relation] = values[own][:, :width] if width else values[own]
        found = shown[self.types.node_types.index(self.target_type)]
        scores = self._scores(x_dict, edges, inputs, num_targets=int(found.sum()))
        out = scores.new_zeros(x.size(0), scores.size(1))
        out[found] = scores
        return out

    def _copies(self, num_nodes: int, edge_index: Tensor, edge_type: Tensor) -> Tensor:
        """Return of which types each node has a copy, bool (num_types, num_nodes)."""
        shown = torch.zeros(len(self.types.node_types), num_nodes, dtype=torch.bool, device=edge_index.device)
        shown[self.receiver_types[edge_type], edge_index[1]] = True
        receives = shown.any(dim=0)
        shown[self.source_types[edge_type], edge_index[0]] = True
        shown |= ~shown.any(dim=0)
        shown[self.types.node_types.index(self.target_type)] |= ~receives
        return shown

    def _rows(self, x: Tensor, shown: Tensor, node_type: str) -> Tensor:
        """Return the features of the copies of a type; where there is none, one row of zeros."""
        rows = x[:, self.types.columns_of(node_type)][shown]
        return rows if rows.size(0) else rows.new_zeros(1, rows.size(1))

    def _scores(self, x_dict: Any, edges: Any, inputs: dict[str, Any], *, num_targets: int) -> Tensor:
        """Return the scores of the copies of the target type, of which there are ``num_targets``."""
        returned = call_on_types(self.model, x_dict, edges, inputs)
        scores = scores_of_type(self.model, returned, self.target_type, num_nodes=max(1, num_targets))
        return scores[:num_targets]

    @property
    def ablation_token(self) -> Tensor:
        """Features of an ablated node of every type, in the columns of the type; zeros where the model has none."""
        like = next((each for each in self.parameters() if each.is_floating_point()), torch.zeros(0))
        return token_row(getattr(self.model, "ablation_token", None), self.types).to(like.device)

    def typed_probes(self, edge_index: Tensor, rows: Tensor) -> Iterator[Tensor]:
        """Yield which row of values the edges of a graph may have so that messages can move on from edge to edge.

        Nodes are coloured by a walk over the relations, against their direction and from the target type on; an edge
        has a relation between the types of its ends where there is one.

        Args:
            edge_index: int64 (2, num_edges), whose nodes along a path have numbers that rise by one.
            rows: The relation of each row of the values.
        """
        generator = torch.Generator().manual_seed(0)
        sources, receivers = self.types.ends
        length = int(edge_index.max()) + 1
        for _ in range(_WALKS):
            colours = [self.types.node_types.index(self.target_type)]
            while len(colours) < length:
                into = [int(source) for source, at in zip(sources, receivers, strict=True) if at == colours[-1]]
                into = into or [colours[0]]
                colours.append(into[int(torch.randint(len(into), (1,), generator=generator))])
            colour = torch.tensor(colours)
            some = torch.stack([_any_of(rows == number, generator) for number in torch.unique(rows)])
            begins = self.source_types[rows[some]] == colour[edge_index[0]].unsqueeze(1)
            ends = self.receiver_types[rows[some]] == colour[edge_index[1]].unsqueeze(1)
            luck = torch.rand(begins.shape, generator=generator)
            yield some[(luck + (begins & ends)).argmax(dim=1)]


def _any_of(chosen: Tensor, generator: torch.Generator) -> Tensor:
    places = chosen.nonzero()[:, 0]
    return places[torch.randint(places.numel(), (), generator=generator)]


def call_on_types(model: nn.Module, x_dict: Any, edges: Any, inputs: Mapping[str, Any]) -> Any:
    """Call a model with dicts by type, as it is called; values per edge by their own name, or that with ``_dict``."""
    named = {name if _takes_plainly(model, name) else f"{name}_dict": each for name, each in inputs.items()}
    if isinstance(model, AdaptedClassifier):
        return model.returned(x_dict, edges, **named)
    return model(x_dict, edges, **named)


def scores_of_type(model: nn.Module, returned: Any, target_type: str, *, num_nodes: int) -> Tensor:
    """Return class scores of the nodes of a type, of what a model returned.

    Raises:
        InvalidParameterError: If there are none.
    """
    word = model.word if isinstance(model, AdaptedClassifier) else "logits"
    out = returned.get(target_type) if isinstance(returned, Mapping) else returned
    out = per_class(out, num_nodes, word)
    if not isinstance(out, Tensor) or out.dim() != 2 or out.size(0) != num_nodes or out.size(1) < 2:
        shape = (
            f"shape {tuple(out.shape)}" if isinstance(out, Tensor) else "nothing" if out is None else type(out).__name__
        )
        raise InvalidParameterError(
            f"`model` must return scores of shape ({num_nodes}, num_classes), at least two classes, for {num_nodes} "
            f"nodes of type {target_type!r}, by themselves or in a dict by type, got {shape}. Of one logit per node, "
            'write: model = graycert.as_node_classifier(model, output="logit").'
        )
    return out


def takes_values(model: nn.Module, name: str) -> bool:
    """Return whether ``forward`` takes values per edge of a name, by itself or with ``_dict`` after it."""
    return takes(model, name) or takes(model, f"{name}_dict")


def _takes_plainly(model: nn.Module, name: str) -> bool:
    plain, by_type = (takes(model, each) for each in (name, f"{name}_dict"))
    if plain and by_type:  # it takes whatever it is given
        named = inspect.signature(model.forward).parameters
        return name in named or f"{name}_dict" not in named
    return plain


def token_row(token: Any, types: TypedNodes) -> Tensor:
    """Return the token of every type in the columns of the type, zeros where there is none, shape (num_features,).

    Raises:
        InvalidParameterError: If it is no tensor per type, of as many numbers as the type has features.
    """
    if token is None:
        return torch.zeros(sum(types.widths))
    if isinstance(token, Tensor) and token.shape == (sum(types.widths),):
        return token
    given = dict(token.items()) if isinstance(token, Mapping | nn.ParameterDict) else {}
    parts = []
    for name, width in zip(types.node_types, types.widths, strict=True):
        part = given.pop(name, None)
        if part is not None and (not isinstance(part, Tensor) or part.shape != (width,)):
            shape = f"shape {tuple(part.shape)}" if isinstance(part, Tensor) else type(part).__name__
            raise InvalidParameterError(
                f"`ablation_token` must hold {width} numbers for the type {name!r}, one per feature, got {shape}."
            )
        parts.append(torch.zeros(width) if part is None else part)
    if given or not isinstance(token, Mapping | nn.ParameterDict):
        found = f"the type {next(iter(given))!r}" if given else type(token).__name__
        raise InvalidParameterError(
            f"`ablation_token` must be a dict with a tensor per node type ({', '.join(types.node_types)}), got "
            f"{found}. A model keeps one as torch.nn.ParameterDict, or none, for zeros."
        )
    like = next((part for part in parts if part.requires_grad), parts[0])
    return torch.cat([part.to(like.device) for part in parts])
