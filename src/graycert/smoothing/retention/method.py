"""Certify under node retention (App. J): without a confidence level where a receptive field is small enough."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graycert._progress import progress_bar
from graycert._rounding import fraction_up
from graycert._types import NO_CLASS, BoolArray, FloatArray, IntArray
from graycert.audit import refuse_exposed_target
from graycert.errors import InvalidParameterError
from graycert.graph import Adjacency, receptive_fields
from graycert.graph.reduced_representatives import ReducedRepresentatives, reduced_representatives
from graycert.problem import Problem, classified
from graycert.rules import certify_counts
from graycert.sampling import Purpose
from graycert.setup import Setup
from graycert.smoothing.fixed_votes import counted_votes, the_draws
from graycert.smoothing.open_votes import refuse_open_votes
from graycert.smoothing.protocol import Arrays, FromGraph, Method
from graycert.smoothing.retention.bound import retention_delta_bound
from graycert.smoothing.retention.deterministic import DeterministicCertificate, certify_derandomized

if TYPE_CHECKING:  # loads torch
    from graycert.smoothing.retention.draws import NodeRetentionEngine

MOST_HOSTILE = 10_000  # looked at where no largest radius is given


class RetentionMethod(Method):
    r"""Evaluate a target with at most τ kept sets on all of them, each class of equal ones once; draw for the others.

    Guarantee:
        Exact targets: the label probabilities are exact, and the certificate is deterministic (`certify_derandomized`),
        for the labels as they were computed; near-ties of scores may fall differently in another evaluation. They
        abstain only at an exact tie. Sampled targets get votes from drawn kept sets of the same smoothed classifier,
        and Δ̄ from the graph (`retention_delta_bound`), by the rule "sound". Which targets are exact depends on the
        graph alone.

    References:
        Scholten et al. (2022), Appendix J and Corollary 1; docs/proofs/derandomization.md.
    """

    def refuse(self, problem: Problem) -> None:
        """Refuse a skip connection where a target may be hostile itself."""
        refuse_exposed_target(problem.model, problem.threat, problem.targets)

    def prepare(self, problem: Problem) -> Problem:
        """Audit the model; warn of targets that may be hostile themselves, whose radius is 0 at most."""
        from graycert.smoothing.model_check import audited

        self.refuse(problem)
        _warn_of_hostile_targets(problem)
        return audited(problem)[0]

    def from_graph(self, problem: Problem) -> FromGraph:
        """Bound Δ for every target, and count kept sets."""
        smoothing: Any = problem.smoothing
        fields = [_Field.of(problem, target) for target in problem.targets.tolist()]
        exact = [field.num_kept_sets <= smoothing.tau for field in fields]
        return FromGraph(
            arrays={
                "delta_upper": np.stack([field.delta_upper for field in fields]),
                "num_eligible": np.array([field.eligible.sum() for field in fields], dtype=np.int64),
                "receptive_field_size": np.array([field.eligible.size for field in fields], dtype=np.int64),
                "evaluation": np.where(exact, "exact", "sampled"),
                "num_kept_sets": np.array([str(field.num_kept_sets) for field in fields]),
            }
        )

    def draw(self, problem: Problem, found: FromGraph) -> tuple[Setup, Arrays]:
        """Evaluate exact targets on all classes of kept sets, and draw for the others."""
        from graycert.smoothing.retention.draws import build_retention_engine, hops_of_classes

        smoothing: Any = problem.smoothing
        draws, seed = the_draws(problem), problem.setup.seed
        hops = hops_of_classes(problem.model, problem.num_layers)
        engine = build_retention_engine(
            problem.model,
            problem.data,
            smoothing=smoothing,
            num_layers=problem.num_layers,
            hops=hops,
            device=problem.execution.place(),
        )
        size = problem.targets.size
        selection, estimation = (np.zeros((size, engine.num_classes), dtype=np.int64) for _ in range(2))
        labels: list[IntArray] = []
        with progress_bar("evaluating", total=size, unit="targets", shown=problem.execution.progress) as advance:
            for row, target in enumerate(problem.targets.tolist()):
                labels.append(np.empty(0, dtype=np.int64))
                if found.arrays["evaluation"][row] == "exact":
                    labels[-1] = _labels(engine, target, tau=smoothing.tau)
                else:
                    selection[row] = engine.votes(target, seed, Purpose.SELECTION, num_samples=draws.num_selection)
                    estimation[row] = engine.votes(target, seed, Purpose.ESTIMATION, num_samples=draws.num_estimation)
                advance(1)
        setup = classified(problem, num_classes=engine.num_classes, engine="torch, kept sets")
        sampled = found.arrays["evaluation"] != "exact"
        no_class = {
            f"{kind}_no_class": np.where(sampled, number - votes.sum(axis=1), 0)
            for kind, votes, number in (
                ("selection", selection, draws.num_selection),
                ("estimation", estimation, draws.num_estimation),
            )
        }
        kept_set_labels = np.concatenate(labels)
        refuse_open_votes(
            problem,
            for_none=sum(no_class.values()) + np.array([np.count_nonzero(each == NO_CLASS) for each in labels]),
            total=np.where(sampled, draws.most, [each.size for each in labels]),
        )
        return setup, {
            "selection_votes": selection,
            "estimation_votes": estimation,
            **{name: values for name, values in no_class.items() if values.any()},
            "hops": np.array(-1 if hops is None else hops, dtype=np.int64),
            "kept_set_starts": np.cumsum([0, *(each.size for each in labels)]).astype(np.int64),
            "kept_set_labels": kept_set_labels,
        }

    def conclude(self, problem: Problem, found: FromGraph, drawn: Mapping[str, NDArray[Any]]) -> Arrays:
        """Certify exact targets with certainty, and the others by their votes."""
        delta_upper, size = found.arrays["delta_upper"], problem.targets.size
        prediction, radius = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        p_lower, p_upper = np.zeros(size), np.zeros(size)
        broken_by: list[tuple[int, ...]] = [()] * size
        exact = found.arrays["evaluation"] == "exact"
        for row in np.flatnonzero(exact).tolist():
            certificate = _certified_exactly(problem, row, drawn)
            prediction[row], radius[row] = certificate.prediction, certificate.radius
            p_lower[row], p_upper[row] = _probabilities(certificate)
            broken_by[row] = certificate.broken_by or ()
        rest = np.flatnonzero(~exact)
        if rest.size:
            sampled = certify_counts(
                *counted_votes(drawn, rest),
                delta_upper[rest],
                alpha=problem.level,
                rule=problem.setup.rule,
            )
            prediction[rest], radius[rest] = sampled.prediction, sampled.radius
            p_lower[rest], p_upper[rest] = sampled.p_lower, sampled.p_upper
        attackers = np.full((size, max(map(len, broken_by))), -1, dtype=np.int64)
        for row, nodes in enumerate(broken_by):
            attackers[row, : len(nodes)] = nodes
        return {
            "prediction": prediction,
            "radius": radius,
            "p_lower": p_lower,
            "p_upper": p_upper,
            "attackers": attackers,
        }


@dataclass(frozen=True)
class _Field:
    """What the graph alone says about a target."""

    num_kept_sets: int
    eligible: BoolArray
    delta_upper: FloatArray

    @classmethod
    def of(cls, problem: Problem, target: int) -> "_Field":
        adjacency, smoothing = problem.the_graph.adjacency, problem.smoothing
        nodes, eligible = _eligible(problem, target)
        others = nodes.size - 1
        num_kept = smoothing.num_kept(others)  # type: ignore[attr-defined]
        hostile = np.zeros(adjacency.num_nodes, dtype=np.bool_)
        hostile[nodes] = eligible
        delta_upper = retention_delta_bound(
            adjacency,
            target,
            num_layers=problem.num_layers,
            num_kept=num_kept,
            eligible=hostile,
            max_radius=problem.setup.max_radius or min(MOST_HOSTILE, adjacency.num_nodes),
        )
        return cls(comb(others, num_kept), eligible, delta_upper)


def _eligible(problem: Problem, target: int) -> tuple[IntArray, BoolArray]:
    """Return the receptive field, the target first, and which of its nodes may be hostile."""
    threat: Any = problem.threat
    adjacency: Adjacency = problem.the_graph.adjacency
    field = receptive_fields(adjacency, [target], num_layers=problem.num_layers)
    return field.nodes, threat.eligible(field.nodes, field.distances, num_nodes=adjacency.num_nodes)


def _labels(engine: "NodeRetentionEngine", target: int, *, tau: int) -> IntArray:
    found = engine.label_representatives(target, tau=tau)
    assert found is not None  # there are at most as many classes as kept sets
    return found.labels


def _certified_exactly(problem: Problem, row: int, drawn: Mapping[str, NDArray[Any]]) -> DeterministicCertificate:
    """Certify one exact target from the labels of its classes of kept sets.

    Raises:
        InvalidParameterError: If there are not as many labels as classes.
    """
    target = int(problem.targets[row])
    starts, hops = drawn["kept_set_starts"], int(drawn["hops"])
    labels = drawn["kept_set_labels"][starts[row] : starts[row + 1]]
    nodes, eligible = _eligible(problem, target)
    smoothing: Any = problem.smoothing
    found: ReducedRepresentatives = reduced_representatives(
        problem.the_graph.adjacency,
        target,
        num_layers=problem.num_layers,
        num_kept=smoothing.num_kept(nodes.size - 1),
        hops=None if hops < 0 else hops,
        max_representatives=min(smoothing.tau, labels.size + 1),  # one more is enough to see that some are missing
    )
    if found.num_classes != labels.size:
        raise InvalidParameterError(
            f"`kept_set_labels` must have one label for each of the {found.num_classes} classes of kept sets of node "
            f"{target}, got {labels.size}."
        )
    return certify_derandomized(
        found,
        labels.astype(np.int64),
        num_classes=problem.setup.num_classes,
        eligible=eligible,
        num_layers=problem.num_layers,
        max_radius=problem.setup.max_radius or max(1, int(eligible.sum())),
    )


def _probabilities(certificate: DeterministicCertificate) -> tuple[float, float]:
    """Return the probability of the reported class rounded down, and the largest of another class rounded up."""
    shares: list[Fraction] = list(certificate.labels.p_lower)
    chosen = shares.pop(certificate.prediction)
    return 0.0 - fraction_up(-chosen), fraction_up(max(shares))


def _warn_of_hostile_targets(problem: Problem) -> None:
    hostile = int(problem.exposed().sum())
    if hostile:
        warnings.warn(
            f"{hostile:,} of {problem.targets.size:,} targets may be hostile themselves. Node retention always keeps "
            "the target, so their radius is 0 at most. Use NodeFeatureThreat(min_distance=1).",
            stacklevel=4,
        )


METHOD = RetentionMethod()
