"""The edges of a graph and the names of its nodes, as they are kept beside a result for who wants to draw."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graycert._types import IntArray, TextArray
from graycert.graph.canonical_graph import CanonicalGraph


@dataclass(frozen=True, kw_only=True, eq=False)
class NamedGraph:
    """A graph in memory, without its features.

    Attributes:
        graph: Its edges, checked and sorted.
        node_ids: Name of each node, or None.
    """

    graph: CanonicalGraph
    node_ids: Sequence[Any] | None = None

    def names(self, nodes: IntArray) -> TextArray | None:
        """Return the names of some nodes, or None where nodes have none."""
        if self.node_ids is None:
            return None
        return np.array([str(self.node_ids[node]) for node in nodes.tolist()], dtype=np.str_)
