"""The curves of a figure: a method with its settings, the computation behind it, and what it says of each target.

Nothing else knows which computation a method needs, nor how its result is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Self

from numpy.typing import NDArray
from pydantic import Field, model_validator

from graycert.reproduction.certified_targets import CertifiedTargets
from graycert.reproduction.certify_job import CertifyJob, TestGraph
from graycert.reproduction.curve import Curve, CurveSettings, Draws, Probabilities
from graycert.reproduction.labels_job import LabelsJob
from graycert.reproduction.settings import (
    Count,
    DistilledTraining,
    GraphSettings,
    MLPTraining,
    ModelSettings,
    Probability,
    SmoothingSettings,
    SparseTraining,
    TrainingSettings,
)
from graycert.reproduction.votes_job import VotesJob


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
    test_graph: TestGraph = "as it is"
    max_radius: Count = 40

    def curve(self, label: str, **changes: Any) -> "Interception":
        """Return the curve of these settings, but for ``changes``."""
        shared = {name: getattr(self, name) for name in InterceptionSettings.model_fields}
        return Interception(method="interception", label=label, **shared | changes)


class Interception(Curve, InterceptionSettings):
    """Interception smoothing, ours."""

    family: ClassVar[str] = "interception smoothing"

    method: Literal["interception"]

    @property
    def smoothing(self) -> SmoothingSettings:
        """Edges are deleted, nodes ablated."""
        return self.interception

    @property
    def terms(self) -> dict[str, Any]:
        """The bound and the rule that are asked for."""
        return {"bound": self.bound, "rule": self.rule, "alpha": self.alpha}

    def job(self, seed: int, distances: Sequence[int]) -> CertifyJob:
        """Return one computation for all distances."""
        looked_at = {"test_graph": self.test_graph, "max_radius": self.max_radius}
        return super().job(seed, distances).model_copy(update=looked_at)


class TrustingCurve(Curve):
    """A method that trusts the target."""

    min_distance: Count = 1


class FloorCurve(TrustingCurve):
    """A model that is shown each target alone."""

    against: ClassVar[str] = "all features and edges of any other nodes"

    @property
    def smoothing(self) -> SmoothingSettings:
        """Nothing but the target's own features."""
        return SmoothingSettings.of("features-only")


class Silent(FloorCurve):
    """The floor of message passing: a model trained with messages that gets none.

    Args:
        training_p_delete: p_d in training.
        training_p_ablate: p_a in training.
    """

    family: ClassVar[str] = "no messages"

    method: Literal["silent"]
    training_p_delete: Probability = 0.0
    training_p_ablate: Probability = 0.0


class MLP(FloorCurve):
    """The floor of certified accuracies: an MLP on the same splits."""

    family: ClassVar[str] = "MLP"

    method: Literal["mlp"]

    def model(self, seed: int) -> MLPTraining:
        """Return the MLP of a seed; of the settings of models it has none."""
        return MLPTraining(**self.split_settings(seed).model_dump(), num_layers=max(2, self.steps))


class Distilled(FloorCurve):
    """The highest floor: a model that learnt from a GNN to do without neighbours."""

    family: ClassVar[str] = "distilled"

    method: Literal["distilled"]

    def model(self, seed: int) -> DistilledTraining:
        """Return the distilled model of a seed; of the settings of models it has none."""
        return DistilledTraining(**self.split_settings(seed).model_dump(), num_layers=self.steps)


class Votes(Curve):
    """Bounded votes of the distilled model; the target is one voter among the others where it may be hostile.

    Args:
        num_voters: Most voters M of a target.
        gamma: Weight γ of all voters beside the target's own scores; None takes what is usual.
        gate: Confidence from which on a target's own prediction stands.
        sharpen: Power T of probabilities in a vote.
        spread_labels: Also count the labels of the training nodes, spread over the graph.
        label_weight: Their weight λ.
    """

    family: ClassVar[str] = "bounded votes"

    method: Literal["votes"]
    num_voters: Count = 160
    gamma: Annotated[float, Field(gt=0.0)] | None = None
    gate: Annotated[float, Field(gt=0.0, le=1.0)] = 0.7
    sharpen: Annotated[float, Field(gt=0.0)] = 2.0
    spread_labels: bool = False
    label_weight: Annotated[float, Field(gt=0.0)] = 0.5

    @property
    def smoothing(self) -> SmoothingSettings:
        """Nodes near the target vote."""
        names = {"num_voters", "gamma", "gate", "sharpen"}
        return SmoothingSettings.of("votes", **self.model_dump(include=names, exclude_none=True))

    def model(self, seed: int) -> DistilledTraining:
        """Return the distilled model of a seed."""
        return DistilledTraining(**self.split_settings(seed).model_dump())

    def job(self, seed: int, distances: Sequence[int]) -> VotesJob:
        """Return one computation for all distances."""
        found = dict(super().job(seed, distances))
        return VotesJob(**found, spread_labels=self.spread_labels, label_weight=self.label_weight)


class LabelsAlone(Curve):
    """The floor with a memory: labels of training nodes, spread over the graph, and no feature at all."""

    family: ClassVar[str] = "labels alone"
    against: ClassVar[str] = "all features of all nodes"

    method: Literal["labels"]

    @property
    def smoothing(self) -> SmoothingSettings:
        """Nothing is smoothed; what counts is that no feature is read."""
        return SmoothingSettings.of("features-only")

    def job(self, seed: int, distances: Sequence[int]) -> LabelsJob:
        """Return one computation for all distances."""
        return LabelsJob(**dict(super().job(seed, distances)))

    def model(self, seed: int) -> DistilledTraining:
        """Return the split of a seed; nothing is trained on it."""
        return DistilledTraining(**self.split_settings(seed).model_dump(), num_layers=self.steps)


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

    @property
    def smoothing(self) -> SmoothingSettings:
        """All but so many nodes are ablated."""
        return SmoothingSettings.of("randomized-ablation", scope=self.scope, p_ablate=self.p_ablate)


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

    @property
    def smoothing(self) -> SmoothingSettings:
        """The graph falls into subgraphs."""
        return SmoothingSettings.of("subgraphs", num_subgraphs=self.num_subgraphs)

    @property
    def terms(self) -> dict[str, Any]:
        """The radius of the chosen sort."""
        return super().terms | ({} if self.tightened else {"threat": "features-and-out-edges"})

    def model(self, seed: int) -> TrainingSettings:
        """Return a model that knows graphs as sparse as the subgraphs."""
        from graycert.smoothing.subgraphs.training import training_smoothing

        return self.training(seed, p_delete=training_smoothing(self.num_subgraphs).p_delete)


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

    @model_validator(mode="after")
    def _stands_as_it_is(self) -> Self:
        if self.grid:
            raise ValueError("`grid` must be left out: choices are judged by nodes, and here attributes are certified")
        return self

    @property
    def smoothing(self) -> SmoothingSettings:
        """Attributes are flipped."""
        return SmoothingSettings.of("sparse", p_plus=self.p_plus, p_minus=self.p_minus)

    @property
    def terms(self) -> dict[str, Any]:
        """The adversary flips attributes, too."""
        return super().terms | {"threat": "attribute-flips"}

    def model(self, seed: int) -> SparseTraining:
        """Return a model that is trained under the same flips."""
        known = {*GraphSettings.model_fields, *ModelSettings.model_fields, "p_plus", "p_minus"}
        return SparseTraining(**self.model_dump(include=known) | {"seed": seed, "skip": False})

    def job(self, seed: int, distances: Sequence[int]) -> CertifyJob:
        """Return one computation for all distances."""
        return super().job(seed, distances).model_copy(update={"max_radius": self.max_deletions})

    def certified(self, arrays: Mapping[str, NDArray[Any]]) -> CertifiedTargets:
        """Return whole nodes."""
        from graycert.smoothing.sparse.conversion import naive_certified_nodes

        found = super().certified(arrays)
        return replace(found, radius=naive_certified_nodes(found.radius, self.num_attributes))


AnyCurve = Annotated[
    Interception | Votes | Silent | MLP | Distilled | LabelsAlone | Levine | Voting | Sparse,
    Field(discriminator="method"),
]

METHODS: dict[str, type[Curve]] = {
    "interception": Interception,
    "votes": Votes,
    "silent": Silent,
    "mlp": MLP,
    "distilled": Distilled,
    "labels": LabelsAlone,
    "levine": Levine,
    "voting": Voting,
    "sparse": Sparse,
}
"""By the names of TOML files."""


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
