"""Accounts of which few are fraud, and a model that finds them unless features are hidden (CASES A6)."""

import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

NUM_ACCOUNTS, NUM_FRAUDS = 400, 12


def few_frauds():
    """A ring of accounts with chords; the first feature says which are fraud."""
    generator = torch.Generator().manual_seed(0)
    nodes = torch.arange(NUM_ACCOUNTS)
    fraud = (nodes % (NUM_ACCOUNTS // NUM_FRAUDS) == 5) & (nodes < 5 + 33 * NUM_FRAUDS)
    pairs = torch.stack([nodes.repeat(2), torch.cat([(nodes + 1) % NUM_ACCOUNTS, (nodes + 17) % NUM_ACCOUNTS])])
    edges = torch.cat([pairs, pairs.flip(0)], dim=1)
    noise = torch.randn(NUM_ACCOUNTS, generator=generator)
    return Data(
        x=torch.stack([fraud.float(), noise], dim=1),
        edge_index=edges,
        y=fraud.long(),
        class_names=["ok", "fraud"],
        node_ids=[f"account {number}" for number in range(NUM_ACCOUNTS)],
    )


class FindsFraud(nn.Module):
    """Answers "fraud" where the target's own first feature says so, "ok" where nothing is shown."""

    def __init__(self):
        super().__init__()
        self.conv = SAGEConv(2, 2)
        with torch.no_grad():
            self.conv.lin_l.weight.copy_(torch.tensor([[0.0, 0.01], [0.5, -0.01]]))
            self.conv.lin_l.bias.copy_(torch.tensor([1.0, 0.0]))
            self.conv.lin_r.weight.copy_(torch.tensor([[0.0, 0.0], [3.0, 0.0]]))

    def forward(self, x, edge_index):
        return self.conv(x, edge_index)
