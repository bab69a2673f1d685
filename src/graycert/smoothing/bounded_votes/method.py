"""Certify bounded votes: evaluate each node once, count votes in integers."""

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from graycert._types import NO_CLASS, BoolArray, FloatArray, IntArray
from graycert.certificates import Certificates
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.graph import receptive_fields
from graycert.graph.conversion import as_array
from graycert.problem import Problem, classified
from graycert.rules import CollectiveCertificate
from graycert.setup import Setup
from graycert.smoothing.bounded_votes.ballots import ONE, ballots
from graycert.smoothing.bounded_votes.certificate import Polls, certify_polls, worst_sets
from graycert.smoothing.bounded_votes.collective import against_one_adversary, contests
from graycert.smoothing.bounded_votes.label_propagation import propagated_labels
from graycert.smoothing.bounded_votes.parameters import BoundedVotes
from graycert.smoothing.bounded_votes.takeover import UNLIMITED
from graycert.smoothing.bounded_votes.under_takeover import certify_takeover, refuse_chosen_voters
from graycert.smoothing.bounded_votes.voters import (
    Voters,
    voters_by_edges,
    voters_by_pagerank,
    voters_by_walks,
    voters_by_weights,
)
from graycert.smoothing.edge_by_edge import refuse_steps_as_a_whole
from graycert.smoothing.protocol import Arrays, FromGraph, Method
from graycert.threats import NodeFeatureThreat, NodeTakeoverThreat

OWN_FLOOR = 1e-6
LABEL_FLOOR = 0.02

MOST_TARGETS = 10_000
"""Of more targets no nodes to protect first are listed."""


class BoundedVotesMethod(Method):
    r"""Let nodes vote that the structure has chosen.

    Guarantee:
        Exact integers, with certainty. The classifier that is certified is the one of integer votes and scores, which
        differs from that of real numbers only at margins of about $\gamma 2^{-20}$. Assumed is that the model
        classifies each node by its own features alone, which the audit tests and blocks without edges enforce.

    References:
        docs/proofs/bounded_votes.md, Statement 1.
    """

    def refuse(self, problem: Problem) -> None:
        """Refuse a target that may be hostile but counts in full, and a model that moves messages."""
        refuse_chosen_voters(problem)
        exposed = problem.exposed()
        if _votes(problem).target_votes is False and bool(exposed.any()):
            raise UnsoundSetupError(
                "hostile-target-in-full",
                f"The own scores of target {int(problem.targets[exposed][0])} count in full, so a hostile target "
                "changes its prediction at will. Use NodeFeatureThreat(min_distance=1) (`--min-distance 1`), trust the "
                "targets, or let the target be one voter, BoundedVotes(target_votes=True).",
            )
        if getattr(problem.model, "num_layers", 0) != 0:
            raise _not_per_node(f"{type(problem.model).__name__} moves messages over {problem.model.num_layers} steps")

    def prepare(self, problem: Problem) -> Problem:
        """Audit the model, which must read no node but the one that it classifies; say who votes."""
        from graycert.models.row_probabilities import sees_rows_alone
        from graycert.smoothing.model_check import audited

        smoothing = _votes(problem)
        hostile = smoothing.target_votes
        if hostile is None:
            hostile = bool(problem.exposed().any())
        self.refuse(problem)
        gamma = smoothing.gamma if hostile else smoothing.weight_of_all_votes
        voters = smoothing.voters
        if voters is None:
            voters = "in-neighbours" if isinstance(problem.threat, NodeTakeoverThreat) else "walks"
        known = dataclasses.replace(smoothing, target_votes=hostile, gamma=gamma, voters=voters)
        problem = problem.with_setup(smoothing=known)
        if problem.audit is None and sees_rows_alone(problem.model):
            return problem.with_setup(num_layers=None, num_layers_assumed=False)
        found, report = audited(problem)
        if report.counted_steps or report.farthest_influence != 0:
            seen = f"{report.counted_steps} steps of messages were counted"
            if report.farthest_influence > 0:
                seen += f", and a changed node was noticed {report.farthest_influence} hops away"
            if report.farthest_influence < 0:
                seen = "it runs on this graph only, so that nobody can tell what it reads"
            raise _not_per_node(seen)
        return found.with_setup(num_layers=None, num_layers_assumed=False)

    def from_graph(self, problem: Problem) -> FromGraph:
        """Choose voters, and count those that may be hostile."""
        refuse_steps_as_a_whole(problem)
        _check_labels(problem)
        voters = _voters(problem)
        if isinstance(problem.threat, NodeTakeoverThreat):
            counts = problem.threat.num_eligible(problem.targets, num_nodes=problem.setup.num_nodes)
        else:
            counts = _eligible(problem, _with_target(problem, voters)).sum(axis=1)
        return FromGraph(
            arrays={
                "voters": voters,
                "num_eligible": counts.astype(np.int64),
                "receptive_field_size": 1 + (voters >= 0).sum(axis=1).astype(np.int64),
                **_of_labels(problem),
            }
        )

    def draw(self, problem: Problem, found: FromGraph) -> tuple[Setup, Arrays]:
        """Ask the model about every node, each by its own features."""
        from graycert.models.row_probabilities import row_probabilities

        del found
        smoothing = _votes(problem)
        probabilities = row_probabilities(problem.model, problem.data.x)
        _check_classes(smoothing, probabilities.shape[1])
        own = probabilities[problem.targets]
        alone = _clear_winner(own)
        setup = classified(problem, num_classes=own.shape[1], engine="torch, rows in blocks")
        return setup, {
            "ballots": ballots(probabilities, sharpen=smoothing.sharpen, one_hot=smoothing.vote == "one-hot"),
            "prediction_as_trained": alone,
            **({} if smoothing.target_votes else {"own_probabilities": own, "prediction_without_messages": alone}),
        }

    def conclude(self, problem: Problem, found: FromGraph, drawn: Mapping[str, NDArray[Any]]) -> Arrays:
        """Count votes, and how many of them it takes."""
        polls = _polls(problem, cast("Voters", found.arrays["voters"]), drawn)
        if isinstance(problem.threat, NodeTakeoverThreat):
            return certify_takeover(polls, _per_voter(problem, drawn), found.arrays["num_eligible"], problem.threat)
        made = certify_polls(polls)
        arrays = {
            "prediction": made.prediction,
            "radius": made.radius,
            "scores": made.scores,
            "class_radius": made.class_radius,
        }
        if problem.targets.size <= MOST_TARGETS:
            whole = made.radius >= found.arrays["num_eligible"]
            arrays["attackers"] = worst_sets(polls, np.where(whole, 0, made.radius + 1))
        return arrays

    def against_one_adversary(
        self, problem: Problem, certificates: Certificates, *, budgets: IntArray, **options: Any
    ) -> CollectiveCertificate:
        """Let one set of hostile nodes vote once, on all targets."""
        voters = cast("Voters", certificates.every_array()["voters"][1])
        polls = _polls(problem, voters, certificates.adds)
        hostile = NodeFeatureThreat(trusted=getattr(problem.threat, "trusted", None))
        anywhere = problem.with_setup(threat=hostile)
        return against_one_adversary(
            contests(
                polls,
                untrusted=_eligible(anywhere, polls.voters),
                own=_read_in_full(problem),
                radius=np.where(certificates.whole_field, UNLIMITED, certificates.radius),
            ),
            num_nodes=problem.setup.num_nodes,
            budgets=budgets,
            one_hot=_votes(problem).vote == "one-hot",
            **options,
        )


def _votes(problem: Problem) -> BoundedVotes:
    return cast("BoundedVotes", problem.smoothing)


def _clear_winner(probabilities: FloatArray) -> IntArray:
    """Return the most probable class, `NO_CLASS` where several are."""
    several = (probabilities == probabilities.max(axis=1, keepdims=True)).sum(axis=1) > 1
    return np.where(several, NO_CLASS, probabilities.argmax(axis=1)).astype(np.int64)


def _not_per_node(seen: str) -> UnsoundSetupError:
    return UnsoundSetupError(
        "not-per-node",
        f"`model` must classify each node by its own features alone, but {seen}. Distil it into one that does: "
        "graycert.distill(split, teacher=model).",
    )


def _check_classes(smoothing: BoundedVotes, num_classes: int) -> None:
    """Refuse labels of classes that the model does not know.

    Raises:
        InvalidParameterError: If there are some.
    """
    labels = smoothing.label_propagation
    if labels is not None and labels.max() >= num_classes:
        raise InvalidParameterError(
            f"`label_propagation` must hold classes of the model, 0 to {num_classes - 1}, got {labels.max()}. Pass the "
            "split that it was trained on."
        )


def _check_labels(problem: Problem) -> None:
    """Refuse training labels that are not those of the graph.

    Raises:
        InvalidParameterError: If a node has another label there.
    """
    labels, known = _votes(problem).label_propagation, getattr(problem.data, "y", None)
    if labels is None or known is None:
        return
    known = as_array(known)
    differing = np.flatnonzero((labels >= 0) & (known >= 0) & (labels != known))
    if differing.size:
        node = int(differing[0])
        raise InvalidParameterError(
            f"`label_propagation` must hold labels of this graph, got {labels[node]} for node {node}, whose label is "
            f"{known[node]}. Number them as the nodes of the graph that is certified; a split is numbered for you."
        )


def _of_labels(problem: Problem) -> Arrays:
    """Return what the labels that are spread say of each target alone, where there are some."""
    labels = _votes(problem).label_propagation
    if labels is None:
        return {}
    shares = propagated_labels(problem.the_graph.adjacency, labels, num_classes=int(labels.max()) + 1)
    return {"prediction_of_labels": shares[problem.targets].argmax(axis=1)}


def _voters(problem: Problem) -> Voters:
    smoothing, adjacency = _votes(problem), problem.the_graph.adjacency
    if isinstance(smoothing.voters, np.ndarray):
        return voters_by_weights(
            smoothing.voters, problem.targets, num_nodes=adjacency.num_nodes, num_voters=smoothing.num_voters
        )
    if smoothing.is_by("in-neighbours"):
        return voters_by_edges(adjacency, problem.targets)
    if smoothing.is_by("pagerank"):
        return voters_by_pagerank(
            adjacency,
            problem.targets,
            num_voters=smoothing.num_voters,
            decay=smoothing.decay,
            tolerance=smoothing.tolerance,
        )
    return voters_by_walks(
        adjacency,
        problem.targets,
        num_voters=smoothing.num_voters,
        walk_length=smoothing.walk_length,
        decay=smoothing.decay,
    )


def _with_target(problem: Problem, voters: Voters) -> Voters:
    """Return all who vote: the target, too, where it is one voter among the others."""
    if not _votes(problem).target_votes:
        return voters
    return np.concatenate([problem.targets[:, None].astype(np.int32), voters], axis=1)


def _eligible(problem: Problem, voters: Voters) -> BoolArray:
    """Return which voters may be hostile: not trusted, and not closer than the threat says."""
    threat: Any = problem.threat
    known = voters >= 0
    near = np.zeros(voters.shape, dtype=np.bool_)
    if threat.min_distance > 0:
        near |= voters == problem.targets[:, None]
    if threat.min_distance > 1:
        fields = receptive_fields(problem.the_graph.adjacency, problem.targets, num_layers=threat.min_distance - 1)
        keys = np.sort(fields.rows * problem.setup.num_nodes + fields.nodes)
        rows = np.arange(voters.shape[0], dtype=np.int64)[:, None]
        wanted = rows * problem.setup.num_nodes + voters
        near |= known & (keys[np.minimum(np.searchsorted(keys, wanted), keys.size - 1)] == wanted)
    distances = np.where(near, -1, threat.min_distance)
    eligible: BoolArray = threat.eligible(np.maximum(voters, 0), distances, num_nodes=problem.setup.num_nodes)
    return eligible & known


def _polls(problem: Problem, voters: Voters, drawn: Mapping[str, NDArray[Any]]) -> Polls:
    """Return who votes on what: own scores in integers, voters, and votes."""
    smoothing = _votes(problem)
    own, labels = drawn.get("own_probabilities"), smoothing.label_propagation
    offsets = np.zeros((problem.targets.size, problem.setup.num_classes))
    if labels is not None:
        spread = propagated_labels(problem.the_graph.adjacency, labels, num_classes=problem.setup.num_classes)
        offsets += smoothing.label_weight * np.log(spread[problem.targets] + LABEL_FLOOR)
    if own is None:
        all_voters = _with_target(problem, voters)
        return Polls(
            offsets=np.rint(ONE * offsets).astype(np.int64),
            voters=all_voters,
            eligible=_eligible(problem, all_voters),
            ballots=drawn["ballots"],
            weights=np.ones(all_voters.shape, dtype=np.int64),
        )
    offsets += np.log(own + OWN_FLOOR)
    counted = _counted(voters, own, gate=smoothing.gate)
    if smoothing.is_by("in-neighbours"):
        shares = 1.0 + (counted * (voters >= 0)).sum(axis=1)[:, None]
        scaled = shares * np.rint(ONE * offsets / smoothing.weight_of_all_votes)
    else:
        sizes = np.maximum((voters >= 0).sum(axis=1), 1)[:, None]
        scaled = np.rint(ONE * offsets * sizes / smoothing.weight_of_all_votes)
    return Polls(
        offsets=_whole(scaled),
        voters=voters,
        eligible=_eligible(problem, voters),
        ballots=drawn["ballots"],
        weights=counted,
    )


def _per_voter(problem: Problem, drawn: Mapping[str, NDArray[Any]]) -> IntArray:
    """Return what each voter adds to the offsets: as much as the target's own scores are."""
    own = drawn.get("own_probabilities")
    if own is None:
        return np.zeros((problem.targets.size, problem.setup.num_classes), dtype=np.int64)
    return _whole(np.rint(ONE * np.log(own + OWN_FLOOR) / _votes(problem).weight_of_all_votes))


def _read_in_full(problem: Problem) -> IntArray:
    """Return the targets that count their own scores in full and may be hostile to others, -1 for each other one."""
    trusted = getattr(problem.threat, "trusted", None)
    may_be = np.ones(problem.setup.num_nodes, dtype=np.bool_) if trusted is None else ~trusted
    in_full = may_be[problem.targets] & (not _votes(problem).target_votes)
    return np.where(in_full, problem.targets, -1)


def _counted(voters: Voters, own: FloatArray, *, gate: float | None) -> IntArray:
    """Return one vote for each voter, none where the target is sure of itself."""
    open_gate = own.max(axis=1) < (np.inf if gate is None else gate)
    return np.broadcast_to(open_gate[:, None].astype(np.int64), voters.shape)


def _whole(values: FloatArray) -> IntArray:
    """Return integers; what is too large for one stays too large for a certificate."""
    return np.clip(values, -(2.0**62), 2.0**62).astype(np.int64)


METHOD = BoundedVotesMethod()
