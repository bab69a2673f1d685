"""Smoothed accuracy of models that PyTorch Geometric ships, trained without interception, with it, and with a token.

Usage: GRAYCERT_DATA=FOLDER python benchmarks/training_gain.py [--graph cora_ml] [--seeds 2] [--json FILE]
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch_geometric.nn import GAT, GCN, GraphSAGE

import graycert

CERTIFIED = graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)
NOTHING = graycert.InterceptionSmoothing(p_delete=0.0, p_ablate=0.0)
TRAINING = graycert.InterceptionSmoothing(p_delete=0.01, p_ablate=0.6)


class MapThenSAGE(nn.Module):
    """A linear map of the features, then GraphSAGE."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.map, self.sage = nn.Linear(num_features, 64), GraphSAGE(64, 64, 2, num_classes, dropout=0.5)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Return class scores."""
        scores: torch.Tensor = self.sage(torch.relu(self.map(x)), edge_index)
        return scores


MODELS: dict[str, Callable[[int, int], nn.Module]] = {
    "linear map, GraphSAGE": MapThenSAGE,
    "GATv2": lambda features, classes: GAT(features, 64, 2, classes, dropout=0.5, heads=8, v2=True),
    "GCN": lambda features, classes: GCN(features, 64, 2, classes, dropout=0.5),
}
WAYS = {
    "without interception": (NOTHING, False),
    "with, token of zeros": (TRAINING, False),
    "with, trained token": (TRAINING, True),
}
COLUMNS = ("plain accuracy", "smoothed accuracy", "certified at radius 1", "certified and right at radius 1")


def trained(make: Callable[[int, int], nn.Module], split: Any, way: str, seed: int) -> nn.Module:
    """Return a trained model."""
    smoothing, token = WAYS[way]
    data = split.test.data
    torch.manual_seed(seed)
    model = make(data.num_features, int(data.y.max()) + 1)
    if token:
        model.ablation_token = nn.Parameter(torch.zeros(data.num_features))
    graycert.train(model, split, smoothing=smoothing, learning_rate=0.01, patience=30, seed=seed)
    return model


def measured(model: nn.Module, split: Any, seed: int) -> dict[str, float]:
    """Return the shares of test nodes in `COLUMNS`."""
    data, nodes = split.test.data, split.test.nodes
    with torch.no_grad():
        plain = model(data.x, data.edge_index)[nodes].argmax(dim=1) == data.y[nodes]
    found = graycert.certify(
        model,
        data,
        targets=nodes,
        smoothing=CERTIFIED,
        threat=graycert.NodeFeatureThreat(),
        draws=graycert.Draws(num_selection=200, num_estimation=1_000),
        seed=seed,
    )
    right, certified = found.prediction == data.y[nodes].numpy(), found.radius >= 1
    shares = float(plain.double().mean()), right.mean(), certified.mean(), (right & certified).mean()
    return dict(zip(COLUMNS, map(float, shares), strict=True))


def main() -> None:
    """Read the arguments and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="cora_ml")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    data = graycert.load_graph(arguments.graph)
    rows = []
    print(f"| model | trained | {' | '.join(COLUMNS)} |\n|---|---|{'---|' * len(COLUMNS)}")
    for name, make in MODELS.items():
        for way in WAYS:
            splits = [graycert.inductive_split(data, seed=seed) for seed in range(arguments.seeds)]
            found = [measured(trained(make, split, way, seed), split, seed) for seed, split in enumerate(splits)]
            means = {column: float(np.mean([each[column] for each in found])) for column in COLUMNS}
            rows.append({"model": name, "trained": way, **means})
            print(f"| {name} | {way} | {' | '.join(f'{means[column]:.1%}' for column in COLUMNS)} |", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
