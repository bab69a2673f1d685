"""Who may be hostile: the threat model B_ρ(G) of §2, restricted by distance and by trust."""

from dataclasses import dataclass

import numpy as np

from graycert._parameters import parameter
from graycert._types import BoolArray, IntArray
from graycert._validation import check_integer, check_mask
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.threats.threat import Threat, any_of


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeFeatureThreat(Threat):
    """The adversary picks up to ρ eligible nodes and sets all their features to anything, NaN included.

    A node is eligible for a target if it is at least ``min_distance`` hops away from it (the length of the
    shortest directed path from the node to the target) and is not trusted. The graph structure is fixed.

    Values per edge (`graycert.certify`, ``edge_inputs``) are fixed, too, unless ``hostile_edge_inputs``: then hostile
    nodes also set those of every edge into and out of them, as the amount of a payment is the payer's choice. Ablation
    does not hide such values, so that radii are those of deleted nodes, one hop further.

    Args:
        min_distance: Smallest hop distance of a hostile node to its target, >= 0; 0 includes the target itself,
            1 only other nodes, 2 only nodes that are not direct in-neighbours.
        trusted: Nodes that are never hostile: boolean, shape (num_nodes,), True where trusted, or distinct names in
            ``data.node_ids``, which `certify` looks up; None trusts none.
        hostile_edge_inputs: Whether hostile nodes also set the values per edge of all edges that they touch; needs
            ``min_distance`` >= 1.
        eligible_types: In a graph with node types (``HeteroData``): the types whose nodes may be hostile; None for
            all. `certify` adds the nodes of other types to the trusted ones.

    Raises:
        InvalidParameterError: If ``min_distance`` is negative, or 0 with ``hostile_edge_inputs``, ``trusted`` is
            neither a boolean vector nor names, or ``eligible_types`` are not distinct names.

    Example:
        >>> NodeFeatureThreat(min_distance=1).includes_target
        False

    References:
        Scholten et al. (2022), Section 2; docs/proofs/edge_inputs.md (values per edge).
    """

    name = "node-features"

    min_distance: int = parameter(default=0, option=int, help="Hostile nodes are at least that many hops away.")
    trusted: BoolArray | None = parameter(
        default=None, option="nodes", per="node", help="Nodes that are never hostile."
    )
    hostile_edge_inputs: bool = parameter(
        default=False, option=None, help="Hostile nodes also set the values of every edge that they touch."
    )

    eligible_types: tuple[str, ...] | None = parameter(
        default=None, option=None, help="Types whose nodes may be hostile."
    )

    def __post_init__(self) -> None:
        """Check the domains."""
        if self.eligible_types is not None:
            object.__setattr__(self, "eligible_types", _distinct_types(self.eligible_types))
        distance = check_integer(
            "min_distance", self.min_distance, at_least=0, hint="It counts hops from a hostile node to its target."
        )
        object.__setattr__(self, "min_distance", distance)
        if not isinstance(self.hostile_edge_inputs, bool):
            raise InvalidParameterError(
                f"`hostile_edge_inputs` must be True or False, got {self.hostile_edge_inputs!r}."
            )
        if self.hostile_edge_inputs and distance == 0:
            raise InvalidParameterError(
                "`min_distance` must be >= 1 with `hostile_edge_inputs`, got 0: a hostile target sets the values of "
                "all edges into itself. Use NodeFeatureThreat(min_distance=1, hostile_edge_inputs=True)."
            )
        if self.trusted is not None:
            trusted = np.array(self.trusted)
            names = trusted.ravel().tolist()
            if trusted.ndim == 1 and names and all(isinstance(name, str) for name in names):
                trusted = np.array(names, dtype=np.str_)
                if len(set(names)) < len(names):
                    twice = next(name for name in names if names.count(name) > 1)
                    raise InvalidParameterError(f"`trusted` must name distinct nodes, got {twice!r} more than once.")
            elif trusted.dtype != np.bool_ or trusted.ndim != 1:
                raise InvalidParameterError(
                    f"`trusted` must be a boolean array of shape (num_nodes,), got dtype {trusted.dtype} and "
                    f"shape {trusted.shape}. Build one with numpy.zeros(num_nodes, bool) and set the trusted nodes."
                )
            trusted.flags.writeable = False
            object.__setattr__(self, "trusted", trusted)

    @property
    def claimed_as(self) -> str:
        """Under which name proofs are claimed."""
        return "node-features-and-edge-inputs" if self.hostile_edge_inputs else self.name

    @property
    def includes_target(self) -> bool:
        """Whether a target may be hostile itself (unless it is trusted)."""
        return self.min_distance == 0

    def eligible(self, sources: IntArray, distances: IntArray, *, num_nodes: int) -> BoolArray:
        """Return which (source, distance) pairs the adversary may control, same shape as ``sources``.

        Raises:
            InvalidParameterError: If ``trusted`` does not have one entry per node.
            UnsoundSetupError: ``no-proof``, with ``hostile_edge_inputs``: who could send a message does not say who
                touches an edge.
        """
        if self.hostile_edge_inputs:
            raise UnsoundSetupError(
                "no-proof",
                "Nothing is proved here about hostile nodes that set values of edges, `hostile_edge_inputs`. certify "
                "with InterceptionSmoothing and delta_bounds cover it.",
            )
        if self.eligible_types is not None and self.trusted is None:
            raise InvalidParameterError(
                "`eligible_types` must be None where a graph is handed in without node types, got "
                f"{', '.join(self.eligible_types)}. certify takes a HeteroData; else say who is `trusted`."
            )
        mask = distances >= self.min_distance
        if self.trusted is not None:
            trusted = check_mask("trusted", self.trusted, num_nodes=num_nodes)
            mask = mask & ~trusted[sources]
        return mask

    def features_alone(self) -> "NodeFeatureThreat":
        """Return the same hostile nodes, who set nothing but features."""
        return NodeFeatureThreat(
            min_distance=self.min_distance, trusted=self.trusted, eligible_types=self.eligible_types
        )

    def describe(self) -> str:
        """Return the threat in words, to follow "hostile nodes".

        Example:
            >>> NodeFeatureThreat(min_distance=2).describe()
            'at distance >= 2 from the target'
        """
        return self._where + (", who also set the values of their edges" if self.hostile_edge_inputs else "")

    @property
    def _where(self) -> str:
        where = {0: "anywhere, the target included", 1: "other than the target"}.get(
            self.min_distance, f"at distance >= {self.min_distance} from the target"
        )
        if self.eligible_types is not None:
            where += f", of type {' or '.join(self.eligible_types)} only"
        if self.trusted is not None:
            number = self.trusted.size if self.trusted.dtype.kind == "U" else int(self.trusted.sum())
            who = "trusted nodes" if self.eligible_types is None else "nodes of other types, or trusted,"
            where += f", {number:,} {who} excepted"
        return where

    @property
    def statement(self) -> str:
        """What a certificate of radius ρ says, to follow "the classifier keeps its prediction for a target"."""
        edges = ", and the values of all edges into and out of them," if self.hostile_edge_inputs else ""
        return (
            f"whatever the features of up to ρ hostile nodes ({self._where}){edges} are set to. The graph "
            "structure is fixed."
        )

    def against(self, budget: int) -> str:
        """Say what a prediction that is certified at a budget withstands, to follow "keep their prediction".

        Example:
            >>> NodeFeatureThreat(min_distance=1).against(1)
            'whatever the features of any one other node are; the graph structure is taken as given'
        """
        other = "other " if self.min_distance == 1 else ""
        who = any_of(budget, f"{other}node", f"{other}nodes")
        if self.min_distance > 1:
            who += f" at least {self.min_distance} hops away"
        if self.eligible_types is not None:
            who += f" of type {' or '.join(self.eligible_types)}"
        if self.trusted is not None:
            who += " that nobody said to trust"
        whose = "its edges" if budget == 1 else "their edges"
        edges = f", and the values of all {whose}, are" if self.hostile_edge_inputs else " are"
        return f"whatever the features of {who}{edges}; the graph structure is taken as given"

    def is_no_wider_than(self, before: Threat) -> bool:
        """Whether every node that may be hostile here might have been hostile before, and no less so."""
        if not isinstance(before, NodeFeatureThreat):
            return super().is_no_wider_than(before) and not self.hostile_edge_inputs
        if self.hostile_edge_inputs and not before.hostile_edge_inputs:
            return False
        was, now = before.trusted, self.trusted
        kept = was is None or (now is not None and now.shape == was.shape and bool((now | ~was).all()))
        return self.min_distance >= before.min_distance and kept


def _distinct_types(names: object) -> tuple[str, ...]:
    """Return names of types as a tuple.

    Raises:
        InvalidParameterError: If they are not distinct texts, at least one.
    """
    types = tuple(names) if isinstance(names, tuple | list) else ()
    if not types or not all(isinstance(name, str) and name for name in types) or len(set(types)) < len(types):
        raise InvalidParameterError(
            f'`eligible_types` must be a tuple of distinct node types, e.g. ("author",), got {names!r}. Leave it out '
            "if nodes of every type may be hostile."
        )
    return types
