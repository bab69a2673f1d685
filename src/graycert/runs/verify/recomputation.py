"""The certificates of a run, computed again from its votes and, if it is at hand, its graph."""

from typing import Any

from graycert.certificates import Certificates
from graycert.certification import concluded_anew

_BY_COUNTS = ("prediction", "p_lower", "p_upper")


def recompute(stored: Certificates, graph: Any | None) -> tuple[Certificates, tuple[str, ...]]:
    """Return the run with everything recomputed that can be, and the names of the arrays that were.

    From votes and graph all that the graph says and all conclusions follow; from votes alone only conclusions, and
    only where the smoothing does not need the graph. Where the rule needs it, classes and their bounds still follow.
    """
    setup = stored.setup
    stages = {"graph", "concluded"}
    if graph is None:
        if setup.smoothing.needs_graph:
            return stored, ()
        if setup.the_rule.needs == "predictions":
            by_counts = concluded_anew(stored, None, setup.replace(rule="sound"))
            return stored.replace(**{name: getattr(by_counts, name) for name in _BY_COUNTS}), _BY_COUNTS
        stages = {"concluded"}
    again = concluded_anew(stored, graph)
    names = {
        name
        for each in (stored, again)
        for name, (spec, _) in each.every_array().items()
        if spec.stage in stages and spec.compared != "never"
    }
    kept = {  # another search may find another set that harms as much
        name: value for name, (spec, value) in stored.every_array().items() if spec.compared == "never"
    }
    in_order = dict.fromkeys((*stored.every_array(), *again.every_array()))
    recomputed = again.replace(**kept, collective=_together(stored, again, graph), seconds=stored.seconds)
    return recomputed, tuple(name for name in in_order if name in names)


def _together(stored: Certificates, again: Certificates, graph: Any | None) -> Any:
    if stored.collective is None or graph is None:
        return stored.collective
    return again.against_one_adversary(
        graph,
        stored.collective.budgets.tolist(),
        groups=stored.collective.groups,
        group_budgets=stored.collective.group_budgets,
    )
