"""Graphs with node types and relations: brought into the form of one graph, in which everything else is done."""

from graycert.heterogeneous.asked import AskedOfTypes, graph_of_run, is_heterogeneous
from graycert.heterogeneous.classifier import HeteroClassifier
from graycert.heterogeneous.one_graph import columns_of_one_graph, one_graph, typed_nodes
from graycert.heterogeneous.probabilities import smoothing_on_one_graph

__all__ = [
    "AskedOfTypes",
    "HeteroClassifier",
    "columns_of_one_graph",
    "graph_of_run",
    "is_heterogeneous",
    "one_graph",
    "smoothing_on_one_graph",
    "typed_nodes",
]
