"""Smoothing of a whole graph on the part of it that a model is trained on."""

import numpy as np

from graycert.data import SplitPart
from graycert.sampling.placed_smoothing import place_smoothing, probability_of
from graycert.sampling.streams import edge_ids
from graycert.smoothing.interception.parameters import InterceptionSmoothing


def smoothing_on_part(smoothing: InterceptionSmoothing, whole: SplitPart, part: SplitPart) -> InterceptionSmoothing:
    """Return the smoothing with arrays per column of ``part.data.edge_index`` and per node of ``part.data``.

    Args:
        smoothing: Arrays, if any, are per column of ``whole.data.edge_index`` and per node of ``whole.data``.
        whole: The part of a split that holds the whole graph.
        part: Any part of the same split.

    Raises:
        InvalidParameterError: If an array does not have the length that the whole graph asks for.
    """
    num_nodes = int(whole.data.num_nodes)
    placed = place_smoothing(smoothing, whole.data.edge_index, num_nodes=num_nodes)
    nodes = part.original.cpu()
    edges = nodes[part.data.edge_index.cpu()]
    return InterceptionSmoothing(
        p_delete=probability_of(placed.p_delete, edge_ids(edges, num_nodes=num_nodes).numpy()),
        p_ablate=probability_of(placed.p_ablate, np.asarray(nodes)),
    )
