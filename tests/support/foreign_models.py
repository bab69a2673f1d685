"""Models that graycert did not build: sound ones and leaky ones."""

import torch
import torch_geometric.nn as pyg
from torch import nn
from torch.nn import functional

WIDTH, CLASSES = 5, 3  # features and classes of support.attributed_graphs.random_graph


class Sandwich(nn.Module):
    """Two GCN layers with something in between."""

    def __init__(self, middle=None, first=None, second=None):
        super().__init__()
        self.first = first or pyg.GCNConv(WIDTH, 8)
        self.middle = middle or nn.Identity()
        self.second = second or pyg.GCNConv(8, CLASSES)

    def forward(self, x, edge_index):
        return self.second(torch.relu(self.middle(self.first(x, edge_index))), edge_index)


class TwoLiner(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = pyg.GCNConv(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        return self.conv(x, edge_index)


class NumbersNodes(nn.Module):
    """One learned row per node: cannot run on any other number of nodes."""

    def __init__(self, num_nodes):
        super().__init__()
        self.rows = nn.Embedding(num_nodes, WIDTH)
        self.conv = pyg.GCNConv(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        return self.conv(x + self.rows.weight, edge_index)


class AssertsNodes(NumbersNodes):
    def forward(self, x, edge_index):
        assert x.size(0) == self.rows.num_embeddings
        return super().forward(x, edge_index)


class StepNamedPropagate(nn.Module):
    """Has `project` and `propagate`, but the latter is one of three steps."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(WIDTH, CLASSES)

    def propagate(self, hidden, edge_index):
        return 0.5 * hidden + sparse_sum(hidden, edge_index)

    def forward(self, x, edge_index):
        hidden = self.project(x)
        for _ in range(3):
            hidden = self.propagate(hidden, edge_index)
        return hidden


class SkipIsALayer(nn.Module):
    """A residual inside forward that happens to be called `skip`."""

    def __init__(self):
        super().__init__()
        self.skip = nn.Linear(WIDTH, CLASSES)
        self.conv = pyg.GCNConv(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        return self.conv(x, edge_index) + self.skip(x)


class SparseProduct(nn.Module):
    """Message passing without PyTorch Geometric layers."""

    def __init__(self, product):
        super().__init__()
        self.product = product
        self.first, self.second = nn.Linear(WIDTH, 8), nn.Linear(8, CLASSES)

    def forward(self, x, edge_index):
        hidden = torch.tanh(self.first(x + self.product(x, edge_index)))
        return self.second(hidden + self.product(hidden, edge_index))


def sparse_sum(x, edge_index):
    return torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])


def sparse_matrix(x, edge_index):
    ones = torch.ones(edge_index.size(1), dtype=x.dtype)
    return torch.sparse_coo_tensor(edge_index.flip(0), ones, (x.size(0), x.size(0)), check_invariants=False) @ x


def dense_matrix(x, edge_index):
    matrix = torch.zeros(x.size(0), x.size(0), dtype=x.dtype)
    matrix[edge_index[1], edge_index[0]] = 1
    return matrix @ x


def zero_weights(x, edge_index):
    """All pairs, weighted by 0 where there is no edge."""
    everyone = torch.ones(x.size(0), x.size(0)).nonzero().t()
    weight = torch.zeros(x.size(0), x.size(0), dtype=x.dtype)
    weight[edge_index[0], edge_index[1]] = 1
    messages = x[everyone[0]] * weight[everyone[0], everyone[1]].unsqueeze(1)
    return torch.zeros_like(x).index_add(0, everyone[1], messages)


class GlobalMean(Sandwich):
    """A readout added to every node: a virtual node by hand."""

    def forward(self, x, edge_index):
        out = super().forward(x, edge_index)
        return out + torch.mean(out, dim=0, keepdim=True)


class VirtualNode(Sandwich):
    """One more node, joined with every other."""

    def forward(self, x, edge_index):
        nodes, hub = torch.arange(x.size(0)), torch.full((x.size(0),), x.size(0))
        edges = torch.cat([edge_index, torch.stack([nodes, hub]), torch.stack([hub, nodes])], dim=1)
        return super().forward(torch.cat([x, x.new_zeros(1, x.size(1))]), edges)[:-1]


class ZScores(Sandwich):
    def forward(self, x, edge_index):
        return super().forward((x - x.mean(dim=0)) / (x.std(dim=0) + 1e-6), edge_index)


class NodeSoftmax(Sandwich):
    """A softmax along the wrong axis."""

    def forward(self, x, edge_index):
        return torch.softmax(super().forward(x, edge_index), dim=0)


class GlobalMaxAttention(nn.Module):
    """Attention over edges whose softmax is stabilised with the largest score of the whole graph."""

    def __init__(self, *, per_receiver=False):
        super().__init__()
        self.per_receiver = per_receiver
        self.map, self.score = nn.Linear(WIDTH, CLASSES), nn.Linear(CLASSES, 1)

    def forward(self, x, edge_index):
        hidden = self.map(x)
        loops = torch.arange(x.size(0)).repeat(2, 1)
        source, target = torch.cat([edge_index, loops], dim=1)
        score = self.score(hidden[source]).squeeze(1)
        largest = score.max()
        if self.per_receiver:
            lowest = torch.full((x.size(0),), -torch.inf, dtype=x.dtype)
            largest = lowest.scatter_reduce(0, target, score, "amax")[target]
        weight = torch.exp(score - largest)
        total = torch.zeros(x.size(0), dtype=x.dtype).index_add(0, target, weight)
        messages = hidden[source] * (weight / total[target]).unsqueeze(1)
        return torch.zeros_like(hidden).index_add(0, target, messages)


class NearestNeighbours(Sandwich):
    """Adds edges between nodes of similar features."""

    def forward(self, x, edge_index):
        nearest = torch.cdist(x, x).topk(3, largest=False).indices
        extra = torch.stack([nearest.flatten(), torch.arange(x.size(0)).repeat_interleave(3)])
        return super().forward(x, torch.cat([edge_index, extra], dim=1))


class AlwaysDropout(Sandwich):
    def forward(self, x, edge_index):
        return super().forward(functional.dropout(x, 0.5), edge_index)


class RemembersFeatures(Sandwich):
    """Keeps a statistic of the first features that it sees."""

    def __init__(self):
        super().__init__()
        self.mean = None

    def forward(self, x, edge_index):
        if self.mean is None:
            self.mean = x.mean(dim=0)
        return super().forward(x - self.mean, edge_index)


class RemembersEdges(Sandwich):
    """A cache that no attribute called `cached` betrays."""

    def __init__(self):
        super().__init__()
        self.edges = None

    def forward(self, x, edge_index):
        if self.edges is None:
            self.edges = edge_index
        return super().forward(x, self.edges if self.edges.max() < x.size(0) else edge_index)


class SkipShowsOthers(Sandwich):
    """Declares a skip connection that is not row-wise."""

    skip = True

    def skip_logits(self, x):
        return (x - x.mean(dim=0))[:, :CLASSES]


class SkipWithoutLogits(Sandwich):
    skip = True


class IndexesByFeature(nn.Module):
    """Looks a row up by a feature, which may be any number."""

    def __init__(self):
        super().__init__()
        self.rows = nn.Embedding(100, WIDTH)
        self.conv = pyg.GCNConv(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        return self.conv(self.rows(x[:, 0].abs().long()), edge_index)


class AssertsFinite(TwoLiner):
    def forward(self, x, edge_index):
        assert torch.isfinite(x).all()
        return super().forward(x, edge_index)


class NeedsEdges(TwoLiner):
    def forward(self, x, edge_index):
        assert edge_index.size(1) > 0
        return super().forward(x, edge_index)


class ScaledAboveAMillion(TwoLiner):
    """Divides by a maximum over all nodes, but only where it is finite and large."""

    def forward(self, x, edge_index):
        finite = torch.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0)
        return super().forward(finite * (1e6 / finite.max().clamp(min=1e6)), edge_index)


class Returns(nn.Module):
    """Returns what it is told to."""

    def __init__(self, make):
        super().__init__()
        self.make = make

    def forward(self, x, edge_index):
        return self.make(x)
