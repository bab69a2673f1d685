"""How time and memory of a certification grow with the graph: generated graphs with the degree law of ogbn-arxiv.

Every node is certified with 100 + 200 draws under a memory budget. Then draws alone are timed with the same number of
them side by side at every size, whatever memory that takes: so nothing but the graph differs. Exponents are fitted over
the sizes, with their standard errors. Each size is a process of its own, and so is each peak.
Usage: python benchmarks/scale.py [--edges 100000 1000000] [--memory GIB] [--bound multiplicative] [--json FILE]
"""

import argparse
import dataclasses
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
from graycert.sampling import Purpose, choose_engine
from hub_graph import EDGES_PER_NODE, hub_graph
from machine import peak_mib

SMOOTHING = graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)
THREAT = graycert.NodeFeatureThreat(min_distance=1)
DRAWS = (96, 192, 384, 768, 1_536)
SIDE_BY_SIDE = (32, 4)  # as wide as tiles are where memory allows, and as 10⁷ edges leave room for in 1 GiB
BEYOND_CACHES = 900_000  # directed edges from which on hidden rows of 32 draws take more than any cache
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
        execution=graycert.Execution(memory=memory, progress=False),
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


def drawn(num_edges: int, *, side_by_side: int, number: int, rounds: int = 3) -> Record:
    """Draw for every node of a graph of about so many directed edges in this process, and nothing else."""
    torch.set_num_threads(1)
    data = hub_graph(int(num_edges / (2 * EDGES_PER_NODE)))
    model = graycert.build_model("gcn", data, skip=False, seed=0).eval()
    everyone = np.arange(data.num_nodes)
    engine: Any = choose_engine(model, data, everyone, smoothing=SMOOTHING, num_layers=2, memory=2**40)
    engine = dataclasses.replace(engine, lanes=(side_by_side,)).restricted(np.ones(data.num_nodes, dtype=np.bool_))
    assert {cut.lanes for cut in engine.plan.cuts} == {side_by_side}
    engine.votes(0, Purpose.ESTIMATION, num_samples=side_by_side)
    spent = []
    for _ in range(rounds):
        started = time.process_time()
        engine.votes(0, Purpose.ESTIMATION, num_samples=number)
        spent.append(time.process_time() - started)
    edges = data.edge_index.size(1)
    each = min(spent) / (number * (data.num_nodes + edges))
    about = {"edges": edges, "side_by_side": side_by_side, "draws": number, "seconds": min(spent)}
    return {**about, "draw_seconds": min(spent) / number, "nanoseconds": 1e9 * each}


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
    parser.add_argument("--here", nargs="+", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    memory = int(asked.memory * 2**30)
    if asked.here is not None:
        num_edges, num_draws, *alone = asked.here
        if alone:
            print(json.dumps(drawn(num_edges, side_by_side=alone[0], number=num_draws)))
        else:
            print(json.dumps(measured(num_edges, memory=memory, bound=asked.bound, num_draws=num_draws)))
        return

    def found(*job: int) -> Record:
        words = [sys.executable, __file__, "--memory", str(asked.memory), "--bound", asked.bound]
        with tempfile.TemporaryFile("w+") as out:
            subprocess.run([*words, "--here", *map(str, job)], stdout=out, check=True)
            out.seek(0)
            record: Record = json.loads(out.read().splitlines()[-1])
        print(", ".join(f"{name} {value:,.5g}" for name, value in record.items()), flush=True)
        return record

    grown = [found(edges, 100) for edges in asked.edges]
    more = [found(asked.edges[min(1, len(asked.edges) - 1)], draws, SIDE_BY_SIDE[0]) for draws in DRAWS]
    alone = {width: [found(edges, max(24, 2 * width), width) for edges in asked.edges] for width in SIDE_BY_SIDE}
    fits = [
        ("draws against edges", "edges", "draws_seconds", grown),
        ("bounds against entries of fields", "field_entries", "bounds_seconds", grown),
        ("draws against number of draws", "draws", "seconds", more),
    ]
    for width, records in alone.items():
        large = [each for each in records if each["edges"] >= BEYOND_CACHES]
        fits.append((f"draws alone, {width} side by side, against edges", "edges", "draw_seconds", records))
        if len(large) > 1:
            fits.append((f"the same from {large[0]['edges']:,} edges on", "edges", "draw_seconds", large))
    for what, size, cost, among in fits:
        slope, error = exponent([each[size] for each in among], [each[cost] for each in among])
        print(f"{what}: exponent {slope:.2f} ± {error:.2f}", flush=True)
    if asked.json:
        everything = [*grown, *more, *(each for records in alone.values() for each in records)]
        asked.json.write_text(json.dumps(everything, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
