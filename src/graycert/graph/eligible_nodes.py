"""Who may be hostile to whom, within reach of a message-passing model."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from graycert._types import BoolArray, IntArray
from graycert.graph.conversion import simple_adjacency
from graycert.graph.receptive_field import receptive_fields
from graycert.threats.node_features import NodeFeatureThreat


@dataclass(frozen=True, eq=False)
class EligibleNodes:
    """The eligible nodes of every target.

    Args:
        counts: Number of eligible nodes within reach, per target, shape (num_targets,).
        keys: ``position of the target * num_nodes + node`` of each eligible pair, ascending.
        num_nodes: Number of nodes of the graph.
    """

    counts: IntArray
    keys: IntArray
    num_nodes: int

    def contain(self, rows: IntArray, nodes: IntArray) -> BoolArray:
        """Return whether ``nodes[i]`` is eligible for the target at position ``rows[i]``."""
        if not self.keys.size:
            return np.zeros(nodes.shape, dtype=np.bool_)
        wanted = rows * self.num_nodes + nodes
        found = self.keys[np.minimum(np.searchsorted(self.keys, wanted), self.keys.size - 1)]
        matches: BoolArray = found == wanted
        return matches


def eligible_nodes(data: Any, targets: IntArray, threat: NodeFeatureThreat, *, num_layers: int) -> EligibleNodes:
    """Find the nodes within ``num_layers`` hops of each target that the threat allows to be hostile.

    Args:
        data: Graph with ``edge_index`` and ``num_nodes``; parallel edges count once.
        targets: Distinct node indices, shape (num_targets,).
        threat: Who may be hostile.
        num_layers: Number k of propagation steps, >= 1.
    """
    adjacency = simple_adjacency(data.edge_index, num_nodes=int(data.num_nodes))
    fields = receptive_fields(adjacency, targets, num_layers=num_layers)
    eligible = threat.eligible(fields.nodes, fields.distances, num_nodes=adjacency.num_nodes)
    rows = fields.rows[eligible]
    return EligibleNodes(
        counts=np.bincount(rows, minlength=targets.size).astype(np.int64),
        keys=np.sort(rows * adjacency.num_nodes + fields.nodes[eligible]),
        num_nodes=adjacency.num_nodes,
    )
