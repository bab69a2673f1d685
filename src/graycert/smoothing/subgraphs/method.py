r"""Certify votes of hash-made subgraphs, in the style of AGNNCert and PGNNCert (Li et al. 2025).

The directed edges are divided among T subgraphs by a hash of their source: edge (u, w) lies in subgraph h(u). Every
subgraph has all nodes with their features. One GNN classifies a target in each of them, and the class with the most
votes wins, ties going to the smaller class.

The adversary knows everything, hash and weights included. The target itself is trusted, because its own features are in
every subgraph. The guarantee is deterministic. Against `FeaturesAndOutEdgesThreat` the radius is the rival's own, from
the votes alone; against `NodeFeatureThreat`, where the structure is fixed, it is tightened: only subgraphs count in
which a node that may be hostile has a path to the target. Nobody may change which node has which number, and the model
is
fixed: training data are not attacked (PGNNCert's case, which needs one model per subgraph).

The proof is in docs/proofs/subgraph_voting.md.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert._types import NO_CLASS, BoolArray, IntArray
from graycert.errors import UnsoundSetupError
from graycert.graph import receptive_fields
from graycert.graph.conversion import simple_adjacency
from graycert.graph.eligible_nodes import EligibleNodes, eligible_nodes
from graycert.problem import Problem, classified
from graycert.setup import Setup
from graycert.smoothing.edge_by_edge import refuse_steps_as_a_whole
from graycert.smoothing.open_votes import refuse_open_votes
from graycert.smoothing.protocol import Arrays, FromGraph, Method
from graycert.smoothing.subgraphs.division import hash_division, subgraphs
from graycert.smoothing.subgraphs.flipped_votes import attackable_radius, majority_radius
from graycert.threats import NodeFeatureThreat, NodeTakeoverThreat


class SubgraphMethod(Method):
    r"""Count votes.

    $$M = \min_{b \ne a} \Bigl\lfloor \frac{n_a - n_b - n_\bot - [a > b]}{2} \Bigr\rfloor$$

    Guarantee:
        Exact integers, hold with certainty, and assume that the model is local, which the audit tests. If all
        attackable subgraphs can be made to vote for anything, the radius is the largest such number. It abstains only
        where votes for no class (scores that single out none) leave the winner open.

    References:
        Li and Wang (2025), AGNNCert (node-centred division); docs/proofs/subgraph_voting.md.
    """

    def refuse(self, problem: Problem) -> None:
        """Refuse a target that may be hostile."""
        exposed = problem.exposed()
        if bool(exposed.any()):
            raise UnsoundSetupError(
                "target-in-every-subgraph",
                f"The features of target {int(problem.targets[exposed][0])} are in every subgraph, so a hostile target "
                "changes all votes at once. Use NodeFeatureThreat(min_distance=1) (`--min-distance 1`), or trust the "
                "targets.",
            )

    def prepare(self, problem: Problem) -> Problem:
        """Audit the model."""
        from graycert.audit import convolution_of
        from graycert.smoothing.model_check import audited

        self.refuse(problem)
        problem, report = audited(problem)
        if isinstance(problem.threat, NodeTakeoverThreat) and not report.reads_num_nodes:
            problem = problem.with_setup(convolution=convolution_of(problem.model))
        return problem

    def from_graph(self, problem: Problem) -> FromGraph:
        """Count the nodes that may be hostile: within reach, or all others if they may add edges."""
        refuse_steps_as_a_whole(problem)
        _refuse_unknown_convolution(problem)
        size = problem.targets.size
        adjacency = simple_adjacency(problem.data.edge_index, num_nodes=problem.setup.num_nodes)
        fields = receptive_fields(adjacency, problem.targets, num_layers=problem.num_layers)
        eligible = _eligible(problem)
        if isinstance(problem.threat, NodeTakeoverThreat):
            counts = problem.threat.num_eligible(problem.targets, num_nodes=problem.setup.num_nodes)
        else:
            counts = np.full(size, problem.setup.num_nodes - 1) if eligible is None else eligible.counts
        return FromGraph(
            arrays={
                "num_eligible": counts.astype(np.int64),
                "receptive_field_size": fields.sizes.astype(np.int64),
            }
        )

    def draw(self, problem: Problem, found: FromGraph) -> tuple[Setup, Arrays]:
        """Classify every target in every subgraph."""
        from graycert.sampling.scores import voted_class
        from graycert.smoothing.subgraphs.classifier import SubgraphClassifier

        del found
        classifier = SubgraphClassifier.build(problem.model, problem.data, problem.targets)
        setup = classified(problem, num_classes=classifier.num_classes, engine="torch, one subgraph per pass")
        winners = [voted_class(classifier.scores(edges)).cpu().numpy() for edges in _subgraphs(problem)]
        predictions = np.stack(winners, axis=1)
        for_none = np.count_nonzero(predictions == NO_CLASS, axis=1)
        refuse_open_votes(problem, for_none=for_none, total=np.full(for_none.shape, predictions.shape[1]))
        return setup, {"subgraph_predictions": predictions}

    def conclude(self, problem: Problem, found: FromGraph, drawn: Mapping[str, NDArray[Any]]) -> Arrays:
        """Count how many votes must change, and how many nodes that takes."""
        predictions = drawn["subgraph_predictions"]
        rows = np.arange(problem.targets.size)
        ballots = np.zeros((rows.size, problem.setup.num_classes + 1), dtype=np.int64)  # the last one for no class
        attackable = np.zeros_like(ballots)
        eligible = _eligible(problem)
        for number, edges in enumerate(_subgraphs(problem)):
            winner = predictions[:, number]
            ballots[rows, winner] += 1
            attackable[rows, winner] += (
                1
                if eligible is None
                else is_attackable(edges, problem.targets, eligible, num_layers=problem.num_layers)
            )
        votes, no_class = ballots[:, :NO_CLASS], ballots[:, NO_CLASS]
        radius = (
            majority_radius(votes, no_class)
            if eligible is None
            else attackable_radius(votes, attackable[:, :NO_CLASS], found.arrays["num_eligible"], no_class)
        )
        return {
            "prediction": votes.argmax(axis=1).astype(np.int64),
            "radius": radius,
            "num_attackable": attackable.sum(axis=1),
        }


def _refuse_unknown_convolution(problem: Problem) -> None:
    """Refuse a model that might notice edges into nodes from which no message comes.

    Raises:
        UnsoundSetupError: ``unknown-convolution``.
    """
    if isinstance(problem.threat, NodeTakeoverThreat) and problem.setup.convolution is None:
        raise UnsoundSetupError(
            "unknown-convolution",
            "`model` must be one whose convolutions are known, an architecture of graycert or a chain of well-known "
            "layers, where hostile nodes also choose the edges into themselves: another may weigh messages by edges "
            "that start at honest nodes. Certify it against FeaturesAndOutEdgesThreat.",
        )


def _subgraphs(problem: Problem) -> Any:
    smoothing: Any = problem.smoothing
    number = smoothing.num_subgraphs
    division = hash_division(problem.setup.num_nodes, num_subgraphs=number, seed=problem.setup.seed)
    return subgraphs(problem.data.edge_index, division, num_subgraphs=number)


def _eligible(problem: Problem) -> EligibleNodes | None:
    """Return who may be hostile to whom within reach; None where hostile nodes may add edges: then anyone."""
    if not isinstance(problem.threat, NodeFeatureThreat):
        return None
    return eligible_nodes(problem.data, problem.targets, problem.threat, num_layers=problem.num_layers)


def is_attackable(edges: Any, targets: IntArray, eligible: EligibleNodes, *, num_layers: int) -> BoolArray:
    """Return for which targets an eligible node has a path of at most ``num_layers`` of these edges."""
    adjacency = simple_adjacency(edges, num_nodes=eligible.num_nodes)
    fields = receptive_fields(adjacency, targets, num_layers=num_layers)
    hostile = eligible.contain(fields.rows, fields.nodes)
    return np.bincount(fields.rows[hostile], minlength=targets.size) > 0


METHOD = SubgraphMethod()
