"""Bounded votes: a classifier of nodes whose certificate is exact and needs no draws."""

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graycert._fields import Field
from graycert._parameters import parameter
from graycert._types import BoolArray, FloatArray, IntArray
from graycert._validation import check_choice, check_integer, check_open_unit, check_positive
from graycert.errors import InvalidParameterError
from graycert.smoothing.bounded_votes.shown import exact_votes, heard
from graycert.smoothing.protocol import Claim, Smoothing
from graycert.threats import Threat

if TYPE_CHECKING:
    from graycert.certificates import Certificates
    from graycert.setup import Setup

VOTES = ("soft", "one-hot")
RANKINGS = ("walks", "pagerank", "in-neighbours")
ONE_VOTE = 2**20
MOST_VOTERS = 2**20
MOST_STEPS = 1_000

_OWN_ALONE = ("gamma", "gate")  # parameters of the target's own scores


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundedVotes(Smoothing):
    r"""Certify votes of bounded influence: M nodes near a target have one vote each, which nobody can make larger.

    $$F_c(v) = a_c(v) + \sum_{w \in V(v)} u\, q_c(x_w), \qquad q = s^T / \textstyle\sum_c s_c^T$$

    The model s classifies each node by its own features alone (`graycert.distill`, an MLP, ...). A hostile node changes
    its own vote and nothing else, so one sort gives the exact radius. What the target says of itself follows from the
    threat. If no target can be hostile, its own scores count in full, $a_c = \log(s_c(x_v) + 10^{-6})$, and its voters
    share a weight of γ ($u = γ / |V|$). If some target may be hostile, every target is one voter among the others
    (a = 0, u = 1): ``gamma`` and ``gate`` are then not used, and not stored. ``label_propagation`` adds
    $\lambda \log(l_c(v) + 0.02)$ to a in both cases.

    Args:
        num_voters: Most voters M of a target, in [1, 2^20]; not used for in-neighbours, who all vote.
        gamma: Weight γ > 0 of all voters together, beside the target's own scores; None for 2, or 1 with label
            propagation.
        gate: Confidence in (0, 1] from which on a target's own prediction stands, whatever others vote; None for never
            (kept as infinity).
        sharpen: Power T > 0 of probabilities in a vote; not used for one-hot votes.
        vote: "soft", or "one-hot" for the whole vote to the most probable class.
        voters: What ranks voters, from the structure alone: "walks", truncated random walks; "pagerank", approximate
            personalised PageRank, for large graphs; "in-neighbours", all of them, as hostile nodes that choose their
            edges (`NodeTakeoverThreat`) require: then $u = γ / (|V| + 1)$; None (default) walks, or in-neighbours where
            the threat requires them, which is what a result stores; or weights of your own, a SciPy sparse matrix
            (num_nodes, num_nodes) with the weight of voter w for target v at [v, w], which must not be computed from
            features (kept as float64 (3, num_entries): target, voter, weight). The M largest positive ones count, one
            vote each.
        walk_length: Steps of the walks, in [1, 1,000].
        decay: Weight of each further step of the walks, or 1 minus the restart probability of PageRank, in (0, 1).
        tolerance: Mass per in-degree from which on PageRank is pushed on, > 0.
        label_propagation: Labels of training nodes, spread over the graph: a split of this graph, or integers of shape
            (num_nodes,), -1 for nodes whose label is not used. Training labels, and which node is which, are then
            trusted. None uses no label.
        label_weight: λ > 0.
        target_votes: Whether the target is one voter among the others; None (default) as the threat needs it, which is
            what a result stores.

    Raises:
        InvalidParameterError: If a value is out of its domain.

    Example:
        >>> BoundedVotes(num_voters=80).label_propagation is None
        True

    References:
        docs/proofs/bounded_votes.md. Levine and Feizi (2021), DPA (counting votes); Bojchevski et al. (2020), PPRGo
        (nearest nodes by PageRank); Zhu and Ghahramani (2002), label propagation; Huber (1981), bounded influence.
    """

    name = "votes"
    claims = (
        Claim(
            threat="node-features",
            proofs={"exact": "bounded_votes"},
            follows={"possible labels": "bounded_votes", "one adversary": "bounded_votes_collective"},
        ),
        Claim(threat="node-takeover", proofs={"exact": "takeover"}, follows={"possible labels": "takeover"}),
    )
    draws_allowed = ()
    adds = (
        Field(
            "voters",
            "int",
            ("targets", "voters"),
            "Nodes that vote on each target, itself left out, closest first, padded with -1.",
            stage="graph",
            at_least=-1,
            at_most="nodes",
            dtype="int32",
        ),
        Field(
            "prediction_of_labels",
            "int",
            ("targets",),
            "Class with the largest share of the labels that are spread, the lowest of equal ones; only with labels.",
            stage="graph",
            optional=True,
            at_least=0,
            at_most="classes",
        ),
        Field(
            "ballots",
            "int",
            ("nodes", "classes"),
            "Vote of every node, in units of 2^-20.",
            stage="drawn",
            at_least=0,
            at_most=ONE_VOTE,
            dtype="int32",
        ),
        Field(
            "own_probabilities",
            "float",
            ("targets", "classes"),
            "What the model says of each target by its own features; only where these count in full.",
            stage="drawn",
            optional=True,
            at_least=0.0,
            at_most=1.0,
        ),
        Field(
            "scores",
            "int",
            ("targets", "classes"),
            "Sum of own scores and votes per class, in units of 2^-20 votes: the largest one is predicted.",
            stage="concluded",
        ),
        Field(
            "class_radius",
            "int",
            ("targets", "classes"),
            "Hostile nodes that cannot make this class beat the prediction; all that are eligible if none can.",
            stage="concluded",
            at_least=0,
        ),
    )
    method_home = "graycert.smoothing.bounded_votes.method"
    in_plain_words = (
        "the sum of several nodes' votes, each by its own features alone, and of spread labels where the run has them: "
        "nothing is hidden or drawn"
    )
    allows_parallel_edges = True
    needs_graph = True
    examines_all_radii = True
    evaluates_quickly = True
    remedy = "Let fewer nodes vote (lower num_voters), or count them less (lower gamma)."
    sees_single_nodes = True
    learns_by = "distillation"

    num_voters: int = parameter(default=160, help="Most voters of a target.", label="Voters M", option=int)
    gamma: float | None = parameter(
        default=None, help="Weight of all voters beside the target's own scores.", label="Weight γ", option=float
    )
    gate: float | None = parameter(
        default=0.7, help="Confidence from which on a target's own prediction stands.", label="Gate", option=float
    )
    sharpen: float = parameter(default=2.0, help="Power of probabilities in a vote.", label="Power T", option=float)
    vote: str = parameter(default="soft", help="What a vote is: soft or one-hot.", label="Votes", option=str)
    voters: Any = parameter(
        default=None,
        help="Who votes, by walks, pagerank, or in-neighbours: all of them.",
        label="Voters by",
        option=str,
        per="pair",
    )
    walk_length: int = parameter(default=6, help="Steps of the walks.", label="Steps of walks", option=int)
    decay: float = parameter(
        default=0.9, help="Weight of each further step from a target to its voters.", label="Decay", option=float
    )
    tolerance: float = parameter(
        default=3e-4, help="Mass per in-degree that PageRank pushes on.", label="Tolerance of PageRank", option=float
    )
    label_propagation: Any = parameter(
        default=None,
        help="Labels of training nodes that are spread over the graph.",
        label="Labels that are spread",
        option=None,
        per="node",
    )
    label_weight: float = parameter(
        default=0.5, help="Weight of the labels that are spread.", label="Weight λ of labels", option=float
    )
    target_votes: bool | None = parameter(
        default=None, help="The target is one voter among the others.", label="Target votes", option=None
    )

    def __post_init__(self) -> None:
        """Check the domains."""
        checked: dict[str, Any] = {
            "num_voters": check_integer("num_voters", self.num_voters, at_least=1, at_most=MOST_VOTERS),
            "gamma": None if self.gamma is None else check_positive("gamma", self.gamma),
            "gate": _gate(self.gate),
            "sharpen": check_positive("sharpen", self.sharpen),
            "vote": check_choice("vote", self.vote, VOTES),
            "voters": None if self.voters is None else _own_or_named(self.voters),
            "walk_length": check_integer("walk_length", self.walk_length, at_least=1, at_most=MOST_STEPS),
            "decay": check_open_unit("decay", self.decay),
            "tolerance": check_positive("tolerance", self.tolerance),
            "label_propagation": _labels(self.label_propagation),
            "label_weight": check_positive("label_weight", self.label_weight),
        }
        if self.target_votes is not None and not isinstance(self.target_votes, bool):
            raise InvalidParameterError(f"`target_votes` must be True, False or None, got {self.target_votes!r}.")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def is_by(self, ranking: str) -> bool:
        """Return whether voters are ranked in a way with a name; weights of the user's own have none."""
        return isinstance(self.voters, str) and self.voters == ranking

    @property
    def weight_of_all_votes(self) -> float:
        """γ, also where it was left open."""
        if self.gamma is not None:
            return self.gamma
        return 2.0 if self.label_propagation is None else 1.0

    def stored(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return plain values by name, and arrays by name, without what has no effect."""
        values, arrays = super().stored()
        return {
            name: value for name, value in values.items() if name not in self._idle(bool(self.target_votes))
        }, arrays

    def idle(self, threat: Threat) -> dict[str, str]:
        """Return the parameters that have no effect against a threat, with what they belong to."""
        takes_all = self.voters is None and threat.name == "node-takeover"
        known = dataclasses.replace(self, voters="in-neighbours") if takes_all else self
        return known._idle(bool(threat.includes_target if self.target_votes is None else self.target_votes))

    def _idle(self, target_votes: bool) -> dict[str, str]:
        ranked, labels = "--voters walks or pagerank", self.label_propagation is None
        return {
            **(dict.fromkeys(_OWN_ALONE, "targets that are not hostile (--min-distance 1)") if target_votes else {}),
            **({"label_weight": "--spread-labels"} if labels else {}),
            **({"walk_length": "--voters walks"} if self.voters is not None and not self.is_by("walks") else {}),
            **({"tolerance": "--voters pagerank"} if not self.is_by("pagerank") else {}),
            **({"decay": ranked} if isinstance(self.voters, np.ndarray) else {}),
            **({"num_voters": ranked, "decay": ranked} if self.is_by("in-neighbours") else {}),
            **({"sharpen": "--vote soft"} if self.vote == "one-hot" else {}),
        }

    def check_graph(self, *, num_edges: int, num_nodes: int) -> None:
        """Refuse labels and weights of another graph."""
        del num_edges
        labels = self.label_propagation
        if labels is not None and labels.size != num_nodes:
            raise InvalidParameterError(
                f"`label_propagation` must have one label per node of the graph ({num_nodes:,}), got {labels.size:,}. "
                "Pass the split of this graph."
            )
        if isinstance(self.voters, np.ndarray) and self.voters[:2].max(initial=0) >= num_nodes:
            raise InvalidParameterError(
                f"`voters` must be of shape ({num_nodes}, {num_nodes}), got an entry of node "
                f"{int(self.voters[:2].max())}. Was the graph prepared after they were computed?"
            )

    def possible_labels(self, certificates: "Certificates", radius: int) -> BoolArray:
        """Return the classes that so many hostile nodes could make beat the prediction, and the prediction."""
        c, rows = certificates, np.arange(len(certificates))
        possible: BoolArray = c.class_radius < np.minimum(radius, c.num_eligible)[:, None]
        possible[rows, c.prediction] = True
        return possible

    def heard(self, certificates: "Certificates", rows: IntArray) -> tuple[IntArray, FloatArray]:
        """Return who votes on some targets, and how much each could take from the lead."""
        return heard(certificates, rows)

    def exact_votes(self, certificates: "Certificates", row: int) -> list[tuple[int, str, str]]:
        """Return of each class its score in votes, and how many hostile nodes cannot make it win."""
        return exact_votes(certificates, row)

    def classifier(self, setup: "Setup") -> str:
        """Say what is certified, to follow "the classifier"."""
        del setup
        votes = "a vote split by its probabilities" if self.vote == "soft" else "one vote for its most probable class"
        ranked = {None: "random walks", "walks": "random walks", "pagerank": "personalised PageRank"}
        if self.is_by("in-neighbours"):
            who = "all other nodes with an edge into it"
        else:
            by = "weights of the user's own" if isinstance(self.voters, np.ndarray) else ranked[self.voters]
            who = f"up to {self.num_voters:,} other nodes, chosen by the structure alone ({by})"
        if self.target_votes:
            said = f"adds up one vote each of the target and {who}: {votes}, from each node's own features."
        else:
            said = (
                f"adds to the log-probabilities that the model gives the target, by its own features, {votes} from "
                f"each of {who}; all votes together weigh {self.weight_of_all_votes:g}."
            )
            if self.gate is not None and self.gate <= 1:
                said += f" Where the model is at least {self.gate:g} sure of the target, votes do not count."
        if self.label_propagation is not None:
            number = int(np.count_nonzero(self.label_propagation >= 0))
            said += (
                f" It also adds the labels of {number:,} training nodes, spread over the structure (weight "
                f"{self.label_weight:g}): these labels, and which node is which, are trusted."
            )
        made = " and the weights of voters were" if isinstance(self.voters, np.ndarray) else " was"
        return f"{said} Assumed: the structure{made} not made from features, and the model was trained on clean data."

    def chance(self, certificates: "Certificates") -> str:
        """Say that it is certain, and which labels it takes as given."""
        said = "Nothing is drawn, and votes are counted in integers: these statements hold with certainty."
        labels = self.label_propagation
        if labels is None:
            return said
        said += " Labels of training nodes, and which node is which, are taken as given."
        known = int(np.count_nonzero(labels[certificates.targets] >= 0))
        if known:
            said += (
                f" The labels of {known:,} targets are among them, so that accuracy on these says nothing about nodes "
                "whose labels are not known."
            )
        return said

    def bound_in_words(self, setup: "Setup") -> str:
        """Say that the radius is exact."""
        del setup
        return (
            "Radii are exact: if features exist that give a node's whole vote to a class of choice, one more hostile "
            "node changes the prediction."
        )


def _gate(value: object) -> float:
    if value is None or value == math.inf:
        return math.inf
    confidence = check_positive("gate", value)
    if confidence > 1:
        raise InvalidParameterError(
            f"`gate` must be in (0, 1], or None for none, got {value!r}. It is compared with a probability."
        )
    return confidence


def _own_or_named(value: Any) -> Any:
    """Return a name, or weights as float64 (3, num_entries), sorted by target and voter."""
    if isinstance(value, str):
        return check_choice("voters", value, RANKINGS, hint="Or pass a SciPy sparse matrix.")
    if hasattr(value, "tocoo"):
        matrix = value.tocsr().astype(np.float64)
        matrix.sum_duplicates()
        entries = matrix.tocoo()
        if entries.shape[0] != entries.shape[1]:
            raise InvalidParameterError(
                f"`voters` must be a square matrix, a row and a column per node, got shape {entries.shape}."
            )
        value = np.stack([entries.row, entries.col, entries.data]).astype(np.float64)
    triples: FloatArray = np.array(value) if isinstance(value, np.ndarray) else np.zeros(0)
    if triples.ndim != 2 or triples.shape[0] != 3 or triples.dtype != np.float64:
        raise InvalidParameterError(
            f"`voters` must be {', '.join(map(repr, RANKINGS))} or a SciPy sparse matrix (num_nodes, num_nodes), got "
            f"{type(value).__name__}. Convert it with scipy.sparse.csr_array."
        )
    places = triples[:2]
    if not (np.isfinite(triples).all() and (triples >= 0).all() and (places == np.floor(places)).all()):
        raise InvalidParameterError("`voters` must be finite and >= 0 at integer places.")
    triples = triples[:, np.lexsort(places[::-1])]
    if (np.diff(triples[:2], axis=1) == 0).all(axis=0).any():
        raise InvalidParameterError("`voters` must hold every pair of nodes once.")
    triples.flags.writeable = False
    return triples


def _labels(value: Any) -> IntArray | None:
    """Return labels of training nodes, -1 elsewhere, int64."""
    if value is None:
        return None
    if hasattr(value, "train") and hasattr(value, "test"):
        part, whole = value.train, value.test
        if not np.array_equal(_plain(whole.original), np.arange(_plain(whole.original).size)):
            raise InvalidParameterError(
                "`label_propagation` must be a split whose test graph is the whole graph, got another one. Pass labels."
            )
        nodes, labels = _plain(part.nodes), np.full(_plain(whole.original).size, -1, dtype=np.int64)
        labels[_plain(part.original)[nodes]] = _plain(part.data.y)[nodes]
    else:
        plain = hasattr(value, "detach") or isinstance(value, np.ndarray | list | tuple)
        labels = np.array(_plain(value)) if plain else np.zeros(0, dtype=np.int64)
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or (labels < -1).any() or not (labels >= 0).any():
        raise InvalidParameterError(
            "`label_propagation` must be a split of the graph, or integers (num_nodes,) with the class of each "
            f"training node and -1 elsewhere, at least one class, got dtype {labels.dtype} and shape {labels.shape}."
        )
    labels = labels.astype(np.int64)
    labels.flags.writeable = False
    return labels


def _plain(values: Any) -> NDArray[Any]:
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
