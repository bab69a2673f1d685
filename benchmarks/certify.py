"""A whole certificate of PyTorch Geometric's own models against one full-graph forward pass per draw.

The call of `certify` has everything in it: checks, audit, bounds, choice of engine, 1,000 + 3,000 draws, conclusion.
On the other side stand 4,000 forward passes on the whole graph, each with the features and edges that its coins leave;
flipping the coins is not counted. Both alternate in one process, after a call of each.

Usage: python benchmarks/certify.py [--rounds 3] [--graph cora_ml] [--json FILE]
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch
import torch_geometric.nn as pyg
from torch import nn

import graycert
from graycert.sampling import CoinStream, InterceptionSampler, Purpose, ablate

SMOOTHING = graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)
THREAT = graycert.NodeFeatureThreat(min_distance=1)
DRAWS = graycert.Draws(num_selection=1_000, num_estimation=3_000)
NUM_TARGETS = 253
FORWARDS = 40  # of the 4,000, per round


def models(features: int, classes: int) -> dict[str, nn.Module]:
    """Return PyTorch Geometric's models with weights and biases as after training."""
    made = {
        "GCN 64": pyg.GCN(features, 64, 2, classes),
        "GAT 8x8": pyg.GAT(features, 64, 2, classes, heads=8),
        "GraphSAGE 64": pyg.GraphSAGE(features, 64, 2, classes),
    }
    for model in made.values():
        for weight in model.parameters():
            if weight.dim() == 1:
                nn.init.normal_(weight, std=0.1)
        model.eval()
    return made


def seconds_of_forwards(model: nn.Module, data: Any) -> float:
    """Return what 4,000 forward passes take, from some of them; coins are flipped beforehand."""
    stream = CoinStream(0, Purpose.ESTIMATION)
    sampler = InterceptionSampler.of_graph(SMOOTHING, stream, data.edge_index, num_nodes=data.num_nodes)
    token = torch.zeros(data.x.size(1))
    taken = 0.0
    with torch.inference_mode():
        for sample in range(FORWARDS):
            draw = sampler.draw(torch.tensor([sample]))
            started = time.perf_counter()
            x, edges = ablate(data.x, token, draw.ablated[0]), data.edge_index[:, draw.kept[0]]
            model(x, edges).argmax(dim=1)
            taken += time.perf_counter() - started
    return taken * (DRAWS.num_selection + DRAWS.num_estimation) / FORWARDS


def certified(model: nn.Module, data: Any, targets: Any) -> tuple[float, graycert.Certificates]:
    """Return the wall time of a whole call, and its result."""
    started = time.perf_counter()
    found = graycert.certify(model, data, smoothing=SMOOTHING, threat=THREAT, targets=targets, draws=DRAWS)
    return time.perf_counter() - started, found


def main() -> None:
    """Print seconds, ratio and phases per model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", default="cora_ml")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="only models whose name contains this")
    parser.add_argument("--json", type=Path, help="write the records to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    split = graycert.inductive_split(graycert.load_graph(options.graph), seed=42)
    data, targets = split.test.data, split.test.nodes[:NUM_TARGETS]
    records = []
    for name, model in models(data.x.size(1), int(data.y.max()) + 1).items():
        if options.only not in name:
            continue
        certified(model, data, targets[:5])
        seconds_of_forwards(model, data)
        rounds = [(seconds_of_forwards(model, data), *certified(model, data, targets)) for _ in range(options.rounds)]
        forwards = statistics.median(each[0] for each in rounds)
        whole = statistics.median(each[1] for each in rounds)
        found = rounds[-1][2]
        record = {
            "what": "certify",
            "model": name,
            "graph": options.graph,
            "targets": len(found),
            "forwards_s": forwards,
            "certify_s": whole,
            "ratio": forwards / whole,
            "engine": found.setup.engine,
            "phases": dict(found.seconds),
        }
        records.append(record)
        phases = ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in found.seconds.items())
        print(
            f"{name:18} 4,000 forwards {forwards:7.1f} s, certify {whole:6.2f} s, ratio {forwards / whole:5.0f} "
            f"({phases}; {found.setup.engine})",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
