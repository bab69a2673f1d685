"""Certify with interception smoothing: audit, Δ̄ from the graph, votes from an engine, a rule."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert._compilation import announced
from graycert._memory import give_back
from graycert._threads import num_threads
from graycert._types import IntArray
from graycert.audit import refuse_exposed_target
from graycert.bounds import PATH_BOUNDS, check_bound, evaluate_bounds
from graycert.bounds.single_source_matrix import single_source_matrix
from graycert.bounds.two_level import load_kernels
from graycert.certificates import Certificates
from graycert.draws import UntilDecided
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.problem import Problem, classified
from graycert.rules import (
    CollectiveCertificate,
    certified_radius,
    certify_counts,
    collective_certificate,
    simultaneous_level,
)
from graycert.rules.event_search import search
from graycert.sampling import Purpose
from graycert.setup import Setup
from graycert.smoothing.fixed_votes import (
    counted_votes,
    drawing,
    estimation_arrays,
    fixed_votes,
    foresee,
    selection_arrays,
    the_draws,
)
from graycert.smoothing.interception.event_aware import event_aware_radii
from graycert.smoothing.interception.until_decided import conclude_batches, draw_until_decided
from graycert.smoothing.protocol import Arrays, FromGraph, Method
from graycert.statistics.votes import count_classes
from graycert.threats import NodeThreat, StructuralThreat, Threat


class InterceptionMethod(Method):
    """The paper's certificate, and tighter ones from the same votes."""

    def refuse(self, problem: Problem) -> None:
        """Refuse a skip connection where a target may be hostile itself."""
        refuse_exposed_target(problem.model, problem.threat, problem.targets)

    def prepare(self, problem: Problem) -> Problem:
        """Audit the model, count its steps, and find what its messages depend on."""
        from graycert.audit import convolution_of
        from graycert.smoothing.model_check import audited

        self.refuse(problem)
        problem, audit = audited(problem, ablation_token=problem.ablation_token)
        _refuse_far_values(problem)
        check_bound(problem.setup.bound, num_layers=audit.num_layers)
        if audit.reads_num_nodes and isinstance(problem.threat, NodeThreat):
            raise UnsoundSetupError(
                "unknown-convolution",
                "Scores of this model change with the number of nodes of the graph (as with GraphSizeNorm), which an "
                "adversary who inserts or deletes nodes changes for every target at once. Use NodeFeatureThreat or "
                "EdgeDeletionThreat, or a model without it.",
            )
        known = None if problem.setup.edge_inputs else convolution_of(problem.model)
        said = getattr(problem.threat, "convolution", None)
        return problem.with_setup(convolution=known or said)

    def from_graph(self, problem: Problem) -> FromGraph:
        """Bound Δ for every target and radius."""
        if problem.setup.bound not in PATH_BOUNDS:
            load_kernels(problem.execution.announce)
        deltas = evaluate_bounds(
            problem.the_graph.adjacency,
            problem.targets,
            smoothing=problem.smoothing_on_adjacency,
            threat=_resolved(problem.setup),
            num_layers=problem.num_layers,
            max_radius=problem.setup.max_radius,
            bound=problem.setup.bound,
            num_threads=num_threads(),
        )
        arrays: Arrays = {
            "delta_upper": deltas.delta_upper,
            "delta_methods": deltas.methods,
            "num_eligible": deltas.num_eligible,
            "receptive_field_size": deltas.receptive_field_size,
        }
        return FromGraph(arrays=arrays, worst_set=deltas.worst_set)

    def draw(self, problem: Problem, found: FromGraph) -> tuple[Setup, Arrays]:
        """Draw votes: a fixed number, or until each target is decided."""
        from graycert.sampling.engines import choose_engine

        setup, where = problem.setup, problem.execution

        def engine_for(targets: IntArray) -> Any:
            smoothing: Any = setup.smoothing.with_canonical_edges(problem.the_graph.in_columns)
            with problem.phases("engine"):
                return choose_engine(
                    problem.model,
                    problem.data,
                    targets,
                    smoothing=smoothing,
                    num_layers=problem.num_layers,
                    ablation_token=problem.ablation_token,
                    edge_inputs=setup.edge_inputs,
                    device=where.place(),
                    batch_size=where.batch_size,
                    engine=where.engine,
                    memory=where.memory,
                    say=where.announce,
                )

        engine = engine_for(problem.targets)
        give_back()
        setup = classified(
            problem, num_classes=engine.num_classes, engine=engine.name, **_planned(engine, where.memory)
        )
        if isinstance(setup.draws, UntilDecided):
            return setup, draw_until_decided(problem, found.arrays["delta_upper"], engine, engine_for)
        draws = the_draws(problem)
        foresee(
            problem,
            found,
            num_classes=engine.num_classes,
            num_estimation=draws.num_estimation,
        )
        if setup.the_rule.needs != "predictions":
            return setup, fixed_votes(engine, problem)
        with drawing(problem) as advance:
            selection = engine.votes(setup.seed, Purpose.SELECTION, num_samples=draws.num_selection, progress=advance)
            chosen = selection_arrays(problem, selection, num_samples=draws.num_selection)
            singles = engine.predictions(
                setup.seed, Purpose.ESTIMATION, num_samples=draws.num_estimation, progress=advance
            )
        counted = estimation_arrays(*count_classes(singles, num_classes=engine.num_classes))
        return setup, {**chosen, **counted, "estimation_predictions": singles}

    def conclude(self, problem: Problem, found: FromGraph, drawn: Mapping[str, NDArray[Any]]) -> Arrays:
        """Conclude by the rule asked for."""
        setup = problem.setup
        if setup.the_rule.needs == "batches":
            arrays = conclude_batches(problem, found.arrays["delta_upper"], drawn)
            return arrays | _attackers(arrays["radius"], found, {})
        by_counts = "sound" if setup.the_rule.needs == "predictions" else setup.rule
        votes = certify_counts(
            *counted_votes(drawn),
            found.arrays["delta_upper"],
            alpha=problem.level,
            rule=by_counts,
        )
        arrays = {
            "prediction": votes.prediction,
            "p_lower": votes.p_lower,
            "p_upper": votes.p_upper,
            "radius": votes.radius,
        }
        failing: dict[int, IntArray] = {}
        if setup.the_rule.needs == "predictions":
            with announced(problem.execution.announce, "the event-aware rule", search):
                radius, undecided, failing = event_aware_radii(
                    problem,
                    found.arrays["delta_upper"],
                    predictions=drawn["estimation_predictions"],
                    majority=votes.prediction,
                )
            arrays |= {"radius": radius, "undecided": undecided}
            given_up = int(np.count_nonzero(undecided))
            if given_up and problem.execution.say is not None:
                problem.execution.say(
                    f"for {given_up:,} of {undecided.size:,} targets the search was given up: their radius may be "
                    "larger"
                )
        return arrays | _attackers(arrays["radius"], found, failing)

    def single_sources(self, problem: Problem) -> Any:
        """Return Theorem 2 for each target and node."""
        threat: Any = problem.threat
        return single_source_matrix(
            problem.the_graph.adjacency,
            problem.targets,
            smoothing=problem.smoothing_on_adjacency,
            threat=threat,
            num_layers=problem.num_layers,
        )

    def against_one_adversary(
        self, problem: Problem, certificates: Certificates, *, budgets: IntArray, **options: Any
    ) -> CollectiveCertificate:
        """Add up the messages of single nodes, in log space, at level alpha for all targets together."""
        votes = certificates.votes
        if votes is None or certificates.delta_upper is None:
            raise InvalidParameterError(
                "`certificates` must hold the same number of votes for all targets, got another run."
            )
        level = simultaneous_level(problem.setup.alpha, problem.targets.size)
        margin = problem.setup.the_rule.lead_of(*votes, certificates.prediction, level).margin
        radius = certified_radius(margin, certificates.delta_upper)
        return collective_certificate(
            self.single_sources(problem),
            margin,
            budgets=budgets,
            radius=radius,
            whole_field=(radius >= 0) & (radius >= certificates.num_eligible),
            **options,
        )


def _refuse_far_values(problem: Problem) -> None:
    """Refuse a model that notices hostile values of edges farther away than its bound says."""
    from graycert.audit import check_hostile_values

    if problem.setup.edge_inputs and getattr(problem.threat, "hostile_edge_inputs", False):
        check_hostile_values(
            problem.model,
            problem.data,
            problem.setup.edge_inputs,
            reach=problem.num_layers + 1,
            ablation_token=problem.ablation_token,
            seed=problem.setup.seed,
        ).require()


def _planned(engine: Any, asked: int | None) -> dict[str, int]:
    """Return what an engine that plans its memory has planned.

    Raises:
        InvalidParameterError: If even the least that it could plan is more than was ``asked`` for.
    """
    from graycert.sampling.compiled import CompiledEngine

    if not isinstance(engine, CompiledEngine):
        return {}
    needed = engine.plan.num_bytes
    if asked is not None and needed > asked:
        raise InvalidParameterError(
            f"`memory` must be at least {needed:,} bytes for these targets, however few draws lie side by side, got "
            f"{asked:,}. Give more, or certify the targets in parts."
        )
    return {"memory_budget": engine.plan.budget, "memory_planned": needed}


def _resolved(setup: Setup) -> Threat:
    """Return the threat with what is known of the model's messages."""
    threat = setup.threat
    if isinstance(threat, StructuralThreat) and threat.convolution is None:
        return replace(threat, convolution=setup.convolution)
    return threat


def _attackers(radius: IntArray, found: FromGraph, failing: Mapping[int, IntArray]) -> Arrays:
    """Return the nodes to protect first: sets that break the next radius, as far as known, else the most harmful."""
    if found.worst_set is None:
        return {}
    sets = [
        failing[row] if row in failing else found.worst_set(row, int(radius[row]) + 1) for row in range(radius.size)
    ]
    attackers = np.full((radius.size, max((each.size for each in sets), default=0)), -1, dtype=np.int64)
    for row, nodes in enumerate(sets):
        attackers[row, : nodes.size] = nodes
    return {"attackers": attackers}


METHOD = InterceptionMethod()
