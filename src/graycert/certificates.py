"""The one result: a certificate per target, with everything that it was made from."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graycert._fields import Field, array_field, declared_arrays
from graycert._origin import Origin
from graycert._plain import plain_mapping
from graycert._types import NO_CLASS, BoolArray, FloatArray, IntArray, TextArray
from graycert._validation import check_choice, check_integer, check_open_unit, check_seed
from graycert.draws import AnyDraws, Draws, UntilDecided
from graycert.errors import InvalidParameterError
from graycert.rules import CollectiveCertificate, Rule, rule_named, status_of
from graycert.rules.vote_certificates import check_delta_upper
from graycert.smoothing import Smoothing
from graycert.statistics import EstimationVotes, SelectionVotes
from graycert.statistics.votes import count_classes
from graycert.threats import CONVOLUTIONS, Threat

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What certificates were made from; all of it is stored.

    Attributes:
        smoothing: What the classifier is smoothed over. Values per edge are in the order of edges sorted by (target,
            source), self-loops included (`graycert.graph.CanonicalGraph`), whatever the order of ``edge_index``.
        threat: Who may do what.
        draws: How much was drawn; None where nothing is.
        rule: How votes were concluded from, see `graycert.rules.RULES`; "paper" is NOT SOUND.
        bound: How Δ̄ was to be bounded, e.g. "auto".
        alpha: Failure probability, per target or of all of them, see ``simultaneous``; all radii of a target hold
            jointly.
        simultaneous: Whether ``alpha`` is the chance that any of the targets is wrong, rather than each.
        max_radius: Largest radius that was looked at; None where all are known.
        seed: Seed of all that is drawn or hashed.
        num_layers: Message-passing steps k of the model; None where nothing is assumed of it.
        convolution: What the model's messages depend on, where it is known or was said; see `StructuralThreat`.
        engine: What drew the samples, or evaluated the model.
        num_classes: Number of classes of the model.
        graph_fingerprint: Hash of the edges and features of the graph that was certified.
        edges_fingerprint: Hash of its edges alone, self-loops left out.
        num_nodes: Nodes of the graph.
        num_edges: Directed edges of the graph, self-loops included.
        class_names: Name per class, or None.
        provenance: Where graph, split and model come from: nested plain values with text keys.
    """

    smoothing: Smoothing
    threat: Threat
    draws: AnyDraws | None
    rule: str
    bound: str = "auto"
    alpha: float = 0.01
    simultaneous: bool = False
    max_radius: int | None = 20
    seed: int = 0
    num_layers: int | None = None
    convolution: str | None = None
    engine: str = "none"
    num_classes: int = 2
    graph_fingerprint: str = ""
    edges_fingerprint: str = ""
    num_nodes: int = 1
    num_edges: int = 0
    class_names: tuple[str, ...] | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check every value on its own."""
        for name, kinds in (("smoothing", Smoothing), ("threat", Threat)):
            if not isinstance(getattr(self, name), kinds):
                raise InvalidParameterError(
                    f"`{name}` must be a {kinds.__name__.lower()} of graycert, got {getattr(self, name)!r}."
                )
        if self.draws is not None and not isinstance(self.draws, Draws | UntilDecided):
            raise InvalidParameterError(f"`draws` must be graycert.Draws or UntilDecided, got {self.draws!r}.")
        checked: dict[str, Any] = {
            "rule": rule_named(self.rule).name,
            "alpha": check_open_unit("alpha", self.alpha, hint="It is a failure probability, e.g. 0.01."),
            "seed": check_seed(self.seed),
            "num_classes": check_integer("num_classes", self.num_classes, at_least=2),
            "num_nodes": check_integer("num_nodes", self.num_nodes, at_least=1),
            "num_edges": check_integer("num_edges", self.num_edges, at_least=0),
            "provenance": MappingProxyType(plain_mapping("provenance", self.provenance)),
        }
        for name in ("max_radius", "num_layers"):
            if getattr(self, name) is not None:
                checked[name] = check_integer(name, getattr(self, name), at_least=1)
        if not isinstance(self.simultaneous, bool):
            raise InvalidParameterError(f"`simultaneous` must be True or False, got {self.simultaneous!r}.")
        for name in ("bound", "engine", "graph_fingerprint", "edges_fingerprint"):
            if not isinstance(getattr(self, name), str):
                raise InvalidParameterError(f"`{name}` must be a text, got {getattr(self, name)!r}.")
        if self.convolution is not None:
            check_choice("convolution", self.convolution, CONVOLUTIONS)
        if self.class_names is not None:
            names = tuple(self.class_names)
            if len(names) != self.num_classes or not all(isinstance(name, str) for name in names):
                raise InvalidParameterError(
                    f"`class_names` must hold one text per class ({self.num_classes}), got {names!r}."
                )
            checked["class_names"] = names
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def the_rule(self) -> Rule:
        """The rule itself."""
        return rule_named(self.rule)

    def replace(self, **changes: Any) -> "Setup":
        """Return the set-up with some values changed."""
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Certificates:
    """Certificates of all targets. All arrays are read-only and checked against each other.

    What a smoothing adds (`Smoothing.adds`) are further attributes, by name; ``certificates.adds`` lists them.

    Attributes:
        setup: What they were made from.
        adds: What the smoothing adds, by name.
        collective: How many targets keep their prediction under one set of hostile nodes shared by all, or None.

    Raises:
        InvalidParameterError: If a value is outside its domain, or values do not fit each other.
    """

    setup: Setup
    targets: IntArray = array_field(
        kind="int",
        shape=("targets",),
        stage="asked",
        at_least=0,
        at_most="nodes",
        column="target",
        doc="Node index of each target, distinct.",
    )
    node_ids: TextArray | None = array_field(
        kind="text", shape=("targets",), stage="asked", optional=True, column="node_id", doc="Name per target."
    )
    labels: IntArray | None = array_field(
        kind="int",
        shape=("targets",),
        stage="asked",
        optional=True,
        at_least=-1,
        at_most="classes",
        column="label",
        doc="True class per target, -1 if unknown.",
    )
    prediction: IntArray = array_field(
        kind="int",
        shape=("targets",),
        stage="concluded",
        at_least=0,
        at_most="classes",
        column="prediction",
        doc='Reported class; where the status is "abstained" only the class with most selection votes.',
    )
    status: TextArray = array_field(
        kind="text",
        shape=("targets",),
        stage="concluded",
        column="status",
        doc='"certified" (radius >= 1), "predicted" (radius 0) or "abstained" (radius -1).',
    )
    p_lower: FloatArray | None = array_field(
        kind="float",
        shape=("targets",),
        stage="concluded",
        optional=True,
        at_least=0.0,
        at_most=1.0,
        column="p_lower",
        compared="close",
        doc="Lower bound on the probability of the reported class.",
    )
    p_upper: FloatArray | None = array_field(
        kind="float",
        shape=("targets",),
        stage="concluded",
        optional=True,
        at_least=0.0,
        at_most=1.0,
        column="p_upper",
        compared="close",
        doc="Upper bound on the probability of every other class.",
    )
    radius: IntArray = array_field(
        kind="int",
        shape=("targets",),
        stage="concluded",
        at_least=-1,
        column="radius",
        doc="Certified budget of the adversary; the largest that was looked at means at least so much.",
    )
    num_eligible: IntArray = array_field(
        kind="int",
        shape=("targets",),
        stage="graph",
        at_least=0,
        column="num_eligible",
        doc="What the adversary could choose from for this target, counted as the radius is.",
    )
    receptive_field_size: IntArray = array_field(
        kind="int",
        shape=("targets",),
        stage="graph",
        at_least=1,
        column="receptive_field_size",
        doc="Nodes whose messages can reach the target, the target included.",
    )
    delta_methods: TextArray | None = array_field(
        kind="text",
        shape=("targets",),
        stage="graph",
        optional=True,
        column="delta_method",
        doc='What each target\'s Δ̄ comes from, e.g. "exact".',
    )
    delta_upper: FloatArray | None = array_field(
        kind="float",
        shape=("targets", "radii"),
        stage="graph",
        optional=True,
        at_least=0.0,
        at_most=1.0,
        column="delta_",
        first=1,
        compared="close",
        doc="Δ̄(ρ) for ρ = 1, 2, ..., an upper bound on the probability that a hostile message arrives.",
    )
    selection_votes: IntArray | None = array_field(
        kind="int",
        shape=("targets", "classes"),
        stage="drawn",
        optional=True,
        at_least=0,
        doc="n0 votes per class; zeros where a target is evaluated exactly.",
    )
    selection_no_class: IntArray | None = array_field(
        kind="int",
        shape=("targets",),
        stage="drawn",
        optional=True,
        at_least=0,
        doc="Selection votes whose scores single out no class: one is NaN, or several are the largest. None for zeros.",
    )
    estimation_votes: IntArray | None = array_field(
        kind="int",
        shape=("targets", "classes"),
        stage="drawn",
        optional=True,
        at_least=0,
        doc="Votes per class that bound its probability; zeros where a target is evaluated exactly.",
    )
    estimation_no_class: IntArray | None = array_field(
        kind="int",
        shape=("targets",),
        stage="drawn",
        optional=True,
        at_least=0,
        doc="The same of the estimation votes.",
    )
    attackers: IntArray | None = array_field(
        kind="int",
        shape=("targets", "largest set"),
        stage="concluded",
        optional=True,
        at_least=-1,
        at_most="nodes",
        compared="never",
        doc="Nodes to protect first: the radius + 1 that harm the target most, as far as is known, padded with -1.",
    )
    adds: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    collective: CollectiveCertificate | None = None

    def __post_init__(self) -> None:
        """Check every value; copy and lock every array."""
        sizes = self._sizes()
        for spec in ARRAYS:
            value = getattr(self, spec.name)
            if value is not None:
                object.__setattr__(self, spec.name, spec.checked(value, sizes))
            elif not spec.optional:
                raise InvalidParameterError(f"`{spec.name}` must be given. {spec.doc}")
        object.__setattr__(self, "adds", MappingProxyType(self._checked_adds(sizes)))
        check_together(self)

    def _sizes(self) -> dict[str, int]:
        sizes = {
            "targets": int(np.size(self.targets)),
            "classes": self.setup.num_classes,
            "nodes": self.setup.num_nodes,
        }
        if self.delta_upper is not None and self.setup.max_radius is not None:
            sizes["radii"] = self.setup.max_radius
        return sizes

    def _checked_adds(self, sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
        specs = {spec.name: spec for spec in self.setup.smoothing.adds}
        unknown = sorted(set(self.adds) - set(specs))
        missing = sorted(name for name, spec in specs.items() if not spec.optional and name not in self.adds)
        if unknown or missing:
            raise InvalidParameterError(
                f"`adds` must hold what the smoothing '{self.setup.smoothing.name}' adds, "
                f"{', '.join(specs) or 'nothing'}; missing: {', '.join(missing) or 'none'}, unknown: "
                f"{', '.join(unknown) or 'none'}."
            )
        return {name: spec.checked(self.adds[name], sizes) for name, spec in specs.items() if name in self.adds}

    def __getattr__(self, name: str) -> Any:
        """Return what the smoothing adds."""
        adds = self.__dict__.get("adds", {})
        if name in adds:
            return adds[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.adds})

    def __repr__(self) -> str:
        s = self.setup
        return (
            f"Certificates({self.targets.size:,} targets, {int((self.radius >= 1).sum()):,} certified, "
            f"{int((self.radius < 0).sum()):,} abstained, smoothing={s.smoothing.name!r}, threat={s.threat.name!r}, "
            f"rule={s.rule!r}, alpha={s.alpha:g})"
        )

    def __len__(self) -> int:
        return int(self.targets.size)

    @property
    def whole_field(self) -> BoolArray:
        """Whether the prediction holds whatever all eligible nodes do together, shape (num_targets,)."""
        return np.asarray((self.radius >= 0) & (self.radius >= self.num_eligible))

    @property
    def votes(self) -> tuple[SelectionVotes, EstimationVotes] | None:
        """Both kinds of votes, as `certify_votes` takes them with `delta_bounds` of the same set-up.

        None where nothing was drawn, or not the same number for all targets.
        """
        selection, estimation = self.selection_votes, self.estimation_votes
        if selection is None or estimation is None:
            return None
        for table, no_class in ((selection, self.selection_no_class), (estimation, self.estimation_no_class)):
            total = table.sum(axis=1) if no_class is None else table.sum(axis=1) + no_class
            if (total != total[0]).any() or not total[0]:
                return None
        return (
            SelectionVotes.drawn(selection, self.selection_no_class, self._origin),
            EstimationVotes.drawn(estimation, self.estimation_no_class, self._origin),
        )

    @property
    def votes_for_no_class(self) -> tuple[int, int]:
        """How many votes, or evaluations where nothing is drawn, single out no class, and how many there are."""
        for_none, total = 0, 0
        for table, no_class in (
            (self.selection_votes, self.selection_no_class),
            (self.estimation_votes, self.estimation_no_class),
        ):
            few = 0 if no_class is None else int(no_class.sum())
            for_none, total = for_none + few, total + few + (0 if table is None else int(table.sum()))
        for name, (spec, array) in self.every_array().items():
            holds_classes = spec.at_least == NO_CLASS and spec.at_most == "classes" and spec.stage == "drawn"
            if holds_classes and name != "estimation_predictions":  # each of these is an estimation vote
                for_none, total = for_none + int(np.count_nonzero(array == NO_CLASS)), total + array.size
        return for_none, total

    @property
    def _origin(self) -> Origin:
        s = self.setup
        return Origin.of(
            graph=s.edges_fingerprint, targets=self.targets, smoothing=s.smoothing, num_layers=s.num_layers
        )

    def every_array(self) -> dict[str, tuple[Field, NDArray[Any]]]:
        """Return all arrays that there are, by name, with their declarations."""
        declared = {spec.name: (spec, getattr(self, spec.name)) for spec in ARRAYS}
        added = {spec.name: (spec, self.adds.get(spec.name)) for spec in self.setup.smoothing.adds}
        return {name: (spec, value) for name, (spec, value) in {**declared, **added}.items() if value is not None}

    def replace(self, **changes: Any) -> "Certificates":
        """Return the certificates with some attributes changed, what the smoothing adds included."""
        names = {each.name for each in self.setup.smoothing.adds}
        added = {name: value for name, value in changes.items() if name in names}
        others = {name: value for name, value in changes.items() if name not in names}
        if added:
            others["adds"] = {**self.adds, **added}
        return dataclasses.replace(self, **others)

    def summary(self) -> str:
        """Say in plain words what is proved, followed by the share of certified targets per radius."""
        from graycert.runs.words import summary_text

        return summary_text(self)

    def to_dataframe(self) -> "pd.DataFrame":
        """Return one row per target; columns as in certificates.parquet."""
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
    def load(cls, directory: str | Path) -> "Certificates":
        """Read a run directory. The files are checked for form; `graycert.verify` checks what they claim.

        Raises:
            InvalidFileError: If a file is missing, truncated, corrupted, foreign, or of another format
                version.
        """
        from graycert.runs.store import load_run

        return load_run(directory)

    def again(
        self,
        data: Any,
        *,
        threat: Threat | None = None,
        rule: str | None = None,
        bound: str | None = None,
        alpha: float | None = None,
        simultaneous: bool | None = None,
        max_radius: int | None = None,
    ) -> "Certificates":
        """Conclude once more from the same votes, for instance for attacks from another distance; nothing is drawn.

        Guarantee:
            As of `certify`, for each conclusion on its own, if it was chosen before looking at the votes. The chance
            that any of several conclusions is wrong may be as large as the sum of their failure probabilities. Where
            the rule is the same, conclusions for several threats or bounds rest on one confidence interval and fail
            together.

        Args:
            data: The graph that they are about; compared by fingerprint.
            threat: Who may do what; must not reach nodes that the first threat excluded, because the votes may come
                from a model that shows them (skip connection). Default: unchanged, as for all others.
            rule: See `certify`; "event-aware" needs votes that were drawn for it.
            bound: See `delta_bounds`.
            alpha: Failure probability, in (0, 1).
            simultaneous: Whether it is for all targets at once.
            max_radius: Largest radius looked at, >= 1.

        Returns:
            The new result; a collective certificate of the old one is dropped.

        Raises:
            InvalidParameterError: If an argument is out of its domain, or ``data`` is another graph.
            UnsoundSetupError: If nothing is proved of the combination.
        """
        from graycert.certification import conclude_again

        changes = {
            "threat": threat,
            "rule": rule,
            "bound": bound,
            "alpha": alpha,
            "simultaneous": simultaneous,
            "max_radius": max_radius,
        }
        return conclude_again(self, data, {name: value for name, value in changes.items() if value is not None})

    def against_one_adversary(
        self,
        data: Any,
        budgets: Sequence[int] | None = None,
        *,
        groups: ArrayLike | None = None,
        group_budgets: ArrayLike | None = None,
        method: str = "lp",
        time_limit: float = 60.0,
    ) -> CollectiveCertificate:
        r"""Bound how many targets keep their prediction if ρ hostile nodes are chosen once, against all of them.

        A certificate per target lets the adversary choose anew for each target. One that must spread ρ nodes over all
        targets flips far fewer.

        Guarantee:
            With probability at least 1 - α over the draws, for every budget: at least ``num_robust`` targets keep
            their prediction, whichever ρ untrusted nodes are hostile and whatever their features are. A target of
            which a node is hostile that the threat excludes for being too close (such as the target itself, if its
            features are shown by a skip connection) counts as lost. All targets are bounded at level α/N, from the
            votes of the run.

        Args:
            data: The graph that they are about; compared by fingerprint.
            budgets: Numbers ρ of hostile nodes, rising, >= 1; default 1, 2, 3, 5, 10, 20, 40.
            groups: Group of each node, -1 for none, shape (num_nodes,).
            group_budgets: Most hostile nodes per group, shape (num_groups,).
            method: "lp", proved in integers whatever the solver does, or "milp", often tighter, which trusts the bound
                of the solver's branch and bound.
            time_limit: Seconds per budget; results of "milp" depend on it.

        Returns:
            Counts per budget. ``certificates.replace(collective=...)`` keeps them with the result.

        Raises:
            UnsoundSetupError: If nothing is proved of the combination, e.g. ``unsound-rule``.
            InvalidParameterError: If an argument is out of range.

        References:
            Schuchardt et al. (2021) for the idea; docs/proofs/collective.md.
        """
        from graycert.certification import against_one_adversary

        return against_one_adversary(
            self,
            data,
            budgets=budgets,
            groups=groups,
            group_budgets=group_budgets,
            method=method,
            time_limit=time_limit,
        )

    def possible_labels(self, radius: int) -> BoolArray:
        """Return which labels ``radius`` hostile nodes could force, shape (num_targets, num_classes).

        See `graycert.certification.possible_labels` for what is guaranteed.
        """
        from graycert.certification import possible_labels

        return possible_labels(self, radius=radius)


ARRAYS = declared_arrays(Certificates)
"""The arrays of every result, in the order in which tables show them."""


def check_together(c: Certificates) -> None:
    """Check what no field can know on its own.

    Raises:
        InvalidParameterError: If values do not fit each other.
    """
    setup, size = c.setup, len(c)
    if size == 0 or np.unique(c.targets).size != size:
        raise InvalidParameterError("`targets` must be distinct nodes, at least one.")
    if (c.status != status_of(c.radius)).any():
        raise InvalidParameterError(
            "`status` must be 'abstained', 'predicted' or 'certified' as `radius` is -1, 0 or more. Use "
            "graycert.certify."
        )
    if c.delta_upper is not None:
        check_delta_upper(c.delta_upper, num_targets=size)
    if setup.max_radius is not None and (c.radius > setup.max_radius).any():
        raise InvalidParameterError(
            f"`radius` must be <= {setup.max_radius}, the largest that was looked at, got {int(c.radius.max())}."
        )
    if setup.threat.within_field and (c.num_eligible > c.receptive_field_size).any():
        raise InvalidParameterError(
            "`num_eligible` must not exceed `receptive_field_size`: eligible nodes are part of the receptive field."
        )
    setup.smoothing.check_graph(num_edges=setup.num_edges, num_nodes=setup.num_nodes)
    trusted = getattr(setup.threat, "trusted", None)
    if trusted is not None and trusted.size != setup.num_nodes:
        raise InvalidParameterError(
            f"`threat.trusted` must have one entry per node ({setup.num_nodes}), got {trusted.size}."
        )
    _check_votes(c)
    if c.collective is not None:
        _check_collective(c.collective, setup, num_targets=size)


def _check_votes(c: Certificates) -> None:
    draws, needs = c.setup.draws, c.setup.the_rule.needs
    if (c.selection_votes is None) != (draws is None) or (c.estimation_votes is None) != (draws is None):
        raise InvalidParameterError("`selection_votes` and `estimation_votes` must be given exactly where draws are.")
    if draws is None or c.selection_votes is None or c.estimation_votes is None:
        return
    chosen, counted = (
        table.sum(axis=1) + (0 if no_class is None else no_class)
        for table, no_class in (
            (c.selection_votes, c.selection_no_class),
            (c.estimation_votes, c.estimation_no_class),
        )
    )
    drawn = chosen > 0
    fixed = draws.num_estimation if isinstance(draws, Draws) else None
    most = draws.num_estimation if isinstance(draws, Draws) else draws.max_estimation
    if (chosen[drawn] != draws.num_selection).any() or (counted[~drawn] != 0).any():
        raise InvalidParameterError(f"`selection_votes` must sum to {draws.num_selection} for every target drawn for.")
    if (counted > most).any() or (fixed is not None and (counted[drawn] != fixed).any()):
        raise InvalidParameterError(f"`estimation_votes` must sum to {most} for every target that is drawn for.")
    singles, batches = c.adds.get("estimation_predictions"), c.adds.get("estimation_batches")
    if needs == "predictions" and singles is None:
        raise InvalidParameterError(
            f"`estimation_predictions` must be given for rule '{c.setup.rule}', got None. Only the class of each vote "
            "shows where hostile messages could have been the cause."
        )
    if singles is not None:
        found, for_none = count_classes(singles, num_classes=c.setup.num_classes)
        known = 0 if c.estimation_no_class is None else c.estimation_no_class
        if not np.array_equal(found, c.estimation_votes) or (for_none != known).any():
            raise InvalidParameterError("`estimation_predictions` must be the votes that `estimation_votes` counts.")
    if (needs == "batches") is (batches is None) or (
        batches is not None
        and not (
            np.array_equal(batches.sum(axis=1), c.estimation_votes)
            and _same_sums(c.adds.get("estimation_batches_no_class"), c.estimation_no_class, shape=batches.shape[:2])
        )
    ):
        raise InvalidParameterError(
            "`estimation_batches` must be the votes that `estimation_votes` counts, and belongs to rule 'sequential'."
        )


def _same_sums(parts: IntArray | None, whole: IntArray | None, *, shape: tuple[int, int]) -> bool:
    """Return whether votes for no class, batch by batch and in all, are absent or agree."""
    if parts is None or whole is None:
        return parts is None and whole is None
    return parts.shape == shape and np.array_equal(parts.sum(axis=1), whole)


def _check_collective(collective: object, setup: Setup, *, num_targets: int) -> None:
    if not isinstance(collective, CollectiveCertificate):
        raise InvalidParameterError(f"`collective` must be a CollectiveCertificate, got {collective!r}.")
    if setup.smoothing.cell(setup.threat.name, setup.rule, "one adversary").status != "proved":
        raise InvalidParameterError(
            f"`collective` needs a sound rule and a threat with a proof, got rule {setup.rule!r}. Leave one of them "
            "out."
        )
    budgets, active = collective.budgets, collective.num_active
    robust, naive = collective.num_robust, collective.num_robust_naive
    shapes = {np.shape(values) for values in (budgets, robust, naive, collective.proved_by, collective.solver_status)}
    possible = (
        shapes == {(np.size(budgets),)}
        and np.all(np.diff(budgets, prepend=0) > 0)
        and np.all((naive >= 0) & (naive <= robust) & (robust <= active))
        and active <= num_targets
    )
    if not possible:
        raise InvalidParameterError(
            "`collective` must have one count per rising budget, with 0 <= num_robust_naive <= num_robust <= "
            f"num_active <= {num_targets}, the number of targets. Use Certificates.against_one_adversary."
        )
