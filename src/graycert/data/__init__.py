"""Graphs: loading, checking, preparing and splitting them.

Names are imported on first use, so that ``graycert datasets`` answers without loading torch.
"""

from typing import TYPE_CHECKING

from graycert._lazy import attach

if TYPE_CHECKING:
    from graycert.data.catalogue import DatasetRow as DatasetRow
    from graycert.data.catalogue import describe_datasets as describe_datasets
    from graycert.data.checks import validate_data as validate_data
    from graycert.data.diffusion import sparsify_by_diffusion as sparsify_by_diffusion
    from graycert.data.load import load_graph as load_graph
    from graycert.data.preparation import prepare_graph as prepare_graph
    from graycert.data.splits import InductiveSplit as InductiveSplit
    from graycert.data.splits import SplitPart as SplitPart
    from graycert.data.splits import TransductiveSplit as TransductiveSplit
    from graycert.data.splits import inductive_split as inductive_split
    from graycert.data.splits import transductive_split as transductive_split

_HOME = {
    "DatasetRow": "graycert.data.catalogue",
    "InductiveSplit": "graycert.data.splits",
    "SplitPart": "graycert.data.splits",
    "TransductiveSplit": "graycert.data.splits",
    "describe_datasets": "graycert.data.catalogue",
    "inductive_split": "graycert.data.splits",
    "load_graph": "graycert.data.load",
    "prepare_graph": "graycert.data.preparation",
    "sparsify_by_diffusion": "graycert.data.diffusion",
    "transductive_split": "graycert.data.splits",
    "validate_data": "graycert.data.checks",
}

__getattr__, __dir__, __all__ = attach(__name__, _HOME)
