"""Path counts and Theorem 3 for every node, against path enumeration with networkx, in one process.

Enumeration is timed on a few targets and extrapolated. Usage: python benchmarks/bounds.py [--graph cora_ml]
"""

import argparse
import time

import networkx as nx
import numpy as np

import graycert as gc
from graycert.graph import as_adjacency, count_simple_paths


def enumerate_paths(graph: nx.DiGraph, target: int, num_layers: int) -> int:
    """Return the number of simple paths of at most ``num_layers`` edges into the target."""
    field = nx.single_source_shortest_path_length(graph.reverse(copy=False), target, cutoff=num_layers)
    paths = (nx.all_simple_edge_paths(graph, source, target, cutoff=num_layers) for source in field if source != target)
    return sum(1 for found in paths for _ in found)


def main() -> None:
    """Print seconds per depth and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", default="cora_ml")
    parser.add_argument("--enumerated", type=int, default=20, help="targets that are enumerated")
    options = parser.parse_args()
    data = gc.load_graph(options.graph)
    adjacency = as_adjacency(data)
    targets = np.arange(data.num_nodes)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(data.num_nodes))
    graph.add_edges_from(zip(adjacency.sources.tolist(), adjacency.targets.tolist(), strict=True))
    some = np.random.default_rng(0).choice(data.num_nodes, options.enumerated, replace=False)
    smoothing = gc.InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)
    threat = gc.NodeFeatureThreat(min_distance=1)
    print(f"{options.graph}, all {data.num_nodes:,} nodes")
    for num_layers in (2, 3):
        best = np.inf
        for _ in range(3):
            started = time.perf_counter()
            gc.delta_bounds(adjacency, targets, smoothing=smoothing, threat=threat, num_layers=num_layers)
            best = min(best, time.perf_counter() - started)
        sample = some if num_layers == 2 else some[: max(1, len(some) // 10)]
        started = time.perf_counter()
        enumerated = [enumerate_paths(graph, int(target), num_layers) for target in sample]
        slow = (time.perf_counter() - started) * data.num_nodes / len(sample)
        counted = count_simple_paths(adjacency, sample, num_layers=num_layers)
        assert counted.counts.sum() == sum(enumerated)
        ratio = slow / best
        print(f"{num_layers} layers: {best:.2f} s; enumeration (extrapolated) {slow:.0f} s: {ratio:.0f}x")


if __name__ == "__main__":
    main()
