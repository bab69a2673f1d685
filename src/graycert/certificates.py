"""The one result: a certificate per target, with everything that it was made from."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graycert._consistency import check_together
from graycert._fields import Field, array_field, declared_arrays
from graycert._origin import Origin
from graycert._phases import check_seconds
from graycert._types import NO_CLASS, BoolArray, FloatArray, IntArray, TextArray
from graycert.errors import InvalidParameterError
from graycert.rules import CollectiveCertificate
from graycert.setup import Setup
from graycert.statistics import EstimationVotes, SelectionVotes
from graycert.threats import Threat

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from torch import Tensor, nn

    from graycert.deployment import SmoothedClassifier
    from graycert.runs.compare import Comparison
    from graycert.runs.conditions import Verdict
    from graycert.runs.who import ProtectFirst


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Certificates:
    """Certificates of all targets. All arrays are read-only and checked against each other.

    What a smoothing adds (`Smoothing.adds`) are further attributes, by name; ``certificates.adds`` lists them.

    Attributes:
        setup: What they were made from.
        adds: What the smoothing adds, by name.
        collective: How many targets keep their prediction under one set of hostile nodes shared by all, or None.
        seconds: Wall time of each phase that ran, see ``graycert._phases.PHASES``; the audit is one of its own.
        model: A copy of the model that was certified, for `classifier`; None in what was loaded.
        ablation_token: Features of an ablated node, if they were given to `certify`.
        graph: The graph without its features (`graycert.graph.named_graph.NamedGraph`), for drawings; None in what was
            loaded.
        neighbourhoods: Receptive fields as pages draw them (`graycert.runs.neighbourhoods`), in what was loaded.

    Raises:
        InvalidParameterError: If a value is outside its domain, or values do not fit each other.
    """

    setup: Setup
    targets: IntArray = array_field(
        "int",
        ("targets",),
        "Node index of each target, distinct.",
        stage="asked",
        at_least=0,
        at_most="nodes",
        column="target",
    )
    node_ids: TextArray | None = array_field(
        "text", ("targets",), "Name per target.", stage="asked", optional=True, column="node_id"
    )
    labels: IntArray | None = array_field(
        "int",
        ("targets",),
        "True class per target, -1 if unknown.",
        stage="asked",
        optional=True,
        at_least=-1,
        at_most="classes",
        column="label",
    )
    prediction: IntArray = array_field(
        "int",
        ("targets",),
        'Reported class; where the status is "abstained" only the class with most selection votes.',
        stage="concluded",
        at_least=0,
        at_most="classes",
        column="prediction",
    )
    prediction_as_trained: IntArray | None = array_field(
        "int",
        ("targets",),
        "Class by one pass of the model without smoothing, which is NOT certified; -1 where it singles out none.",
        stage="drawn",
        optional=True,
        at_least=NO_CLASS,
        at_most="classes",
        column="prediction_as_trained",
    )
    prediction_without_messages: IntArray | None = array_field(
        "int",
        ("targets",),
        "The same on the graph without edges, where no target may be hostile itself.",
        stage="drawn",
        optional=True,
        at_least=NO_CLASS,
        at_most="classes",
        column="prediction_without_messages",
    )
    prediction_of_floor: IntArray | None = array_field(
        "int",
        ("targets",),
        "Class by the model of single nodes that was given as the floor, where no target may be hostile itself.",
        stage="drawn",
        optional=True,
        at_least=NO_CLASS,
        at_most="classes",
        column="prediction_of_floor",
    )
    status: TextArray = array_field(
        "text",
        ("targets",),
        '"certified" (radius >= 1), "predicted" (radius 0) or "abstained" (radius -1).',
        stage="concluded",
        column="status",
    )
    p_lower: FloatArray | None = array_field(
        "float",
        ("targets",),
        "Lower bound on the probability of the reported class.",
        stage="concluded",
        optional=True,
        given_for=("counts", "predictions"),
        at_least=0.0,
        at_most=1.0,
        column="p_lower",
        compared="close",
    )
    p_upper: FloatArray | None = array_field(
        "float",
        ("targets",),
        "Upper bound on the probability of every other class.",
        stage="concluded",
        optional=True,
        given_for=("counts", "predictions"),
        at_least=0.0,
        at_most=1.0,
        column="p_upper",
        compared="close",
    )
    radius: IntArray = array_field(
        "int",
        ("targets",),
        "Certified budget of the adversary, at most ``num_eligible``: then nothing that all of them do changes the "
        "prediction (`whole_field`). Below that, the largest budget that was looked at means at least so much.",
        stage="concluded",
        at_least=-1,
        column="radius",
    )
    num_eligible: IntArray = array_field(
        "int",
        ("targets",),
        "What the adversary could choose from for this target, counted as the radius is.",
        stage="graph",
        at_least=0,
        column="num_eligible",
    )
    in_degree: IntArray | None = array_field(
        "int",
        ("targets",),
        "Other nodes with an edge into the target.",
        stage="graph",
        optional=True,
        at_least=0,
        at_most="nodes",
        column="in_degree",
    )
    receptive_field_size: IntArray = array_field(
        "int",
        ("targets",),
        "Nodes whose messages can reach the target, the target included.",
        stage="graph",
        at_least=1,
        column="receptive_field_size",
    )
    delta_methods: TextArray | None = array_field(
        "text",
        ("targets",),
        'What each target\'s Δ̄ comes from, e.g. "exact".',
        stage="graph",
        optional=True,
        column="delta_method",
    )
    delta_upper: FloatArray | None = array_field(
        "float",
        ("targets", "radii"),
        "Δ̄(ρ) for ρ = 1, 2, ..., an upper bound on the probability that a hostile message arrives.",
        stage="graph",
        optional=True,
        at_least=0.0,
        at_most=1.0,
        column="delta_",
        first=1,
        compared="close",
    )
    radius_by_distance: IntArray | None = array_field(
        "int",
        ("targets", "distances"),
        "Certified radius if hostile nodes were at least min_distance + 1, + 2, ... hops away, up to num_layers; "
        "beyond the nodes that could be hostile where all of them may be.",
        stage="graph",
        optional=True,
        at_least=-1,
    )
    selection_votes: IntArray | None = array_field(
        "int",
        ("targets", "classes"),
        "n0 votes per class; zeros where a target is evaluated exactly.",
        stage="drawn",
        optional=True,
        at_least=0,
    )
    selection_no_class: IntArray | None = array_field(
        "int",
        ("targets",),
        "Selection votes whose scores single out no class: one is NaN, or several are the largest. None for zeros.",
        stage="drawn",
        optional=True,
        at_least=0,
    )
    estimation_votes: IntArray | None = array_field(
        "int",
        ("targets", "classes"),
        "Votes per class that bound its probability; zeros where a target is evaluated exactly.",
        stage="drawn",
        optional=True,
        at_least=0,
    )
    estimation_no_class: IntArray | None = array_field(
        "int",
        ("targets",),
        "The same of the estimation votes.",
        stage="drawn",
        optional=True,
        at_least=0,
    )
    attackers: IntArray | None = array_field(
        "int",
        ("targets", "largest set"),
        "Nodes to protect first: the radius + 1 that harm the target most, as far as is known, padded with -1.",
        stage="concluded",
        optional=True,
        at_least=-1,
        at_most="nodes",
        compared="never",
    )
    attacker_ids: TextArray | None = array_field(
        "text",
        ("targets", "largest set"),
        "Names of the nodes to protect first, where nodes have names.",
        stage="concluded",
        optional=True,
        compared="never",
    )
    adds: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    collective: CollectiveCertificate | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    model: Any = None
    ablation_token: Any = None
    graph: Any = None
    neighbourhoods: Any = None

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
        object.__setattr__(self, "seconds", MappingProxyType(check_seconds(self.seconds)))
        for spec in (*ARRAYS, *self.setup.smoothing.adds):
            if self.setup.the_rule.needs in spec.given_for and spec.name not in self.every_array():
                raise InvalidParameterError(
                    f"`{spec.name}` must be given for rule '{self.setup.rule}', got None. {spec.doc}"
                )
        check_together(self)

    def _sizes(self) -> dict[str, int]:
        sizes = {
            "targets": int(np.size(self.targets)),
            "classes": self.setup.num_classes,
            "nodes": self.setup.num_nodes,
            **self.setup.smoothing.sizes,
        }
        if self.delta_upper is not None and self.setup.max_radius is not None:
            sizes["radii"] = self.setup.max_radius
        return {**sizes, **self.setup.smoothing.axes(self.setup)}

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
            f"{int((self.radius < 0).sum()):,} abstained, smoothing={s.smoothing.name!r}, "
            f"threat={s.threat.claimed_as!r}, rule={s.rule!r}{'' if s.draws is None else f', alpha={s.alpha:g}'})"
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
        for spec in self.setup.smoothing.adds:
            name, array = spec.name, self.adds.get(spec.name)
            holds_classes = spec.at_least == NO_CLASS and spec.at_most == "classes" and spec.stage == "drawn"
            if (
                array is not None and holds_classes and name != "estimation_predictions"
            ):  # each of these is an estimation vote
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
        from graycert.runs.summary import summary_text

        return summary_text(self)

    def protect_first(self, data: Any = None, *, top: int = 10) -> "ProtectFirst":
        """Name the nodes that limit the most targets, and say what trusting them would gain.

        A node limits a target if it is in the smallest set of hostile nodes, as far as is known, against which the
        target is not certified. Whether these nodes could change the prediction is not said.

        Args:
            data: The graph that the certificates are about, if gains are to be computed: from the same votes, or Δ̄
                alone where the smoothing shows features of trusted nodes, so that votes would be others.
            top: Most nodes named, >= 1.

        Returns:
            The nodes by name, with the number of targets and their classes; ``print`` shows a table.

        Raises:
            InvalidParameterError: If the smoothing does not say who harms a target, or ``data`` is another graph.
        """
        from graycert.runs.who import protect_first

        return protect_first(self, data, top=top)

    def explain(self, node: int | str) -> str:
        """Say in words what decides one target, who could do most, and what one more radius would need.

        Args:
            node: A target: its index, or its name.

        Raises:
            InvalidParameterError: If it is no target.
        """
        from graycert.runs.explain import explain

        return explain(self, node)

    def confusion(self, *, radius: int | None = None) -> "pd.DataFrame":
        """Return the confusion table: targets by true class and by what the smoothed classifier predicts.

        Args:
            radius: Count only predictions that hold against that many (or all eligible) hostile nodes, >= 0; the others
                are in the column "not certified". Default: all predictions; those without are in "abstained".

        Returns:
            Counts of the targets with a known class; rows are true classes, columns predicted ones.

        Raises:
            InvalidParameterError: If no true class is known.
        """
        from graycert.runs.per_class import confusion

        return confusion(self, radius=radius)

    def by_class(self) -> "pd.DataFrame":
        """Return counts per true class: targets, correct as trained, correct when smoothed, certified and correct.

        Returns:
            A row per class that targets have; ``certified_1`` means certified at ρ = 1, ``holds_1`` also counts targets
            that fewer nodes could attack and that hold against all of these. Without labels, correct means: as the
            model as trained predicts.
        """
        from graycert.runs.per_class import by_class

        return by_class(self)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Plot the certified ratio and the certified accuracy over the radius, with what it is to be compared to.

        Args:
            ax: Matplotlib axes to draw into. Default: those of a new figure.

        Returns:
            The axes.

        Raises:
            InvalidParameterError: If matplotlib is not installed.
        """
        from graycert.runs.pictures import plot

        return plot(self, ax)

    def plot_target(self, node: int | str, ax: "Axes | None" = None) -> "Axes":
        """Plot what decides one target: Δ̄(ρ) against half its proved lead; else how many votes each class has.

        Args:
            node: A target: its index, or its name.
            ax: Matplotlib axes to draw into. Default: those of a new figure.

        Returns:
            The axes.

        Raises:
            InvalidParameterError: If it is no target, or matplotlib is not installed.
        """
        from graycert.runs.pictures import plot_target

        return plot_target(self, node, ax)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from graycert.runs.notebook import to_html

        return to_html(self)

    def judge(self, *conditions: str) -> "tuple[Verdict, ...]":
        """Say whether conditions such as "correct@2=0.6" are met, see `graycert.runs.conditions`.

        Raises:
            InvalidParameterError: If one is malformed, or about classes or radii that are not there.
        """
        from graycert.runs.conditions import Condition

        return tuple(Condition.parse(each).judge(self) for each in conditions)

    def compare(self, other: "Certificates") -> "Comparison":
        """Say what became of each target in another result, and which settings differ; see `graycert.runs.compare`.

        Raises:
            InvalidParameterError: If the two cannot be compared.
        """
        from graycert.runs.compare import compare

        return compare(self, other)

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

    @classmethod
    def resume(
        cls,
        folder: str | Path,
        *,
        data: Any = None,
        model: "nn.Module | None" = None,
        floor: "nn.Module | None" = None,
        execution: Any = None,
    ) -> "Certificates":
        """Go on with a certification that was interrupted, from its folder; finished blocks are not computed again.

        The result is that of an undisturbed call, which may also just be called again.

        Args:
            folder: What was given as ``Execution(folder=...)``, or ``RUN.unfinished`` of ``graycert certify --out
                RUN``. It stays until you delete it.
            data: The graph, where the folder does not say where it comes from.
            model: The model, where graycert did not build it.
            floor: What was given to `certify` as the floor, if anything was.
            execution: An `Execution`: who works on what is left, e.g. with another number of workers.

        Raises:
            InvalidFileError: If it is no such folder, damaged, or in use.
            InvalidParameterError: If graph or model are missing, or others.
        """
        resume = import_module("graycert.runs.resume").resume  # which knows all of graycert
        return cast("Certificates", resume(folder, data=data, model=model, floor=floor, execution=execution))

    def classifier(
        self, model: "nn.Module | None" = None, *, ablation_token: "Tensor | None" = None
    ) -> "SmoothedClassifier":
        """Return the smoothed classifier that the certificates are about, to be run on this graph or another one.

        Args:
            model: The model that was certified, where the certificates were loaded from a run directory, which may keep
                its weights beside them, but not the class of a model of your own.
            ablation_token: What was given to `certify` besides such a model.

        Raises:
            InvalidParameterError: If ``model`` is needed and not given, or its weights are not those of the run.
        """
        from graycert.deployment.certified_model import classifier_of

        return classifier_of(self, model, ablation_token)

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
