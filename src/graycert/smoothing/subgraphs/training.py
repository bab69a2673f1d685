"""What the base GNN of subgraph voting is trained with; loads no torch, so that experiments can be listed quickly."""

from graycert._validation import check_integer
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.smoothing.subgraphs.parameters import MOST_SUBGRAPHS


def training_smoothing(num_subgraphs: int) -> InterceptionSmoothing:
    """Return what to train the base GNN with: p_d = 1 - 1/T and p_a = 0, graphs as sparse as the subgraphs.

    `graycert.train` draws a fresh graph in every epoch, which stands for a subgraph of a fresh division. Under a random
    hash an edge lies in a given subgraph with probability 1/T, and edges with different sources independently: all
    in-edges of a node, and all edges of a field that is a tree. So there both have the same law. Edges that share
    their source are kept or left out together by a division, independently by the draw. In return the recipe, with
    optimiser and early stopping, is that of all other models.

    Args:
        num_subgraphs: Number T of subgraphs.

    Example:
        >>> training_smoothing(4)
        InterceptionSmoothing(p_delete=0.75, p_ablate=0.0)
    """
    check_integer("num_subgraphs", num_subgraphs, at_least=1, at_most=MOST_SUBGRAPHS)
    return InterceptionSmoothing(p_delete=1 - 1 / num_subgraphs, p_ablate=0.0)
