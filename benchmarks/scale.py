"""How time and memory of a certification grow with the graph: generated graphs with the degree law of ogbn-arxiv.

Every node is certified with 100 + 200 draws under a memory budget; exponents are fitted over the sizes, with their
standard errors. Each size is a process of its own, and so is each peak.
Usage: python benchmarks/scale.py [--edges 100000 1000000] [--memory GIB] [--bound multiplicative] [--json FILE]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

import graycert
from graycert.blocks.planned_memory import PlannedMemory
from graycert.problem import Problem
from hub_graph import EDGES_PER_NODE, hub_graph
from machine import peak_mib

SMOOTHING = graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)
THREAT = graycert.NodeFeatureThreat(min_distance=1)
DRAWS = (25, 50, 100, 200)
Record = dict[str, Any]


def measured(num_edges: int, *, memory: int, bound: str, num_draws: int) -> Record:
    """Certify every node of a graph of about so many directed edges, in this process."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    data = hub_graph(int(num_edges / (2 * EDGES_PER_NODE)))
    model = graycert.build_model("gcn", data, skip=False, seed=0).eval()
    degrees = np.bincount(data.edge_index[1].numpy(), minlength=data.num_nodes).astype(np.float64)
    before, processor, started = peak_mib(), time.process_time(), time.perf_counter()
    found = graycert.certify(
        model,
        data,
        targets=np.arange(data.num_nodes),
        smoothing=SMOOTHING,
        threat=THREAT,
        draws=graycert.Draws(num_selection=num_draws, num_estimation=2 * num_draws),
        bound=bound,
        max_radius=20,
        seed=0,
        execution=graycert.Execution(memory=memory, progress=False, backend="threads", workers=1),
    )
    peak, spent = peak_mib(), time.perf_counter() - started
    problem = Problem.of(data, found.targets, setup=found.setup, model=model)
    planned = PlannedMemory.of(problem, drawing=found.setup.memory_planned or 0)
    return {
        "edges": data.edge_index.size(1),
        "nodes": data.num_nodes,
        "draws": 3 * num_draws,
        "field_entries": int(found.receptive_field_size.sum()),
        "squared_degrees": float((degrees**2).sum()),
        "largest_degree": int(degrees.max()),
        "seconds": spent,
        "processor": time.process_time() - processor,
        "before_mib": before,
        "peak_mib": peak,
        "planned_mib": planned.num_bytes / 2**20,
        **{f"{name}_seconds": value for name, value in found.seconds.items()},
    }


def exponent(sizes: list[float], costs: list[float]) -> tuple[float, float]:
    """Return the slope of log cost over log size, and its standard error; no error from two points."""
    x, y = np.log(sizes), np.log(costs)
    if len(sizes) < 3:
        return float((y[-1] - y[0]) / (x[-1] - x[0])), float("nan")
    (slope, _), covariance = np.polyfit(x, y, 1, cov="unscaled")
    residual = y - np.polyval(np.polyfit(x, y, 1), x)
    return float(slope), float(np.sqrt(covariance[0, 0] * (residual**2).sum() / (len(sizes) - 2)))


def main() -> None:
    """Print a line per size, then the exponents."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, nargs="+", default=[100_000, 300_000, 1_000_000, 3_000_000, 10_000_000])
    parser.add_argument("--memory", type=float, default=1.0, help="budget in GiB")
    parser.add_argument("--bound", default="multiplicative", choices=("auto", "multiplicative"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--here", type=int, nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    memory = int(asked.memory * 2**30)
    if asked.here is not None:
        print(json.dumps(measured(asked.here[0], memory=memory, bound=asked.bound, num_draws=asked.here[1])))
        return
    jobs = [(edges, 100) for edges in asked.edges] + [(asked.edges[len(asked.edges) // 2], draws) for draws in DRAWS]
    records = []
    for edges, draws in jobs:
        words = [sys.executable, __file__, "--memory", str(asked.memory), "--bound", asked.bound]
        with tempfile.TemporaryFile("w+") as out:
            subprocess.run([*words, "--here", str(edges), str(draws)], stdout=out, check=True)
            out.seek(0)
            records.append(json.loads(out.read().splitlines()[-1]))
        print(", ".join(f"{name} {value:,.5g}" for name, value in records[-1].items()), flush=True)
    grown, drawn = records[: len(asked.edges)], records[len(asked.edges) :]
    for what, size, cost, among in (
        ("draws against edges", "edges", "draws_seconds", grown),
        ("bounds against entries of fields", "field_entries", "bounds_seconds", grown),
        ("draws against number of draws", "draws", "draws_seconds", drawn),
    ):
        slope, error = exponent([each[size] for each in among], [each[cost] for each in among])
        print(f"{what}: exponent {slope:.2f} ± {error:.2f}", flush=True)
    if asked.json:
        asked.json.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
