"""Graphs as the bounds see them: receptive fields and simple paths."""

from graycert.graph.adjacency import Adjacency
from graycert.graph.conversion import as_adjacency
from graycert.graph.explicit_paths import explicit_simple_paths
from graycert.graph.fingerprint import graph_fingerprint
from graycert.graph.receptive_field import BLOCK_ENTRIES, ReceptiveFields, receptive_fields, target_blocks
from graycert.graph.simple_paths import SimplePathCounts, count_simple_paths, simple_path_blocks
from graycert.graph.toy_graphs import bottleneck_graph, path_graph, shared_edge_graph, star_graph

__all__ = [
    "BLOCK_ENTRIES",
    "Adjacency",
    "ReceptiveFields",
    "SimplePathCounts",
    "as_adjacency",
    "bottleneck_graph",
    "count_simple_paths",
    "explicit_simple_paths",
    "graph_fingerprint",
    "path_graph",
    "receptive_fields",
    "shared_edge_graph",
    "simple_path_blocks",
    "star_graph",
    "target_blocks",
]
