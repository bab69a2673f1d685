"""A small graph that a model can learn."""

import torch
from torch_geometric.data import Data


def two_communities(*, seed: int = 0, sparse: bool = True) -> Data:
    """60 nodes in two classes, edges mostly within a class, features that tell the class with noise."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(60) % 2
    likely = torch.where(y[:, None] == y[None, :], 0.15, 0.01)
    upper = torch.triu(torch.rand(60, 60, generator=generator) < likely, diagonal=1)
    edge_index = (upper | upper.T).nonzero().T.contiguous()
    x = torch.rand(60, 40, generator=generator)
    x = (x < torch.where(y[:, None] == torch.arange(40)[None, :] % 2, 0.25, 0.05)).float() if sparse else x + y[:, None]
    return Data(x=x, edge_index=edge_index, y=y)
