"""The smoothing distribution φ = (φ1, φ2): delete edges, ablate nodes (§3 of the paper)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graycert._fields import Field
from graycert._parameters import parameter
from graycert._types import NO_CLASS, BoolArray, FloatArray, IntArray
from graycert._validation import check_mask, check_probability
from graycert.draws import Draws, UntilDecided
from graycert.errors import InvalidParameterError
from graycert.smoothing.protocol import Claim, Smoothing

if TYPE_CHECKING:
    from graycert.setup import Setup

_DELETE_HINT = "It is the chance of deleting an edge, not of keeping it."
_ABLATE_HINT = "It is the chance of replacing a node's features, not of keeping them."
_STRUCTURAL = {
    "sound": "structural_threats",
    "difference": "structural_threats",
    "sequential": "structural_threats",
    "paper": "",
}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class InterceptionSmoothing(Smoothing):
    """Message-interception smoothing: φ1 deletes edges, φ2 replaces whole feature vectors by a token.

    Each directed entry of the adjacency matrix is deleted independently with probability ``p_delete``; the features
    of each node are replaced by the ablation token independently with ``p_ablate``. The two directions of an
    undirected edge are two entries with a coin each.

    Probabilities may differ from edge to edge and from node to node. They may depend on the structure of the graph
    and on which nodes are trusted, never on features: certificates hold a fixed φ against all features that hostile
    nodes can choose, and with probabilities computed from features these nodes would choose φ too.

    Args:
        p_delete: Probability of deleting an edge, in [0, 1]: a number, or one per column of ``data.edge_index`` (those
            of self-loops included); where an ``Adjacency`` is handed in as the graph, one per edge in its order. Of a
            ``HeteroData`` a dict with one per relation, ``{("author", "writes", "paper"): 0.3, ...}``.
        p_ablate: Probability of ablating a node's features, in [0, 1]: a number, or one per node; of a ``HeteroData`` a
            dict with one per node type.

    Raises:
        InvalidParameterError: If a probability is not a number in [0, 1].

    Example:
        >>> InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)
        InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)
        >>> InterceptionSmoothing(p_delete=[0.5, 0.1, 0.5], p_ablate=0.794)
        InterceptionSmoothing(p_delete=0.1..0.5 (per edge), p_ablate=0.794)

    References:
        Scholten et al. (2022), Section 3; docs/proofs/nonuniform.md (more than one probability).
    """

    name = "interception"
    claims = (
        Claim(
            threat="node-features",
            proofs={
                "sound": "statistical_rule",
                "difference": "difference_test",
                "event-aware": "event_aware",
                "sequential": "sequential",
                "paper": "",
            },
            follows={"possible labels": "prediction_sets", "one adversary": "collective"},
        ),
        Claim(
            threat="node-features-and-edge-inputs",
            proofs={"sound": "edge_inputs", "difference": "edge_inputs", "sequential": "edge_inputs", "paper": ""},
        ),
        Claim(threat="node-deletion", proofs=_STRUCTURAL),
        Claim(threat="node-insertion", proofs=_STRUCTURAL),
        Claim(threat="edge-deletion", proofs=_STRUCTURAL),
    )
    draws_allowed = (Draws, UntilDecided)
    bounds = ("auto", "exact", "surrogate", "tree", "multiplicative", "union")
    adds = (
        Field(
            "estimation_predictions",
            "int",
            ("targets", "samples"),
            "The class of each estimation vote, which the event-aware rule needs; -1 for none.",
            stage="drawn",
            optional=True,
            given_for=("predictions",),
            at_least=NO_CLASS,
            at_most="classes",
            dtype="int16",
        ),
        Field(
            "estimation_batches",
            "int",
            ("targets", "batches", "classes"),
            "Estimation votes between two looks, which the sequential rule needs; zeros once a target is decided.",
            stage="drawn",
            optional=True,
            given_for=("batches",),
            at_least=0,
            dtype="int32",
        ),
        Field(
            "estimation_batches_no_class",
            "int",
            ("targets", "batches"),
            "Estimation votes between two looks that single out no class; None for zeros.",
            stage="drawn",
            optional=True,
            at_least=0,
            dtype="int32",
        ),
        Field(
            "num_samples",
            "int",
            ("targets",),
            "Estimation votes that the target took, where sampling stopped when it was decided.",
            stage="concluded",
            optional=True,
            given_for=("batches",),
            at_least=0,
            column="num_samples",
        ),
        Field(
            "undecided",
            "bool",
            ("targets",),
            "Whether the radius may be larger: more votes might help, or a search was given up.",
            stage="concluded",
            optional=True,
            given_for=("predictions", "batches"),
            column="undecided",
        ),
    )
    edge_inputs_proofs = MappingProxyType(
        {"node-features": "edge_inputs", "node-features-and-edge-inputs": "edge_inputs"}
    )
    remedy = f"{Smoothing.remedy[:-1]} (lower p_delete, p_ablate)."
    method_home = "graycert.smoothing.interception.method"
    in_plain_words = (
        "the majority of its answers when edges and features of the graph, drawn at random, are hidden from it"
    )

    p_delete: float | FloatArray = parameter(
        help="Chance of deleting an edge.", label="Edge deletion p_d", option=float, per="edge"
    )
    p_ablate: float | FloatArray = parameter(
        help="Chance of ablating a node's features.", label="Node ablation p_a", option=float, per="node"
    )

    if TYPE_CHECKING:  # what may be handed in; it is checked, and arrays and dicts are copied

        def __init__(
            self, *, p_delete: ArrayLike | Mapping[Any, float], p_ablate: ArrayLike | Mapping[str, float]
        ) -> None: ...

    def axes(self, setup: "Setup") -> dict[str, int]:
        """Return how many samples have a prediction."""
        return {"samples": setup.draws.num_estimation} if isinstance(setup.draws, Draws) else {}

    def __post_init__(self) -> None:
        """Check the domains; copy and lock arrays."""
        object.__setattr__(self, "p_delete", _checked("p_delete", self.p_delete, "edge", _DELETE_HINT))
        object.__setattr__(self, "p_ablate", _checked("p_ablate", self.p_ablate, "node", _ABLATE_HINT))

    @property
    def is_uniform(self) -> bool:
        """Whether one p_d holds for all edges and one p_a for all nodes, given as numbers."""
        return isinstance(self.p_delete, float) and isinstance(self.p_ablate, float)

    @property
    def delete_in_words(self) -> str:
        """p_d for people, e.g. "0.31" or "0.1..0.5 (per edge)"."""
        return _in_words(self.p_delete, "edge")

    @property
    def ablate_in_words(self) -> str:
        """p_a for people, e.g. "0.794" or "0.0..0.794 (per node)"."""
        return _in_words(self.p_ablate, "node")

    def with_trusted(self, trusted: BoolArray) -> "InterceptionSmoothing":
        """Return the smoothing that never ablates trusted nodes.

        Features that no adversary controls need not be hidden, and shown ones make better votes.

        Guarantee:
            A bound for this smoothing holds for any threat. It is not weakened if all these nodes are trusted by the
            threat, too (``NodeFeatureThreat(trusted=...)``); a node that may be hostile and is never ablated counts
            with p_a = 0.

        Args:
            trusted: Boolean, shape (num_nodes,), True where trusted.

        Raises:
            InvalidParameterError: If ``trusted`` is not a boolean vector, or not of the length of ``p_ablate``.

        Example:
            >>> InterceptionSmoothing(p_delete=0.31, p_ablate=0.8).with_trusted(np.array([True, False])).p_ablate
            array([0. , 0.8])
        """
        size = np.size(trusted) if isinstance(self.p_ablate, float) else self.p_ablate.size
        mask = check_mask("trusted", trusted, num_nodes=size, hint="True marks a node that is never ablated.")
        if not mask.any():
            return self
        return InterceptionSmoothing(p_delete=self.p_delete, p_ablate=np.where(mask, 0.0, self.p_ablate))

    def check_lengths(self, *, num_edges: int, num_nodes: int, edges: str = "column of `edge_index`") -> None:
        """Refuse arrays that are not of a graph with so many edges (named ``edges`` in the message) and nodes.

        Raises:
            InvalidParameterError: If an array has another length.
        """
        self._refuse_types()
        for name, expected, what in (("p_delete", num_edges, edges), ("p_ablate", num_nodes, "node")):
            values = getattr(self, name)
            if not isinstance(values, float) and values.size != expected:
                raise InvalidParameterError(
                    f"`{name}` must be a number or have one entry per {what} ({expected:,}), got {values.size:,} "
                    "entries. Was the graph prepared or split after they were chosen?"
                )

    def classifier(self, setup: "Setup") -> str:
        """Say what is certified, to follow "the classifier"."""
        return (
            f"is the majority vote of the {setup.num_layers}-step model over random graphs in which each edge is "
            f"deleted with probability p_d = {self.delete_in_words} and the features of each node are ablated with "
            f"probability p_a = {self.ablate_in_words}; nothing is said about the model without smoothing."
        )

    def nothing_shown(self, receptive_field_size: IntArray) -> FloatArray:
        """Return the chance that all nodes of a field are ablated; of several p_a the smallest counts."""
        lowest = float(np.min(self.p_ablate)) if np.size(self.p_ablate) else 0.0
        return np.asarray(lowest ** receptive_field_size.astype(np.float64))

    def shows_trusted(self, trusted: BoolArray) -> bool:
        """Return whether none of these nodes is ever ablated, as `with_trusted` makes it."""
        return bool(trusted.any()) and not isinstance(self.p_ablate, float) and not self.p_ablate[trusted].any()

    def with_canonical_edges(self, reorder: Callable[[NDArray[Any]], NDArray[Any]]) -> "InterceptionSmoothing":
        """Return the smoothing with p_d in another order of edges."""
        self._refuse_types()
        if isinstance(self.p_delete, float):
            return self
        return InterceptionSmoothing(p_delete=reorder(self.p_delete), p_ablate=self.p_ablate)

    def check_graph(self, *, num_edges: int, num_nodes: int) -> None:
        """Refuse arrays that are not of a graph with so many edges, self-loops included, and nodes."""
        self.check_lengths(num_edges=num_edges, num_nodes=num_nodes, edges="edge")

    def _refuse_types(self) -> None:
        for name, what in (("p_delete", "relation"), ("p_ablate", "node type")):
            if isinstance(getattr(self, name), Mapping):
                raise InvalidParameterError(
                    f"`{name}` must be a number or an array for a graph without node types and relations, got a dict, "
                    f"one probability per {what}. Pass a HeteroData."
                )

    def __repr__(self) -> str:
        return f"InterceptionSmoothing(p_delete={self.delete_in_words}, p_ablate={self.ablate_in_words})"


def _checked(name: str, value: Any, what: str, hint: str) -> float | FloatArray:
    if hasattr(value, "detach"):  # a tensor, perhaps on a GPU; torch itself is not imported here
        value = value.detach().cpu().numpy()
    if isinstance(value, Mapping):
        each: Any = MappingProxyType({key: check_probability(name, entry, hint=hint) for key, entry in value.items()})
        return each  # type: ignore[no-any-return]
    if not isinstance(value, np.ndarray | list | tuple):
        return check_probability(name, value, hint=hint)
    array = np.asarray(value)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "fiu"):
        raise InvalidParameterError(
            f"`{name}` must be a number or an array of numbers, one per {what}, got dtype {array.dtype} and shape "
            f"{array.shape}. {hint}"
        )
    array = array.astype(np.float64) + 0.0  # a copy, without -0
    refused = np.flatnonzero(~((array >= 0.0) & (array <= 1.0)))  # NaN, too
    if refused.size:
        first = int(refused[0])
        raise InvalidParameterError(f"`{name}` must be in [0, 1], got {array[first]} for {what} {first}. {hint}")
    array.flags.writeable = False
    return array


def _in_words(value: float | FloatArray, what: str) -> str:
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Mapping):
        return f"{min(value.values())!r}..{max(value.values())!r} (per type)" if value else "none"
    if value.size == 0:
        return f"none (per {what})"
    return f"{float(value.min())!r}..{float(value.max())!r} (per {what})"
