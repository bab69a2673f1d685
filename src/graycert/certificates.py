"""The result of a certification: one certificate per target, with everything it was made from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graycert._types import FloatArray, IntArray
from graycert._validation import (
    check_choice,
    check_integer,
    check_integer_array,
    check_open_unit,
    check_targets,
)
from graycert.errors import InvalidParameterError
from graycert.rules import RULES, CollectiveCertificate, is_sound
from graycert.rules.vote_certificates import check_delta_upper, status_of
from graycert.runs.plain import plain_mapping
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.statistics import EstimationVotes, SelectionVotes
from graycert.statistics.votes import row_sum
from graycert.threats.node_features import NodeFeatureThreat

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeCertificates:
    """Certificates of all targets. All arrays are read-only and checked against each other.

    Attributes:
        targets: Node index of each target, distinct, shape (num_targets,).
        prediction: Reported class; where the status is "abstained" only the class with most selection votes.
        status: "certified" (radius >= 1), "predicted" (radius 0) or "abstained" (radius -1).
        p_lower: Lower bound on the probability of the reported class, in [0, 1].
        p_upper: Upper bound on the probability of every other class, in [0, 1].
        radius: Certified number of hostile nodes, in [-1, max_radius]; max_radius means "at least".
        delta_upper: Δ̄(ρ) for ρ = 1..max_radius, shape (num_targets, max_radius).
        receptive_field_size: Nodes within ``num_layers`` hops upstream, the target included, >= 1.
        num_eligible: Those of them that may be hostile, >= 0.
        selection_votes: n0 votes per class, shape (num_targets, num_classes).
        estimation_votes: n1 votes per class, same shape.
        num_layers: Message-passing steps k of the model.
        engine: What drew the samples.
        smoothing: The smoothing distribution; an array of p_d is in the order of edges sorted by (target, source),
            self-loops included (see `graycert.graph.smoothing_in_stored_order`), so that the order of the columns of
            ``edge_index``, which the fingerprint does not know, does not matter.
        threat: Who may be hostile.
        alpha: Failure probability, per target or of all of them, see ``simultaneous``; all radii of a target hold
            jointly.
        rule: One of ``graycert.rules.RULES``; "paper" is NOT SOUND.
        method: How Δ̄ was to be bounded, e.g. "auto".
        seed: Seed of the samples.
        graph_fingerprint: Hash of the graph that was certified.
        num_nodes: Nodes of the graph.
        num_edges: Directed edges of the graph.
        labels: True class per target, -1 if unknown, or None.
        simultaneous: Whether ``alpha`` is the chance that any of the targets is wrong, rather than each.
        delta_methods: What each target's Δ̄ comes from, e.g. "exact", shape (num_targets,), or None.
        attackers: Nodes to protect first: the set of radius + 1 nodes that harms the target most, as far as is known,
            padded with -1, shape (num_targets, largest set), or None.
        estimation_predictions: The class of each estimation vote, which the event-aware rule needs, int16
            (num_targets, num_estimation), or None.
        collective: How many targets keep their prediction under one set of hostile nodes shared by all, or None.
        node_ids: Name per target, or None.
        class_names: Name per class, or None.
        provenance: Where graph, split and model come from: nested plain values with text keys. None values
            are dropped.

    Raises:
        InvalidParameterError: If a value is outside its domain, or values do not fit each other.
    """

    targets: IntArray
    prediction: IntArray
    status: NDArray[np.str_]
    p_lower: FloatArray
    p_upper: FloatArray
    radius: IntArray
    delta_upper: FloatArray
    receptive_field_size: IntArray
    num_eligible: IntArray
    selection_votes: IntArray
    estimation_votes: IntArray
    num_layers: int
    engine: str
    smoothing: InterceptionSmoothing
    threat: NodeFeatureThreat
    alpha: float
    rule: str
    method: str
    seed: int
    graph_fingerprint: str
    num_nodes: int
    num_edges: int
    labels: IntArray | None = None
    simultaneous: bool = False
    delta_methods: NDArray[np.str_] | None = None
    attackers: IntArray | None = None
    estimation_predictions: NDArray[np.int16] | None = None
    collective: CollectiveCertificate | None = None
    node_ids: NDArray[np.str_] | None = None
    class_names: tuple[str, ...] | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check every value; copy and lock every array."""
        checked = {**_scalars(self), **_arrays(self), **_names(self), **_optional_arrays(self)}
        checked["provenance"] = MappingProxyType(plain_mapping("provenance", self.provenance))
        for name, value in checked.items():
            if isinstance(value, np.ndarray):
                value = value.copy()
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return (
            f"NodeCertificates({self.targets.size:,} targets, {int((self.radius >= 1).sum()):,} certified, "
            f"{int((self.radius < 0).sum()):,} abstained, rule={self.rule!r}, alpha={self.alpha:g})"
        )

    def __len__(self) -> int:
        return int(self.targets.size)

    @property
    def num_selection(self) -> int:
        """n0: samples that chose the reported class."""
        return int(self.selection_votes[0].sum())

    @property
    def num_estimation(self) -> int:
        """n1: samples that bound the probabilities."""
        return int(self.estimation_votes[0].sum())

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return int(self.selection_votes.shape[1])

    @property
    def max_radius(self) -> int:
        """Largest radius that was examined."""
        return int(self.delta_upper.shape[1])

    @property
    def whole_field(self) -> NDArray[np.bool_]:
        """Whether the prediction holds whatever number of eligible nodes is hostile, shape (num_targets,)."""
        return np.greater_equal(self.radius, self.num_eligible)

    def summary(self) -> str:
        """Say in plain words what is proved, followed by the share of certified targets per radius."""
        from graycert.runs.words import summary_text

        return summary_text(self)

    def to_dataframe(self) -> "pd.DataFrame":
        """Return one row per target.

        Columns: target, node_id (if named), label (if known), prediction, class_name (if named), status,
        p_lower, p_upper, radius, whole_field, num_eligible, receptive_field_size, delta_1, delta_2, ...
        """
        import pandas as pd

        from graycert.runs.columns import to_columns

        return pd.DataFrame(to_columns(self))

    def save(self, directory: str | Path, *, overwrite: bool = False) -> Path:
        """Write a run directory; nothing half-written ever has its name.

        Args:
            directory: New or empty folder; parents are made.
            overwrite: Replace an earlier run directory. Anything else is never replaced.

        Returns:
            The absolute path of the directory.

        Raises:
            InvalidFileError: If the directory holds something, or cannot be written.
        """
        from graycert.runs.store import save_run

        return save_run(self, directory, overwrite=overwrite)

    @classmethod
    def load(cls, directory: str | Path) -> "NodeCertificates":
        """Read a run directory. The files are checked for form; ``graycert verify`` checks what they claim.

        Raises:
            InvalidFileError: If a file is missing, truncated, corrupted, foreign, or of another format
                version.
        """
        from graycert.runs.store import load_run

        return load_run(directory)


def _scalars(c: NodeCertificates) -> dict[str, Any]:
    if not isinstance(c.smoothing, InterceptionSmoothing):
        raise InvalidParameterError(f"`smoothing` must be an InterceptionSmoothing, got {c.smoothing!r}.")
    if not isinstance(c.threat, NodeFeatureThreat):
        raise InvalidParameterError(f"`threat` must be a NodeFeatureThreat, got {c.threat!r}.")
    for name in ("engine", "method", "graph_fingerprint"):
        if not isinstance(getattr(c, name), str) or not getattr(c, name):
            raise InvalidParameterError(f"`{name}` must be a text, got {getattr(c, name)!r}.")
    trusted = c.threat.trusted
    num_nodes = check_integer("num_nodes", c.num_nodes, at_least=1)
    if trusted is not None and trusted.size != num_nodes:
        raise InvalidParameterError(f"`threat.trusted` must have one entry per node ({num_nodes}), got {trusted.size}.")
    num_edges = check_integer("num_edges", c.num_edges, at_least=0)
    c.smoothing.check_lengths(num_edges=num_edges, num_nodes=num_nodes, edges="edge")
    return {
        "num_layers": check_integer("num_layers", c.num_layers, at_least=1),
        "alpha": check_open_unit("alpha", c.alpha),
        "rule": check_choice("rule", c.rule, RULES),
        "seed": check_integer("seed", c.seed, at_least=0),
        "num_nodes": num_nodes,
        "num_edges": num_edges,
    }


def _arrays(c: NodeCertificates) -> dict[str, Any]:
    selection = SelectionVotes(c.selection_votes, row_sum("selection_votes", c.selection_votes))
    estimation = EstimationVotes(c.estimation_votes, row_sum("estimation_votes", c.estimation_votes))
    if selection.counts.shape != estimation.counts.shape:
        raise InvalidParameterError(
            f"`estimation_votes` must have the shape of `selection_votes`, {selection.counts.shape}, "
            f"got {estimation.counts.shape}."
        )
    size = selection.num_targets
    deltas = check_delta_upper(c.delta_upper, num_targets=size)
    arrays: dict[str, NDArray[Any]] = {
        "selection_votes": selection.counts,
        "estimation_votes": estimation.counts,
        "delta_upper": deltas,
        "targets": check_targets(c.targets, num_nodes=c.num_nodes),
        "prediction": check_integer_array(
            "prediction", c.prediction, ndim=1, at_least=0, less_than=selection.num_classes
        ),
        "radius": check_integer_array("radius", c.radius, ndim=1, at_least=-1, less_than=deltas.shape[1] + 1),
        "receptive_field_size": check_integer_array(
            "receptive_field_size", c.receptive_field_size, ndim=1, at_least=1, less_than=c.num_nodes + 1
        ),
        "num_eligible": check_integer_array("num_eligible", c.num_eligible, ndim=1, at_least=0),
        "p_lower": _probabilities("p_lower", c.p_lower),
        "p_upper": _probabilities("p_upper", c.p_upper),
        "status": np.asarray(c.status),
    }
    if c.labels is not None:
        arrays["labels"] = check_integer_array("labels", c.labels, ndim=1, at_least=-1)
    for name, array in arrays.items():
        if array.shape[0] != size or (array.ndim == 1 and array.size != size):
            raise InvalidParameterError(f"`{name}` must have one entry per target ({size}), got shape {array.shape}.")
    if (arrays["num_eligible"] > arrays["receptive_field_size"]).any():
        raise InvalidParameterError(
            "`num_eligible` must not exceed `receptive_field_size`: eligible nodes are part of the receptive field."
        )
    if arrays["status"].dtype.kind != "U" or (arrays["status"] != status_of(arrays["radius"])).any():
        raise InvalidParameterError(
            "`status` must be 'abstained', 'predicted' or 'certified' as `radius` is -1, 0 or more. Use certify_votes."
        )
    return arrays


def _optional_arrays(c: NodeCertificates) -> dict[str, Any]:
    """Check what only some runs have."""
    size, classes = np.shape(c.selection_votes)
    arrays: dict[str, Any] = {}
    if c.delta_methods is not None:
        methods = np.asarray(c.delta_methods)
        if methods.dtype.kind != "U" or methods.shape != (size,):
            raise InvalidParameterError(f"`delta_methods` must hold one text per target ({size}), got {methods.shape}.")
        arrays["delta_methods"] = methods
    if c.attackers is not None:
        attackers = check_integer_array("attackers", c.attackers, ndim=2, at_least=-1, less_than=c.num_nodes)
        if attackers.shape[0] != size:
            raise InvalidParameterError(f"`attackers` must have a row per target ({size}), got {attackers.shape}.")
        arrays["attackers"] = attackers
    if c.rule == "event-aware" and c.estimation_predictions is None:
        raise InvalidParameterError(
            "`estimation_predictions` must be given for rule 'event-aware', got None. Only the class of each vote "
            "shows where hostile messages could have been the cause."
        )
    if c.estimation_predictions is not None:
        predictions = np.asarray(c.estimation_predictions)
        found = [np.count_nonzero(predictions == number, axis=1) for number in range(classes)]
        if predictions.ndim != 2 or not np.array_equal(np.stack(found, axis=1), c.estimation_votes):
            raise InvalidParameterError("`estimation_predictions` must be the votes that `estimation_votes` counts.")
        arrays["estimation_predictions"] = predictions.astype(np.int16)
    if c.collective is not None:
        _check_collective(c.collective, c.rule, num_targets=size)
    return arrays


def _check_collective(collective: CollectiveCertificate, rule: str, *, num_targets: int) -> None:
    if not isinstance(collective, CollectiveCertificate):
        raise InvalidParameterError(f"`collective` must be a CollectiveCertificate, got {collective!r}.")
    if not is_sound(rule):
        raise InvalidParameterError(f"`collective` needs a sound rule, got rule {rule!r}. Leave one of them out.")
    budgets, active = collective.budgets, collective.num_active
    robust, naive = collective.num_robust, collective.num_robust_naive
    sizes = {np.shape(values) for values in (budgets, robust, naive, collective.proved_by, collective.solver_status)}
    possible = (
        sizes == {(np.size(budgets),)}
        and np.all(np.diff(budgets, prepend=0) > 0)
        and np.all((naive >= 0) & (naive <= robust) & (robust <= active))
        and active <= num_targets
    )
    if not possible:
        raise InvalidParameterError(
            "`collective` must have one count per rising budget, with 0 <= num_robust_naive <= num_robust <= "
            f"num_active <= {num_targets}, the number of targets. Use certify_collectively."
        )


def _probabilities(name: str, values: FloatArray) -> FloatArray:
    array = np.asarray(values)
    if array.dtype != np.float64 or array.ndim != 1 or not ((array >= 0.0) & (array <= 1.0)).all():
        raise InvalidParameterError(f"`{name}` must hold one float64 in [0, 1] per target.")
    return array


def _names(c: NodeCertificates) -> dict[str, Any]:
    names: dict[str, Any] = {}
    size, classes = len(c.selection_votes), np.shape(c.selection_votes)[1]
    if c.node_ids is not None:
        ids = np.asarray(c.node_ids)
        if ids.dtype.kind != "U" or ids.shape != (size,):
            raise InvalidParameterError(f"`node_ids` must hold one text per target ({size}), got shape {ids.shape}.")
        names["node_ids"] = ids
    if c.class_names is not None:
        texts = tuple(c.class_names)
        if len(texts) != classes or not all(isinstance(text, str) for text in texts):
            raise InvalidParameterError(f"`class_names` must hold one text per class ({classes}), got {texts!r}.")
        names["class_names"] = texts
    return names
