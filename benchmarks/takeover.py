"""Certified accuracy on Cora-ML against nodes that choose their edges: votes of in-neighbours, and of subgraphs.

The graph is not reduced to its largest component, which this threat excludes. All models are trained on the training
nodes of the same split. The weight of votes is chosen on validation nodes, by the mean certified accuracy at the radii
shown.
"""

import argparse
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

import graycert
from graycert.data import InductiveSplit, SplitPart
from graycert.smoothing import Smoothing
from graycert.smoothing.subgraphs.training import training_smoothing

RADII = (0, 1, 2, 3, 5, 10)
WEIGHTS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
TAKEOVER = graycert.NodeTakeoverThreat()


def shares(found: graycert.Certificates) -> list[float]:
    """Return the share of targets that are correct and certified at each radius, whole fields included."""
    assert found.labels is not None
    right = (found.prediction == found.labels) & (found.radius >= 0)
    return [float((right & (found.radius >= np.minimum(rho, found.num_eligible))).mean()) for rho in RADII]


def certified(model: Any, part: SplitPart, smoothing: Smoothing) -> list[float]:
    """Certify the nodes of a part of a split."""
    return shares(graycert.certify(model, part.data, targets=part.nodes, smoothing=smoothing, threat=TAKEOVER))


def ways(split: InductiveSplit, *, subgraphs: list[int]) -> Iterator[tuple[str, list[float]]]:
    """Yield the shares on test nodes of each way to certify."""
    node_model = graycert.distill(split, seed=0)
    yield "features alone, distilled", certified(node_model, split.test, graycert.FeaturesOnly())
    by_weight = {
        gamma: np.mean(certified(node_model, split.validation, graycert.BoundedVotes(gamma=gamma))) for gamma in WEIGHTS
    }
    best = max(WEIGHTS, key=lambda gamma: by_weight[gamma])
    yield f"votes, chosen: γ = {best:g}", certified(node_model, split.test, graycert.BoundedVotes(gamma=best))
    for gamma in (0.5, 2.0):
        yield f"votes, γ = {gamma:g}", certified(node_model, split.test, graycert.BoundedVotes(gamma=gamma))
    one_of_them = graycert.BoundedVotes(target_votes=True)
    yield "votes, the target one of them", certified(node_model, split.test, one_of_them)
    for number in subgraphs:
        voter = graycert.build_model("gcn", split, seed=0)
        graycert.train(voter, split, smoothing=training_smoothing(number), learning_rate=0.01, seed=0)
        smoothing = graycert.SubgraphVoting(num_subgraphs=number)
        yield f"subgraphs, T = {number}", certified(voter, split.test, smoothing)


def main() -> None:
    """Print and keep a row for each way and seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", nargs="+", type=int, default=[13, 17, 26])
    parser.add_argument("--subgraphs", nargs="+", type=int, default=[5, 10, 20])
    options = parser.parse_args()
    data = graycert.load_graph("cora_ml", largest_component=False)
    for seed in options.seeds:
        split = graycert.inductive_split(data, seed=seed)
        for name, row in ways(split, subgraphs=options.subgraphs):
            print(
                json.dumps({"seed": seed, "what": name, "certified and correct": [round(each, 3) for each in row]}),
                flush=True,
            )


if __name__ == "__main__":
    main()
