"""Hostile nodes that choose their edges, too: identities that an adversary of fraud takes over or creates."""

from dataclasses import dataclass

import numpy as np

from graycert._parameters import parameter
from graycert._types import BoolArray, IntArray
from graycert._validation import check_choice, check_integer, check_mask
from graycert.errors import UnsoundSetupError
from graycert.threats.node_features import NodeFeatureThreat
from graycert.threats.threat import Threat, any_of

CHOSEN_EDGES = ("all", "out")

UNLIMITED_INJECTION = 2**20
"""How many new nodes are counted where any number may be injected."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeTakeoverThreat(Threat):
    """The adversary takes over or injects up to ρ nodes, and sets all their features and every edge that they touch.

    A hostile node attaches itself to any nodes and leaves any; edges between honest nodes stay as they are, and so do
    the nodes. New nodes count among the ρ.

    Args:
        chosen_edges: "all" edges that a hostile node touches, or only those that go "out" of it.
        min_distance: 1 if the target is not hostile; 0 if it may be, for ``chosen_edges="out"`` alone.
        max_injected: Largest number of new nodes, >= 0; None for any number, of which 2^20 are counted.
        trusted: Nodes that are never hostile: boolean, shape (num_nodes,), True where trusted, or distinct names in
            ``data.node_ids``, which `certify` looks up; None trusts none.

    Raises:
        InvalidParameterError: If a value is out of its domain.
        UnsoundSetupError: ``takeover-distance``, if ``min_distance`` is larger than 1: an edge brings every node next
            to the target. ``takeover-target``, if the target may choose the edges into itself.

    Example:
        >>> NodeTakeoverThreat(max_injected=0).describe()
        'other than the target, with all edges that they touch'

    References:
        docs/proofs/takeover.md.
    """

    name = "node-takeover"
    within_field = False

    chosen_edges: str = parameter(
        default="all", option=str, help="Edges that hostile nodes choose: all that they touch, or out, those from them."
    )
    min_distance: int = parameter(default=1, option=int, help="1 if the target is not hostile; 0 if it may be.")
    max_injected: int | None = parameter(
        default=None, option=int, help="Largest number of new nodes; any number if left out."
    )
    trusted: BoolArray | None = parameter(
        default=None, option="nodes", per="node", help="Nodes that are never hostile."
    )

    def __post_init__(self) -> None:
        """Check the domains."""
        check_choice("chosen_edges", self.chosen_edges, CHOSEN_EDGES)
        distance = check_integer("min_distance", self.min_distance, at_least=0)
        if distance > 1:
            raise UnsoundSetupError(
                "takeover-distance",
                f"`min_distance` must be 0 or 1 where hostile nodes choose their edges, got {distance}: one edge "
                "brings a hostile node next to the target. Use 1, or NodeFeatureThreat, which leaves edges alone.",
            )
        if distance == 0 and self.chosen_edges == "all":
            raise UnsoundSetupError(
                "takeover-target",
                "`min_distance` must be 1 where hostile nodes choose all edges that they touch, got 0: a hostile "
                'target would choose whom it listens to. Use 1, or chosen_edges="out" (`--chosen-edges out`).',
            )
        if self.max_injected is not None:
            injected = check_integer("max_injected", self.max_injected, at_least=0, at_most=UNLIMITED_INJECTION)
            object.__setattr__(self, "max_injected", injected)
        object.__setattr__(self, "min_distance", distance)
        object.__setattr__(self, "trusted", NodeFeatureThreat(trusted=self.trusted).trusted)

    @property
    def includes_target(self) -> bool:
        """Whether a target may be hostile itself (unless it is trusted)."""
        return self.min_distance == 0

    @property
    def num_injected(self) -> int:
        """How many new nodes are counted."""
        return UNLIMITED_INJECTION if self.max_injected is None else self.max_injected

    def may_be_hostile(self, num_nodes: int) -> BoolArray:
        """Return which nodes of the graph may be hostile, the target aside, shape (num_nodes,)."""
        if self.trusted is None:
            return np.ones(num_nodes, dtype=np.bool_)
        return ~check_mask("trusted", self.trusted, num_nodes=num_nodes)

    def eligible(self, sources: IntArray, distances: IntArray, *, num_nodes: int) -> BoolArray:
        """Return which (source, distance) pairs the adversary may control, same shape as ``sources``."""
        mask: BoolArray = (distances >= self.min_distance) & self.may_be_hostile(num_nodes)[sources]
        return mask

    def num_eligible(self, targets: IntArray, *, num_nodes: int) -> IntArray:
        """Return how many nodes may be hostile to each target, new ones included, shape (num_targets,)."""
        eligible = self.may_be_hostile(num_nodes)
        others = int(eligible.sum()) + self.num_injected
        return others - (eligible[targets] & (not self.includes_target)).astype(np.int64)

    def is_no_wider_than(self, before: Threat) -> bool:
        """Whether every node that may be hostile here might have been hostile before, and no less so."""
        if not isinstance(before, NodeTakeoverThreat):
            return False
        fewer_edges = before.chosen_edges == "all" or self.chosen_edges == "out"
        same_nodes = NodeFeatureThreat(min_distance=self.min_distance, trusted=self.trusted).is_no_wider_than(
            NodeFeatureThreat(min_distance=before.min_distance, trusted=before.trusted)
        )
        return fewer_edges and same_nodes and self.num_injected <= before.num_injected

    def describe(self) -> str:
        """Return the threat in words, to follow "hostile nodes"."""
        whom = "the target itself included" if self.includes_target else "other than the target"
        what = "the edges that start at them" if self.chosen_edges == "out" else "all edges that they touch"
        return f"{whom}, with {what}{self._new}{self._excepted}"

    @property
    def statement(self) -> str:
        """What a certificate of radius ρ says, to follow "the classifier keeps its prediction for a target"."""
        whom = "the target included" if self.includes_target else "other than the target"
        what = "edges that start at them" if self.chosen_edges == "out" else "edges that touch them"
        return (
            f"whatever the features of up to ρ hostile nodes ({whom}{self._excepted}{self._new}) are set to, and "
            f"whatever {what} are added or removed. Edges between other nodes are fixed, and the graph is prepared "
            "edge by edge."
        )

    def against(self, budget: int) -> str:
        """Say what a prediction that is certified at a budget withstands, to follow "keep their prediction"."""
        other = "" if self.includes_target else "other "
        who = any_of(budget, f"{other}node", f"{other}nodes")
        who += "" if self.trusted is None else " that nobody said to trust"
        them = "it" if budget == 1 else "them"
        what = f"start at {them}" if self.chosen_edges == "out" else f"touch {them}"
        new = f"{self._new}," if self._new else ""
        return (
            f"whatever the features of {who}{new} and the edges that {what} are; edges between other nodes are "
            "taken as given"
        )

    @property
    def _new(self) -> str:
        if self.max_injected is None:
            return ", new nodes included"
        return f", up to {self.max_injected:,} new nodes included" if self.max_injected else ""

    @property
    def _excepted(self) -> str:
        if self.trusted is None:
            return ""
        number = self.trusted.size if self.trusted.dtype.kind == "U" else int(self.trusted.sum())
        return f", {number:,} trusted nodes excepted"
