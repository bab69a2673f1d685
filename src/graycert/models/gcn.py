"""Graph convolutional network (Kipf and Welling 2017)."""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from graycert.models.interception_gnn import InterceptionGNN, MessagePassingLayer, ModelConfig


class GCNLayer(MessagePassingLayer):
    """Linear map, then the symmetrically normalised sum over in-neighbours and the node itself."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = GCNConv(in_channels, out_channels, cached=False)
        self.linear = self.conv.lin
        self.conv.lin = nn.Identity()  # `project` applies the map, once for all samples

    def project(self, x: Tensor) -> Tensor:
        """Apply the linear map."""
        return torch.as_tensor(self.linear(x))

    def aggregate(self, hidden: Tensor, edge_index: Tensor) -> Tensor:
        """Sum the normalised messages and add the bias."""
        return torch.as_tensor(self.conv(hidden, edge_index))

    def aggregate_first(self, hidden: Tensor, edge_index: Tensor, in_degree: Tensor, num_receivers: int) -> Tensor:
        """Sum as `aggregate` does, for the first rows."""
        source, receiver = edge_index
        scale = (in_degree + 1).to(hidden.dtype).rsqrt().unsqueeze(1)  # with the self-loop
        scaled = scale * hidden
        total = scaled[:num_receivers].index_add(0, receiver, scaled[source])
        return torch.as_tensor(scale[:num_receivers] * total + self.conv.bias)


def build_gcn(config: ModelConfig) -> InterceptionGNN:
    """Build a GCN: hidden width ``hidden_channels``, ReLU between layers."""
    widths = [config.num_features, *[config.hidden_channels] * (config.num_layers - 1), config.num_classes]
    layers = [GCNLayer(fan_in, fan_out) for fan_in, fan_out in pairwise(widths)]
    return InterceptionGNN(config, layers, torch.relu)
