"""`certify` as a whole on large graphs, phase by phase: time, processor time and memory, in a process of its own.

Usage: python benchmarks/whole.py [--graph GRAPH] [--model gcn] [--bound auto] [--targets N] [--threads 2]
"""

import argparse
import time
import warnings
from typing import Any

import numpy as np
import torch
from torch_geometric.nn import GraphSAGE

import graycert
from hub_graph import hub_graph
from machine import peak_mib

GENERATED = {"generated": 0, "generated with hub": 50_000}


def model_for(data: Any, name: str) -> torch.nn.Module:
    """Return an untrained model of two layers and width 64."""
    if name != "sage":
        return graycert.build_model(name, data, skip=False, seed=0).eval()
    torch.manual_seed(0)
    model: torch.nn.Module = GraphSAGE(data.num_features, 64, num_layers=2, out_channels=int(data.y.max()) + 1)
    return model.eval()


def main() -> None:
    """Certify an untrained model, whose votes cost what those of a trained one do."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", default="generated", help=f"{', '.join(GENERATED)}, or a name that graycert loads")
    parser.add_argument("--model", default="gcn", choices=("gcn", "gat", "gatv2", "sma", "sage"))
    parser.add_argument("--bound", default="auto", choices=("auto", "multiplicative"))
    parser.add_argument("--targets", type=int, help="how many random nodes; default all")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--draws", type=int, default=1_000, help="draws of each of the two purposes")
    parser.add_argument("--memory", type=int, help="MiB that drawing may take; default a quarter of what is free")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(asked.threads)
    hub = GENERATED.get(asked.graph)
    data = graycert.load_graph(asked.graph) if hub is None else hub_graph(hub=hub)
    model = model_for(data, asked.model)
    nodes = np.random.default_rng(0).permutation(data.num_nodes)[: asked.targets]
    before, processor, started = peak_mib(), time.process_time(), time.perf_counter()
    certificates = graycert.certify(
        model,
        data,
        targets=np.sort(nodes),
        smoothing=graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.794),
        threat=graycert.NodeFeatureThreat(min_distance=1),
        draws=graycert.Draws(num_selection=asked.draws, num_estimation=asked.draws),
        bound=asked.bound,
        seed=0,
        execution=graycert.Execution(memory=None if asked.memory is None else asked.memory * 2**20),
    )
    print(
        f"{asked.graph}, {asked.model}, bound {asked.bound}, {nodes.size:,} of {data.num_nodes:,} nodes: "
        f"{time.perf_counter() - started:.0f} s, processor time {time.process_time() - processor:.0f} s, peak "
        f"{peak_mib():,.0f} MiB ({before:,.0f} before)"
    )
    print(", ".join(f"{phase} {seconds:.1f} s" for phase, seconds in certificates.seconds.items()))


if __name__ == "__main__":
    main()
