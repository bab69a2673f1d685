"""Where hostile nodes choose edges, no step between their edges and the classifier may pass on more than an edge."""

from graycert.data.preparation import STEPS_TAKEN
from graycert.errors import UnsoundSetupError
from graycert.problem import Problem
from graycert.threats import FeaturesAndOutEdgesThreat, NodeTakeoverThreat

_AS_A_WHOLE = {
    "largest_component": "reduced to its largest component",
    "diffusion": "sparsified by diffusion",
}


def refuse_steps_as_a_whole(problem: Problem) -> None:
    """Refuse a graph one of whose preparation steps lets a single edge decide about honest nodes or edges.

    An edge more or less changes which component is the largest: a target leaves the graph, and all nodes get other
    numbers. In a graph made undirected, an edge out of the target is one into it.

    Raises:
        UnsoundSetupError: ``prepared-as-a-whole`` or ``out-edges-undirected``, where the threat chooses edges.

    References:
        docs/proofs/takeover.md, "What each condition is for".
    """
    threat = problem.threat
    if not isinstance(threat, FeaturesAndOutEdgesThreat | NodeTakeoverThreat):
        return
    steps = getattr(problem.data, STEPS_TAKEN, None) or ()
    for step, words in _AS_A_WHOLE.items():
        if step in steps:
            raise UnsoundSetupError(
                "prepared-as-a-whole",
                f"`data` must be prepared edge by edge where hostile nodes choose edges, got a graph {words}: a single "
                "edge can decide which honest nodes and edges are left. Load it without that step, e.g. "
                "load_graph(..., largest_component=False) (`--no-largest-component`).",
            )
    if "undirected" in steps and problem.exposed().any():
        raise UnsoundSetupError(
            "out-edges-undirected",
            "`min_distance` must be 1 on a graph made undirected, got 0: each edge that a hostile target adds is one "
            "into it, too, so it would choose whom it listens to. Use NodeTakeoverThreat(), or keep the directions.",
        )
