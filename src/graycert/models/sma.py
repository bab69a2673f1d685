"""Soft medoid aggregation (Geisler et al. 2020): a GCN whose sum is replaced by a robust location estimate."""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from graycert.models.interception_gnn import InterceptionGNN, MessagePassingLayer, ModelConfig


class SoftMedoidLayer(MessagePassingLayer):
    r"""Linear map, then the weighted soft medoid of the ``num_neighbors`` in-neighbours of largest weight.

    With $a_j$ the symmetrically normalised weights (self-loops added) of the neighbours that are considered,
    $s_i \propto \exp(-\tfrac1T \sum_j a_j \lVert x_j - x_i \rVert)$ and the output is
    $(\sum_j a_j) \sum_i s_i a_i x_i / \sum_i s_i a_i$, plus a bias.

    References:
        Geisler, Zügner, Günnemann (2020), "Reliable Graph Neural Networks via Robust Aggregation", Section 4.
    """

    def __init__(self, in_channels: int, out_channels: int, *, num_neighbors: int, temperature: float) -> None:
        super().__init__()
        template = GCNConv(in_channels, out_channels)  # same initialisation as the GCN layer it replaces
        self.linear: nn.Module = template.lin
        self.bias = nn.Parameter(template.bias.detach().clone())
        self.num_neighbors = num_neighbors
        self.temperature = temperature

    def project(self, x: Tensor) -> Tensor:
        """Apply the linear map."""
        return torch.as_tensor(self.linear(x))

    def aggregate(self, hidden: Tensor, edge_index: Tensor) -> Tensor:
        """Replace each row by the soft medoid of its in-neighbours and itself, and add the bias."""
        num_nodes = hidden.size(0)
        edges, weights = gcn_norm(edge_index, None, num_nodes, dtype=hidden.dtype)
        return self._medoids(hidden, edges, weights, num_nodes)

    def aggregate_first(self, hidden: Tensor, edge_index: Tensor, in_degree: Tensor, num_receivers: int) -> Tensor:
        """Aggregate as `aggregate` does, for the first rows."""
        loops = torch.arange(num_receivers, device=hidden.device).expand(2, -1)
        edges = torch.cat([edge_index, loops], dim=1)
        scale = (in_degree + 1).to(hidden.dtype).rsqrt()
        return self._medoids(hidden, edges, scale[edges[0]] * scale[edges[1]], num_receivers)

    def _medoids(self, hidden: Tensor, edges: Tensor, weights: Tensor, num_receivers: int) -> Tensor:
        """Return the soft medoids of the first ``num_receivers`` rows over weighted in-edges, plus the bias."""
        order, slot, degree = _rank_in_neighbors(edges[1], weights, num_receivers)
        sources, receivers, weights = edges[0][order], edges[1][order], weights[order]
        considered = slot < self.num_neighbors
        sources, receivers = sources[considered], receivers[considered]
        weights, slot = weights[considered], slot[considered]
        degree = degree.clamp(max=self.num_neighbors)

        medoid = hidden.new_zeros(num_receivers, hidden.size(1))
        low = 0
        for high in _degree_bounds(self.num_neighbors):  # similar degrees together: little padding
            nodes = ((degree > low) & (degree <= high)).nonzero().squeeze(1)
            low = high
            if not nodes.numel():
                continue
            row = torch.full((num_receivers,), -1, dtype=torch.long, device=hidden.device)
            row[nodes] = torch.arange(nodes.numel(), device=hidden.device)
            mine = row[receivers] >= 0
            place = (row[receivers[mine]], slot[mine])
            neighbors = hidden.new_zeros(nodes.numel(), high, hidden.size(1)).index_put(place, hidden[sources[mine]])
            a = hidden.new_zeros(nodes.numel(), high).index_put(place, weights[mine])
            medoid = medoid.index_copy(0, nodes, self._soft_medoid(neighbors, a))
        return medoid + self.bias

    def _soft_medoid(self, neighbors: Tensor, a: Tensor) -> Tensor:
        """Return the weighted soft medoids of ``neighbors`` (m, K, width) under weights ``a`` (m, K), 0 = absent."""
        distance = torch.cdist(neighbors, neighbors, compute_mode="donot_use_mm_for_euclid_dist")
        cost = (distance @ a.unsqueeze(-1)).squeeze(-1) / self.temperature
        scores = torch.softmax(torch.where(a > 0, -cost, -torch.inf), dim=1)
        share = scores * a
        share = share / share.sum(dim=1, keepdim=True)
        return torch.as_tensor(a.sum(dim=1, keepdim=True) * torch.einsum("mk,mkd->md", share, neighbors))


def _rank_in_neighbors(receivers: Tensor, weights: Tensor, num_nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Sort edges by receiver and falling weight; return that order, each edge's rank, and the in-degrees."""
    by_weight = torch.argsort(weights, descending=True, stable=True)
    order = by_weight[torch.argsort(receivers[by_weight], stable=True)]
    degree = torch.bincount(receivers, minlength=num_nodes)
    start = torch.cumsum(degree, 0) - degree
    slot = torch.arange(order.numel(), device=order.device) - start[receivers[order]]
    return order, slot, degree


def _degree_bounds(num_neighbors: int) -> list[int]:
    """Return growing bucket sizes, the last one ``num_neighbors``."""
    bounds = [1, 2, 4, 8, 16, 32]
    return [bound for bound in bounds if bound < num_neighbors] + [num_neighbors]


def build_sma(config: ModelConfig) -> InterceptionGNN:
    """Build an SMA network: hidden width ``hidden_channels``, ReLU between layers."""
    widths = [config.num_features, *[config.hidden_channels] * (config.num_layers - 1), config.num_classes]
    layers = [
        SoftMedoidLayer(fan_in, fan_out, num_neighbors=config.num_neighbors, temperature=config.temperature)
        for fan_in, fan_out in pairwise(widths)
    ]
    return InterceptionGNN(config, layers, torch.relu)
