"""Two GCN layers that a model under audit is made from."""

import torch_geometric.nn as pyg
from torch import nn

WIDTH, CLASSES = 8, 3


class TwoLayers(nn.Module):
    """Local, two steps deep; what is built on it need not be."""

    def __init__(self):
        super().__init__()
        self.first, self.second = pyg.GCNConv(WIDTH, 16), pyg.GCNConv(16, CLASSES)

    def gnn(self, x, edge_index):
        """Return the scores of the two layers."""
        return self.second(self.first(x, edge_index).relu(), edge_index)

    def forward(self, x, edge_index):
        return self.gnn(x, edge_index)
