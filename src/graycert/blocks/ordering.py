"""An order of targets in which neighbours share blocks, and so fields."""

import dataclasses

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import depth_first_order

from graycert._types import IntArray
from graycert.blocks.cutting import messages
from graycert.graph import Adjacency
from graycert.problem import Problem

ORDER = "by hubs where that repeats less work"
"""How blocks are put together; blocks of another order are not joined with these."""

_LOOKED_AT = 8
"""Blocks from which it is judged which order repeats less work."""


def walked(problem: Problem) -> tuple[Problem, IntArray]:
    """Return the problem with its targets in the order of `by_hubs`, and their positions before."""
    order = by_hubs(problem.the_graph.adjacency, problem.targets)
    return dataclasses.replace(problem, targets=problem.targets[order]), order


def better_order(problem: Problem, size: int) -> IntArray:
    """Return positions of targets in the order to cut into blocks: as given, or `by_hubs` where that repeats less work.

    Args:
        problem: The problem, with its targets as given.
        size: Targets per block.
    """
    given = np.arange(problem.targets.size)
    if size >= given.size or problem.setup.num_layers is None:
        return given
    other, order = walked(problem)
    less = messages(other, size, most=_LOOKED_AT) < messages(problem, size, most=_LOOKED_AT)
    return order if less else given


def by_hubs(graph: Adjacency, targets: IntArray) -> IntArray:
    """Return positions of targets, those next to one another whose fields go through the same hubs.

    Each node hangs below its neighbour of highest degree, as long as that has more edges than the node itself; targets
    follow one another as a walk through these trees meets them.

    Args:
        graph: The graph; the direction of edges is not looked at.
        targets: Distinct nodes, shape (num_targets,).

    Returns:
        A permutation of the positions of ``targets``, int64, shape (num_targets,); of graph and targets alone.
    """
    parent = _hubs(graph)
    roots = parent == np.arange(graph.num_nodes)
    below = np.where(roots, graph.num_nodes, parent)  # all roots hang below one more node
    tree = csr_array(
        (np.ones(graph.num_nodes, dtype=np.int8), (below, np.arange(graph.num_nodes))),
        shape=(graph.num_nodes + 1, graph.num_nodes + 1),
    )
    walk = depth_first_order(tree, graph.num_nodes, directed=True, return_predecessors=False)
    met = np.empty(graph.num_nodes + 1, dtype=np.int64)
    met[walk] = np.arange(walk.size)
    return np.argsort(met[targets], kind="stable")


def _hubs(graph: Adjacency) -> IntArray:
    """Return each node's neighbour of highest degree, the first of several; itself where none has more than it has."""
    nodes = np.arange(graph.num_nodes)
    inward = np.repeat(nodes, np.diff(graph.indptr))
    degree = np.diff(graph.indptr) + np.bincount(graph.sources, minlength=graph.num_nodes)
    rank = np.empty(graph.num_nodes, dtype=np.int64)
    rank[np.lexsort((-nodes, degree))] = nodes
    best = rank.copy()
    np.maximum.at(best, inward, rank[graph.sources])
    np.maximum.at(best, graph.sources, rank[inward])
    node_of = np.empty(graph.num_nodes, dtype=np.int64)
    node_of[rank] = nodes
    return node_of[best]
