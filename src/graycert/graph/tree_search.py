"""Breadth-first search against the edges that notices when a node has a second simple path to the target."""

import numpy as np

from graycert._compilation import kernel
from graycert._types import BoolArray, IntArray


@kernel
def are_trees(indptr: IntArray, sources: IntArray, targets: IntArray, num_layers: int) -> BoolArray:
    """Return whether each node of the field of each target has one simple path to it."""
    places, nodes, parents, edges, depths = _scratch(indptr.size - 1)
    kept = np.empty(0, dtype=np.bool_)  # not read unless edges are to be deleted
    answers = np.empty(targets.size, dtype=np.bool_)
    for row in range(targets.size):
        found, answers[row] = _search(
            indptr, sources, kept, targets[row], num_layers, False, places, nodes, parents, edges, depths
        )
        for node in nodes[:found]:
            places[node] = 0
    return answers


@kernel
def list_tree(
    indptr: IntArray, sources: IntArray, target: int, num_layers: int
) -> tuple[bool, IntArray, IntArray, IntArray, IntArray]:
    """Return whether the field is a tree and, as far as it was searched, its nodes, parents, edges and depths."""
    places, nodes, parents, edges, depths = _scratch(indptr.size - 1)
    kept = np.empty(0, dtype=np.bool_)
    found, is_tree = _search(indptr, sources, kept, target, num_layers, False, places, nodes, parents, edges, depths)
    return is_tree, nodes[:found].copy(), parents[:found].copy(), edges[:found].copy(), depths[:found].copy()


@kernel
def delete_second_paths(indptr: IntArray, sources: IntArray, targets: IntArray, num_layers: int) -> BoolArray:
    """Return which edges are left when, target after target, edges that begin a second path are deleted."""
    places, nodes, parents, edges, depths = _scratch(indptr.size - 1)
    kept = np.ones(sources.size, dtype=np.bool_)
    for row in range(targets.size):
        found, _ = _search(indptr, sources, kept, targets[row], num_layers, True, places, nodes, parents, edges, depths)
        for node in nodes[:found]:
            places[node] = 0
    return kept


@kernel
def _scratch(num_nodes: int) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    places = np.zeros(num_nodes, dtype=np.int64)  # zero pages cost nothing until a search touches them
    nodes, parents = np.empty(num_nodes, dtype=np.int64), np.empty(num_nodes, dtype=np.int64)
    edges, depths = np.empty(num_nodes, dtype=np.int64), np.empty(num_nodes, dtype=np.int64)
    return places, nodes, parents, edges, depths


@kernel
def _search(
    indptr: IntArray,
    sources: IntArray,
    kept: BoolArray,
    target: int,
    num_layers: int,
    delete: bool,
    places: IntArray,
    nodes: IntArray,
    parents: IntArray,
    edges: IntArray,
    depths: IntArray,
) -> tuple[int, bool]:
    """List the field of ``target``; return how many nodes were found, and whether each has one path.

    An edge from a node that was found before begins a second path, unless the node lies on the path that the edge
    would prolong. Such edges are deleted from ``kept`` if ``delete``; otherwise the first one ends the search.
    ``places[node]`` is 1 + the position of the node, 0 if it was not found (all 0 before).
    """
    nodes[0], parents[0], edges[0], depths[0], places[target] = target, -1, -1, 0, 1
    found, position = 1, 0
    while position < found and depths[position] < num_layers:
        node = nodes[position]
        for edge in range(indptr[node], indptr[node + 1]):
            source = sources[edge]
            if delete and not kept[edge]:
                continue
            if places[source] == 0:
                nodes[found], parents[found], edges[found] = source, position, edge
                depths[found] = depths[position] + 1
                found += 1
                places[source] = found
            elif not _is_on_path(parents, places[source] - 1, position):
                if not delete:
                    return found, False
                kept[edge] = False
        position += 1
    return found, True


@kernel
def _is_on_path(parents: IntArray, ancestor: int, position: int) -> bool:
    """Return whether the path from ``position`` to the target visits ``ancestor``; parents come before children."""
    while position > ancestor:
        position = parents[position]
    return position == ancestor
