"""From votes and Δ̄ to certificates, by the rule asked for: what ``certify`` concludes and ``verify`` checks."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graycert._compilation import announced
from graycert._types import FloatArray, IntArray
from graycert.bounds.evaluation import DeltaBounds
from graycert.bounds.two_level import TwoLevelSearch
from graycert.errors import InvalidParameterError
from graycert.graph import Adjacency, receptive_fields
from graycert.graph.edge_values import probability_arrays
from graycert.rules import certify_votes, simultaneous_level
from graycert.rules.event_aware import EventAwareRule
from graycert.rules.event_search import search
from graycert.rules.vote_certificates import status_of
from graycert.sampling import ArrivalRecorder, Purpose
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats.node_features import NodeFeatureThreat


def count_predictions(predictions: NDArray[np.int16], *, num_classes: int) -> IntArray:
    """Return votes per class from the class of each vote, shape (num_targets, num_classes)."""
    votes = np.zeros((predictions.shape[0], num_classes), dtype=np.int64)
    for number in range(num_classes):
        votes[:, number] = np.count_nonzero(predictions == number, axis=1)
    return votes


@dataclass(frozen=True, kw_only=True, eq=False)
class Conclusion:
    """Certificates of all targets, and who could break them.

    Args:
        prediction: Reported class, shape (num_targets,).
        status: A value of ``Status``, shape (num_targets,).
        p_lower: Lower bound on the probability of the reported class.
        p_upper: Upper bound on the probability of every other class.
        radius: Certified radius, -1 where the classifier abstains.
        attackers: The nodes to protect first: a set of radius + 1 hostile nodes against which the target is not
            certified, as far as one is known, else the set that hostile messages arrive from most probably; padded
            with -1, shape (num_targets, largest set). Nothing where the classifier abstains.
        undecided: Whether the event-aware rule gave up its search, so that the radius may be larger, shape
            (num_targets,).
    """

    prediction: IntArray
    status: NDArray[np.str_]
    p_lower: FloatArray
    p_upper: FloatArray
    radius: IntArray
    attackers: IntArray
    undecided: NDArray[np.bool_]


def conclude(
    adjacency: Adjacency,
    deltas: DeltaBounds,
    *,
    selection_votes: IntArray,
    estimation_votes: IntArray,
    estimation_predictions: NDArray[np.int16] | None,
    smoothing: InterceptionSmoothing,
    threat: NodeFeatureThreat,
    num_layers: int,
    alpha: float,
    simultaneous: bool,
    rule: str,
    seed: int,
    say: Callable[[str], None] | None = None,
) -> Conclusion:
    """Certify all targets.

    Args:
        adjacency: The graph that was voted on.
        deltas: Δ̄ of its targets.
        selection_votes: Shape (num_targets, num_classes).
        estimation_votes: Same shape.
        estimation_predictions: The class of each estimation vote, shape (num_targets, num_estimation); only the
            event-aware rule needs it.
        smoothing: p_d in the order of ``adjacency``.
        threat: Which nodes may be hostile.
        num_layers: Number k of propagation steps.
        alpha: Failure probability, per target or for all of them.
        simultaneous: Whether it is for all.
        rule: One of ``graycert.rules.RULES``.
        seed: Seed of the votes, by which the event-aware rule draws what arrived again.
        say: Told what takes long.
    """
    level = simultaneous_level(alpha, deltas.targets.size) if simultaneous else alpha
    by_votes = "sound" if rule == "event-aware" else rule
    votes = certify_votes(selection_votes, estimation_votes, deltas.delta_upper, alpha=level, rule=by_votes)
    radius, undecided = votes.radius, np.zeros(votes.radius.size, dtype=np.bool_)
    failing: dict[int, IntArray] = {}
    if rule == "event-aware":
        if estimation_predictions is None:
            raise InvalidParameterError("`estimation_predictions` must be given for rule 'event-aware', got None.")
        with announced(say, "the event-aware rule", search):
            radius, undecided, failing = _event_aware(
                adjacency,
                deltas,
                predictions=estimation_predictions,
                majority=votes.prediction,
                num_classes=estimation_votes.shape[1],
                smoothing=smoothing,
                threat=threat,
                num_layers=num_layers,
                alpha=level,
                seed=seed,
            )
    sets = [failing.get(row, deltas.worst_set(row, int(radius[row]) + 1)) for row in range(radius.size)]
    attackers = np.full((radius.size, max((each.size for each in sets), default=0)), -1, dtype=np.int64)
    for row, nodes in enumerate(sets):
        attackers[row, : nodes.size] = nodes
    return Conclusion(
        prediction=votes.prediction,
        status=status_of(radius),
        p_lower=votes.p_lower,
        p_upper=votes.p_upper,
        radius=radius,
        attackers=attackers,
        undecided=undecided,
    )


def _event_aware(
    adjacency: Adjacency,
    deltas: DeltaBounds,
    *,
    predictions: NDArray[np.int16],
    majority: IntArray,
    num_classes: int,
    smoothing: InterceptionSmoothing,
    threat: NodeFeatureThreat,
    num_layers: int,
    alpha: float,
    seed: int,
) -> tuple[IntArray, NDArray[np.bool_], dict[int, IntArray]]:
    """Return the radii, whose search was given up, and by target the sets of nodes that break the next radius."""
    lost = predictions != majority[:, None]
    num_samples = predictions.shape[1]
    rule = EventAwareRule(
        num_samples=num_samples, most_lost=int(lost.sum(axis=1).max()), num_classes=num_classes, alpha=alpha
    )
    p_delete, p_ablate = probability_arrays(adjacency, smoothing)
    routes_of = TwoLevelSearch(adjacency, p_delete=p_delete, p_ablate=p_ablate, num_layers=num_layers)
    recorder = ArrivalRecorder(adjacency=adjacency, smoothing=smoothing, threat=threat, num_layers=num_layers)
    radius, undecided = np.empty(deltas.targets.size, dtype=np.int64), np.zeros(deltas.targets.size, dtype=np.bool_)
    failing, row = {}, 0
    for records in recorder.blocks(seed, Purpose.ESTIMATION, deltas.targets, samples=range(num_samples), wanted=lost):
        fields = receptive_fields(adjacency, records.targets, num_layers=num_layers)
        eligible = threat.eligible(fields.nodes, fields.distances, num_nodes=adjacency.num_nodes)
        for place in range(records.targets.size):
            entries = slice(fields.indptr[place], fields.indptr[place + 1])
            nodes, may_be_hostile = fields.nodes[entries], eligible[entries]
            found = rule.certify(
                routes_of.routes(nodes, may_be_hostile),
                classes=predictions[row][lost[row]].astype(np.int64),
                arrived=records.of(place),
                eligible=np.flatnonzero(may_be_hostile),
                delta_upper=deltas.delta_upper[row],
            )
            radius[row], undecided[row] = found.radius, not found.decided
            if found.counterexample.size:
                failing[row] = np.sort(nodes[found.counterexample])
            row += 1
    return radius, undecided, failing
