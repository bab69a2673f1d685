"""Graph attention network (Veličković et al. 2018)."""

import torch
from torch import Tensor, nn
from torch.nn.functional import elu
from torch_geometric.nn import GATConv

from graycert.models.interception_gnn import InterceptionGNN, MessagePassingLayer, ModelConfig


class GATLayer(MessagePassingLayer):
    """Linear map, then attention over the in-neighbours that are left and the node itself."""

    def __init__(self, in_channels: int, out_channels: int, *, heads: int, dropout: float) -> None:
        super().__init__()
        self.conv = GATConv(in_channels, out_channels, heads=heads, dropout=dropout)
        self.linear = self.conv.lin
        self.conv.lin = nn.Identity()  # `project` applies the map, once for all samples

    def project(self, x: Tensor) -> Tensor:
        """Apply the linear map of all heads."""
        return torch.as_tensor(self.linear(x))

    def aggregate(self, hidden: Tensor, edge_index: Tensor) -> Tensor:
        """Attend over the in-neighbours and add the bias."""
        return torch.as_tensor(self.conv(hidden, edge_index))

    def aggregate_first(self, hidden: Tensor, edge_index: Tensor, in_degree: Tensor, num_receivers: int) -> Tensor:  # noqa: ARG002
        """Attend as `aggregate` does, for the first rows."""
        return torch.as_tensor(self.conv((hidden, hidden[:num_receivers]), edge_index))


def attention_widths(config: ModelConfig) -> list[tuple[int, int, int]]:
    """Return (in, out per head, heads) per layer: all heads are concatenated, the last layer has one head."""
    hidden = config.hidden_channels * config.heads
    fan_in = [config.num_features, *[hidden] * (config.num_layers - 1)]
    shapes = [(width, config.hidden_channels, config.heads) for width in fan_in]
    shapes[-1] = (fan_in[-1], config.num_classes, 1)
    return shapes


def build_gat(config: ModelConfig) -> InterceptionGNN:
    """Build a GAT: ``heads`` heads of ``hidden_channels`` each, one output head, ELU between layers."""
    layers = [
        GATLayer(fan_in, fan_out, heads=heads, dropout=config.dropout)
        for fan_in, fan_out, heads in attention_widths(config)
    ]
    return InterceptionGNN(config, layers, elu)
