"""Path counts and Theorem 3 for every node: against enumeration with networkx, and growth of time and memory.

The comparison runs in one process, alternating; enumeration is timed on a few targets and extrapolated. Growth is
measured with one process per number: best of three runs, and the peak of its memory over what it held before.
Usage: python benchmarks/bounds.py [--graph cora_ml] [--graph FILE.npz ...] [--quick] [--json FILE]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from graycert.bounds.evaluation import evaluate_deltas
from graycert.graph import Adjacency, as_adjacency, count_simple_paths
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats.node_features import NodeFeatureThreat
from machine import peak_mib

SETTING: dict[str, Any] = {
    "bound": "multiplicative",
    "smoothing": InterceptionSmoothing(p_delete=0.31, p_ablate=0.794),
    "threat": NodeFeatureThreat(min_distance=1),
}
SHARES = (0.125, 0.25, 0.5, 1.0)
Record = dict[str, Any]


def main() -> None:
    """Print a line per measurement and write them all as JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", action="append", help="name or file, repeatable; the first one is looked at closely")
    parser.add_argument("--enumerated", type=int, default=20, help="targets that are enumerated")
    parser.add_argument("--quick", action="store_true", help="at most three layers, small hubs")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    options = parser.parse_args()
    names = options.graph or ["cora_ml"]
    first, *others = [(Path(name).stem, load(name)) for name in names]
    records = []
    for record in measurements(first, others, enumerated=options.enumerated, quick=options.quick):
        print(", ".join(f"{key} {_shown(value)}" for key, value in record.items()), flush=True)
        records.append(record)
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n")


def measurements(
    first: tuple[str, Adjacency], others: list[tuple[str, Adjacency]], *, enumerated: int, quick: bool
) -> Iterator[Record]:
    """Yield all records: ratios, then growth with layers, targets, edges and hubs, then the other graphs."""
    name, graph = first
    layers = (1, 2, 3) if quick else (1, 2, 3, 4)
    for num_layers in (2, 3):
        yield {"what": "ratio", "graph": name} | compare(graph, num_layers, enumerated)
    for num_layers in layers:
        yield {"what": "layers", "graph": name} | measure(graph, num_layers)
    for num_layers in (2, 3):
        for share in SHARES:
            yield {"what": "targets", "graph": name} | measure(graph, num_layers, int(share * graph.num_nodes))
        for share in SHARES:
            yield {"what": "edges", "graph": name} | measure(thinned(graph, share), num_layers)
    for num_leaves in (300, 1_000) if quick else (1_000, 3_000, 10_000):
        for num_layers in (2, 3):
            yield {"what": "hub", "graph": f"hub of {num_leaves:,}"} | measure(hub_graph(num_leaves), num_layers)
    for other, adjacency in others:
        for num_layers in (2,) if quick else (2, 3):
            yield {"what": "graph", "graph": other} | measure(adjacency, num_layers)


def compare(graph: Adjacency, num_layers: int, enumerated: int) -> Record:
    """Return the seconds for all nodes and those of enumeration, extrapolated from a few targets."""
    reference = nx.DiGraph()
    reference.add_nodes_from(range(graph.num_nodes))
    reference.add_edges_from(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
    number = enumerated if num_layers == 2 else max(1, enumerated // 10)
    rounds = np.array_split(np.random.default_rng(0).permutation(graph.num_nodes)[:number], min(3, number))
    everyone = np.arange(graph.num_nodes)
    evaluate_deltas(graph, everyone, num_layers=num_layers, **SETTING)  # loads the kernels
    ours, slow = [], 0.0
    for sample in rounds:
        started = time.perf_counter()
        evaluate_deltas(graph, everyone, num_layers=num_layers, **SETTING)
        ours.append(time.perf_counter() - started)
        started = time.perf_counter()
        found = sum(enumerate_paths(reference, int(target), num_layers) for target in sample)
        slow += time.perf_counter() - started
        assert count_simple_paths(graph, sample, num_layers=num_layers).counts.sum() == found
    extrapolated = slow * graph.num_nodes / number
    best = min(ours)
    return {
        "layers": num_layers,
        "targets": graph.num_nodes,
        "seconds": best,
        "enumeration_seconds": extrapolated,
        "ratio": extrapolated / best,
    }


def enumerate_paths(graph: nx.DiGraph, target: int, num_layers: int) -> int:
    """Return the number of simple paths of at most ``num_layers`` edges into the target."""
    field = nx.single_source_shortest_path_length(graph.reverse(copy=False), target, cutoff=num_layers)
    paths = (nx.all_simple_edge_paths(graph, source, target, cutoff=num_layers) for source in field if source != target)
    return sum(1 for found in paths for _ in found)


def measure(graph: Adjacency, num_layers: int, num_targets: int | None = None) -> Record:
    """Return seconds and peak memory of a process of its own that bounds ``num_targets`` random nodes, or all."""
    num_targets = graph.num_nodes if num_targets is None else num_targets
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "graph.npz")
        np.savez(file, edges=np.stack([graph.sources, graph.targets]), num_nodes=graph.num_nodes)
        command = [sys.executable, __file__, "--one", str(file), str(num_layers), str(num_targets)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    sizes = {"layers": num_layers, "nodes": graph.num_nodes, "edges": graph.num_edges, "targets": num_targets}
    measured: Record = json.loads(done.stdout)
    return sizes | measured


def measure_here(file: str, num_layers: int, num_targets: int) -> None:
    """Print the seconds and the peak memory of this process as JSON."""
    with np.load(file) as stored:
        graph = Adjacency.from_edge_index(stored["edges"], num_nodes=int(stored["num_nodes"]))
    targets = np.random.default_rng(0).permutation(graph.num_nodes)[:num_targets]
    evaluate_deltas(graph, targets[:1], num_layers=num_layers, **SETTING)  # loads the kernels
    before = peak_mib()
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        found = evaluate_deltas(graph, targets, num_layers=num_layers, **SETTING)
        seconds.append(time.perf_counter() - started)
        if seconds[0] > 5:
            break
    print(
        json.dumps(
            {
                "pairs": int(found.receptive_field_size.sum()),
                "seconds": min(seconds),
                "peak_mib": peak_mib() - before,
            }
        )
    )


def load(name: str) -> Adjacency:
    """Load and prepare a graph as in the paper."""
    import graycert

    return as_adjacency(graycert.load_graph(name, undirected=True, drop_self_loops=True, largest_component=True))


def thinned(graph: Adjacency, share: float) -> Adjacency:
    """Keep a share of the undirected edges and all nodes."""
    edges = np.stack([graph.sources, graph.targets])[:, graph.sources < graph.targets]
    kept = edges[:, np.random.default_rng(0).permutation(edges.shape[1])[: int(share * edges.shape[1])]]
    return Adjacency.from_edge_index(np.concatenate([kept, kept[::-1]], axis=1), num_nodes=graph.num_nodes)


def hub_graph(num_leaves: int) -> Adjacency:
    """Join every node to a hub, and each leaf to about four others: all nodes lie in every field."""
    leaves = np.arange(1, num_leaves + 1)
    pairs = np.random.default_rng(0).integers(1, num_leaves + 1, (2, 2 * num_leaves))
    edges = np.concatenate([np.stack([leaves, np.zeros_like(leaves)]), pairs], axis=1)
    both = np.unique(np.concatenate([edges, edges[::-1]], axis=1), axis=1)
    return Adjacency.from_edge_index(both, num_nodes=num_leaves + 1)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.3g}" if isinstance(value, float) and value < 1000 else f"{value:,.0f}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        measure_here(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
