"""A graph of three groups, a model that tells them apart, and certificates with radii worth checking."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import torch
from torch.nn import functional
from torch_geometric.data import Data

import graycert
from support.flat_arguments import certify_flat

SMOOTHING = graycert.InterceptionSmoothing(p_delete=0.5, p_ablate=0.6)
OTHERS = graycert.NodeFeatureThreat(min_distance=1)
TARGETS = np.array([4, 0, 17, 9, 30, 3, 22, 11, 41, 8, 26, 13])
COLUMNS = ("prediction", "status", "p_lower", "p_upper", "radius", "delta_upper", "attackers")


@cache
def three_groups() -> Data:
    """42 nodes, edges mostly within a group, features that all but name the group."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(42) % 3
    likely = torch.where(y[:, None] == y[None, :], 0.25, 0.01)
    upper = torch.triu(torch.rand(42, 42, generator=generator) < likely, diagonal=1)
    x = functional.one_hot(y, 3).float() + 0.1 * torch.rand(42, 3, generator=generator)
    return Data(x=x, edge_index=(upper | upper.T).nonzero().T.contiguous(), y=y)


@cache
def trained_model(num_layers: int = 2) -> torch.nn.Module:
    """Train a GCN on all of the graph: how well it would do elsewhere does not matter here."""
    data = three_groups()
    model = graycert.build_model("gcn", data, num_layers=num_layers, hidden_channels=8, dropout=0.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(40):
        optimizer.zero_grad()
        functional.cross_entropy(model(data.x, data.edge_index), data.y).backward()
        optimizer.step()
    return model.eval()


class RowClassifier(torch.nn.Module):
    """An MLP that reads each row alone."""

    def __init__(self, num_features: int = 3, hidden: int = 16, num_classes: int = 3) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(num_features, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, num_classes)
        )

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor | None = None) -> torch.Tensor:
        del edge_index
        return self.layers(x)


@cache
def trained_row_classifier() -> torch.nn.Module:
    """Train it on all of the graph, not until it is sure."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model, data = RowClassifier(), three_groups()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(6):
        optimizer.zero_grad()
        functional.cross_entropy(model(data.x), data.y).backward()
        optimizer.step()
    return model.eval()


def certify_groups(*, collective: Sequence[int] | None = None, **changes: object) -> graycert.Certificates:
    """Certify twelve nodes, together too if budgets are given; the same seed gives the same votes for every rule and
    bound.
    """
    arguments = {
        "smoothing": SMOOTHING,
        "targets": TARGETS,
        "threat": OTHERS,
        "num_selection": 50,
        "num_estimation": 400,
        "alpha": 0.05,
        "max_radius": 6,
    }
    run = certify_flat(trained_model(), three_groups(), **{**arguments, **changes})
    if collective is None:
        return run
    return run.replace(collective=run.against_one_adversary(three_groups(), collective))


def smoothing_with_arrays(*, seed: int = 0) -> graycert.InterceptionSmoothing:
    """A probability for each edge, in the order of the columns of ``edge_index``, and for each node."""
    generator = np.random.default_rng(seed)
    num_edges = three_groups().edge_index.size(1)
    return graycert.InterceptionSmoothing(
        p_delete=generator.uniform(0.3, 0.7, num_edges), p_ablate=generator.uniform(0.5, 0.8, 42)
    )
