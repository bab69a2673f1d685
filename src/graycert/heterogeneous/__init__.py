"""Graphs with node types and relations: brought into the form of one graph, in which everything else is done.

Names are imported on first use, so that who is given another graph loads no torch.
"""

from typing import TYPE_CHECKING

from graycert._lazy import attach

if TYPE_CHECKING:
    from graycert.heterogeneous.asked import AskedOfTypes as AskedOfTypes
    from graycert.heterogeneous.classifier import HeteroClassifier as HeteroClassifier
    from graycert.heterogeneous.into_one import columns_of_one_graph as columns_of_one_graph
    from graycert.heterogeneous.into_one import one_graph as one_graph
    from graycert.heterogeneous.into_one import typed_nodes as typed_nodes
    from graycert.heterogeneous.probabilities import smoothing_on_one_graph as smoothing_on_one_graph
    from graycert.heterogeneous.with_types import graph_of_run as graph_of_run
    from graycert.heterogeneous.with_types import is_heterogeneous as is_heterogeneous

_HOME = {
    "AskedOfTypes": "graycert.heterogeneous.asked",
    "HeteroClassifier": "graycert.heterogeneous.classifier",
    "columns_of_one_graph": "graycert.heterogeneous.into_one",
    "graph_of_run": "graycert.heterogeneous.with_types",
    "is_heterogeneous": "graycert.heterogeneous.with_types",
    "one_graph": "graycert.heterogeneous.into_one",
    "smoothing_on_one_graph": "graycert.heterogeneous.probabilities",
    "typed_nodes": "graycert.heterogeneous.into_one",
}

__getattr__, __dir__, __all__ = attach(__name__, _HOME)
