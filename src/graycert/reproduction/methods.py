"""The curves of a figure: a method with its settings, the computation behind it, and what it says of each target.

Nothing else knows which computation a method needs, nor how its result is read.
"""

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from numpy.typing import NDArray
from pydantic import Field

from graycert.reproduction.certified_targets import CertifiedTargets
from graycert.reproduction.certify_job import CertifyJob
from graycert.reproduction.job import Job
from graycert.reproduction.levine_job import LevineJob
from graycert.reproduction.mlp_job import MLPJob
from graycert.reproduction.settings import (
    Conclusion,
    Count,
    Distance,
    GraphSettings,
    Level,
    ModelSettings,
    Probability,
    Settings,
    SplitSettings,
    TrainingSettings,
)
from graycert.reproduction.sparse_job import SparseJob
from graycert.reproduction.tree_shaped_job import TreeShapedJob
from graycert.reproduction.voting_job import VotingJob

if TYPE_CHECKING:
    from graycert.reproduction.results import Results


class Draws(Settings):
    """How much is drawn, and what is concluded how surely.

    Args:
        num_selection: n0.
        num_estimation: n1.
        num_targets: Certify so many test nodes, drawn by the seed, the same for all methods; None takes all.
        alpha: Failure probability per target.
    """

    num_selection: Count = 1_000
    num_estimation: Count = 3_000
    num_targets: Count | None = None
    alpha: Level = 0.01


class TrainedSettings(GraphSettings, ModelSettings):
    """A model for each seed, on the split of the seed."""

    def split_settings(self, seed: int) -> SplitSettings:
        """Return the split of a seed."""
        return SplitSettings(seed=seed, **self.model_dump(include=set(GraphSettings.model_fields)))

    def training(self, seed: int, **changes: Any) -> TrainingSettings:
        """Return the model of a seed, trained under ``training_p_delete`` and ``training_p_ablate`` where they are."""
        names = {*GraphSettings.model_fields, *ModelSettings.model_fields}
        smoothed = {name: name.removeprefix("training_") for name in type(self).model_fields if name[:9] == "training_"}
        values = {each: getattr(self, name) for name, each in smoothed.items()}
        return TrainingSettings(**self.model_dump(include=names) | values | {"seed": seed} | changes)


class Probabilities(Settings):
    """How interception smoothing is done.

    Args:
        training_p_delete: p_d in training.
        training_p_ablate: p_a in training.
        p_delete: p_d at inference.
        p_ablate: p_a at inference.
    """

    training_p_delete: Probability = 0.0
    training_p_ablate: Probability = 0.0
    p_delete: Probability = 0.0
    p_ablate: Probability = 0.0


class CurveSettings(TrainedSettings):
    """What curves of all methods can differ in; see also `GraphSettings` and `ModelSettings`.

    Args:
        targets: "all" test nodes that were certified, or those with "tree-shaped" receptive fields in the full graph.
        min_distance: Hostile nodes are at least so many hops away.
    """

    targets: Literal["all", "tree-shaped"] = "all"
    min_distance: Distance = 1


class InterceptionSettings(CurveSettings, Draws, Probabilities):
    """What curves of interception smoothing can differ in; see also `CurveSettings`, `Draws` and `Probabilities`.

    Args:
        bound: See `graycert.delta_bounds`; "multiplicative" is the paper's Theorem 3.
        rule: See `graycert.certify`.
        test_graph: "as it is", or sparsified by "diffusion" (GDC) or to "trees" (App. D) before it is attacked.
        max_radius: Largest radius looked at.
    """

    bound: str = "multiplicative"
    rule: str = "sound"
    test_graph: Literal["as it is", "diffusion", "trees"] = "as it is"
    max_radius: Count = 40

    def curve(self, label: str, **changes: Any) -> "Interception":
        """Return the curve of these settings, but for ``changes``."""
        shared = {name: getattr(self, name) for name in InterceptionSettings.model_fields}
        return Interception(method="interception", label=label, **shared | changes)


class Curve(CurveSettings):
    """A method with its settings.

    Args:
        label: In the legend; the same label looks the same in all figures.
        panel: Title of its panel; empty if there is only one.

    Attributes:
        family: Method, in words.
        against: What hostile nodes may do; the structure is fixed if nothing else is said.
        certain: Whether its certificates hold with certainty although it draws.
    """

    family: ClassVar[str]
    against: ClassVar[str] = "all features of any eligible nodes"
    certain: ClassVar[bool] = False

    label: Annotated[str, Field(min_length=1)]
    panel: str = ""

    @property
    def look(self) -> str:
        """Name of the method where methods are told apart: in the colours, and in settings of how much is drawn."""
        return self.family

    @property
    def guarantee(self) -> str:
        """Say against whom its certificates hold, and how surely."""
        if isinstance(self, Draws) and not self.certain:
            return f"{self.against}; with probability {1 - self.alpha:g} per target"
        return f"{self.against}; with certainty"

    @abstractmethod
    def job(self, seed: int, distances: Sequence[int]) -> Job:
        """Return the computation of a seed, from which follows what holds for nodes at each of the distances."""

    @abstractmethod
    def names(self) -> dict[str, str]:
        """Return how ``radius``, ``num_eligible`` and ``prediction`` at its own distance are called in the result."""

    def certified(self, arrays: Mapping[str, NDArray[Any]]) -> CertifiedTargets:
        """Return what the result of the computation says of its targets."""
        common = {name: arrays[name] for name in ("targets", "labels")}
        found = {each: arrays[name] for each, name in self.names().items()}
        return CertifiedTargets(**common, **found, seconds=float(arrays["seconds"]))


class TrustingCurve(Curve):
    """A method that trusts the target."""

    min_distance: Count = 1

    def names(self) -> dict[str, str]:
        """Return the names of results that hold several distances."""
        place = f"distance{self.min_distance}"
        return {"radius": f"{place}/radius", "num_eligible": f"{place}/num_eligible", "prediction": "prediction"}


class Interception(Curve, InterceptionSettings):
    """Interception smoothing, ours."""

    family: ClassVar[str] = "interception smoothing"

    method: Literal["interception"]

    @property
    def conclusion(self) -> Conclusion:
        """What is concluded."""
        return Conclusion(min_distance=self.min_distance, method=self.bound, rule=self.rule, alpha=self.alpha)

    def job(self, seed: int, distances: Sequence[int]) -> CertifyJob:
        """Return one computation for all distances."""
        return CertifyJob(
            training=self.training(seed),
            conclusions=tuple(self.conclusion.model_copy(update={"min_distance": each}) for each in distances),
            **self.model_dump(include={"p_delete", "p_ablate", "test_graph", "max_radius", *_DRAWN}),
        )

    def names(self) -> dict[str, str]:
        """Return the names of its conclusion."""
        return {each: f"{self.conclusion.name}/{each}" for each in ("radius", "num_eligible", "prediction")}


class Silent(TrustingCurve, Draws):
    """The floor of message passing: a model trained with messages that gets none, all edges being deleted (p_d = 1).

    Args:
        training_p_delete: p_d in training.
        training_p_ablate: p_a in training.
    """

    family: ClassVar[str] = "no messages"
    against: ClassVar[str] = "all features and edges of any other nodes"
    certain: ClassVar[bool] = True

    method: Literal["silent"]
    training_p_delete: Probability = 0.0
    training_p_ablate: Probability = 0.0

    def job(self, seed: int, distances: Sequence[int]) -> CertifyJob:
        """Return one computation for all distances; all draws are equal, so the radius is as large as is looked at."""
        return CertifyJob(
            training=self.training(seed),
            p_delete=1.0,
            p_ablate=0.0,
            conclusions=tuple(Conclusion(min_distance=each, alpha=self.alpha) for each in distances),
            **self.model_dump(include=_DRAWN),
        )

    def names(self) -> dict[str, str]:
        """Return the prediction as certified against all eligible nodes."""
        name = Conclusion(min_distance=self.min_distance, alpha=self.alpha).name
        eligible = f"{name}/num_eligible"
        return {"radius": eligible, "num_eligible": eligible, "prediction": f"{name}/prediction"}


class Levine(TrustingCurve, Draws):
    """Levine and Feizi's randomized ablation.

    Args:
        scope: Nodes are drawn from the whole graph ("global"), or from each receptive field ("local").
        p_ablate: As many nodes are kept as independent ablation with this probability keeps.
        training_p_ablate: p_a in training.
    """

    family: ClassVar[str] = "Levine"

    method: Literal["levine"]
    scope: Literal["global", "local"]
    p_ablate: Probability
    training_p_ablate: Probability

    @property
    def look(self) -> str:
        """Each scope on its own: they cost very differently."""
        return f"Levine, {self.scope}"

    def job(self, seed: int, distances: Sequence[int]) -> LevineJob:
        """Return one computation for all distances."""
        settings = self.model_dump(include={"scope", "p_ablate", "alpha", *_DRAWN})
        return LevineJob(training=self.training(seed), min_distances=tuple(distances), **settings)


class Voting(TrustingCurve):
    """Voting over T hash-made subgraphs; trained on graphs as sparse as these. Nothing is drawn.

    Args:
        num_subgraphs: T.
        tightened: Count only subgraphs in which an eligible node has a path to the target, as holds for a fixed
            structure; otherwise the rival's own radius, which also holds if hostile nodes change their edges.
    """

    family: ClassVar[str] = "subgraph voting"

    method: Literal["voting"]
    num_subgraphs: Count
    tightened: bool = True

    @property
    def guarantee(self) -> str:
        """Say against whom its certificates hold, and how surely."""
        return super().guarantee if self.tightened else super().guarantee.replace(";", " and their out-edges;")

    def job(self, seed: int, distances: Sequence[int]) -> VotingJob:
        """Return one computation for all distances, of all test nodes."""
        from graycert.smoothing.subgraphs.training import training_smoothing

        training = self.training(seed, p_delete=training_smoothing(self.num_subgraphs).p_delete)
        return VotingJob(training=training, num_subgraphs=self.num_subgraphs, min_distances=tuple(distances))

    def names(self) -> dict[str, str]:
        """Return the radius of the chosen sort."""
        radius = f"distance{self.min_distance}/tightened_radius" if self.tightened else "radius"
        return super().names() | {"radius": radius}


class Sparse(TrustingCurve, Draws):
    """Sparse smoothing of attributes, converted by ρ = ρ̃ / d; trained under the same flips, without skip connection.

    Args:
        num_attributes: Number d of attributes per node.
        p_plus: Probability of setting a 0 to 1.
        p_minus: Probability of setting a 1 to 0.
        max_deletions: Largest ρ̃ looked at.
    """

    family: ClassVar[str] = "sparse smoothing"
    against: ClassVar[str] = "deleted attributes of any nodes, targets included"

    method: Literal["sparse"]
    num_attributes: Count
    p_plus: Probability = 0.0
    p_minus: Probability = 0.6
    max_deletions: Count = 40

    def job(self, seed: int, distances: Sequence[int]) -> SparseJob:
        """Return one computation for all distances."""
        settings = self.model_dump(include={"p_plus", "p_minus", "max_deletions", "alpha", *_DRAWN})
        return SparseJob(training=self.training(seed, skip=False), min_distances=tuple(distances), **settings)

    def names(self) -> dict[str, str]:
        """Return certified attributes as the radius."""
        return super().names() | {"radius": "certified_deletions"}

    def certified(self, arrays: Mapping[str, NDArray[Any]]) -> CertifiedTargets:
        """Return whole nodes."""
        from graycert.smoothing.sparse.certify import naive_certified_nodes

        found = super().certified(arrays)
        return replace(found, radius=naive_certified_nodes(found.radius, self.num_attributes))


AnyCurve = Annotated[Interception | Silent | Levine | Voting | Sparse, Field(discriminator="method")]

METHODS: dict[str, type[Curve]] = {
    "interception": Interception, "silent": Silent, "levine": Levine, "voting": Voting, "sparse": Sparse,
}  # fmt: skip
"""By the names of TOML files."""

_DRAWN = {"num_selection", "num_estimation", "num_targets"}


def handed_down(shared: Mapping[str, Any], curve: Any) -> Any:
    """Return the settings of a curve, with those of the figure for what it does not say; the method is ours then.

    Args:
        shared: Settings of the figure; a curve takes those that its method has.
        curve: Settings of a TOML file; anything else stays as it is.
    """
    if not isinstance(curve, dict):
        return curve
    method = curve.get("method", "interception")
    known = METHODS[method].model_fields if method in METHODS else {}
    return {"method": method, **{name: value for name, value in shared.items() if name in known}, **curve}


def jobs_of_curves(curves: Sequence[Curve], seed: int, *, also: Sequence[int] = ()) -> list[Job]:
    """Return the computation of each curve; curves of one model under one smoothing share it, and so its votes.

    Args:
        curves: Of one figure.
        seed: Of split, weights, training and draws.
        also: Distances of hostile nodes that are concluded too, because another figure shows them.
    """
    alone = [each.job(seed, sorted({*also, each.min_distance})) for each in curves]
    wanted: dict[Job, set[Conclusion]] = defaultdict(set)
    for job in alone:
        wanted[_bare(job)].update(job.conclusions if isinstance(job, CertifyJob) else ())
    return [
        bare.model_copy(update={"conclusions": tuple(sorted(wanted[bare], key=lambda each: each.name))})
        if isinstance(bare, CertifyJob)
        else bare
        for bare in map(_bare, alone)
    ]


def certified_curves(
    curves: Sequence[Curve], seed: int, results: "Results", *, also: Sequence[int] = ()
) -> Iterator[tuple[Curve, CertifiedTargets]]:
    """Yield what the results of `all_jobs` say of each curve's targets."""
    for curve, job in zip(curves, jobs_of_curves(curves, seed, also=also), strict=True):
        found = curve.certified(results[job])
        if curve.targets == "tree-shaped":
            found = found.only(results[_shape_job(curve, seed)]["targets"])
        yield curve, found


def all_jobs(curves: Sequence[Curve], seed: int, *, also: Sequence[int] = ()) -> list[Job]:
    """Return the computations of curves, and those about the shapes of their targets' receptive fields."""
    shapes = [_shape_job(each, seed) for each in curves if each.targets == "tree-shaped"]
    return [*jobs_of_curves(curves, seed, also=also), *shapes]


def floor_job(curve: Curve, seed: int) -> MLPJob:
    """Return the computation of the floor of certified accuracies, on the split of a curve."""
    return MLPJob(split=curve.split_settings(seed))


def _shape_job(curve: Curve, seed: int) -> TreeShapedJob:
    return TreeShapedJob(split=curve.split_settings(seed), num_layers=curve.num_layers)


def _bare(job: Job) -> Job:
    return job.model_copy(update={"conclusions": ()}) if isinstance(job, CertifyJob) else job
