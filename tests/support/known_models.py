"""Models of PyTorch Geometric, and hand-written ones, that the compiled engine knows."""

import torch
import torch_geometric.nn as pyg
from torch import nn
from torch_geometric.nn import models

WIDTH, CLASSES = 5, 3  # features and classes of support.attributed_graphs.random_graph


def shaken(model, *, factor=3.0):
    """The model with larger weights and random biases, so that attention and activations matter."""
    generator = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        parameter.data += factor * 0.1 * torch.randn(parameter.shape, generator=generator)
    return model.eval()


def with_biases(model):
    """The model with small random biases, as training leaves them: without, nothing shown gives scores that tie."""
    generator = torch.Generator().manual_seed(2)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            parameter.data += 0.05 * torch.randn(parameter.shape, generator=generator).to(parameter.dtype)
    return model


class TwoLiner(nn.Module):
    """As in PyTorch Geometric's tutorials."""

    def __init__(self, first, second, activation=torch.nn.functional.elu, *, ending=None):
        super().__init__()
        self.conv1, self.conv2, self.activation, self.ending = first, second, activation, ending

    def forward(self, x, edge_index):
        x = torch.nn.functional.dropout(x, p=0.5, training=self.training)
        x = self.activation(self.conv1(x, edge_index))
        x = self.conv2(x, edge_index)
        return x if self.ending is None else self.ending(x, dim=1)


class LinearFirst(nn.Module):
    def __init__(self):
        super().__init__()
        self.before = nn.Linear(WIDTH, 6)
        self.conv = pyg.SAGEConv(6, 8, aggr="sum")
        self.after = nn.Sequential(nn.BatchNorm1d(8), nn.LeakyReLU(0.2), nn.Linear(8, 6), nn.ReLU())
        self.out = pyg.GATv2Conv(6, CLASSES, heads=2, concat=False)

    def forward(self, x, edge_index):
        x = self.before(x).relu()
        return self.out(self.after(self.conv(x, edge_index)), edge_index)


def with_statistics(model):
    """The model as after training: batch norms have seen something."""
    generator = torch.Generator().manual_seed(0)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.running_mean = 0.3 * torch.randn(module.num_features, generator=generator)
            module.running_var = 0.5 + torch.rand(module.num_features, generator=generator)
            module.weight.data = 0.5 + torch.rand(module.num_features, generator=generator)
            module.bias.data = torch.randn(module.num_features, generator=generator)
    return model


KNOWN = {
    "GCN": lambda: models.GCN(WIDTH, 8, num_layers=3, out_channels=CLASSES),
    "GCN batch norm": lambda: models.GCN(WIDTH, 8, num_layers=2, out_channels=CLASSES, norm="batch_norm"),
    "GAT": lambda: models.GAT(WIDTH, 8, num_layers=2, out_channels=CLASSES, heads=4, act="elu"),
    "GATv2": lambda: models.GAT(WIDTH, 8, num_layers=2, out_channels=CLASSES, heads=2, v2=True),
    "GraphSAGE": lambda: models.GraphSAGE(WIDTH, 8, num_layers=2, out_channels=CLASSES, act="leaky_relu"),
    "GIN": lambda: models.GIN(WIDTH, 8, num_layers=2, out_channels=CLASSES),
    "two GCNConv": lambda: TwoLiner(pyg.GCNConv(WIDTH, 8), pyg.GCNConv(8, CLASSES), torch.relu),
    "two GATConv": lambda: TwoLiner(pyg.GATConv(WIDTH, 4, heads=3), pyg.GATConv(12, CLASSES, concat=False)),
    "log-softmax": lambda: TwoLiner(pyg.GCNConv(WIDTH, 8), pyg.GCNConv(8, CLASSES), ending=torch.log_softmax),
    "no bias": lambda: TwoLiner(pyg.GATv2Conv(WIDTH, 4, bias=False), pyg.SAGEConv(4, CLASSES, root_weight=False)),
    "shared weights": lambda: TwoLiner(pyg.GATv2Conv(WIDTH, 4, share_weights=True), pyg.GCNConv(4, CLASSES)),
    "linear first": LinearFirst,
    "two GraphConv": lambda: TwoLiner(pyg.GraphConv(WIDTH, 8, bias=False), pyg.GraphConv(8, CLASSES, aggr="mean")),
}


def known_model(name):
    """A model in evaluation mode with weights that matter; two layers, "GCN" three."""
    torch.manual_seed(3)
    return with_statistics(shaken(KNOWN[name]()))
