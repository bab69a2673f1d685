"""Small graphs with node types and relations, and models of them."""

import torch
import torch_geometric.nn as pyg
from torch import nn
from torch_geometric.data import HeteroData

WRITES, WRITTEN_BY = ("author", "writes", "paper"), ("paper", "written_by", "author")
REVIEWS, CITES = ("author", "reviews", "paper"), ("paper", "cites", "paper")
CLASSES, PAPER, AUTHOR = 3, 8, 5


def random_edges(num_sources, num_receivers, number, generator):
    ends = [torch.randint(size, (number,), generator=generator) for size in (num_sources, num_receivers)]
    return torch.unique(torch.stack(ends), dim=1)


def typed_graph(num_papers=24, num_authors=18, seed=0):
    """Papers of three classes, and authors, some of whom review what they have written: two relations of a pair."""
    generator = torch.Generator().manual_seed(seed)
    data = HeteroData()
    y = torch.arange(num_papers) % CLASSES
    data["paper"].x = torch.nn.functional.one_hot(y, PAPER) + 0.3 * torch.randn(num_papers, PAPER, generator=generator)
    data["paper"].y = y
    data["author"].x = torch.randn(num_authors, AUTHOR, generator=generator)
    writes = random_edges(num_authors, num_papers - 1, 3 * num_papers, generator)  # the last paper is nobody's
    reviews = random_edges(num_authors, num_papers - 1, num_papers // 2, generator)
    data[WRITES].edge_index, data[WRITTEN_BY].edge_index = writes, writes.flip(0)
    data[REVIEWS].edge_index = torch.unique(torch.cat([writes[:, ::4], reviews], dim=1), dim=1)
    data[CITES].edge_index = random_edges(num_papers - 1, num_papers - 1, 2 * num_papers, generator)
    return data


class Convs(nn.Module):
    """Two layers of `HeteroConv`, GraphSAGE and attention; the token is one vector per type."""

    def __init__(self, token=False):
        super().__init__()

        def layer(paper, author, out):
            return pyg.HeteroConv(
                {
                    WRITES: pyg.SAGEConv((author, paper), out),
                    WRITTEN_BY: pyg.SAGEConv((paper, author), out),
                    REVIEWS: pyg.GATConv((author, paper), out, add_self_loops=False),
                    CITES: pyg.GATConv(paper, out),
                }
            )

        self.first, self.second = layer(PAPER, AUTHOR, 8), layer(8, 8, CLASSES)
        if token:
            self.ablation_token = nn.ParameterDict({"paper": torch.randn(PAPER), "author": torch.randn(AUTHOR)})

    def forward(self, x_dict, edge_index_dict):
        hidden = {name: rows.relu() for name, rows in self.first(x_dict, edge_index_dict).items()}
        return self.second(hidden, edge_index_dict)
