"""GATv2: graph attention that depends on the receiver (Brody et al. 2022)."""

import torch
from torch import Tensor, nn
from torch.nn.functional import elu
from torch_geometric.nn import GATv2Conv

from graycert.models.gat import attention_widths
from graycert.models.interception_gnn import InterceptionGNN, MessagePassingLayer, ModelConfig


class GATv2Layer(MessagePassingLayer):
    """Two linear maps, for senders and receivers, then attention over the in-neighbours that are left."""

    def __init__(self, in_channels: int, out_channels: int, *, heads: int, dropout: float) -> None:
        super().__init__()
        self.conv = GATv2Conv(in_channels, out_channels, heads=heads, dropout=dropout)
        self.sender, self.receiver = self.conv.lin_l, self.conv.lin_r
        self.conv.lin_l, self.conv.lin_r = nn.Identity(), nn.Identity()  # `project` applies the maps

    def project(self, x: Tensor) -> Tensor:
        """Apply both maps; columns are senders first, receivers second."""
        return torch.cat([self.sender(x), self.receiver(x)], dim=-1)

    def aggregate(self, hidden: Tensor, edge_index: Tensor) -> Tensor:
        """Attend over the in-neighbours and add the bias."""
        return torch.as_tensor(self.conv(hidden.chunk(2, dim=-1), edge_index))

    def aggregate_first(self, hidden: Tensor, edge_index: Tensor, in_degree: Tensor, num_receivers: int) -> Tensor:  # noqa: ARG002
        """Attend as `aggregate` does, for the first rows."""
        senders, receivers = hidden.chunk(2, dim=-1)
        return torch.as_tensor(self.conv((senders, receivers[:num_receivers]), edge_index))


def build_gatv2(config: ModelConfig) -> InterceptionGNN:
    """Build a GATv2: ``heads`` heads of ``hidden_channels`` each, one output head, ELU between layers."""
    layers = [
        GATv2Layer(fan_in, fan_out, heads=heads, dropout=config.dropout)
        for fan_in, fan_out, heads in attention_widths(config)
    ]
    return InterceptionGNN(config, layers, elu)
