"""Votes and radii of sampling that stops for decided targets, against a fixed number of draws, both as they are usual.

One model is trained; all test nodes are certified with the same seed both ways.
Usage: python benchmarks/until_decided.py [--graph NAME] [--json FILE]
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import graycert

SMOOTHING = graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)


def measured(model: Any, data: Any, targets: Any, draws: Any, bound: str) -> dict[str, float]:
    """Return means over targets: votes, certified radius (nothing where it abstains), and who abstains."""
    found = graycert.certify(
        model,
        data,
        targets=targets,
        smoothing=SMOOTHING,
        threat=graycert.NodeFeatureThreat(min_distance=1),
        draws=draws,
        bound=bound,
        execution=graycert.Execution(progress=False, say=lambda _: None),
    )
    votes = draws.num_selection + np.asarray(found.estimation_votes).sum(axis=1)
    return {
        "votes": float(votes.mean()),
        "estimation votes": float(votes.mean() - draws.num_selection),
        "radius": float(found.radius.clip(0).mean()),
        "abstaining": float((found.radius < 0).mean()),
        "seconds drawing": found.seconds["draws"],
    }


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", default="wordnet_nouns")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    options = parser.parse_args()
    data = graycert.load_graph(options.graph)
    split = graycert.inductive_split(data, seed=0)
    model = graycert.build_model("gcn", split, seed=0)
    training = graycert.InterceptionSmoothing(p_delete=0.01, p_ablate=0.6)
    graycert.train(model, split, smoothing=training, learning_rate=0.01, max_epochs=100, seed=0)
    targets = split.test.nodes.numpy()
    ways = {"fixed": graycert.Draws(), "until decided": graycert.UntilDecided()}
    print(f"{options.graph}, {targets.size:,} targets", flush=True)
    records: list[dict[str, Any]] = []
    for bound in ("multiplicative", "auto"):
        first: dict[str, float] = {}
        for name, draws in ways.items():
            found = measured(model, data, targets, draws, bound)
            first = first or found
            fewer, radius = first["votes"] / found["votes"], found["radius"] / first["radius"] - 1
            print(f"{bound:15} {name:13} {json.dumps({key: round(value, 4) for key, value in found.items()})}")
            print(f"{'':29} {fewer:.2f} x fewer votes, radius {radius:+.2%}", flush=True)
            records.append({"bound": bound, "draws": name, **found, "fewer": fewer, "radius gained": radius})
    if options.json is not None:
        options.json.write_text(json.dumps(records, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
