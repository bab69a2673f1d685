"""The event-aware rule over all targets: what arrived is drawn again from the seed, target by target."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert._types import BoolArray, FloatArray, IntArray
from graycert.bounds.two_level import TwoLevelSearch
from graycert.graph import probability_arrays, receptive_fields
from graycert.problem import Problem
from graycert.rules.event_aware import EventAwareRule
from graycert.sampling import ArrivalRecorder, Purpose


def event_aware_radii(
    problem: Problem, delta_upper: FloatArray, *, predictions: NDArray[Any], majority: IntArray
) -> tuple[IntArray, BoolArray, dict[int, IntArray]]:
    """Return the radii, whose search was given up, and by target the sets of nodes that break the next radius.

    Args:
        problem: The problem.
        delta_upper: Δ̄(ρ), shape (num_targets, max_radius).
        predictions: The class of each estimation vote, shape (num_targets, num_estimation).
        majority: Reported class, shape (num_targets,).
    """
    adjacency, smoothing = problem.the_graph.adjacency, problem.smoothing_on_adjacency
    threat: Any = problem.threat
    lost = predictions != majority[:, None]
    num_samples = predictions.shape[1]
    rule = EventAwareRule(
        num_samples=num_samples,
        most_lost=int(lost.sum(axis=1).max()),
        num_classes=problem.setup.num_classes,
        alpha=problem.level,
    )
    p_delete, p_ablate = probability_arrays(adjacency, smoothing)
    routes_of = TwoLevelSearch(adjacency, p_delete=p_delete, p_ablate=p_ablate, num_layers=problem.num_layers)
    recorder = ArrivalRecorder(adjacency=adjacency, smoothing=smoothing, threat=threat, num_layers=problem.num_layers)
    radius, undecided = np.empty(problem.targets.size, dtype=np.int64), np.zeros(problem.targets.size, dtype=np.bool_)
    failing, row = {}, 0
    for records in recorder.blocks(
        problem.setup.seed, Purpose.ESTIMATION, problem.targets, samples=range(num_samples), wanted=lost
    ):
        fields = receptive_fields(adjacency, records.targets, num_layers=problem.num_layers)
        eligible = threat.eligible(fields.nodes, fields.distances, num_nodes=adjacency.num_nodes)
        for place in range(records.targets.size):
            entries = slice(fields.indptr[place], fields.indptr[place + 1])
            nodes, may_be_hostile = fields.nodes[entries], eligible[entries]
            found = rule.certify(
                routes_of.routes(nodes, may_be_hostile),
                classes=predictions[row][lost[row]].astype(np.int64),
                arrived=records.of(place),
                eligible=np.flatnonzero(may_be_hostile),
                delta_upper=delta_upper[row],
            )
            radius[row], undecided[row] = found.radius, not found.decided
            if found.counterexample.size:
                failing[row] = np.sort(nodes[found.counterexample])
            row += 1
    return radius, undecided, failing
