"""What bounded votes cost: processor time of `distill` and `certify`, and of the certificate beside plain NumPy.

Usage: GRAYCERT_DATA=FOLDER python benchmarks/bounded_votes.py [--graphs cora_ml wordnet30_synsets] [--hostile]

The certified model has random weights, of the size that `graycert.distill` trains: times do not depend on them. Of
Cora-ML the test nodes are certified, of other graphs all nodes, with voters by PageRank. Distilled is on Cora-ML.
Processor time, because wall time depends on what else runs; the memory is the largest that the process has taken,
graph and libraries included.
"""

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import graycert
from graycert.models.node_model import NodeModel, NodeModelConfig
from graycert.smoothing.bounded_votes.ballots import ONE
from graycert.smoothing.bounded_votes.certificate import Polls, certify_polls
from graycert.training import default_teacher

COMPARED = 2_000
"""Targets of which plain NumPy counts votes, too."""


def seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor time of a call, and its result."""
    started = time.process_time()
    found = run()
    return time.process_time() - started, found


def plain_radii(polls: Polls) -> Any:
    """Return class radii by one sort of an array (num_targets, num_voters) per class."""
    heard = polls.eligible & (polls.voters >= 0)
    votes = np.where((polls.voters >= 0)[..., None], polls.ballots[polls.voters].astype(np.int64), 0)
    scores = polls.offsets + (votes * polls.weights[..., None]).sum(axis=1)
    best, rows = scores.argmax(axis=1), np.arange(scores.shape[0])
    own = votes[rows, :, best]
    radii = np.repeat(heard.sum(axis=1)[:, None], scores.shape[1], axis=1)
    for other in range(scores.shape[1]):
        hits = np.where(heard, polls.weights * (ONE + own - votes[:, :, other]), 0)
        left = scores[rows, best] - scores[:, other] - (other < best)
        taken = np.cumsum(-np.sort(-hits, axis=1), axis=1) > left[:, None]
        broken = taken.any(axis=1) & (best != other)
        radii[broken, other] = taken.argmax(axis=1)[broken]
    return radii


def distillation(split: Any) -> str:
    """Return what the default teacher and its student take, and how often they are right, in a line."""
    spent, teacher = seconds(lambda: default_teacher(split, seed=0))
    more, student = seconds(lambda: graycert.distill(split, teacher, seed=0))
    part, right = split.test, []
    for model in (teacher, student):
        with torch.no_grad():
            found = model(part.data.x, part.data.edge_index).argmax(dim=1)
        right.append(float((found == part.data.y)[part.nodes].float().mean()))
    return (
        f"distill on Cora-ML, processor time: teacher {spent:.1f} s (right on {right[0]:.1%} of the test nodes), "
        f"student {more:.1f} s ({right[1]:.1%}), together {spent + more:.1f} s"
    )


def polls_of(found: graycert.Certificates) -> Polls:
    """Return the votes of a result on its first targets, with offsets that give its scores."""
    voters = found.voters[:COMPARED]
    votes = np.where((voters >= 0)[..., None], found.ballots[voters].astype(np.int64), 0).sum(axis=1)
    return Polls(
        offsets=found.scores[:COMPARED] - votes,
        voters=voters,
        eligible=voters >= 0,
        ballots=found.ballots,
        weights=np.ones(voters.shape, dtype=np.int64),
    )


def main() -> None:
    """Print what distillation takes, and a row of a Markdown table for each graph."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", nargs="+", default=["cora_ml", "wordnet30_synsets"])
    parser.add_argument("--hostile", action="store_true")
    asked = parser.parse_args()
    if "cora_ml" in asked.graphs:
        print(distillation(graycert.inductive_split(graycert.load_graph("cora_ml"), seed=13)), end="\n\n")
    print("| graph | targets | certify | of that, phases | certificate, to plain NumPy | largest memory |")
    print("|---|---|---|---|---|---|")
    for name in asked.graphs:
        data = graycert.prepare_graph(graycert.load_graph(name), undirected=True, coalesce=True)
        few = name == "cora_ml"
        targets = graycert.inductive_split(data, seed=13).test.nodes if few else torch.arange(data.num_nodes)
        model = NodeModel(
            NodeModelConfig(
                num_features=data.num_features,
                num_classes=int(data.y.max()) + 1,
                hidden_channels=128,
                members=4,
                input_dropout=0.6,
                dropout=0.5,
            )
        )
        arguments: dict[str, Any] = {
            "smoothing": graycert.BoundedVotes(gate=None, voters="walks" if few else "pagerank"),
            "threat": graycert.NodeFeatureThreat(min_distance=0 if asked.hostile else 1),
        }
        graycert.certify(model.eval(), data, targets=targets[:2], **arguments)  # compiles
        spent, found = seconds(lambda: graycert.certify(model, data, targets=targets, **arguments))  # noqa: B023
        polls = polls_of(found)
        certify_polls(polls)  # compiles
        ours, made = seconds(lambda: certify_polls(polls))  # noqa: B023
        theirs, expected = seconds(lambda: plain_radii(polls))  # noqa: B023
        assert np.array_equal(made.class_radius, expected)
        phases = ", ".join(f"{phase} {value:.2f}" for phase, value in found.seconds.items())
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        ratio = f"{ours:.3f} s to {theirs:.3f} s, {theirs / max(ours, 1e-9):.0f} times"
        print(f"| {name} | {len(found):,} | {spent:.2f} s | {phases} (wall) | {ratio} | {peak:.2f} GiB |")


if __name__ == "__main__":
    main()
