"""Drawing from φ = (φ1, φ2): which edges survive and which nodes are ablated."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from graycert._types import FloatArray
from graycert.sampling.placed_smoothing import AnySmoothing, place_smoothing, probability_of
from graycert.sampling.streams import CoinStream, edge_ids
from graycert.smoothing.interception.parameters import InterceptionSmoothing


@dataclass(frozen=True)
class InterceptionDraw:
    """One batch of draws.

    Args:
        kept: Which edges survive, bool (num_samples, num_edges); the same in all layers.
        ablated: Which nodes are ablated, bool (num_samples, num_nodes).
    """

    kept: Tensor
    ablated: Tensor


@dataclass(frozen=True)
class InterceptionSampler:
    """Draws from φ on a graph or a part of it.

    Args:
        smoothing: p_d and p_a: uniform, or placed on the whole graph (`place_smoothing`).
        stream: Where the coins come from.
        edge_ids: Identity of each edge (see `streams.edge_ids`), int64 (num_edges,).
        node_ids: Index of each node in the whole graph, int64 (num_nodes,).
    """

    smoothing: AnySmoothing
    stream: CoinStream
    edge_ids: Tensor
    node_ids: Tensor

    @classmethod
    def of_graph(
        cls, smoothing: InterceptionSmoothing, stream: CoinStream, edge_index: Tensor, *, num_nodes: int
    ) -> "InterceptionSampler":
        """Return the sampler of a whole graph, whose columns are in the order of ``smoothing.p_delete``."""
        nodes = torch.arange(num_nodes, device=edge_index.device)
        placed = place_smoothing(smoothing, edge_index, num_nodes=num_nodes)
        return cls(placed, stream, edge_ids(edge_index, num_nodes=num_nodes), nodes)

    def draw(self, samples: Tensor) -> InterceptionDraw:
        """Return the draws with the given sample numbers, int64 (num_samples,)."""
        p_delete, p_ablate = self._probabilities
        deleted = self.stream.edge_coins(samples, self.edge_ids, p_delete=p_delete)
        ablated = self.stream.node_coins(samples, self.node_ids, p_ablate=p_ablate)
        return InterceptionDraw(kept=~deleted, ablated=ablated)

    @cached_property
    def _probabilities(self) -> tuple[float | Tensor, float | Tensor]:
        p_delete = probability_of(self.smoothing.p_delete, self.edge_ids.cpu().numpy())
        p_ablate = probability_of(self.smoothing.p_ablate, self.node_ids.cpu().numpy())
        return _as_tensor(p_delete), _as_tensor(p_ablate)


def _as_tensor(probability: float | FloatArray) -> float | Tensor:
    return probability if isinstance(probability, float) else torch.from_numpy(probability)


def disjoint_copies(edge_index: Tensor, kept: Tensor, *, num_nodes: int) -> Tensor:
    """Return the edges that survive in each sample, copy s of node v numbered s · num_nodes + v.

    Deleted edges are removed, not weighted by zero.

    Args:
        edge_index: Edges of one graph, int64 (2, num_edges), perhaps with a third row of values.
        kept: bool (num_samples, num_edges).
        num_nodes: Number of nodes of one graph.

    Returns:
        int64, as many rows and (number of True entries of ``kept``) columns, sample by sample.
    """
    copy, edge = kept.nonzero(as_tuple=True)
    edges = edge_index[:, edge]
    edges[:2] += copy * num_nodes
    return edges


def ablate(x: Tensor, token: Tensor, ablated: Tensor) -> Tensor:
    """Replace the rows of ablated nodes by the token (φ2).

    Selection, not multiplication: a NaN in an ablated row does not survive.

    Args:
        x: Rows, shape (num_nodes, width).
        token: Row of an ablated node, shape (width,).
        ablated: bool (..., num_nodes).

    Returns:
        Shape (..., num_nodes, width).
    """
    return torch.where(ablated.unsqueeze(-1), token, x)
