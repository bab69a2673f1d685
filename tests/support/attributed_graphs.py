"""Small random graphs with features and labels."""

import torch
from torch_geometric.data import Data

ARCHITECTURE_NAMES = ("gcn", "gat", "gatv2", "sma")


def random_graph(
    *, num_nodes=14, num_pairs=24, num_features=5, num_classes=3, directed=True, seed=0, dtype=torch.float32
):
    """A graph without self-loops and parallel edges; its last node has no edge."""
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randint(num_nodes - 1, (2, num_pairs), generator=generator)
    pairs = pairs[:, pairs[0] != pairs[1]]
    if not directed:
        pairs = torch.cat([pairs, pairs.flip(0)], dim=1)
    edges = torch.unique(pairs, dim=1)
    edges = edges[:, torch.randperm(edges.size(1), generator=generator)]
    return Data(
        x=torch.randn(num_nodes, num_features, generator=generator, dtype=torch.float64).to(dtype),
        edge_index=edges,
        y=torch.arange(num_nodes) % num_classes,
    )
