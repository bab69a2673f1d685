"""Node types and relations of a graph whose nodes are numbered type by type."""

from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from graycert._types import BoolArray, IntArray
from graycert.errors import InvalidParameterError

Relation = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class TypedNodes:
    """What a heterogeneous graph is as one graph: nodes, columns of the features and relations, type by type.

    The nodes of one type have consecutive numbers, in the order of the types, and so have the columns that hold their
    features: a row is zero in the columns of other types.

    Args:
        node_types: Distinct names.
        num_nodes: Nodes of each type.
        widths: Features of each type.
        relations: Distinct triples (type of the source, name, type of the receiver); an edge has the number of its own.
        lengths: Names of further values per edge, and how many an edge of each relation has: 0 for a plain number, None
            for none.

    Example:
        >>> types = TypedNodes(node_types=("a", "b"), num_nodes=(2, 3), widths=(1, 4), relations=(("a", "to", "b"),))
        >>> types.nodes_of("b"), types.columns_of("b"), types.type_of(1)
        (slice(2, 5, None), slice(1, 5, None), 'a')
    """

    node_types: tuple[str, ...]
    num_nodes: tuple[int, ...]
    widths: tuple[int, ...]
    relations: tuple[Relation, ...]
    lengths: tuple[tuple[str, tuple[int | None, ...]], ...] = ()

    def nodes_of(self, node_type: str) -> slice:
        """Return the numbers of the nodes of a type."""
        return _part(self.num_nodes, self.node_types.index(node_type))

    def columns_of(self, node_type: str) -> slice:
        """Return the columns that hold the features of a type."""
        return _part(self.widths, self.node_types.index(node_type))

    def type_of(self, node: int) -> str:
        """Return the type of a node."""
        ends = list(accumulate(self.num_nodes))
        return self.node_types[int(np.searchsorted(ends, node, side="right"))]

    def are_of(self, node_types: tuple[str, ...]) -> BoolArray:
        """Return which nodes are of one of several types, shape (num_nodes,).

        Raises:
            InvalidParameterError: If there is no such type.
        """
        unknown = [name for name in node_types if name not in self.node_types]
        if unknown:
            raise InvalidParameterError(
                f"`eligible_types` must be node types of the graph, {', '.join(self.node_types)}, got {unknown[0]!r}."
            )
        chosen = [name in node_types for name in self.node_types]
        return np.repeat(np.array(chosen, dtype=np.bool_), self.num_nodes)

    @property
    def ends(self) -> tuple[IntArray, IntArray]:
        """The number of the type of the source, and of the receiver, of each relation, each (num_relations,)."""
        place = {name: number for number, name in enumerate(self.node_types)}
        sources = [place[source] for source, _, _ in self.relations]
        receivers = [place[receiver] for _, _, receiver in self.relations]
        return np.array(sources, dtype=np.int64), np.array(receivers, dtype=np.int64)

    @property
    def in_words(self) -> str:
        """Names and sizes, as they enter a fingerprint: no two such graphs have the same words."""
        types = list(zip(self.node_types, self.num_nodes, self.widths, strict=True))
        return repr((types, list(self.relations), list(self.lengths)))


def relation_in_words(relation: Relation) -> str:
    """Return a relation as PyTorch Geometric prints it.

    Example:
        >>> relation_in_words(("author", "writes", "paper"))
        "('author', 'writes', 'paper')"
    """
    return repr(tuple(relation))


def _part(sizes: tuple[int, ...], number: int) -> slice:
    start = sum(sizes[:number])
    return slice(start, start + sizes[number])
