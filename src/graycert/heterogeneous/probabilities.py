"""p_d per relation and p_a per node type, as arrays over the edges and nodes of one graph."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from torch import Tensor

from graycert._types import FloatArray
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.graph.typed_nodes import TypedNodes
from graycert.sampling.streams import edge_ids
from graycert.smoothing import InterceptionSmoothing


def smoothing_on_one_graph(smoothing: Any, types: TypedNodes, edge_index: Tensor, edge_type: Tensor) -> Any:
    """Return a smoothing with a number, or one per column of ``edge_index`` and per node.

    All edges from one node to another share a coin, so they share the largest p_d of their relations.

    Args:
        smoothing: Its p_d may be a dict by relation, its p_a one by node type.
        types: Node types and relations.
        edge_index: Edges of the one graph, int64 (2, num_edges).
        edge_type: Number of the relation of each.

    Raises:
        InvalidParameterError: If a dict lacks a relation or type, or has one that the graph lacks.
        UnsoundSetupError: ``no-proof`` for other smoothings.
    """
    if not isinstance(smoothing, InterceptionSmoothing):
        raise UnsoundSetupError(
            "no-proof",
            "Nothing is proved about heterogeneous graphs with the smoothing "
            f"'{getattr(smoothing, 'name', smoothing)}'. Certify with InterceptionSmoothing.",
        )
    p_delete, p_ablate = smoothing.p_delete, smoothing.p_ablate
    if isinstance(p_delete, Mapping):
        by_relation = _in_order("p_delete", p_delete, types.relations, "relation")
        p_delete = _largest_per_pair(by_relation[edge_type.cpu().numpy()], edge_index.cpu(), sum(types.num_nodes))
    if isinstance(p_ablate, Mapping):
        p_ablate = np.repeat(_in_order("p_ablate", p_ablate, types.node_types, "node type"), types.num_nodes)
    return InterceptionSmoothing(p_delete=p_delete, p_ablate=p_ablate)


def _in_order(name: str, given: Mapping[Any, float], wanted: Iterable[Any], what: str) -> FloatArray:
    expected = list(wanted)
    odd = [("lacks", each) for each in expected if each not in given]
    odd += [("has", each) for each in given if each not in expected]
    if odd:
        raise InvalidParameterError(
            f"`{name}` must have a probability for each {what} of the graph, {', '.join(map(str, expected))}, got one "
            f"that {odd[0][0]} {odd[0][1]!r}."
        )
    return np.array([given[each] for each in expected], dtype=np.float64)


def _largest_per_pair(values: FloatArray, edge_index: Tensor, num_nodes: int) -> FloatArray:
    _, pair = np.unique(edge_ids(edge_index, num_nodes=num_nodes).numpy(), return_inverse=True)
    largest = np.zeros(int(pair.max(initial=-1)) + 1)
    np.maximum.at(largest, pair, values)
    return np.asarray(largest[pair])
