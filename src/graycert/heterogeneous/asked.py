"""What is asked of a heterogeneous graph, as what is asked of one graph: everything else then works as ever."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData

from graycert._types import IntArray
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.graph.values_per_edge import EdgeInputNames
from graycert.heterogeneous.classifier import EDGE_TYPE, HeteroClassifier, takes_values, token_row
from graycert.heterogeneous.into_one import nodes_of_type, one_graph, target_type_of, typed_nodes
from graycert.heterogeneous.probabilities import smoothing_on_one_graph
from graycert.heterogeneous.same_function import SLUG, difference
from graycert.models.calling import AdaptedClassifier
from graycert.models.precision import check_precision
from graycert.models.protocol import has_skip


@dataclass(frozen=True, kw_only=True, eq=False)
class AskedOfTypes:
    """A model and a graph with types, as a classifier of nodes and one graph.

    Args:
        model: The model on the one graph; it holds the user's, not a copy.
        data: The one graph.
        hetero: The graph as it was handed in.
        edge_inputs: Names of the values per edge that the model is given, the relation first.
    """

    model: HeteroClassifier
    data: Data
    hetero: HeteroData
    edge_inputs: tuple[str, ...]

    @classmethod
    def of(
        cls, model: Any, data: HeteroData, *, targets: Any = None, edge_inputs: EdgeInputNames | None = None
    ) -> "AskedOfTypes":
        """Check model and graph, and bring them into one form.

        Args:
            model: ``forward(x_dict, edge_index_dict)``, or what `as_node_classifier` made of another.
            data: The graph.
            targets: Says which type is classified, see `target_type_of`.
            edge_inputs: Names of further values per edge, () for none.

        Raises:
            InvalidParameterError: If something is malformed, or targets are of several types.
            UnsoundSetupError: ``edge-inputs-unsaid``, ``batch-not-graph``, ``skip-not-local``.
        """
        _check_model(model)
        typed_nodes(data)
        chosen = _chosen(model, data, edge_inputs)
        target_type = target_type_of(data, targets)
        made = one_graph(data, target_type=target_type, edge_inputs=chosen)
        classifier = HeteroClassifier(model, made.types, target_type)
        return cls(model=classifier, data=made, hetero=data, edge_inputs=(EDGE_TYPE, *chosen))

    def nodes(self, given: Any, *, name: str = "targets") -> IntArray:
        """Return nodes of the target type as numbers in the one graph."""
        return nodes_of_type(self.hetero, self.model.types, self.model.target_type, given, name=name)

    def with_masks(self, train: Any, validation: Any) -> Data:
        """Return the one graph with masks of training and validation nodes, by default those of the target type."""
        marked = self.data.clone()
        for stored, given, name in (("train_mask", train, "train_mask"), ("val_mask", validation, "validation_mask")):
            chosen = self.hetero[self.model.target_type].get(stored) if given is None else given
            if chosen is not None:
                mask = torch.zeros(self.data.x.size(0), dtype=torch.bool)
                mask[torch.from_numpy(self.nodes(chosen, name=name))] = True
                marked[stored] = mask
        return marked

    def smoothing(self, smoothing: Any) -> Any:
        """Return a smoothing with arrays over the one graph, where it has dicts by type and relation."""
        return smoothing_on_one_graph(smoothing, self.model.types, self.data.edge_index, self.data.edge_type)

    def token(self, token: Any) -> Tensor | None:
        """Return a token per type as one row."""
        return None if token is None else token_row(token, self.model.types)

    def threat(self, threat: Any) -> Any:
        """Return a threat that is proved of such graphs.

        Raises:
            UnsoundSetupError: ``no-proof``.
        """
        if getattr(threat, "hostile_edge_inputs", False):
            raise UnsoundSetupError(
                "no-proof",
                "Nothing is proved about hostile nodes that set values of edges, `hostile_edge_inputs`, in a "
                "heterogeneous graph: the relation of an edge is such a value. Leave it out.",
            )
        return threat

    def require_same_function(self) -> None:
        """Refuse a model that computes something else on the one graph.

        Raises:
            InvalidParameterError: If it cannot be called on the graph.
            UnsoundSetupError: ``reads-other-nodes``.
        """
        check_precision(self.model, self.data, edge_inputs=self.edge_inputs)
        reason = difference(self.model, self.data)
        if reason is not None:
            raise UnsoundSetupError(SLUG, reason)

    @property
    def provenance(self) -> dict[str, Any]:
        """What a run says of the types."""
        types = self.model.types
        sizes = zip(types.node_types, types.num_nodes, strict=True)
        return {
            "heterogeneous": {
                "target_type": self.model.target_type,
                "node_types": [f"{name}: {size}" for name, size in sizes],
                "relations": [" ".join(relation) for relation in types.relations],
            }
        }


def _check_model(model: Any) -> None:
    if not isinstance(model, nn.Module):
        raise InvalidParameterError(
            "`model` must be a torch.nn.Module with forward(x_dict, edge_index_dict) for a HeteroData, got "
            f"{type(model).__name__}."
        )
    if isinstance(model, HeteroClassifier):
        raise InvalidParameterError("`data` must be the one graph for a HeteroClassifier, got a HeteroData.")
    if has_skip(model):
        raise UnsoundSetupError(
            "skip-not-local",
            "`model` must have no skip connection around the smoothing for a heterogeneous graph, got one with `skip`. "
            "Remove the attribute.",
        )
    if isinstance(model, AdaptedClassifier) and isinstance(model.call, str) and model.call != "data":
        raise InvalidParameterError(
            f'`call` must be None, "data" or a function of (model, x_dict, edge_index_dict) for a HeteroData, got '
            f"{model.call!r}."
        )


def _chosen(model: nn.Module, data: HeteroData, names: EdgeInputNames | None) -> tuple[str, ...]:
    """Return the further values per edge that the caller chose; refuse if there are some and nobody chose."""
    if isinstance(names, str):
        raise InvalidParameterError(
            f'`edge_inputs` must be a tuple of names, got {names!r}. Write edge_inputs=("{names}",).'
        )
    if isinstance(names, Mapping):
        raise InvalidParameterError(
            f"`edge_inputs` must be a tuple of names for a HeteroData, got {names!r}. Give the attributes of the "
            "relations the names that forward takes them by."
        )
    if names is None:
        stored = dict.fromkeys(
            name
            for store in data.edge_stores
            for name, value in store.items()
            if isinstance(value, Tensor) and value.shape[:1] == store.edge_index.shape[1:]
        )
        found = tuple(name for name in stored if takes_values(model, name))
        if found:
            raise UnsoundSetupError(
                "edge-inputs-unsaid",
                f"`data` has {', '.join(found)} for edges of its relations, and `forward` takes an argument of that "
                "name: called without it, the model may be another one than was trained. Say which values per edge it "
                f"is to be given: edge_inputs={found!r}, or edge_inputs=() for none.",
            )
        return ()
    chosen = tuple(names)
    for name in chosen:
        if name == EDGE_TYPE or not takes_values(model, name):
            raise InvalidParameterError(
                f"`edge_inputs` must name arguments of forward(x_dict, edge_index_dict, ...), got {name!r}, which "
                f"{type(model).__name__}.forward does not take, or which the relations say already. Values per edge "
                f"are given as dicts by relation, by their own name or as `{name}_dict`."
            )
    if len(set(chosen)) != len(chosen):
        raise InvalidParameterError(f"`edge_inputs` must be distinct names, got {chosen!r}.")
    return chosen
