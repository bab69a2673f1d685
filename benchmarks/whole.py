"""`certify` as a whole on large graphs, phase by phase: time, processor time and memory, in a process of its own.

Usage: python benchmarks/whole.py [--graph GRAPH] [--model gcn] [--bound auto] [--targets N] [--threads 2]
"""

import argparse
import time
import warnings

import numpy as np
import torch

import graycert
from hub_graph import hub_graph
from machine import peak_mib

GENERATED = {"generated": 0, "generated with hub": 50_000}


def main() -> None:
    """Certify an untrained model, whose votes cost what those of a trained one do, with 1,000 + 1,000 draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", default="generated", help=f"{', '.join(GENERATED)}, or a name that graycert loads")
    parser.add_argument("--model", default="gcn", choices=("gcn", "gat", "gatv2", "sma"))
    parser.add_argument("--bound", default="auto", choices=("auto", "multiplicative"))
    parser.add_argument("--targets", type=int, help="how many random nodes; default all")
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(asked.threads)
    hub = GENERATED.get(asked.graph)
    data = graycert.load_graph(asked.graph) if hub is None else hub_graph(hub=hub)
    model = graycert.build_model(asked.model, data, skip=False, seed=0).eval()
    nodes = np.random.default_rng(0).permutation(data.num_nodes)[: asked.targets]
    before, processor, started = peak_mib(), time.process_time(), time.perf_counter()
    certificates = graycert.certify(
        model,
        data,
        targets=np.sort(nodes),
        smoothing=graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.794),
        threat=graycert.NodeFeatureThreat(min_distance=1),
        draws=graycert.Draws(num_selection=1_000, num_estimation=1_000),
        bound=asked.bound,
        seed=0,
    )
    print(
        f"{asked.graph}, {asked.model}, bound {asked.bound}, {nodes.size:,} of {data.num_nodes:,} nodes: "
        f"{time.perf_counter() - started:.0f} s, processor time {time.process_time() - processor:.0f} s, peak "
        f"{peak_mib():,.0f} MiB ({before:,.0f} before)"
    )
    print(", ".join(f"{phase} {seconds:.1f} s" for phase, seconds in certificates.seconds.items()))


if __name__ == "__main__":
    main()
