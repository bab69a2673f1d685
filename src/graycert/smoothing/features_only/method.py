"""Certify the floor: the model that is shown each target alone."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert._types import NO_CLASS, IntArray
from graycert.graph.conversion import simple_adjacency
from graycert.graph.eligible_nodes import eligible_nodes
from graycert.graph.receptive_field import receptive_fields
from graycert.problem import Problem, classified
from graycert.setup import Setup
from graycert.smoothing.open_votes import refuse_open_votes
from graycert.smoothing.protocol import Arrays, FromGraph, Method
from graycert.threats import NodeFeatureThreat, NodeTakeoverThreat, NodeThreat


class FeaturesOnlyMethod(Method):
    """Show the model one node and no edge at a time.

    Guarantee:
        The prediction is a function of the target's own features; nothing done to other nodes or to edges changes it.
        That is so by construction, one forward pass per target, for every model that is a function of its arguments,
        which the audit tests.

    References:
        docs/proofs/features_only.md.
    """

    def prepare(self, problem: Problem) -> Problem:
        """Audit the model: is it a function of its arguments, and in which fields are eligible nodes counted?"""
        from graycert.smoothing.model_check import audited

        return audited(problem, features_matter=False)[0]

    def from_graph(self, problem: Problem) -> FromGraph:
        """Count the nodes that could attack the model if it were shown the graph, so that curves compare."""
        adjacency = simple_adjacency(problem.data.edge_index, num_nodes=problem.setup.num_nodes)
        fields = receptive_fields(adjacency, problem.targets, num_layers=problem.num_layers)
        sizes = fields.sizes.astype(np.int64)
        threat = problem.threat
        if isinstance(threat, NodeThreat):
            threat = threat.hostile_nodes()
        if isinstance(threat, NodeFeatureThreat):
            counts = eligible_nodes(problem.data, problem.targets, threat, num_layers=problem.num_layers).counts
        elif isinstance(threat, NodeTakeoverThreat):
            counts = threat.num_eligible(problem.targets, num_nodes=problem.setup.num_nodes)
        elif threat.unit == "edges":
            counts = np.full(problem.targets.size, problem.setup.num_edges, dtype=np.int64)
        else:
            counts = np.full(problem.targets.size, problem.setup.num_nodes - 1, dtype=np.int64)
        return FromGraph(arrays={"num_eligible": counts, "receptive_field_size": sizes})

    def draw(self, problem: Problem, found: FromGraph) -> tuple[Setup, Arrays]:
        """Classify every target, alone."""
        import torch

        from graycert.sampling.alone import scores_alone
        from graycert.sampling.scores import voted_class
        from graycert.sampling.voting import check_scores, evaluation_mode

        del found
        model: torch.nn.Module = problem.model
        where = problem.execution.place() or next((p.device for p in model.parameters()), torch.device("cpu"))
        x = problem.data.x.to(where)
        with torch.inference_mode(), evaluation_mode(model):
            model.to(where)
            whole = check_scores(model(x, problem.data.edge_index.to(where)), num_nodes=x.size(0), x=x)
            classes = voted_class(scores_alone(model, x, problem.targets)).cpu().numpy()
        setup = classified(problem, num_classes=whole.size(1), engine="torch, one node per pass")
        refuse_open_votes(problem, for_none=classes == NO_CLASS, total=np.ones(classes.shape, dtype=np.int64))
        return setup, {"own_prediction": classes}

    def conclude(self, problem: Problem, found: FromGraph, drawn: Mapping[str, NDArray[Any]]) -> Arrays:
        """Certify against all eligible nodes, if the target itself is not one of them; abstain without a class."""
        prediction: IntArray = drawn["own_prediction"].astype(np.int64)
        radius = np.where(problem.exposed(), 0, found.arrays["num_eligible"])
        return {"prediction": np.maximum(prediction, 0), "radius": np.where(prediction == NO_CLASS, -1, radius)}


METHOD = FeaturesOnlyMethod()
