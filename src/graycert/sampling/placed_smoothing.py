"""φ on one graph: which probability belongs to which coin, whatever order edges are in and whatever part is looked at.

Engines sort edges, leave some out and cut receptive fields. An edge stays known by its end points, as its coin is; so
its probability is found by the same identity, and no reordering has to carry an array along.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from graycert._types import FloatArray, IntArray
from graycert.errors import InvalidParameterError
from graycert.graph.conversion import as_array
from graycert.sampling.streams import edge_ids
from graycert.smoothing.interception.parameters import InterceptionSmoothing


@dataclass(frozen=True, eq=False)
class ProbabilityTable:
    """One probability per identity.

    Args:
        ids: Distinct identities, ascending, int64 (num_ids,).
        probabilities: float64 (num_ids,).
    """

    ids: IntArray
    probabilities: FloatArray

    def of(self, ids: IntArray) -> FloatArray:
        """Return the probability of each identity, same shape.

        Raises:
            ValueError: If one is not in the table.
        """
        places = np.minimum(np.searchsorted(self.ids, ids), max(self.ids.size - 1, 0))
        if ids.size and (self.ids.size == 0 or (self.ids[places] != ids).any()):
            raise ValueError("an edge or node that is not part of the graph has no probability")
        return self.probabilities[places]


@dataclass(frozen=True, eq=False)
class PlacedSmoothing:
    """p_d and p_a as coins ask for them; made by `place_smoothing`.

    Args:
        p_delete: One number for all edges, or a table by `streams.edge_ids`.
        p_ablate: One number for all nodes, or a table by node index.
    """

    p_delete: float | ProbabilityTable
    p_ablate: float | ProbabilityTable


AnySmoothing = PlacedSmoothing | InterceptionSmoothing
"""Smoothing that coins can use: placed, or uniform."""


def probability_of(value: float | FloatArray | ProbabilityTable, ids: IntArray) -> float | FloatArray:
    """Return p_d or p_a of a smoothing for edges or nodes: one number for all, or float64 with one entry per identity.

    Raises:
        TypeError: If the smoothing has arrays and was not placed.
    """
    if isinstance(value, float):
        return value
    if isinstance(value, ProbabilityTable):
        return value.of(ids)
    raise TypeError("smoothing with arrays must be placed on its graph first, see place_smoothing")


def place_smoothing(smoothing: InterceptionSmoothing, edge_index: Any, *, num_nodes: int) -> AnySmoothing:
    """Return the smoothing for the coins of a graph; uniform smoothing fits every graph as it is.

    Args:
        smoothing: p_d per column of ``edge_index``, p_a per node, or numbers.
        edge_index: Edges of the whole graph in the order that ``smoothing.p_delete`` is in, int64 (2, num_edges),
            an array or a tensor on any device.
        num_nodes: Number of nodes of the whole graph.

    Raises:
        InvalidParameterError: If an array has another length, or two parallel edges have two probabilities.
    """
    if smoothing.is_uniform:
        return smoothing
    smoothing.check_lengths(num_edges=edge_index.shape[1], num_nodes=num_nodes)
    edges, nodes = smoothing.p_delete, smoothing.p_ablate
    ids = edge_ids(as_array(edge_index), num_nodes=num_nodes)
    return PlacedSmoothing(
        p_delete=edges if isinstance(edges, float) else _table(ids, edges, num_nodes),
        p_ablate=nodes if isinstance(nodes, float) else ProbabilityTable(np.arange(num_nodes), nodes),
    )


def _table(ids: IntArray, probabilities: FloatArray, num_nodes: int) -> ProbabilityTable:
    order = np.argsort(ids, kind="stable")
    ids, probabilities = ids[order], probabilities[order]
    first = np.ones(ids.size, dtype=np.bool_)
    first[1:] = ids[1:] != ids[:-1]
    split = np.flatnonzero(~first[1:] & (probabilities[1:] != probabilities[:-1]))
    if split.size:
        source, target = divmod(int(ids[split[0]]), num_nodes)
        raise InvalidParameterError(
            f"`p_delete` must be the same for parallel edges, which share a coin, got {probabilities[split[0]]} and "
            f"{probabilities[split[0] + 1]} for edge ({source}, {target}). Merge them, e.g. with "
            "graycert.prepare_graph."
        )
    return ProbabilityTable(ids[first], probabilities[first])
