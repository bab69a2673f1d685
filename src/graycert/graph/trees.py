"""App. D: receptive fields that are trees, and sparsification that makes them so."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graycert._types import IntArray
from graycert._validation import check_integer, check_targets
from graycert.errors import UnsoundSetupError
from graycert.graph.adjacency import Adjacency


@dataclass(frozen=True, eq=False)
class InTree:
    """A tree-shaped receptive field: each node has one edge towards the target, which is the root.

    Args:
        nodes: Nodes in breadth-first order, the target first, shape (size,).
        parents: Position in ``nodes`` of the next node on the way to the target, smaller than the own position; -1 for
            the target.
        edges: Index in the ``Adjacency`` of the edge from the node to its parent; -1 for the target.
        depths: Number of edges to the target.
    """

    nodes: IntArray
    parents: IntArray
    edges: IntArray
    depths: IntArray


def tree_shaped(adjacency: Adjacency, targets: ArrayLike, *, num_layers: int) -> NDArray[np.bool_]:
    """Return for which targets every node of the receptive field has exactly one simple path of at most k edges.

    This is what Appendix D needs. It is less than "the field induces a tree": an edge that no simple path of at most
    ``num_layers`` edges uses, as between two nodes at distance k, does no harm.

    Guarantee:
        Exact for every number of layers: the search decides without counting paths.

    Args:
        adjacency: The graph.
        targets: Distinct node indices, shape (num_targets,).
        num_layers: Number of message-passing steps k, >= 1.

    Returns:
        Shape (num_targets,).

    Raises:
        InvalidParameterError: If a target is not a node or ``num_layers`` < 1.

    Example:
        >>> from graycert.graph.toy_graphs import shared_edge_graph
        >>> [tree_shaped(shared_edge_graph(), [0], num_layers=k).item() for k in (1, 2, 3)]
        [True, False, False]

    References:
        Scholten et al. (2022), App. D; docs/proofs/trees.md.
    """
    targets = check_targets(targets, num_nodes=adjacency.num_nodes)
    num_layers = check_integer("num_layers", num_layers, at_least=1)
    from graycert.graph.tree_search import are_trees  # Numba takes a while to load

    return are_trees(adjacency.indptr, adjacency.sources, targets, num_layers)


def in_tree(adjacency: Adjacency, target: int, *, num_layers: int) -> InTree:
    """Return the receptive field of ``target`` as a tree.

    Args:
        adjacency: The graph.
        target: Node index v.
        num_layers: Number of message-passing steps k, >= 1.

    Raises:
        InvalidParameterError: If ``target`` is not a node or ``num_layers`` < 1.
        UnsoundSetupError: ``field-not-a-tree``, if a node has two simple paths to the target: results for trees would
            ignore one of them.

    Example:
        >>> from graycert.graph.toy_graphs import path_graph
        >>> tree = in_tree(path_graph(4), 1, num_layers=2)
        >>> tree.nodes.tolist(), tree.parents.tolist(), tree.depths.tolist()
        ([1, 0, 2, 3], [-1, 0, 0, 2], [0, 1, 1, 2])
    """
    target = check_integer("target", target, at_least=0, at_most=adjacency.num_nodes - 1)
    num_layers = check_integer("num_layers", num_layers, at_least=1)
    from graycert.graph.tree_search import list_tree

    is_tree, nodes, parents, edges, depths = list_tree(adjacency.indptr, adjacency.sources, target, num_layers)
    if not is_tree:
        raise UnsoundSetupError(
            "field-not-a-tree",
            f"`target` must have a tree as receptive field, but a node has two paths of at most {num_layers} edges to "
            f"node {target}. Select targets with tree_shaped, or run the model on a graph sparsified with "
            "sparsify_to_trees.",
        )
    return InTree(nodes=nodes, parents=parents, edges=edges, depths=depths)


def sparsify_to_trees(adjacency: Adjacency, targets: ArrayLike, *, num_layers: int) -> NDArray[np.bool_]:
    """Delete edges one after another until the receptive fields of all targets are trees.

    The rule: targets in rising order; for each, a breadth-first search against the remaining edges, in-neighbours in
    rising order. An edge by which an already found node would get a second simple path is deleted. So each node keeps
    its shortest path to the target being searched, and the first found of several. Later deletions leave trees trees.

    Guarantee:
        ``tree_shaped`` holds for all targets on the kept edges, also if further edges are deleted (for instance the
        reverse of each deleted one). Only the structure and the set of targets matter, never features: clean and
        attacked graph are sparsified alike. A certificate computed on the kept edges is for the classifier that first
        sparsifies, so sampling and prediction must use the kept edges too; it says nothing about the model on the
        full graph.

    Args:
        adjacency: The graph.
        targets: Distinct node indices, shape (num_targets,); their order does not matter.
        num_layers: Number of message-passing steps k, >= 1.

    Returns:
        Which edges are kept, in the order of ``adjacency``, shape (num_edges,).

    Raises:
        InvalidParameterError: If a target is not a node or ``num_layers`` < 1.

    Example:
        >>> from graycert.graph.toy_graphs import shared_edge_graph
        >>> graph = shared_edge_graph()
        >>> kept = sparsify_to_trees(graph, [0], num_layers=2)
        >>> graph.sources[~kept].tolist(), graph.targets[~kept].tolist()
        ([3], [2])
        >>> edges = [graph.sources[kept], graph.targets[kept]]
        >>> tree_shaped(Adjacency.from_edge_index(edges, num_nodes=5), [0], num_layers=2)
        array([ True])

    References:
        Scholten et al. (2022), App. D, Experiments ("successively deletes edges"; the paper does not say which).
    """
    targets = check_targets(targets, num_nodes=adjacency.num_nodes)
    num_layers = check_integer("num_layers", num_layers, at_least=1)
    from graycert.graph.tree_search import delete_second_paths

    return delete_second_paths(adjacency.indptr, adjacency.sources, np.sort(targets), num_layers)
