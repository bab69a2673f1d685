"""What is compared in one figure: a method, its settings, and what it certifies of each target."""

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal

from numpy.typing import NDArray
from pydantic import Field

from graycert._types import IntArray
from graycert.reproduction.certify_job import CertifyJob
from graycert.reproduction.job import Job
from graycert.reproduction.levine_job import LevineJob
from graycert.reproduction.settings import Conclusion, Count, Probability, Settings, TrainingSettings
from graycert.reproduction.sparse_job import SparseJob
from graycert.reproduction.voting_job import VotingJob

Certified = dict[str, IntArray]
"""``targets``, ``labels``, ``prediction``, ``radius`` (-1: abstains) and ``num_eligible``, all (num_targets,)."""

DISTANCES = (1, 2)  # figures for both conclude from the same votes
ALPHA = 0.01
_SURELY = f"with probability {1 - ALPHA:g} per target"
_PROBABLE = f"all features of any eligible nodes; {_SURELY}"


class Draws(Settings):
    """How much is drawn.

    Args:
        num_selection: n0.
        num_estimation: n1.
        num_targets: Certify so many test nodes, the same for all contenders; None takes all.
    """

    num_selection: Count = 1_000
    num_estimation: Count = 3_000
    num_targets: Count | None = None


class Contender(Settings):
    """A method with its settings.

    Args:
        label: In the legend.
        panel: Title of its panel.

    Attributes:
        family: Method; gives the colour.
    """

    family: ClassVar[str]

    label: Annotated[str, Field(min_length=1)]
    panel: str = ""

    @property
    @abstractmethod
    def guarantee(self) -> str:
        """Say against whom its certificates hold, and how surely; the structure is fixed if nothing else is said."""

    @property
    def draws_name(self) -> str:
        """Name that its `Draws` have among the settings of the figure."""
        return self.family

    @abstractmethod
    def job(self, base: TrainingSettings, draws: Draws) -> Job:
        """Return the computation; ``base`` says what all models have in common, the seed included."""

    @abstractmethod
    def certified(self, arrays: dict[str, NDArray[Any]], *, min_distance: int) -> Certified:
        """Return what the result of the computation says about hostile nodes at some distance."""


class Interception(Contender):
    """Interception smoothing, ours.

    Args:
        training_p_delete: p_d in training.
        training_p_ablate: p_a in training.
        p_delete: p_d at inference.
        p_ablate: p_a at inference.
        bound: See `graycert.delta_bounds`.
        rule: See `graycert.certify`.
    """

    family: ClassVar[str] = "interception smoothing"

    kind: Literal["interception"]
    training_p_delete: Probability = 0.0
    training_p_ablate: Probability = 0.0
    p_delete: Probability = 0.0
    p_ablate: Probability = 0.0
    bound: str = "multiplicative"
    rule: str = "sound"

    @property
    def guarantee(self) -> str:
        """Say against whom its certificates hold, and how surely."""
        return _PROBABLE

    def job(self, base: TrainingSettings, draws: Draws) -> Job:
        """Return one computation for both distances, by the paper's rule and by the strongest."""
        rules = {("multiplicative", "sound"), ("auto", "event-aware"), (self.bound, self.rule)}
        return CertifyJob(
            training=base.model_copy(update={"p_delete": self.training_p_delete, "p_ablate": self.training_p_ablate}),
            p_delete=self.p_delete,
            p_ablate=self.p_ablate,
            conclusions=tuple(
                Conclusion(min_distance=distance, method=bound, rule=rule, alpha=ALPHA)
                for bound, rule in sorted(rules)
                for distance in DISTANCES
            ),
            **draws.model_dump(),
        )

    def certified(self, arrays: dict[str, NDArray[Any]], *, min_distance: int) -> Certified:
        """Return its own conclusion."""
        name = Conclusion(min_distance=min_distance, method=self.bound, rule=self.rule, alpha=ALPHA).name
        found = {each: arrays[f"{name}/{each}"] for each in ("prediction", "radius", "num_eligible")}
        return {"targets": arrays["targets"], "labels": arrays["labels"], **found}


class Silent(Contender):
    """The floor of message passing: a model trained with messages that gets none, all edges being deleted (p_d = 1).

    Args:
        training_p_delete: p_d in training.
        training_p_ablate: p_a in training.
    """

    family: ClassVar[str] = "no messages"

    kind: Literal["silent"]
    training_p_delete: Probability = 0.0
    training_p_ablate: Probability = 0.0

    @property
    def guarantee(self) -> str:
        """Say against whom its certificates hold, and how surely."""
        return "all features and edges of any other nodes; with certainty"

    def job(self, base: TrainingSettings, draws: Draws) -> Job:
        """Return one computation for both distances; all draws are equal, so the radius is as large as is looked at."""
        return CertifyJob(
            training=base.model_copy(update={"p_delete": self.training_p_delete, "p_ablate": self.training_p_ablate}),
            p_delete=1.0,
            p_ablate=0.0,
            conclusions=tuple(Conclusion(min_distance=distance, alpha=ALPHA) for distance in DISTANCES),
            **draws.model_dump(),
        )

    def certified(self, arrays: dict[str, NDArray[Any]], *, min_distance: int) -> Certified:
        """Return the prediction as certified against all eligible nodes."""
        name = Conclusion(min_distance=min_distance, alpha=ALPHA).name
        common = {"targets": arrays["targets"], "labels": arrays["labels"], "prediction": arrays[f"{name}/prediction"]}
        eligible = arrays[f"{name}/num_eligible"]
        return common | {"radius": eligible, "num_eligible": eligible}


class Levine(Contender):
    """Levine and Feizi's randomized ablation.

    Args:
        scope: Nodes are drawn from the whole graph ("global"), or from each receptive field ("local").
        p_ablate: As many nodes are kept as independent ablation with this probability keeps.
        training_p_ablate: p_a in training.
    """

    family: ClassVar[str] = "Levine"

    kind: Literal["levine"]
    scope: Literal["global", "local"]
    p_ablate: Probability
    training_p_ablate: Probability

    @property
    def guarantee(self) -> str:
        """Say against whom its certificates hold, and how surely."""
        return _PROBABLE

    @property
    def draws_name(self) -> str:
        """Each scope on its own: they cost very differently."""
        return f"Levine, {self.scope}"

    def job(self, base: TrainingSettings, draws: Draws) -> Job:
        """Return one computation for both distances."""
        return LevineJob(
            training=base.model_copy(update={"p_ablate": self.training_p_ablate}),
            scope=self.scope,
            p_ablate=self.p_ablate,
            min_distances=DISTANCES,
            alpha=ALPHA,
            **draws.model_dump(),
        )

    def certified(self, arrays: dict[str, NDArray[Any]], *, min_distance: int) -> Certified:
        """Return the certificates at one distance."""
        common = {each: arrays[each] for each in ("targets", "labels", "prediction")}
        return common | {each: arrays[f"distance{min_distance}/{each}"] for each in ("radius", "num_eligible")}


class Voting(Contender):
    """Voting over T hash-made subgraphs; trained on graphs as sparse as these.

    Args:
        num_subgraphs: T.
        tightened: Count only subgraphs in which an eligible node has a path to the target, as holds for a fixed
            structure; otherwise the rival's own radius, which also holds if hostile nodes change their edges.
    """

    family: ClassVar[str] = "subgraph voting"

    kind: Literal["voting"]
    num_subgraphs: Count
    tightened: bool = True

    @property
    def guarantee(self) -> str:
        """Say against whom its certificates hold, and how surely."""
        more = "" if self.tightened else " and their out-edges"
        return f"all features of any eligible nodes{more}; with certainty"

    def job(self, base: TrainingSettings, draws: Draws) -> Job:
        """Return one computation for both distances; nothing is drawn, and all test nodes are certified."""
        from graycert.smoothing.subgraphs.training import training_smoothing

        del draws
        p_delete = training_smoothing(self.num_subgraphs).p_delete
        return VotingJob(
            training=base.model_copy(update={"p_delete": p_delete}),
            num_subgraphs=self.num_subgraphs,
            min_distances=DISTANCES,
        )

    def certified(self, arrays: dict[str, NDArray[Any]], *, min_distance: int) -> Certified:
        """Return the radius of the chosen sort."""
        common = {each: arrays[each] for each in ("targets", "labels", "prediction")}
        radius = arrays[f"distance{min_distance}/tightened_radius"] if self.tightened else arrays["radius"]
        return common | {"radius": radius, "num_eligible": arrays[f"distance{min_distance}/num_eligible"]}


class Sparse(Contender):
    """Sparse smoothing of attributes, converted by ρ = ρ̃ / d.

    Args:
        p_plus: Probability of setting a 0 to 1.
        p_minus: Probability of setting a 1 to 0.
        num_attributes: Number d of attributes per node.
    """

    family: ClassVar[str] = "sparse smoothing"

    kind: Literal["sparse"]
    num_attributes: Count
    p_plus: Probability = 0.0
    p_minus: Probability = 0.6

    @property
    def guarantee(self) -> str:
        """Say against whom its certificates hold, and how surely."""
        return f"deleted attributes of any nodes, targets included; {_SURELY}"

    def job(self, base: TrainingSettings, draws: Draws) -> Job:
        """Return one computation for all distances, of a model without skip connection."""
        return SparseJob(
            training=base.model_copy(update={"skip": False}),
            p_plus=self.p_plus,
            p_minus=self.p_minus,
            min_distances=DISTANCES,
            alpha=ALPHA,
            **draws.model_dump(),
        )

    def certified(self, arrays: dict[str, NDArray[Any]], *, min_distance: int) -> Certified:
        """Return whole nodes."""
        from graycert.smoothing.sparse.certify import naive_certified_nodes

        common = {each: arrays[each] for each in ("targets", "labels", "prediction")}
        return common | {
            "radius": naive_certified_nodes(arrays["certified_deletions"], self.num_attributes),
            "num_eligible": arrays[f"distance{min_distance}/num_eligible"],
        }


AnyContender = Annotated[Interception | Silent | Levine | Voting | Sparse, Field(discriminator="kind")]
