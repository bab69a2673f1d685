"""Radii against hostile nodes farther away, from the same votes: what keeping the neighbours honest would give."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert.problem import Problem
from graycert.smoothing.protocol import Arrays
from graycert.threats import NodeFeatureThreat

MOST_TARGETS = 10_000
"""Of more targets the bounds are not computed once more for each distance."""

MOST_DISTANCES = 8
"""Of more distances none is looked at: a model of so many steps hears the whole graph."""


def radii_by_distance(problem: Problem, drawn: Mapping[str, NDArray[Any]]) -> Arrays:
    """Conclude again for each larger smallest distance of hostile nodes at which one could still be heard.

    Guarantee:
        As of `graycert.Certificates.again` for each distance on its own.

    Args:
        problem: The problem, whose draws are done.
        drawn: Arrays of stage "drawn".

    Returns:
        ``radius_by_distance``, int64, shape (num_targets, num_distances): column i is for distance min_distance + 1 +
        i, up to the number of steps of the model; beyond the nodes that could be hostile where all of them may be.
        Nothing where the threat knows no distance, no farther node can be heard, the conclusion is more than a look at
        numbers of votes, or there are more than `MOST_TARGETS` or `MOST_DISTANCES`.
    """
    setup, threat = problem.setup, problem.threat
    if (
        not isinstance(threat, NodeFeatureThreat)
        or threat.hostile_edge_inputs
        or setup.num_layers is None
        or setup.smoothing.needs_graph
        or setup.the_rule.needs not in ("counts", "batches")
        or problem.num_asked > MOST_TARGETS
        or not 0 < problem.num_layers - threat.min_distance <= MOST_DISTANCES
    ):
        return {}
    radii = []
    for distance in range(threat.min_distance + 1, problem.num_layers + 1):
        farther = problem.with_setup(threat=dataclasses.replace(threat, min_distance=distance))
        found = setup.smoothing.method.from_graph(farther)
        concluded = setup.smoothing.method.conclude(farther, found, drawn)
        radii.append(concluded["radius"])
    return {"radius_by_distance": np.stack(radii, axis=1)}
