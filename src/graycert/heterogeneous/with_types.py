"""Is this a graph with node types, and what is the one graph that a run was made on? Of others nothing is loaded."""

from typing import Any

from graycert._types import IntArray
from graycert.data.arrays import GraphArrays


def is_heterogeneous(data: Any) -> bool:
    """Return whether something is a graph with node types."""
    if isinstance(data, GraphArrays):
        return False
    from torch_geometric.data import HeteroData

    return isinstance(data, HeteroData)


def graph_of_run(data: Any, *, edge_inputs: tuple[str, ...] | None, targets: IntArray) -> Any:
    """Return the one graph that a run was made on, where its graph has types; others as they are.

    Args:
        data: The graph.
        edge_inputs: Names of the values per edge of the run.
        targets: Targets of the run.
    """
    if not is_heterogeneous(data):
        return data
    from graycert.heterogeneous.classifier import EDGE_TYPE
    from graycert.heterogeneous.into_one import one_graph

    others = tuple(name for name in edge_inputs or () if name != EDGE_TYPE)
    made = one_graph(data, edge_inputs=others)
    inside = int(targets.max()) < made.x.size(0)
    return one_graph(data, target_type=made.types.type_of(int(targets[0])), edge_inputs=others) if inside else made
