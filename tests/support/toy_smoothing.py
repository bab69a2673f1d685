"""A new way to certify, in one file: what `Smoothing` and `Method` ask for, and nothing else.

A target is certified if no node that may be hostile is in its receptive field. Nothing is smoothed or drawn.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert._fields import Field
from graycert._parameters import parameter
from graycert._types import NO_CLASS
from graycert._validation import check_positive
from graycert.graph import receptive_fields
from graycert.graph.eligible_nodes import eligible_nodes
from graycert.problem import Problem, classified
from graycert.setup import Setup
from graycert.smoothing.protocol import Arrays, Claim, FromGraph, Method, Smoothing


@dataclass(frozen=True, kw_only=True, eq=False)
class IsolatedTargets(Smoothing):
    """Certify the model as it is where nobody who may be hostile can be heard.

    Args:
        min_lead: Least lead of the best class in scores, > 0; the others abstain.
    """

    name = "isolated"
    claims = (Claim(threat="node-features", proofs={"exact": "hop_limited"}),)
    draws_allowed = ()
    adds = (
        Field(
            name="leads",
            kind="float",
            shape=("targets",),
            stage="drawn",
            at_least=0.0,
            column="lead",
            compared="close",
            doc="Lead of the best class in scores.",
        ),
        Field(
            name="best_classes",
            kind="int",
            shape=("targets",),
            stage="drawn",
            at_least=NO_CLASS,
            at_most="classes",
            doc="The class that alone has the highest score; -1 for none.",
        ),
    )
    method_home = "support.toy_smoothing"

    min_lead: float = parameter(
        default=1e-9, option=float, help="Least lead of the best class in scores.", label="Lead"
    )

    def __post_init__(self) -> None:
        """Check the domain."""
        object.__setattr__(self, "min_lead", check_positive("min_lead", self.min_lead))

    def classifier(self, setup: Setup) -> str:
        """Say what is certified, to follow "the classifier"."""
        return f"is the {setup.num_layers}-step model itself, where its best class leads by {self.min_lead}."

    def chance(self, certificates: Any) -> str:
        """Say that it is certain."""
        return "Nothing is drawn: these statements hold with certainty."

    def bound_in_words(self, setup: Setup) -> str:
        """Say what the radius is."""
        return "A target is certified only if no node that may be hostile is in its receptive field."


class IsolatedTargetsMethod(Method):
    """Look at the graph, call the model once."""

    def prepare(self, problem: Problem) -> Problem:
        """Audit the model: it must be local."""
        from graycert.audit import audit_model

        audit = audit_model(problem.model, problem.data, num_layers=problem.setup.num_layers, seed=problem.setup.seed)
        audit.require()
        return problem.with_setup(num_layers=audit.num_layers)

    def from_graph(self, problem: Problem) -> FromGraph:
        """Count who may be hostile within reach."""
        threat: Any = problem.threat
        fields = receptive_fields(problem.the_graph.adjacency, problem.targets, num_layers=problem.num_layers)
        counts = eligible_nodes(problem.data, problem.targets, threat, num_layers=problem.num_layers).counts
        return FromGraph(arrays={"num_eligible": counts, "receptive_field_size": fields.sizes.astype(np.int64)})

    def draw(self, problem: Problem, found: FromGraph) -> tuple[Setup, Arrays]:
        """Call the model."""
        import torch

        from graycert.sampling.scores import voted_class

        with torch.inference_mode():
            found_scores = problem.model.eval()(problem.data.x, problem.data.edge_index)[torch.tensor(problem.targets)]
        best_classes, scores = voted_class(found_scores).numpy(), found_scores.numpy()
        ordered = np.sort(scores, axis=1)
        setup = classified(problem, num_classes=scores.shape[1], engine="torch, one pass")
        leads = np.nan_to_num((ordered[:, -1] - ordered[:, -2]).astype(np.float64), nan=0.0)
        return setup, {"leads": leads, "best_classes": best_classes}

    def conclude(self, problem: Problem, found: FromGraph, drawn: Mapping[str, NDArray[Any]]) -> Arrays:
        """Certify, predict or abstain."""
        smoothing: Any = problem.smoothing
        alone = found.arrays["num_eligible"] == 0
        radius = np.where(alone, problem.setup.max_radius or 1, 0)
        radius[(drawn["leads"] < smoothing.min_lead) | (drawn["best_classes"] == NO_CLASS)] = -1
        return {"prediction": drawn["best_classes"].clip(min=0), "radius": radius}


METHOD = IsolatedTargetsMethod()
