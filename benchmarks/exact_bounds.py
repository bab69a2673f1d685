"""Largest radius with Δ < 1/2: Theorem 3 against the search for the worst set, with proofs, time and work.

Two layers: exact. Three layers: exact on trees, a tighter bound elsewhere. Targets are the authors' 253 Cora-ML test
nodes, or those of a graph. A plain search that tries every set is timed on a few targets and must agree. "cpu" seconds
depend less on what else the machine does.
Usage: python benchmarks/exact_bounds.py [--graph citeseer] [--layers 2] [--few] [--json FILE]
"""

import argparse
import json
import os
import time
from itertools import combinations, product
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert.bounds import DeltaBounds, evaluate_deltas
from graycert.bounds.evaluation import DEFAULT_BUDGET
from graycert.graph import Adjacency, as_adjacency, receptive_fields
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats.node_features import NodeFeatureThreat
from pretrained import authors_graph

SETTINGS = {
    2: ((0.31, 0.794), (0.361449, 0.794), (0.6, 0.6), (0.7, 0.3), (0.8, 0.0), (0.0, 0.85)),
    3: ((0.31, 0.794), (0.6, 0.6), (0.7, 0.3)),
}
MAX_RADIUS = {2: 40, 3: 25}
BUDGETS = tuple(2**power for power in (10, 14, 18, 22))
MOST_SETS, MOST_FIRST_HOPS, FEW_TARGETS = 300_000, 10, 5  # of the plain search
FEW_WALKS = 6_000
ROUNDS = 4  # the first one loads the kernels
Record = dict[str, Any]


def main() -> None:
    """Print a line per measurement and write them all as JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", help="name of a graph; default the authors' test graph of Cora-ML")
    parser.add_argument("--golden", type=Path, help="folder of the authors' files; default GRAYCERT_DATA/../golden")
    parser.add_argument("--layers", type=int, default=2, choices=SETTINGS)
    parser.add_argument("--few", action="store_true", help="only the targets of the first 40 with few walks")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    options = parser.parse_args()
    if options.graph:
        adjacency, targets = test_nodes(options.graph)
    else:
        adjacency, targets = authors_graph(options.golden)
    if options.few:
        targets = targets[:40][walks(adjacency, 3)[targets[:40]] <= FEW_WALKS]
    num_layers = options.layers
    distances = (1, 2) if num_layers == 2 else (1,)
    print(f"{options.graph or 'golden'}, {targets.size} targets, {num_layers} layers")
    records = []
    for (p_delete, p_ablate), distance in product(SETTINGS[num_layers], distances):
        setting = {
            "smoothing": InterceptionSmoothing(p_delete=p_delete, p_ablate=p_ablate),
            "threat": NodeFeatureThreat(min_distance=distance),
            "num_layers": num_layers,
        }
        record = {"graph": options.graph or "golden", "targets": targets.size, "layers": num_layers}
        record |= {"p_delete": p_delete, "p_ablate": p_ablate, "distance": distance}
        record |= compare(adjacency, targets, setting)
        if distance == 1:
            record |= against_plain(adjacency, targets, setting)
        record["load"] = os.getloadavg()[0]
        print(", ".join(f"{key} {shown(value)}" for key, value in record.items()), flush=True)
        records.append(record)
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n")


def compare(adjacency: Adjacency, targets: NDArray[np.int64], setting: Record) -> Record:
    """Return mean radii by Theorem 3 and by search, shares that are proved, seconds, and what less work gives."""
    most = MAX_RADIUS[setting["num_layers"]]
    loose, _, _ = timed(adjacency, targets, setting, max_radius=most, bound="multiplicative")
    runs = [timed(adjacency, targets, setting, max_radius=most, bound="auto") for _ in range(ROUNDS)][1:]
    tight = runs[0][0]
    singly = [
        timed(adjacency, targets[[row]], setting, max_radius=most, bound="auto")[1:] for row in range(targets.size)
    ]
    worst = int(np.argmax([seconds for _, seconds in singly]))
    some = tight.num_eligible > 0
    before, after = radii(loose), radii(tight)
    record = {
        "multiplicative": float(before[some].mean()),
        "auto": float(after[some].mean()),
        "improved": float((after > before)[some].mean()),
        "proved": float(proved(tight)[some].mean()),
        "whole_field": float((after >= tight.num_eligible)[some].mean()),
        "given_up": int((tight.methods == "multiplicative").sum()),
        "trees": int((tight.methods == "tree").sum()),
        "seconds": min(wall for _, wall, _ in runs),
        "cpu_seconds": min(cpu for _, _, cpu in runs),
        "worst_seconds": singly[worst][0],
        "worst_cpu_seconds": singly[worst][1],
        "worst_field": int(tight.receptive_field_size[worst]),
    }
    if setting["num_layers"] > 2:
        no_trees, _, _ = timed(adjacency, targets, setting, max_radius=most, bound="surrogate")
        record["surrogate"] = float(radii(no_trees)[some].mean())
    for budget in BUDGETS:
        cheap, _, _ = timed(adjacency, targets, setting, max_radius=most, bound="auto", budget=budget)
        record[f"auto_at_2^{budget.bit_length() - 1}"] = float(radii(cheap)[some].mean())
    return record


def timed(
    adjacency: Adjacency,
    targets: NDArray[np.int64],
    setting: Record,
    *,
    max_radius: int,
    bound: str,
    budget: int = DEFAULT_BUDGET,
) -> tuple[DeltaBounds, float, float]:
    """Return bounds, and the seconds of the clock and of the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = evaluate_deltas(adjacency, targets, max_radius=max_radius, bound=bound, budget=budget, **setting)
    return found, time.perf_counter() - wall, time.process_time() - cpu


def radii(bounds: DeltaBounds) -> NDArray[np.int64]:
    """Return the largest radius with Δ < 1/2 of each target, at most its number of eligible nodes."""
    found: NDArray[np.int64] = np.minimum((bounds.delta_upper < 0.5).sum(axis=1), bounds.num_eligible)
    return found


def proved(bounds: DeltaBounds) -> NDArray[np.bool_]:
    """Return where the optimum is proved for every radius up to the one that decides: the first with Δ >= 1/2."""
    deciding = np.minimum(radii(bounds) + 1, bounds.proved.shape[1])
    return np.array([row[:upto].all() for row, upto in zip(bounds.proved, deciding, strict=True)])


def against_plain(adjacency: Adjacency, targets: NDArray[np.int64], setting: Record) -> Record:
    """Time both searches on those of the small targets for which the plain one has most to do, and compare values."""
    bound = "auto" if setting["num_layers"] == 2 else "surrogate"
    most = MAX_RADIUS[setting["num_layers"]]
    bounds, _, _ = timed(adjacency, targets, setting, max_radius=most, bound=bound)
    degrees = np.diff(adjacency.indptr)[targets]
    last = np.minimum(radii(bounds) + 1, bounds.num_eligible)
    num_sets = np.array([sets_up_to(*pair) for pair in zip(bounds.num_eligible.tolist(), last.tolist(), strict=True)])
    possible = np.flatnonzero((num_sets <= MOST_SETS) & (degrees <= MOST_FIRST_HOPS) & (num_sets > 1))
    rows = possible[np.argsort(-num_sets[possible], kind="stable")][:FEW_TARGETS]
    sources = np.split(adjacency.sources, adjacency.indptr[1:-1])
    in_neighbors = [each.tolist() for each in sources]
    slow = fast = error = 0.0
    for row in rows.tolist():
        upto = int(last[row])
        started = time.process_time()
        plain = worst_of_all_sets(adjacency, in_neighbors, int(targets[row]), upto, setting)
        slow += time.process_time() - started
        runs = [timed(adjacency, targets[[row]], setting, max_radius=upto, bound=bound) for _ in range(3)]
        fast += min(cpu for _, _, cpu in runs)
        error = max(error, float(np.abs(runs[0][0].delta_upper[0] - plain).max()))
    assert error < 1e-9, error
    return {
        "plain_targets": rows.size,
        "plain_cpu_seconds": slow,
        "our_cpu_seconds": fast,
        "ratio": slow / fast if fast else float("nan"),
        "difference": error,
        "sets_of_all_targets": float(num_sets.sum()),
    }


def sets_up_to(num_nodes: int, largest: int) -> float:
    """Return how many sets of 1..largest of so many nodes there are."""
    return float(sum(comb(num_nodes, size) for size in range(1, largest + 1)))


def worst_of_all_sets(
    adjacency: Adjacency, in_neighbors: list[list[int]], target: int, max_radius: int, setting: Record
) -> list[float]:
    """Return Δ for 1..max_radius hostile nodes by trying every set, summing over the kept edges of the target."""
    p_delete, p_ablate = setting["smoothing"].p_delete, setting["smoothing"].p_ablate
    hops = in_neighbors[target]
    field = receptive_fields(adjacency, [target], num_layers=setting["num_layers"])
    attackers = field.nodes[field.distances >= setting["threat"].min_distance].tolist()
    kept = np.array(list(product((0, 1), repeat=len(hops))), dtype=np.float64)
    weight = np.prod(np.where(kept == 1, 1 - p_delete, p_delete), axis=1)
    stopped = {}
    for node in attackers:
        misses = [miss(in_neighbors, node, hop, p_delete, setting["num_layers"] - 1, {target}) for hop in hops]
        stopped[node] = p_ablate + (1 - p_ablate) * np.prod(np.where(kept == 1, misses, 1.0), axis=1)
    values = []
    for radius in range(1, max_radius + 1):
        least = 1.0
        for hostile in combinations(attackers, radius):
            nothing_arrives = weight
            for node in hostile:
                nothing_arrives = nothing_arrives * stopped[node]
            least = min(least, float(nothing_arrives.sum()))
        values.append(1 - least)
    return values


def miss(in_neighbors: list[list[int]], node: int, hop: int, p_delete: float, steps: int, seen: set[int]) -> float:
    """Return the chance that ``node`` does not reach ``hop`` within some steps, each walk with coins of its own."""
    if node == hop:
        return 0.0
    nothing = 1.0
    if steps:
        for before in in_neighbors[hop]:
            if before not in seen:
                nothing *= 1 - (1 - p_delete) * (
                    1 - miss(in_neighbors, node, before, p_delete, steps - 1, seen | {hop})
                )
    return nothing


def walks(adjacency: Adjacency, steps: int) -> NDArray[np.float64]:
    """Return how many walks of so many edges end at each node."""
    matrix = adjacency.to_csr().T
    number: NDArray[np.float64] = np.ones(adjacency.num_nodes)
    for _ in range(steps):
        number = np.asarray(matrix @ number)
    return number


def test_nodes(name: str) -> tuple[Adjacency, NDArray[np.int64]]:
    """Return a graph, prepared as in the paper, and the test nodes of its split 42."""
    import graycert

    data = graycert.load_graph(name)
    return as_adjacency(data), graycert.inductive_split(data, seed=42).test.nodes.numpy()


def shown(value: Any) -> str:
    """Return a number with few digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
