"""Milliseconds per draw on models without a compiled kernel: the plain engine against the textbook loop.

Both alternate in one process. Usage: python benchmarks/foreign_models.py [--graph cora_ml] [--rounds 3] [--json FILE]
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch_geometric.nn as pyg
from torch import nn
from torch.nn import functional

import graycert
from graycert.sampling import CoinStream, InterceptionSampler, Purpose, ablate
from graycert.sampling.voting import build_engine


class Layers(nn.Module):
    """Two layers, of which the first may be a chain, with an activation in between."""

    def __init__(
        self,
        first: nn.Module,
        second: nn.Module,
        activation: Callable[[torch.Tensor], torch.Tensor],
        *,
        before: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.before, self.first, self.second = before, first, second
        self.activation = activation

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Return class scores."""
        if self.before is not None:
            x = self.activation(self.before(x))
        scores: torch.Tensor = self.second(self.activation(self.first(x, edge_index)), edge_index)
        return scores


def foreign_models(features: int, classes: int) -> dict[str, nn.Module]:
    """Return the models by name; those marked with * do not start row-wise."""
    gelu, elu = functional.gelu, functional.elu
    norm = {"norm": "layer_norm", "norm_kwargs": {"mode": "node"}}
    return {
        "GAT 8x64, LayerNorm": pyg.GAT(features, 512, 2, classes, heads=8, **norm),
        "GAT 8x8, LayerNorm": pyg.GAT(features, 64, 2, classes, heads=8, **norm),
        "GCN, GELU": Layers(pyg.GCNConv(features, 64), pyg.GCNConv(64, classes), gelu),
        "GATv2 8x8, GELU": Layers(pyg.GATv2Conv(features, 8, heads=8), pyg.GATv2Conv(64, classes), gelu),
        "TransformerConv": Layers(pyg.TransformerConv(features, 8, heads=8), pyg.TransformerConv(64, classes), elu),
        "Linear, SAGE, SAGE": Layers(
            pyg.SAGEConv(64, 64), pyg.SAGEConv(64, classes), gelu, before=nn.Linear(features, 64)
        ),
        "GCN, JumpingKnowledge": pyg.GCN(features, 64, 2, classes, jk="cat", act="gelu"),
        "GraphConv *": Layers(pyg.GraphConv(features, 64), pyg.GraphConv(64, classes), gelu),
        "SAGE, max *": pyg.GraphSAGE(features, 64, 2, classes, aggr="max"),
        "GIN *": pyg.GIN(features, 64, 2, classes),
    }


def textbook_loop(
    model: Any,
    data: Any,
    targets: torch.Tensor,
    token: torch.Tensor,
    smoothing: graycert.InterceptionSmoothing,
    num_samples: int,
) -> torch.Tensor:
    """Return votes (num_targets, num_classes) of one full forward pass per draw (two with skip connection)."""
    stream = CoinStream(0, Purpose.ESTIMATION)
    sampler = InterceptionSampler.of_graph(smoothing, stream, data.edge_index, num_nodes=data.num_nodes)
    votes = torch.tensor(0)
    with torch.no_grad():
        for sample in range(num_samples):
            draw = sampler.draw(torch.tensor([sample]))
            scores = model(ablate(data.x, token, draw.ablated[0]), data.edge_index[:, draw.kept[0]])
            if getattr(model, "skip", False):
                scores = scores + model.skip_logits(data.x)
            one_hot = torch.nn.functional.one_hot(scores[targets].argmax(dim=1), scores.size(1))
            votes = votes + one_hot
    return votes


def milliseconds_per_draw(run: Callable[[int], object], num_samples: int) -> float:
    """Return wall milliseconds per draw."""
    started = time.perf_counter()
    run(num_samples)
    return 1e3 * (time.perf_counter() - started) / num_samples


def main() -> None:
    """Print milliseconds per draw and the ratio, per model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", default="cora_ml")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--draws", type=int, default=200, help="draws of the engine per round")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="only models whose name contains this")
    parser.add_argument("--json", type=Path, help="write the records to this file")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    data = graycert.load_graph(options.graph)
    split = graycert.inductive_split(data, seed=42)
    targets = split.test.nodes
    smoothing = graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)
    models = foreign_models(data.x.size(1), int(data.y.max()) + 1)
    for architecture in ("gcn", "gat", "gatv2", "sma"):
        for skip in (True, False):
            name = architecture + (" + skip" if skip else "")
            models[name] = graycert.build_model(architecture, split, skip=skip, seed=0)
    print(f"{options.graph}, {targets.numel()} targets, {options.threads} thread(s), torch {torch.__version__}")
    print(f"{'model':24} {'textbook':>12} {'engine':>12} {'ratio':>8}  {'differing votes':>16}  engine")
    records = []
    for name, model in models.items():
        if options.only not in name:
            continue
        model.eval()
        token = getattr(model, "ablation_token", torch.zeros(data.x.size(1)))
        engine = build_engine(model, data, targets.numpy(), smoothing=smoothing, num_layers=2)
        votes = torch.from_numpy(engine.votes(0, Purpose.ESTIMATION, num_samples=5))
        differing = int((votes - textbook_loop(model, data, targets, token, smoothing, 5)).abs().sum()) // 2
        slow, fast = [], []
        for _ in range(options.rounds):
            slow.append(
                milliseconds_per_draw(lambda n: textbook_loop(model, data, targets, token, smoothing, n), 3)  # noqa: B023
            )
            fast.append(
                milliseconds_per_draw(
                    lambda n: engine.votes(0, Purpose.ESTIMATION, num_samples=n),  # noqa: B023
                    options.draws,
                )
            )
        textbook, ours = statistics.median(slow), statistics.median(fast)
        records.append({"model": name, "textbook_ms": textbook, "engine_ms": ours, "ratio": textbook / ours})
        print(
            f"{name:24} {textbook:9.1f} ms {ours:9.2f} ms {textbook / ours:7.1f}x  {differing:7} of {5 * len(targets)}"
            f"  {engine.name}",
            flush=True,
        )
    if options.json is not None:
        options.json.write_text(json.dumps(records, indent=2) + "\n")


if __name__ == "__main__":
    main()
