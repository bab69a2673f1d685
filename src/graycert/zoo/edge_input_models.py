"""Models for which Lemma 1 holds and that are given values per edge: weights, attributes, relations."""

from collections.abc import Callable
from typing import Any

import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.data import Data

from graycert.zoo.exhibit import ATTRIBUTES, CLASSES, RELATIONS, WIDTH, Exhibit

_HIDDEN = 8
_DEGREES = torch.tensor([1, 4, 10, 12, 8, 4])  # histogram, for PNA


class _Given(nn.Module):
    """Two layers that are given values per edge."""

    def __init__(self, conv: Callable[[int, int], Any]) -> None:
        super().__init__()
        self.first, self.second = conv(WIDTH, _HIDDEN), conv(_HIDDEN, CLASSES)

    def both(self, x: Tensor, edge_index: Tensor, values: Tensor) -> Tensor:
        """Return class scores."""
        scores: Tensor = self.second(self.first(x, edge_index, values).relu(), edge_index, values)
        return scores


class Weighted(_Given):
    """A weight per edge."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """Return class scores."""
        return self.both(x, edge_index, edge_weight)


class Attributed(_Given):
    """Attributes per edge."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        """Return class scores."""
        return self.both(x, edge_index, edge_attr)


class Typed(_Given):
    """A relation per edge."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_type: Tensor) -> Tensor:
        """Return class scores."""
        return self.both(x, edge_index, edge_type)


class Several(nn.Module):
    """Relations, weights and attributes together."""

    def __init__(self) -> None:
        super().__init__()
        self.first = pyg.RGATConv(WIDTH, _HIDDEN, RELATIONS, edge_dim=ATTRIBUTES)
        self.second = pyg.GCNConv(_HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor, *, edge_weight: Tensor, **others: Tensor) -> Tensor:
        """Return class scores."""
        hidden = self.first(x, edge_index, others["edge_type"], others["edge_attr"])
        scores: Tensor = self.second(hidden.relu(), edge_index, edge_weight)
        return scores


class ByPseudoCoordinates(pyg.MessagePassing):  # type: ignore[misc]
    """A mean of messages W(u) x, where W interpolates linearly in the pseudo-coordinates u of an edge, in [0, 1].

    It has the signature of SplineConv, which needs an extension that cannot be installed from PyPI alone.

    References:
        Fey et al. (2018), SplineCNN, Section 3.
    """

    def __init__(self, width: int, width_out: int, *, dim: int = ATTRIBUTES, kernel_size: int = 2) -> None:
        super().__init__(aggr="mean")
        self.kernel_size = kernel_size
        self.weight = nn.Parameter(torch.randn(kernel_size**dim, width, width_out) / width**0.5)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        """Return rows, shape (num_nodes, width_out)."""
        rows: Tensor = self.propagate(edge_index, x=x, edge_attr=edge_attr)
        return rows

    def message(self, x_j: Tensor, edge_attr: Tensor) -> Tensor:
        """Return a message per edge."""
        knots = torch.arange(self.kernel_size, device=edge_attr.device)
        hats = (1 - (edge_attr.unsqueeze(-1) * (self.kernel_size - 1) - knots).abs()).clamp(min=0)
        basis = hats[:, 0]
        for each in hats.unbind(dim=1)[1:]:
            basis = (basis.unsqueeze(2) * each.unsqueeze(1)).flatten(1)
        return torch.einsum("ek,kio,ei->eo", basis, self.weight, x_j)


def _network(a: int, b: int) -> nn.Module:
    return nn.Sequential(nn.Linear(a, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, b))


_WEIGHTED: dict[str, tuple[Callable[[int, int], Any], int]] = {
    "ARMAConv": (lambda a, b: pyg.ARMAConv(a, b, num_layers=2), 2),
    "ChebConv": (lambda a, b: pyg.ChebConv(a, b, K=3), 2),
    "GCNConv": (pyg.GCNConv, 1),
    "GraphConv": (pyg.GraphConv, 1),
    "LEConv": (pyg.LEConv, 1),
    "SGConv": (lambda a, b: pyg.SGConv(a, b, K=2), 2),
    "TAGConv": (lambda a, b: pyg.TAGConv(a, b, K=2), 2),
}
_ATTRIBUTED: dict[str, Callable[[int, int], Any]] = {
    "GATConv": lambda a, b: pyg.GATConv(a, b, heads=2, concat=False, edge_dim=ATTRIBUTES),
    "GATv2Conv": lambda a, b: pyg.GATv2Conv(a, b, edge_dim=ATTRIBUTES),
    "GENConv": lambda a, b: pyg.GENConv(a, b, edge_dim=ATTRIBUTES),
    "GINEConv": lambda a, b: pyg.GINEConv(_network(a, b), edge_dim=ATTRIBUTES),
    "ByPseudoCoordinates": ByPseudoCoordinates,
    "GMMConv": lambda a, b: pyg.GMMConv(a, b, dim=ATTRIBUTES, kernel_size=2),
    "NNConv": lambda a, b: pyg.NNConv(a, b, _network(ATTRIBUTES, a * b)),
    "PNAConv": lambda a, b: pyg.PNAConv(
        a, b, ["mean", "min", "max", "std"], ["identity", "amplification"], _DEGREES, edge_dim=ATTRIBUTES
    ),
    "ResGatedGraphConv": lambda a, b: pyg.ResGatedGraphConv(a, b, edge_dim=ATTRIBUTES),
    "TransformerConv": lambda a, b: pyg.TransformerConv(a, b, edge_dim=ATTRIBUTES),
}
_TYPED: dict[str, Callable[[int, int], Any]] = {
    "FastRGCNConv": lambda a, b: pyg.FastRGCNConv(a, b, RELATIONS),
    "FiLMConv": lambda a, b: pyg.FiLMConv(a, b, RELATIONS),
    "RGATConv": lambda a, b: pyg.RGATConv(a, b, RELATIONS),
    "RGCNConv": lambda a, b: pyg.RGCNConv(a, b, RELATIONS),
}


def _exhibit(make: Callable[[Data], nn.Module], depth: int, *names: str) -> Exhibit:
    return Exhibit(kind="values per edge", make=make, local=True, depth=depth, edge_inputs=names)


GIVEN: dict[str, Exhibit] = {
    **{
        f"{name}, weighted": _exhibit(lambda _, conv=conv: Weighted(conv), 2 * steps, "edge_weight")  # type: ignore[misc]
        for name, (conv, steps) in _WEIGHTED.items()
    },
    **{
        f"{name}, attributes": _exhibit(lambda _, conv=conv: Attributed(conv), 2, "edge_attr")  # type: ignore[misc]
        for name, conv in _ATTRIBUTED.items()
    },
    **{
        f"{name}, relations": _exhibit(lambda _, conv=conv: Typed(conv), 2, "edge_type")  # type: ignore[misc]
        for name, conv in _TYPED.items()
    },
    "relations, attributes and weights": _exhibit(lambda _: Several(), 2, "edge_type", "edge_attr", "edge_weight"),
}
