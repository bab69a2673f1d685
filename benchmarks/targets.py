"""Time of a draw against the number of targets, with the textbook loop beside it: from 100 targets to all nodes.

On Cora-ML, on WordNet and on generated graphs of ogbn-arxiv's size, one of them with a hub of 50,000 neighbours. Both
alternate in one process, on the same threads, warmed up; read ratios. On one thread processor time is taken, which
other programs disturb less. The loop runs one full-graph forward pass per
draw, however many targets there are.
Usage: python benchmarks/targets.py [--threads 1] [--model gcn] [--graphs NAME ...] [--targets N ...] [--json FILE]
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import graycert
from graycert.sampling import Purpose, choose_engine
from hub_graph import describe, hub_graph
from machine import peak_mib
from sampling import SMOOTHING, load, textbook_loop

GRAPHS = ("cora_ml", "wordnet30_synsets", "generated", "generated with hub")
NUM_TARGETS = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
DRAWS = {"engine": 96, "textbook": 2}
Record = dict[str, Any]


def graph_named(name: str) -> Any:
    """Return a graph of `GRAPHS`, or a smaller generated one, "generated 20000"."""
    if not name.startswith("generated"):
        return graycert.load_graph(name)
    size = name.removeprefix("generated").strip()
    if size == "with hub":
        return hub_graph(hub=50_000)
    return hub_graph(int(size)) if size else hub_graph()


def measurements(name: str, architecture: str, numbers: Sequence[int], *, rounds: int) -> Iterator[Record]:
    """Yield a record per number of targets of one graph, the last of all nodes."""
    data = graph_named(name)
    model = graycert.build_model(architecture, data, skip=False, seed=0).eval()
    order = np.random.default_rng(0).permutation(data.num_nodes)
    about = {"what": "targets", "graph": name, "model": architecture, "threads": torch.get_num_threads()}
    about |= describe(data) | {"classes": int(data.y.max()) + 1}
    for number in (*(each for each in numbers if each < data.num_nodes), data.num_nodes):
        targets = order[:number]
        started = time.perf_counter()
        engine = choose_engine(model, data, targets, smoothing=SMOOTHING, num_layers=2, engine="compiled")
        choosing = time.perf_counter() - started
        yield about | {"targets": number, "choosing_s": choosing} | compare(engine, model, data, targets, rounds)


def compare(engine: Any, model: Any, data: Any, targets: np.ndarray, rounds: int) -> Record:
    """Return milliseconds per draw of the engine and of the loop, alternating, the best of some rounds."""
    nodes = torch.from_numpy(targets)
    engine.votes(0, Purpose.ESTIMATION, num_samples=32)  # warms up
    textbook_loop(model, data, nodes, 1)
    best = dict.fromkeys(DRAWS, float("inf"))
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    for _ in range(rounds):
        for name, number in DRAWS.items():
            started = clock()
            if name == "engine":
                engine.votes(0, Purpose.ESTIMATION, num_samples=number)
            else:
                textbook_loop(model, data, nodes, number)
            best[name] = min(best[name], 1e3 * (clock() - started) / number)
    size = data.num_nodes + data.edge_index.size(1)
    return {
        "engine_ms": best["engine"],
        "textbook_ms": best["textbook"],
        "ratio": best["textbook"] / best["engine"],
        "ns_per_node_and_edge": 1e6 * best["engine"] / size,
        "planned_mib": engine.plan.num_bytes / 2**20,
        "lanes": engine.plan.cuts[0].lanes,
        "cuts": len(engine.plan.cuts),
        "peak_mib": peak_mib(),
        "load": load(),
    }


def main() -> None:
    """Print a line per measurement and write them all as JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--model", default="gcn")
    parser.add_argument("--graphs", nargs="+", default=GRAPHS, help="of these, or 'generated 20000'")
    parser.add_argument("--targets", type=int, nargs="+", default=NUM_TARGETS, help="how many; all nodes come last")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    options = parser.parse_args()
    if options.quick:
        options.rounds = 1
    torch.set_num_threads(options.threads)
    records = []
    for name in options.graphs:
        for record in measurements(name, options.model, options.targets, rounds=options.rounds):
            print(
                f"{name}, {record['targets']:,} targets: {record['engine_ms']:.3g} ms a draw, textbook "
                f"{record['textbook_ms']:.4g} ms ({record['ratio']:.3g} x), {record['ns_per_node_and_edge']:.3g} ns "
                f"per node and edge, planned {record['planned_mib']:,.0f} MiB, load {record['load']:.1f}",
                flush=True,
            )
            records.append(record)
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
