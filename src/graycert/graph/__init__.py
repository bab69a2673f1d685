"""Graphs as the bounds see them: receptive fields, simple paths, trees, and what is left of a field when nodes go."""

from graycert.graph.adjacency import Adjacency
from graycert.graph.canonical_graph import CanonicalGraph, probability_arrays
from graycert.graph.conversion import as_adjacency
from graycert.graph.explicit_paths import explicit_simple_paths
from graycert.graph.fingerprint import adjacency_fingerprint, fingerprint_of, graph_fingerprint
from graycert.graph.receptive_field import (
    BLOCK_ENTRIES,
    ReceptiveFields,
    longest_chain,
    receptive_fields,
    target_blocks,
)
from graycert.graph.reduced_representatives import (
    ReducedRepresentatives,
    count_reduced_representatives,
    reduced_representatives,
)
from graycert.graph.simple_paths import SimplePathCounter, SimplePathCounts, count_simple_paths, simple_path_blocks
from graycert.graph.toy_graphs import bottleneck_graph, path_graph, shared_edge_graph, star_graph
from graycert.graph.trees import InTree, in_tree, sparsify_to_trees, tree_shaped

__all__ = [
    "BLOCK_ENTRIES",
    "Adjacency",
    "CanonicalGraph",
    "InTree",
    "ReceptiveFields",
    "ReducedRepresentatives",
    "SimplePathCounter",
    "SimplePathCounts",
    "adjacency_fingerprint",
    "as_adjacency",
    "bottleneck_graph",
    "count_reduced_representatives",
    "count_simple_paths",
    "explicit_simple_paths",
    "fingerprint_of",
    "graph_fingerprint",
    "in_tree",
    "longest_chain",
    "path_graph",
    "probability_arrays",
    "receptive_fields",
    "reduced_representatives",
    "shared_edge_graph",
    "simple_path_blocks",
    "sparsify_to_trees",
    "star_graph",
    "target_blocks",
    "tree_shaped",
]
