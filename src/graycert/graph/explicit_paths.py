"""Simple paths as lists of nodes, for small graphs and for the inclusion-exclusion formula."""

from collections.abc import Iterable, Iterator

from graycert._validation import check_integer, check_targets
from graycert.graph.adjacency import Adjacency

Path = tuple[int, ...]


def explicit_simple_paths(
    adjacency: Adjacency, target: int, sources: Iterable[int], *, num_layers: int
) -> Iterator[Path]:
    """Yield each simple path of at most ``num_layers`` edges from one of ``sources`` to ``target``.

    A path is the tuple of its nodes, source first; the target itself, if among the sources, gives ``(target,)``.

    Raises:
        InvalidParameterError: If a node is not in the graph or ``num_layers`` < 1.

    Example:
        >>> from graycert.graph.toy_graphs import shared_edge_graph
        >>> list(explicit_simple_paths(shared_edge_graph(), 0, [4], num_layers=3))
        [(4, 3, 1, 0), (4, 3, 2, 0)]
    """
    wanted = set(check_targets(list(sources), num_nodes=adjacency.num_nodes).tolist())
    target = check_integer("target", target, at_least=0, at_most=adjacency.num_nodes - 1)
    num_layers = check_integer("num_layers", num_layers, at_least=1)
    return _extend(adjacency, (target,), wanted, num_layers)


def _extend(adjacency: Adjacency, path: Path, wanted: set[int], edges_left: int) -> Iterator[Path]:
    if path[0] in wanted:
        yield path
    if edges_left:
        for node in adjacency.in_neighbors(path[0]).tolist():
            if node not in path:
                yield from _extend(adjacency, (node, *path), wanted, edges_left - 1)
