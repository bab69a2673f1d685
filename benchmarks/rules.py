"""Certified radii of all rules on the same votes, per target and for one adversary shared by all targets.

Graph "authors": the authors' pretrained GAT with skip connection on their Cora-ML test graph; seeds are those of the
votes. Other graphs: a GAT with skip connection is trained as `graycert certify` does; a seed is that of split, weights
and votes.
Usage: python benchmarks/rules.py [--graph citeseer] [--seeds 0 1 2] [--setting 0.31,0.794] [--json FILE]
"""

import argparse
import json
import os
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import graycert
from graycert.certification import DEFAULT_BUDGETS
from graycert.problem import Problem
from graycert.rules import RULES, certified_radius, collective_certificate
from pretrained import authors_data, authors_graph, pretrained_gat

SETTINGS = ((0.31, 0.794), (0.361449, 0.794), (0.7, 0.5))
CONCLUSIONS = (("sound", "multiplicative"), ("sound", "auto"), ("difference", "auto"), ("event-aware", "auto"))
TRAINING = graycert.InterceptionSmoothing(p_delete=0.01, p_ablate=0.6)
MAX_RADIUS, ALPHA = 40, 0.01
RADII = (1, 2, 3, 4)
Record = dict[str, Any]


def main() -> None:
    """Print a line per rule and write all numbers as JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="authors", help='"authors", or the name of a graph')
    parser.add_argument("--golden", type=Path, help="folder of the authors' files; default GRAYCERT_DATA/../golden")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--setting", action="append", help="P_DELETE,P_ABLATE, repeatable; default all")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    settings = [tuple(map(float, each.split(","))) for each in options.setting or []] or SETTINGS
    records = []
    for seed in options.seeds:
        model, data, targets = prepare(options, seed)
        for (p_delete, p_ablate), distance in product(settings, (1, 2)):
            about = {"graph": options.graph, "seed": seed, "p_delete": p_delete, "p_ablate": p_ablate}
            for found in certify_by_all(model, data, targets, p_delete, p_ablate, distance, seed):
                record = about | {"distance": distance} | found | {"load": os.getloadavg()[0]}
                print(", ".join(f"{key} {shown(value)}" for key, value in record.items()), flush=True)
                records.append(record)
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n")


def prepare(options: argparse.Namespace, seed: int) -> tuple[Any, Any, NDArray[np.int64]]:
    """Return model, graph and targets."""
    if options.graph == "authors":
        return pretrained_gat(options.golden), authors_data(options.golden), authors_graph(options.golden)[1]
    data = graycert.load_graph(options.graph)
    split = graycert.inductive_split(data, seed=seed)
    model = graycert.build_model("gat", data, skip=True, seed=seed)
    record = graycert.train(model, split, smoothing=TRAINING, seed=seed)
    print(f"{options.graph}, seed {seed}: trained {record.epochs} epochs in {record.seconds:.1f} s", flush=True)
    return model, data, split.test.nodes.numpy()


def certify_by_all(
    model: Any, data: Any, targets: NDArray[np.int64], p_delete: float, p_ablate: float, distance: int, seed: int
) -> list[Record]:
    """Return what every rule certifies from the votes of one run, and how many targets survive together."""
    started = time.perf_counter()
    run = graycert.certify(
        model,
        data,
        targets=targets,
        smoothing=graycert.InterceptionSmoothing(p_delete=p_delete, p_ablate=p_ablate),
        threat=graycert.NodeFeatureThreat(min_distance=distance),
        alpha=ALPHA,
        rule="event-aware",
        max_radius=MAX_RADIUS,
        seed=seed,
        num_layers=2,
    )
    whole = time.perf_counter() - started
    records, deltas = [], {}
    for rule, bound in CONCLUSIONS:
        radius, deltas[bound], seconds = conclude_by(rule, bound, data, run)
        assert rule != "event-aware" or np.array_equal(np.minimum(radius, run.num_eligible), run.radius)
        records.append({"rule": rule, "bound": bound, "seconds": seconds} | summarize(radius, run))
    records[-1]["whole_seconds"] = whole
    if distance == 1:
        records.append(together(data, deltas, run))
    return records


def conclude_by(
    rule: str, bound: str, data: Any, run: graycert.Certificates
) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
    """Return radii by another rule and bound from the votes of ``run``, Δ̄, and the seconds that the rule takes."""
    problem = Problem.stored(run.setup.replace(rule=rule, bound=bound), run.targets, data)
    found = problem.smoothing.method.from_graph(problem)
    drawn = {name: value for name, (spec, value) in run.every_array().items() if spec.stage == "drawn"}
    started = time.perf_counter()
    concluded = problem.smoothing.method.conclude(problem, found, drawn)
    return concluded["radius"], found.arrays["delta_upper"], time.perf_counter() - started


def summarize(radius: NDArray[np.int64], run: graycert.Certificates) -> Record:
    """Return the mean radius and certified ratios, over targets that someone can attack.

    No radius counts beyond the number of attackable nodes; a target of which all are harmless counts at every radius.
    """
    some = run.num_eligible > 0
    capped, most = np.minimum(radius, run.num_eligible)[some], run.num_eligible[some]
    right = (radius >= 0) & (run.prediction == run.labels)
    return {
        "targets": int(some.sum()),
        "mean_radius": float(np.maximum(capped, 0).mean()),
        **{f"ratio_{rho}": float((capped >= np.minimum(rho, most)).mean()) for rho in RADII},
        "abstained": float((radius < 0).mean()),
        "clean_accuracy": float(right.mean()),
    }


def together(data: Any, deltas: dict[str, NDArray[np.float64]], run: graycert.Certificates) -> Record:
    """Return how many targets keep their prediction under one set of hostile nodes shared by all.

    "shared": a target that is hostile itself counts as lost. The others suppose that no target is hostile, which at
    distance 1 leaves no other node out; "naive" counts targets whose own certificate covers the number.
    """
    started = time.perf_counter()
    shared = run.against_one_adversary(data, DEFAULT_BUDGETS)
    seconds = time.perf_counter() - started
    assert run.votes is not None
    margin = RULES["sound"].lead_of(*run.votes, run.prediction, ALPHA / len(run)).margin
    problem = Problem.stored(run.setup, run.targets, data)
    matrix = problem.smoothing.method.single_sources(problem).tolil()
    matrix[np.arange(len(run)), run.targets] = 0.0
    record: Record = {
        "rule": "collective",
        "targets": len(run),
        "with_margin": shared.num_active,
        "budgets": list(DEFAULT_BUDGETS),
        "shared": shared.num_robust.tolist(),
        "seconds": seconds,
    }
    for bound, delta_upper in deltas.items():
        radius = certified_radius(margin, delta_upper)
        found = collective_certificate(
            matrix.tocsr(),
            margin,
            budgets=np.array(DEFAULT_BUDGETS),
            radius=radius,
            whole_field=(radius >= 0) & (radius >= run.num_eligible),
        )
        record[f"naive_{bound}"] = found.num_robust_naive.tolist()
        record[f"shared_by_others_{bound}"] = found.num_robust.tolist()
    return record


def shown(value: Any) -> str:
    """Return a number with few digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
