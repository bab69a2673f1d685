"""Models of a graph with node types and relations, local and leaky ones; papers are classified."""

from collections.abc import Callable
from typing import Any

import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.data import Data

from graycert.zoo.exhibit import AUTHOR_WIDTH, CLASSES, TYPED_RELATIONS, WIDTH, Exhibit

_HIDDEN = 8
_WIDTHS = {"paper": WIDTH, "author": AUTHOR_WIDTH}
_METADATA = (list(_WIDTHS), list(TYPED_RELATIONS))
Types = dict[str, Tensor]
Edges = dict[tuple[str, str, str], Tensor]


class HeteroConvs(nn.Module):
    """Two layers of `HeteroConv`: GraphSAGE, but attention among papers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = _layer(_WIDTHS, _HIDDEN), _layer(dict.fromkeys(_WIDTHS, _HIDDEN), CLASSES)

    def forward(self, x_dict: Types, edge_index_dict: Edges) -> Tensor:
        """Return class scores of papers."""
        hidden = {name: rows.relu() for name, rows in self.first(x_dict, edge_index_dict).items()}
        scores: Tensor = self.second(hidden, edge_index_dict)["paper"]
        return scores


def _layer(widths: dict[str, int], out: int) -> nn.Module:
    def conv(source: str, receiver: str) -> Any:
        if source == receiver:
            return pyg.GATConv(widths[source], out)
        return pyg.SAGEConv((widths[source], widths[receiver]), out)

    made: nn.Module = pyg.HeteroConv({relation: conv(relation[0], relation[2]) for relation in TYPED_RELATIONS})
    return made


class WithToken(HeteroConvs):
    """The same, with a token per type."""

    def __init__(self) -> None:
        super().__init__()
        self.ablation_token = nn.ParameterDict({name: torch.randn(width) for name, width in _WIDTHS.items()})


class Transformer(nn.Module):
    """Two layers of the heterogeneous graph transformer, and a head for papers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = pyg.HGTConv(_WIDTHS, _HIDDEN, _METADATA, heads=2)
        self.second = pyg.HGTConv(_HIDDEN, _HIDDEN, _METADATA, heads=2)
        self.head = nn.Linear(_HIDDEN, CLASSES, bias=False)
        with torch.no_grad():
            for weights in self.parameters():  # else its scores hardly vary, untrained
                weights.mul_(2)

    def forward(self, x_dict: Types, edge_index_dict: Edges) -> Tensor:
        """Return class scores of papers."""
        hidden = self.second(self.first(x_dict, edge_index_dict), edge_index_dict)
        scores: Tensor = self.head(hidden["paper"])
        return scores


class Relational(nn.Module):
    """RGCN: a linear map per type, then two layers over all nodes, numbered type by type."""

    def __init__(self) -> None:
        super().__init__()
        self.into = nn.ModuleDict({name: nn.Linear(width, _HIDDEN) for name, width in _WIDTHS.items()})
        self.first = pyg.RGCNConv(_HIDDEN, _HIDDEN, len(TYPED_RELATIONS))
        self.second = pyg.RGCNConv(_HIDDEN, CLASSES, len(TYPED_RELATIONS))

    def forward(self, x_dict: Types, edge_index_dict: Edges) -> Tensor:
        """Return class scores of papers."""
        num_papers = x_dict["paper"].size(0)
        start = {"paper": 0, "author": num_papers}
        x = torch.cat([self.into[name](x_dict[name]) for name in start])
        parts = [edge_index_dict[r] + x.new_tensor([[start[r[0]]], [start[r[2]]]]).long() for r in TYPED_RELATIONS]
        kinds = torch.arange(len(parts), device=x.device)
        kinds = kinds.repeat_interleave(torch.tensor([part.size(1) for part in parts], device=x.device))
        edges = torch.cat(parts, dim=1)
        scores: Tensor = self.second(self.first(x, edges, kinds).relu(), edges, kinds)[:num_papers]
        return scores


class _Sage(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (pyg.SAGEConv((-1, -1), out, bias=False) for out in (_HIDDEN, CLASSES))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return class scores."""
        scores: Tensor = self.second(self.first(x, edge_index).relu(), edge_index)
        return scores


def _to_hetero() -> nn.Module:
    model: nn.Module = pyg.to_hetero(_Sage(), _METADATA)
    with torch.no_grad():  # makes its parameters
        nothing = torch.empty(2, 0, dtype=torch.long)
        model({name: torch.zeros(1, width) for name, width in _WIDTHS.items()}, dict.fromkeys(TYPED_RELATIONS, nothing))
    return model


class SemanticAttention(nn.Module):
    """HAN: how much each relation counts is a mean over all papers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = pyg.HANConv(_WIDTHS, _HIDDEN, _METADATA), nn.Linear(_HIDDEN, CLASSES)

    def forward(self, x_dict: Types, edge_index_dict: Edges) -> Tensor:
        """Return class scores of papers."""
        scores: Tensor = self.head(self.conv(x_dict, edge_index_dict)["paper"])
        return scores


class Ruled(HeteroConvs):
    """What is done to the scores of two layers."""

    def __init__(self, rule: Callable[[Tensor, Types], Tensor]) -> None:
        super().__init__()
        self.rule = rule

    def forward(self, x_dict: Types, edge_index_dict: Edges) -> Tensor:
        """Return class scores of papers."""
        return self.rule(super().forward(x_dict, edge_index_dict), x_dict)


def _exhibit(make: Callable[[], nn.Module], *, local: bool, attacked: float = 1e4) -> Exhibit:
    def built(data: Data) -> Any:
        del data
        return make()

    return Exhibit(kind="node types", make=built, local=local, depth=2, typed=True, attacked=attacked)


TYPED: dict[str, Exhibit] = {
    "to_hetero(SAGE)": _exhibit(_to_hetero, local=True),
    "HeteroConv, SAGE and GAT": _exhibit(HeteroConvs, local=True),
    "HeteroConv, a token per type": _exhibit(WithToken, local=True),
    "HGT": _exhibit(Transformer, local=True),
    "RGCN over all types": _exhibit(Relational, local=True),
    "semantic attention (HAN)": _exhibit(SemanticAttention, local=False),
    "mean over all authors": _exhibit(
        lambda: Ruled(lambda out, x: out + x["author"].mean(dim=0)[:CLASSES]), local=False
    ),
    "norm over all papers": _exhibit(lambda: Ruled(lambda out, _: out / out.norm()), local=False),
}
