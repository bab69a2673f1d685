"""Models of graphs with types, as people write them, by name."""

import torch
import torch_geometric.nn as pyg
from torch import nn

from support.typed_graphs import AUTHOR, CLASSES, PAPER, Convs, to_hetero


class Transformer(nn.Module):
    """Two layers of the heterogeneous graph transformer, and a head for papers."""

    def __init__(self, metadata):
        super().__init__()
        self.first = pyg.HGTConv({"paper": PAPER, "author": AUTHOR}, 8, metadata, heads=2)
        self.second = pyg.HGTConv(8, 8, metadata, heads=2)
        self.head = nn.Linear(8, CLASSES, bias=False)
        with torch.no_grad():
            for weights in self.parameters():  # else its scores hardly vary, untrained
                weights *= 2

    def forward(self, x_dict, edge_index_dict):
        hidden = self.second(self.first(x_dict, edge_index_dict), edge_index_dict)
        return self.head(hidden["paper"])


class Relational(nn.Module):
    """RGCN: a linear map per type, then two layers over all nodes, numbered type by type."""

    def __init__(self, metadata):
        super().__init__()
        self.types, self.relations = metadata
        self.into = nn.ModuleDict({"paper": nn.Linear(PAPER, 8), "author": nn.Linear(AUTHOR, 8)})
        self.first = pyg.RGCNConv(8, 8, len(self.relations))
        self.second = pyg.RGCNConv(8, CLASSES, len(self.relations))

    def forward(self, x_dict, edge_index_dict):
        start, parts = {}, []
        for name in self.types:
            start[name] = sum(len(part) for part in parts)
            parts.append(self.into[name](x_dict[name]))
        edges, kinds = [], []
        for number, relation in enumerate(self.relations):
            shift = torch.tensor([start[relation[0]], start[relation[2]]])
            edges.append(edge_index_dict[relation] + shift.unsqueeze(1))
            kinds.append(torch.full((edges[-1].size(1),), number))
        joined, kind = torch.cat(edges, dim=1), torch.cat(kinds)
        out = self.second(self.first(torch.cat(parts), joined, kind).relu(), joined, kind)
        return out[start["paper"] : start["paper"] + x_dict["paper"].size(0)]


MODELS = {
    "to_hetero(SAGE)": to_hetero,
    "HeteroConv, SAGE and GAT": lambda data: Convs(),
    "HeteroConv, a token per type": lambda data: Convs(token=True),
    "HGT": lambda data: Transformer(data.metadata()),
    "RGCN": lambda data: Relational(data.metadata()),
}
