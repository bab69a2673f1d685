"""The toy graph of three classes, and models whose scores do not always single out a class."""

import numpy as np
import torch
from torch import nn
from torch_geometric.data import Data


def three_classes(*, seed: int = 0, dtype: torch.dtype = torch.float32) -> Data:
    """60 nodes, 20 per class, linked within it to three random partners each; features name the class, with noise."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], 20)
    edges = set()
    for node in range(60):
        partners = [other for other in np.flatnonzero(y == y[node]) if other != node]
        for other in rng.choice(partners, 3, replace=False).tolist():
            edges |= {(node, other), (other, node)}
    x = np.eye(8)[y] + 0.3 * rng.normal(size=(60, 8))
    return Data(x=torch.tensor(x, dtype=dtype), edge_index=torch.tensor(sorted(edges)).T, y=torch.tensor(y))


class HandWrittenMean(nn.Module):
    """Two means over in-neighbours, then the class columns; without ``clamp`` 0 / 0 where no edge has survived."""

    def __init__(self, *, clamp: bool = False):
        super().__init__()
        self.clamp = clamp

    def mean(self, hidden, edge_index):
        total = torch.zeros_like(hidden).index_add_(0, edge_index[1], hidden[edge_index[0]])
        ones = torch.ones(edge_index.size(1), dtype=hidden.dtype)
        degree = torch.zeros(hidden.size(0), dtype=hidden.dtype).index_add_(0, edge_index[1], ones)
        return total / (degree.clamp(min=1) if self.clamp else degree)[:, None]

    def forward(self, x, edge_index):
        return self.mean(self.mean(x[:, :3], edge_index), edge_index)


class EndsWithRelu(HandWrittenMean):
    """Its scores are often all zero."""

    def __init__(self, *, threshold: float = 0.0):
        super().__init__(clamp=True)
        self.threshold = threshold

    def forward(self, x, edge_index):
        return (super().forward(x, edge_index) - self.threshold).relu()


class Biased(EndsWithRelu):
    """The same, with every tie decided: one class gets a little more, the next a little less."""

    def __init__(self, favoured: int):
        super().__init__()
        self.bias = 1e-6 * torch.tensor([2.0, 1.0, 0.0]).roll(favoured)

    def forward(self, x, edge_index):
        return super().forward(x, edge_index) + self.bias


class Constant(HandWrittenMean):
    """A function of the graph in name only."""

    def __init__(self):
        super().__init__(clamp=True)

    def forward(self, x, edge_index):
        return 0.0 * super().forward(x, edge_index)
