"""Interception of messages in somebody's own training loop: a transform of graphs, and a function of their tensors."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import get_worker_info
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import BaseTransform
from torch_geometric.utils import select

from graycert._validation import check_probability, check_seed
from graycert.errors import InvalidParameterError
from graycert.graph.values_per_edge import edge_input_names
from graycert.models.forward_arguments import is_of_nodes
from graycert.sampling.interception import InterceptionDraw, InterceptionSampler, ablate
from graycert.sampling.streams import CoinStream, Purpose
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.training.typed_interception import intercept_types

Probability = float | Mapping[Any, float]
Token = Tensor | Mapping[str, Tensor] | nn.ParameterDict

_OF_EDGES = ("e_id", "edge_attr", "edge_type", "edge_weight")
_WORKER_BITS = 64  # seeds of workers are below 2**64


class RandomInterception(BaseTransform):  # type: ignore[misc]
    r"""Draw from φ = (φ1, φ2): delete each edge with p_d, replace the features of each node by the token with p_a.

    A model that is to be certified must have seen such graphs, or its smoothed accuracy is poor. Every call is a fresh
    draw from a stream of its own: counter-based, so that the global generators of torch, NumPy and Python are neither
    read nor changed. In workers of a ``DataLoader`` the stream also depends on the worker's seed, which the loader
    draws anew in every epoch.

    Works on a ``torch_geometric.data.Data``, a batch of a loader among them: ``intercept(data)`` returns a new one
    whose tensors per edge (``edge_attr``, ``edge_weight``, ``edge_type``, ``e_id``, ...) follow the surviving edges.
    And on tensors: ``x, edge_index, inputs = intercept(x, edge_index, edge_attr=edge_attr)``; ``inputs`` is a dict.
    Nothing is changed in place. All edges between an ordered pair of nodes have one coin, as when certifying. A
    ``HeteroData``, or a batch of one, gives a ``HeteroData``.

    Args:
        p_delete: Probability p_d of deleting an edge, in [0, 1]. A hyperparameter of training, mostly smaller than that
            of the certificate. For a ``HeteroData`` also a dict with one per relation.
        p_ablate: Probability p_a of ablating a node's features, in [0, 1]; or a dict with one per node type.
        token: Features of an ablated node, shape (num_features,), or a dict (``torch.nn.ParameterDict``) with one per
            node type; default zeros. A ``torch.nn.Parameter`` is trained:
            make it one of the model, ``self.ablation_token = torch.nn.Parameter(torch.zeros(num_features))``, which the
            optimizer then finds, and so does `certify`; of any other pass ``ablation_token=token.detach()`` to it.
        seed: Seeds the stream.
        edge_inputs: Names of attributes of a graph with a row per edge. It has to be said only where a graph has as
            many nodes as edges and neither the name of an attribute nor an earlier graph shows what its rows are.

    Raises:
        InvalidParameterError: If an argument is out of its domain.

    Example:
        >>> intercept = RandomInterception(p_delete=0.5, p_ablate=0.5, seed=1)
        >>> x, edge_index = torch.ones(4, 1), torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> [tuple(part.shape) for part in intercept(x, edge_index)[:2]]
        [(4, 1), (2, 2)]

    References:
        Scholten et al. (2022), Section 3, and Appendix "Hyperparameters".
    """

    def __init__(
        self,
        p_delete: Probability,
        p_ablate: Probability,
        token: Token | None = None,
        *,
        seed: int = 0,
        edge_inputs: Sequence[str] | None = None,
    ) -> None:
        given: dict[str, Any] = {
            name: value if isinstance(value, Mapping) else check_probability(name, value)
            for name, value in (("p_delete", p_delete), ("p_ablate", p_ablate))
        }
        self.smoothing = InterceptionSmoothing(**given)
        if token is not None:
            _check_token(token)
        self.token, self.seed, self._calls = token, check_seed(seed), 0
        self._said = None if edge_inputs is None else edge_input_names(edge_inputs)
        self._seen: dict[str, bool] = {}  # whether an attribute is one of edges, as earlier graphs showed

    def __call__(self, graph: Any, edge_index: Tensor | None = None, **edge_inputs: Tensor) -> Any:
        """Return a fresh draw, see the class."""
        if edge_index is None and not edge_inputs:
            return self.forward(graph)
        return self._on_tensors(graph, edge_index, edge_inputs)

    def forward(self, data: Any) -> Data | HeteroData:
        """Return a graph that a fresh draw leaves; ``data`` is as before.

        Raises:
            InvalidParameterError: If it is no graph with features and ``edge_index``, or it is open whether rows of an
                attribute are those of nodes or of edges.
        """
        if isinstance(data, HeteroData):
            return intercept_types(data, self.smoothing, self._token_per_type(), self._drawn)
        if not isinstance(data, Data) or not all(isinstance(data.get(name), Tensor) for name in ("x", "edge_index")):
            raise InvalidParameterError(
                f"`data` must be a torch_geometric.data.Data with `x` and `edge_index`, got {type(data).__name__}"
                f"{' without them' if isinstance(data, Data) else ''}. Call it before edges are made a sparse matrix; "
                "of other graphs pass the tensors: intercept(x, edge_index)."
            )
        x, edges = data.x, data.edge_index.as_subclass(Tensor)
        names = self._names_of_edges(data, num_nodes=x.size(0), num_edges=edges.size(1))
        draw = self._draw(x, edges)
        kept = draw.kept[0]
        drawn: Data = copy.copy(data)
        drawn.edge_index = select(edges, kept, dim=1)
        for name in names:
            drawn[name] = select(data[name], kept, dim=data.__cat_dim__(name, data[name]))
        drawn.x = ablate(x, self._token_for(x), draw.ablated[0])
        if data.get("num_sampled_edges") is not None:  # of each hop, one after the other
            drawn.num_sampled_edges = _left_of_each(kept, data.num_sampled_edges)
        return drawn

    def _names_of_edges(self, data: Data, *, num_nodes: int, num_edges: int) -> list[str]:
        """Return the names of attributes with a row per edge; PyTorch Geometric guesses where nodes are as many."""
        rows = {name: _num_rows(data, name) for name in data.to_dict() if name not in ("x", "edge_index")}
        for name in self._said or ():
            if rows.get(name) != num_edges:
                raise InvalidParameterError(
                    f"`edge_inputs` must name attributes with a row for each of the {num_edges} edges, got {name!r}, "
                    f"which has {rows.get(name)}."
                )
        found = [name for name, size in rows.items() if size == num_edges]
        if num_nodes != num_edges:
            self._seen.update(
                {name: size == num_edges for name, size in rows.items() if size in (num_nodes, num_edges)}
            )
            return found
        for name in found:
            known = name in _OF_EDGES or is_of_nodes(name) or name in self._seen
            if self._said is None and not known:
                raise InvalidParameterError(
                    f"`edge_inputs` must say whether `{name}` has a row per node or per edge in a graph with "
                    f'{num_nodes} of both. Write RandomInterception(..., edge_inputs=("{name}",)) if its rows follow '
                    "edges, or edge_inputs=() if not."
                )
        of_edges = {*_OF_EDGES, *(self._said or ()), *(name for name, follows in self._seen.items() if follows)}
        return [name for name in found if name in of_edges]

    def _on_tensors(
        self, x: Any, edge_index: Any, edge_inputs: dict[str, Any]
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        for name, value in (("x", x), ("edge_index", edge_index)):
            if not isinstance(value, Tensor) or value.dim() != 2 or value.layout != torch.strided:
                raise InvalidParameterError(
                    f"`{name}` must be a dense tensor with two axes, got {type(value).__name__}. Write "
                    "intercept(data), or x, edge_index, inputs = intercept(x, edge_index, edge_attr=edge_attr)."
                )
        edges = edge_index.as_subclass(Tensor)
        for name, values in edge_inputs.items():
            if not isinstance(values, Tensor) or values.shape[:1] != (edges.size(1),):
                found = f"shape {tuple(values.shape)}" if isinstance(values, Tensor) else type(values).__name__
                raise InvalidParameterError(
                    f"`{name}` must be a tensor with a row for each of the {edges.size(1)} edges, got {found}."
                )
        draw = self._draw(x, edges)
        kept = draw.kept[0]
        inputs = {name: values[kept] for name, values in edge_inputs.items()}
        return ablate(x, self._token_for(x), draw.ablated[0]), edges[:, kept], inputs

    def _draw(self, x: Tensor, edge_index: Tensor) -> InterceptionDraw:
        return self._drawn(self.smoothing, edge_index, x.size(0))

    def _drawn(self, smoothing: InterceptionSmoothing, edge_index: Tensor, num_nodes: int) -> InterceptionDraw:
        self._calls += 1
        worker = get_worker_info()
        seed = self.seed if worker is None else self.seed + ((1 + worker.seed) << _WORKER_BITS)
        stream = CoinStream(seed, Purpose.TRAINING)
        sampler = InterceptionSampler.of_graph(smoothing, stream, edge_index, num_nodes=num_nodes)
        return sampler.draw(torch.tensor([self._calls], device=edge_index.device))

    def _token_for(self, x: Tensor) -> Tensor:
        if self.token is None:
            return x.new_zeros(x.size(1))
        if not isinstance(self.token, Tensor):
            raise InvalidParameterError(
                "`token` must be one tensor for a graph without node types, got one per node type. Pass a HeteroData."
            )
        if self.token.size(0) != x.size(1):
            raise InvalidParameterError(
                f"`token` must have one number per feature, {x.size(1)} here, got {self.token.size(0)}."
            )
        _refuse_in_worker(self.token.requires_grad)
        return self.token.to(x.device, x.dtype)

    def _token_per_type(self) -> Any:
        if isinstance(self.token, Tensor):
            raise InvalidParameterError(
                "`token` must be a dict with a tensor per node type for a HeteroData, such as torch.nn.ParameterDict, "
                "got one tensor."
            )
        _refuse_in_worker(self._is_trained)
        return self.token

    @property
    def _is_trained(self) -> bool:
        parts = [self.token] if isinstance(self.token, Tensor) else [] if self.token is None else self.token.values()
        return any(part.requires_grad for part in parts)

    def __repr__(self) -> str:
        token = "zeros" if self.token is None else "trained" if self._is_trained else "given"
        probabilities = f"p_delete={self.smoothing.delete_in_words}, p_ablate={self.smoothing.ablate_in_words}"
        return f"{type(self).__name__}({probabilities}, token={token})"


def _refuse_in_worker(trained: bool, /) -> None:
    if trained and get_worker_info() is not None:
        raise InvalidParameterError(
            "`token` must not be trained in a worker of a DataLoader, whose gradients never come back. Leave "
            "`transform` out, and call it in the loop: for batch in loader: batch = intercept(batch)."
        )


def _num_rows(data: Data, name: str) -> int | None:
    value = data[name]
    if isinstance(value, Tensor | np.ndarray):
        return int(value.shape[data.__cat_dim__(name, value)]) if value.ndim else None
    return len(value) if isinstance(value, list | tuple) else None


def _check_token(token: Any) -> None:
    if isinstance(token, Mapping | nn.ParameterDict):
        for part in token.values():
            _check_token(part)
        return
    if not isinstance(token, Tensor) or token.dim() != 1 or not token.is_floating_point():
        found = f"{token.dtype} of shape {tuple(token.shape)}" if isinstance(token, Tensor) else type(token).__name__
        raise InvalidParameterError(f"`token` must be a float tensor with one number per feature, got {found}.")


def _left_of_each(kept: Tensor, sizes: Any) -> list[int]:
    """Return how many of each of several runs of edges are kept."""
    counts = [int(size) for size in sizes]
    return [int(part.sum()) for part in torch.split(kept[: sum(counts)], counts)]
