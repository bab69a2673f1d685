"""Certificates of every smoothing, and of what a result may have besides, on one small graph."""

from functools import cache

import numpy as np
import pytest
import torch

import graycert
from support.certified_groups import (
    OTHERS,
    SMOOTHING,
    TARGETS,
    smoothing_with_arrays,
    three_groups,
    trained_model,
    trained_row_classifier,
)

FEW = graycert.Draws(num_selection=50, num_estimation=300)
UNTIL_DECIDED = graycert.UntilDecided(num_selection=50, max_estimation=300, batch=32, give_up=0.07)
STRONG = graycert.InterceptionSmoothing(p_delete=0.8, p_ablate=0.8)
TRUSTED = graycert.NodeFeatureThreat(min_distance=1, trusted=np.arange(42) % 7 == 1)
KNOWN_LABELS = np.where(np.arange(42) < 12, np.arange(42) % 3, -1)

CASES = {
    "interception": {"smoothing": SMOOTHING, "threat": OTHERS, "draws": FEW},
    "difference": {"smoothing": SMOOTHING, "threat": OTHERS, "draws": FEW, "rule": "difference", "simultaneous": True},
    "paper": {"smoothing": SMOOTHING, "threat": OTHERS, "draws": FEW, "rule": "paper"},
    "event-aware": {"smoothing": SMOOTHING, "threat": OTHERS, "draws": FEW, "rule": "event-aware"},
    "until-decided": {"smoothing": SMOOTHING, "threat": OTHERS, "draws": UNTIL_DECIDED},
    "arrays-and-trusted-nodes": {"smoothing": smoothing_with_arrays(), "threat": TRUSTED, "draws": FEW},
    "no-largest-radius": {"smoothing": SMOOTHING, "threat": OTHERS, "draws": FEW, "max_radius": None},
    "node-deletion": {"smoothing": STRONG, "threat": graycert.NodeDeletionThreat(), "draws": FEW},
    "node-insertion": {"smoothing": STRONG, "threat": graycert.NodeInsertionThreat(min_distance=2), "draws": FEW},
    "edge-deletion": {
        "smoothing": STRONG,
        "threat": graycert.EdgeDeletionThreat(convolution="degree-normalised"),
        "draws": UNTIL_DECIDED,
    },
    "retention": {
        "smoothing": graycert.UniformRetention(keep_ratio="1/6", tau=150),
        "threat": TRUSTED,
        "draws": FEW,
    },
    "ablation-global": {
        "smoothing": graycert.RandomizedAblation(scope="global", p_ablate=0.9),
        "threat": OTHERS,
        "draws": FEW,
    },
    "ablation-local": {
        "smoothing": graycert.RandomizedAblation(scope="local", num_kept=3),
        "threat": TRUSTED,
        "draws": FEW,
    },
    "sparse": {
        "smoothing": graycert.SparseSmoothing(p_plus=0.05, p_minus=0.6),
        "threat": graycert.AttributeFlipThreat(max_additions=2),
        "draws": FEW,
    },
    "subgraphs": {"smoothing": graycert.SubgraphVoting(num_subgraphs=9), "threat": TRUSTED},
    "subgraphs-out-edges": {
        "smoothing": graycert.SubgraphVoting(num_subgraphs=9),
        "threat": graycert.FeaturesAndOutEdgesThreat(),
    },
    "subgraphs-takeover": {
        "smoothing": graycert.SubgraphVoting(num_subgraphs=9),
        "threat": graycert.NodeTakeoverThreat(max_injected=3, trusted=np.arange(42) % 7 == 1),
    },
    "features-only": {"smoothing": graycert.FeaturesOnly(), "threat": OTHERS},
    "votes": {"smoothing": graycert.BoundedVotes(num_voters=9, gate=0.75), "threat": OTHERS},
    "votes-of-targets": {
        "smoothing": graycert.BoundedVotes(num_voters=9, voters="pagerank", tolerance=0.01),
        "threat": graycert.NodeFeatureThreat(),
    },
    "votes-and-labels": {
        "smoothing": graycert.BoundedVotes(
            num_voters=9, vote="one-hot", gate=0.75, gamma=8.0, label_propagation=KNOWN_LABELS
        ),
        "threat": TRUSTED,
    },
    "votes-takeover": {
        "smoothing": graycert.BoundedVotes(gate=0.75),
        "threat": graycert.NodeTakeoverThreat(trusted=np.arange(42) % 7 == 1),
    },
    "votes-takeover-out": {
        "smoothing": graycert.BoundedVotes(vote="one-hot"),
        "threat": graycert.NodeTakeoverThreat(chosen_edges="out", min_distance=0, max_injected=2),
    },
    "features-only-takeover": {"smoothing": graycert.FeaturesOnly(), "threat": graycert.NodeTakeoverThreat()},
    "features-only-edges": {"smoothing": graycert.FeaturesOnly(), "threat": graycert.EdgeDeletionThreat()},
}

ALIKE = {
    "difference",
    "paper",
    "no-largest-radius",
    "node-insertion",
    "edge-deletion",
    "ablation-global",
    "subgraphs-out-edges",
    "subgraphs-takeover",
    "features-only-takeover",
    "features-only-edges",
}
"""Cases that others stand for."""


def each_case(mark: pytest.MarkDecorator) -> pytest.MarkDecorator:
    """Return what makes a test of every case; those that others stand for get the mark."""
    return pytest.mark.parametrize(
        "case", [pytest.param(case, marks=[mark] if case in ALIKE else []) for case in CASES]
    )


any_case = each_case(pytest.mark.deep)
"""What holds of all of them."""


@cache
def small_graph():
    """Three groups with names; attributes are the group's, so that they are binary."""
    data = three_groups().clone()
    data.x = (data.x > 0.5).to(torch.float32)
    data.node_ids = [f"node {number}" for number in range(42)]
    data.class_names = ["left", "middle", "right"]
    return data


def model_of(name):
    """The model of a case: bounded votes are of one that reads each row alone."""
    return trained_row_classifier() if CASES[name]["smoothing"].name == "votes" else trained_model()


def certify_case(name, **changes):
    """Certify twelve nodes."""
    arguments = {"targets": TARGETS, "alpha": 0.05, "max_radius": 6, "seed": 3, **CASES[name], **changes}
    return graycert.certify(
        model_of(name), small_graph(), execution=graycert.Execution(say=lambda _: None), **arguments
    )


made = cache(certify_case)
"""The same certificates for all tests."""
