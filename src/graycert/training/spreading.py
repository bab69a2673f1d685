"""Class scores spread over the edges of one graph again and again, as training does."""

import torch
from torch import Tensor
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from graycert.training.sparse_product import SparsePattern, times


class Spreading:
    r"""Spreads class scores over a graph as `torch_geometric.nn.APPNP` does, with weights that are computed once.

    $$z_0 = x, \qquad z_{k+1} = (1 - \alpha) D^{-1/2} (A + I) D^{-1/2} z_k + \alpha x$$

    Args:
        edge_index: int64 (2, num_edges), row 0 = source.
        num_nodes: Number of nodes.
        teleport: α in (0, 1).
        steps: Number of steps, >= 1.

    References:
        Gasteiger et al. (2019), "Predict then Propagate" (ICLR).
    """

    def __init__(self, edge_index: Tensor, *, num_nodes: int, teleport: float, steps: int) -> None:
        self._teleport, self._steps = teleport, steps
        edges, weights = gcn_norm(edge_index, num_nodes=num_nodes)
        shape = num_nodes, num_nodes
        matrix = torch.sparse_coo_tensor(edges.flip(0), weights, shape, check_invariants=False).coalesce()
        self._pattern = SparsePattern.of(matrix)
        self._weights = matrix.values()

    def __call__(self, scores: Tensor) -> Tensor:
        """Return the scores of all nodes after all steps, shape (num_nodes, num_classes)."""
        own, now = self._teleport * scores, scores
        for _ in range(self._steps):
            now = (1 - self._teleport) * times(self._pattern, self._weights, now) + own
        return now
