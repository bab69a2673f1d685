"""Models for which Lemma 1 holds: convolutions of PyTorch Geometric, and compositions of them."""

from collections.abc import Callable
from typing import Any

import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.data import Data

from graycert.zoo.exhibit import CLASSES, WIDTH, Exhibit

_HIDDEN = 8


class Stacked(nn.Module):
    """Two layers with something in between."""

    def __init__(self, conv: Callable[[int, int], nn.Module], middle: nn.Module | None = None) -> None:
        super().__init__()
        self.first, self.second = conv(WIDTH, _HIDDEN), conv(_HIDDEN, CLASSES)
        self.middle = nn.Identity() if middle is None else middle

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return class scores."""
        scores: Tensor = self.second(self.middle(self.first(x, edge_index)).relu(), edge_index)
        return scores


class Relational(nn.Module):
    """Relations told by the numbers of the nodes that an edge joins."""

    def __init__(self, conv: Callable[..., nn.Module]) -> None:
        super().__init__()
        self.first, self.second = conv(WIDTH, _HIDDEN, 3), conv(_HIDDEN, CLASSES, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return class scores."""
        kind = edge_index.sum(dim=0) % 3
        scores: Tensor = self.second(self.first(x, edge_index, kind).relu(), edge_index, kind)
        return scores


class Ensemble(nn.Module):
    """Members of different depths, summed."""

    def __init__(self, *members: nn.Module) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return class scores."""
        return torch.stack([member(x, edge_index) for member in self.members]).sum(dim=0)


class Projected(nn.Module):
    """A linear map, then propagation."""

    def __init__(self, propagation: nn.Module) -> None:
        super().__init__()
        self.map, self.propagation = nn.Linear(WIDTH, CLASSES), propagation

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return class scores."""
        scores: Tensor = self.propagation(self.map(x), edge_index)
        return scores


class InPlace(Stacked):
    """Its first step overwrites its input."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return class scores."""
        return super().forward(x.clamp_(-2, 2), edge_index)


class KeepsSize(Stacked):
    """Remembers the number of nodes, which nobody can change."""

    def __init__(self) -> None:
        super().__init__(pyg.GCNConv)
        self.n: int | None = None

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return class scores."""
        if self.n is None:
            self.n = x.size(0)
        return super().forward(x, edge_index)


class BySum(nn.Module):
    """Messages without a layer of PyTorch Geometric."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return class scores."""
        hidden: Tensor = self.map(x)
        return hidden.index_add(0, edge_index[1], hidden[edge_index[0]])


class PerNode(nn.Module):
    """A learned row per node: runs on no other graph."""

    def __init__(self, num_nodes: int) -> None:
        super().__init__()
        self.rows, self.conv = nn.Embedding(num_nodes, WIDTH), pyg.GCNConv(WIDTH, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return class scores."""
        scores: Tensor = self.conv(x + self.rows.weight, edge_index)
        return scores


def _network(a: int, b: int) -> nn.Module:
    return nn.Sequential(nn.Linear(a, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, b))


_CONVOLUTIONS: dict[str, tuple[Callable[[int, int], Any], int]] = {
    "ARMAConv": (lambda a, b: pyg.ARMAConv(a, b, num_layers=2), 2),
    "ChebConv": (lambda a, b: pyg.ChebConv(a, b, K=3), 2),
    "ClusterGCNConv": (pyg.ClusterGCNConv, 1),
    "FeaStConv": (pyg.FeaStConv, 1),
    "FiLMConv": (pyg.FiLMConv, 1),
    "GATConv": (lambda a, b: pyg.GATConv(a, b, heads=2, concat=False), 1),
    "GATv2Conv": (pyg.GATv2Conv, 1),
    "GCNConv": (pyg.GCNConv, 1),
    "GENConv": (pyg.GENConv, 1),
    "GINConv": (lambda a, b: pyg.GINConv(_network(a, b)), 1),
    "GraphConv": (pyg.GraphConv, 1),
    "LEConv": (pyg.LEConv, 1),
    "MFConv": (pyg.MFConv, 1),
    "ResGatedGraphConv": (pyg.ResGatedGraphConv, 1),
    "SAGEConv": (pyg.SAGEConv, 1),
    "SAGEConv, LSTM": (lambda a, b: pyg.SAGEConv(a, b, aggr="lstm"), 1),
    "SAGEConv, softmax": (lambda a, b: pyg.SAGEConv(a, b, aggr="softmax"), 1),
    "SAGEConv, without its own row": (lambda a, b: pyg.SAGEConv(a, b, root_weight=False), 1),
    "SGConv": (lambda a, b: pyg.SGConv(a, b, K=2), 2),
    "SSGConv": (lambda a, b: pyg.SSGConv(a, b, alpha=0.1, K=2), 2),
    "SuperGATConv": (pyg.SuperGATConv, 1),
    "TAGConv": (lambda a, b: pyg.TAGConv(a, b, K=2), 2),
    "TransformerConv": (pyg.TransformerConv, 1),
}


def _exhibit(kind: str, make: Callable[[Data], nn.Module], depth: int, *, counted: bool = True) -> Exhibit:
    return Exhibit(kind=kind, make=make, local=True, depth=depth, counted=counted)


LOCAL: dict[str, Exhibit] = {
    **{
        name: _exhibit("convolution", lambda _, conv=conv: Stacked(conv), 2 * steps)  # type: ignore[misc]
        for name, (conv, steps) in _CONVOLUTIONS.items()
    },
    "RGCNConv, three relations": _exhibit("relations", lambda _: Relational(pyg.RGCNConv), 2),
    "RGATConv, three relations": _exhibit("relations", lambda _: Relational(pyg.RGATConv), 2),
    "ensemble": _exhibit(
        "composition", lambda _: Ensemble(*(pyg.GCN(WIDTH, _HIDDEN, k, CLASSES) for k in (1, 3, 2))), 3
    ),
    "jumping knowledge": _exhibit("composition", lambda _: pyg.GIN(WIDTH, _HIDDEN, 3, CLASSES, jk="cat"), 3),
    "APPNP": _exhibit("composition", lambda _: Projected(pyg.APPNP(K=5, alpha=0.1)), 5),
    "MLP": _exhibit("composition", lambda _: Projected(_Nothing()), 1),
    "layer norm per node": _exhibit("norm", lambda _: Stacked(pyg.GCNConv, nn.LayerNorm(_HIDDEN)), 2),
    "batch norm": _exhibit("norm", lambda _: Stacked(pyg.GCNConv, pyg.BatchNorm(_HIDDEN)), 2),
    "instance norm, running statistics": _exhibit(
        "norm", lambda _: Stacked(pyg.GCNConv, pyg.InstanceNorm(_HIDDEN, track_running_stats=True)), 2
    ),
    "graph size norm": _exhibit("norm", lambda _: Stacked(pyg.GCNConv, pyg.GraphSizeNorm()), 2),
    "first step in place": _exhibit("style", lambda _: InPlace(pyg.GCNConv), 2),
    "remembers the number of nodes": _exhibit("style", lambda _: KeepsSize(), 2),
    "index_add": _exhibit("style", lambda _: BySum(), 1, counted=False),
    "a row per node": _exhibit("style", lambda data: PerNode(int(data.num_nodes or 0)), 1, counted=False),
}


class _Nothing(nn.Module):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        del edge_index
        return x
