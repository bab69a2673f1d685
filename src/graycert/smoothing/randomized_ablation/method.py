"""Certify with Levine and Feizi's randomized ablation, to compare with interception smoothing (App. B)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert._types import FloatArray, IntArray
from graycert.audit import refuse_exposed_target
from graycert.bounds.levine import levine_delta
from graycert.graph import receptive_fields
from graycert.graph.conversion import simple_adjacency
from graycert.problem import Problem, classified
from graycert.rules import certify_counts
from graycert.setup import Setup
from graycert.smoothing.fixed_votes import counted_votes, fixed_votes, foresee, the_draws
from graycert.smoothing.protocol import Arrays, FromGraph, Method
from graycert.smoothing.randomized_ablation.parameters import RandomizedAblation


class RandomizedAblationMethod(Method):
    r"""Ablate all but k nodes.

    Global scope: a black-box certificate, for any model that is a function of features and edges, local or not.
    Hostile nodes may be anywhere in the graph, so all eligible nodes count, reachable or not. Local scope: the model
    is audited, and only eligible nodes of the receptive field count. Δ^L is exact, rounded upward.

    References:
        Levine and Feizi (2020); Scholten et al. (2022), App. B; docs/proofs/levine.md.
    """

    def refuse(self, problem: Problem) -> None:
        """Refuse a skip connection where a target may be hostile itself."""
        refuse_exposed_target(problem.model, problem.threat, problem.targets)

    def prepare(self, problem: Problem) -> Problem:
        """Audit the model; in the global scope it need not be local."""
        from graycert.smoothing.model_check import audited

        self.refuse(problem)
        local = _smoothing(problem).scope == "local"
        return audited(problem, ablation_token=problem.ablation_token, local=local)[0]

    def from_graph(self, problem: Problem) -> FromGraph:
        """Count the nodes that draws choose from, and those of them that may be hostile."""
        smoothing = _smoothing(problem)
        candidates, eligible = _candidates_and_eligible(problem)
        shown = np.array([smoothing.num_kept_among(int(size)) for size in candidates], dtype=np.int64)
        radius = problem.setup.max_radius or max(1, int(eligible.max()))
        return FromGraph(
            arrays={
                "num_candidates": candidates,
                "num_shown": shown,
                "num_eligible": eligible,
                "receptive_field_size": candidates,
                "delta_upper": levine_deltas(candidates, shown, eligible, max_radius=radius),
            }
        )

    def draw(self, problem: Problem, found: FromGraph) -> tuple[Setup, Arrays]:
        """Draw votes."""
        from graycert.smoothing.randomized_ablation.draws import build_randomized_ablation_engine

        engine = build_randomized_ablation_engine(
            problem.model,
            problem.data,
            problem.targets,
            smoothing=_smoothing(problem),
            num_layers=problem.setup.num_layers,
            ablation_token=problem.ablation_token,
            batch_size=problem.execution.batch_size,
            device=problem.execution.place(),
        )
        setup = classified(problem, num_classes=engine.num_classes, engine=engine.name)
        foresee(
            problem,
            found,
            num_classes=engine.num_classes,
            num_estimation=the_draws(problem).num_estimation,
        )
        return setup, fixed_votes(engine, problem)

    def conclude(self, problem: Problem, found: FromGraph, drawn: Mapping[str, NDArray[Any]]) -> Arrays:
        """Conclude by the rule for votes."""
        votes = certify_counts(
            *counted_votes(drawn),
            found.arrays["delta_upper"],
            alpha=problem.level,
            rule=problem.setup.rule,
        )
        return {
            "prediction": votes.prediction,
            "p_lower": votes.p_lower,
            "p_upper": votes.p_upper,
            "radius": votes.radius,
        }


def levine_deltas(num_nodes: IntArray, num_kept: IntArray, num_eligible: IntArray, *, max_radius: int) -> FloatArray:
    """Return Δ^L(ρ) per target; equal numbers are computed once.

    Args:
        num_nodes: Nodes that draws choose from, shape (num_targets,).
        num_kept: How many of them keep their features, same shape.
        num_eligible: How many of them may be hostile, same shape.
        max_radius: Largest ρ, >= 1.
    """
    cases, which = np.unique(np.stack([num_nodes, num_kept, num_eligible], axis=1), axis=0, return_inverse=True)
    table = [
        levine_delta(num_nodes=int(n), num_kept=int(k), num_eligible=int(m), max_radius=max_radius) for n, k, m in cases
    ]
    return np.stack(table)[which.reshape(-1)]


def _candidates_and_eligible(problem: Problem) -> tuple[IntArray, IntArray]:
    """Return how many nodes draws choose from, and how many of these may be hostile, for each target."""
    threat: Any = problem.threat
    num_layers = problem.setup.num_layers
    adjacency = simple_adjacency(problem.data.edge_index, num_nodes=problem.setup.num_nodes)
    depth = max(1, threat.min_distance - 1) if num_layers is None else num_layers
    fields = receptive_fields(adjacency, problem.targets, num_layers=depth)
    num_nodes = adjacency.num_nodes
    counts = np.empty(problem.targets.size, dtype=np.int64)
    for row in range(problem.targets.size):
        part = slice(fields.indptr[row], fields.indptr[row + 1])
        near, distances = fields.nodes[part], fields.distances[part]
        if num_layers is None:  # beyond the field every distance counts as far: it is at least min_distance
            everywhere = np.full(num_nodes, np.iinfo(np.int64).max)
            everywhere[near] = distances
            near, distances = np.arange(num_nodes), everywhere
        counts[row] = np.count_nonzero(threat.eligible(near, distances, num_nodes=num_nodes))
    candidates = fields.sizes if num_layers is not None else np.full(problem.targets.size, num_nodes)
    return candidates.astype(np.int64), counts


def _smoothing(problem: Problem) -> RandomizedAblation:
    smoothing: Any = problem.smoothing
    return smoothing  # type: ignore[no-any-return]


METHOD = RandomizedAblationMethod()
