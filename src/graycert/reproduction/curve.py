"""A curve of a figure, whatever its method: what it can differ in, and what every method has to say."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Annotated, Any, ClassVar, Literal, Self

from numpy.typing import NDArray
from pydantic import Field, model_validator

from graycert.reproduction.certified_targets import CertifiedTargets
from graycert.reproduction.certify_job import CertifyJob
from graycert.reproduction.settings import (
    AnyTraining,
    Conclusion,
    Count,
    Distance,
    DrawSettings,
    GraphSettings,
    Level,
    ModelSettings,
    Probability,
    Settings,
    SmoothingSettings,
    SplitSettings,
    TrainingSettings,
)


class TargetChoice(Settings):
    """How many targets are certified.

    Args:
        num_targets: Certify so many test nodes, drawn by the seed, the same for all methods; None takes all.
    """

    num_targets: Count | None = None


class Draws(TargetChoice):
    """How much is drawn, and what is concluded how surely; see also `TargetChoice`.

    Args:
        num_selection: n0.
        num_estimation: n1.
        alpha: Failure probability per target.
    """

    num_selection: Count = 1_000
    num_estimation: Count = 3_000
    alpha: Level = 0.01

    @property
    def draw_settings(self) -> DrawSettings:
        """What a computation needs to know of it."""
        return DrawSettings.of(**self.model_dump(include={"num_selection", "num_estimation"}))


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

    @property
    def interception(self) -> SmoothingSettings:
        """What is done at inference."""
        return SmoothingSettings.of("interception", p_delete=self.p_delete, p_ablate=self.p_ablate)


class CurveSettings(TrainedSettings, TargetChoice):
    """What curves of all methods can differ in; see also `GraphSettings`, `ModelSettings` and `TargetChoice`.

    Args:
        targets: "all" test nodes that were certified, or those with "tree-shaped" receptive fields in the full graph.
        min_distance: Hostile nodes are at least so many hops away.
    """

    targets: Literal["all", "tree-shaped"] = "all"
    min_distance: Distance = 1


_FIXED = ("method", "label", "panel", "seeds", "grid", "targets", "num_targets", "min_distance")
"""What is no matter of choice: it says what is compared."""


class Curve(CurveSettings):
    """A method with its settings.

    Args:
        label: In the legend; the same label looks the same in all figures.
        panel: Title of its panel; empty if there is only one.
        seeds: Only these of the figure's seeds; none takes all.
        grid: Settings to choose from on validation nodes, see `ChosenJob`: products of lists of values, one after the
            other, in order. None: the settings as they stand.

    Attributes:
        family: Method, in words.
        against: What hostile nodes may do; the structure is fixed if nothing else is said.
    """

    family: ClassVar[str]
    against: ClassVar[str] = "all features of any eligible nodes"

    label: Annotated[str, Field(min_length=1)]
    panel: str = ""
    seeds: tuple[int, ...] = ()
    grid: tuple[dict[str, tuple[Any, ...]], ...] = ()

    @model_validator(mode="after")
    def _chooses_among_its_own_settings(self) -> Self:
        theirs = {name for each in self.grid for name in each}
        unusable = theirs & {*_FIXED, *GraphSettings.model_fields} or theirs - set(type(self).model_fields)
        if unusable:
            raise ValueError(f"`grid` must hold settings of the method, other than {', '.join(sorted(unusable))}")
        return self

    @property
    def candidates(self) -> "tuple[Self, ...]":
        """The settings to choose from, checked; itself if there is no grid."""
        fixed = self.model_dump(exclude={"grid"})
        combined = [dict(zip(each, values, strict=True)) for each in self.grid for values in product(*each.values())]
        return tuple(type(self).model_validate(fixed | each) for each in combined) or (self,)

    @property
    def look(self) -> str:
        """Name of the method where methods are told apart: in the colours, and in settings of how much is drawn."""
        return self.family

    @property
    def guarantee(self) -> str:
        """Say against whom its certificates hold, and how surely."""
        if isinstance(self, Draws):
            return f"{self.against}; with probability {1 - self.alpha:g} per target"
        return f"{self.against}; with certainty"

    @property
    @abstractmethod
    def smoothing(self) -> SmoothingSettings:
        """What the model is smoothed over."""

    @property
    def terms(self) -> dict[str, Any]:
        """How it is concluded, see `Conclusion`."""
        return {"bound": "auto"} | ({"alpha": self.alpha} if isinstance(self, Draws) else {"rule": "exact"})

    @property
    def conclusion(self) -> Conclusion:
        """What is concluded."""
        return Conclusion(min_distance=self.min_distance, **self.terms)

    def model(self, seed: int) -> AnyTraining:
        """Return the model of a seed."""
        return self.training(seed)

    def job(self, seed: int, distances: Sequence[int]) -> CertifyJob:
        """Return the computation of a seed, from which follows what holds for nodes at each of the distances."""
        return CertifyJob(
            model=self.model(seed),
            smoothing=self.smoothing,
            draws=self.draw_settings if isinstance(self, Draws) else None,
            conclusions=tuple(self.conclusion.model_copy(update={"min_distance": each}) for each in distances),
            num_targets=self.num_targets,
        )

    def certified(self, arrays: Mapping[str, NDArray[Any]]) -> CertifiedTargets:
        """Return what the result of the computation says of its targets."""
        common = {name: arrays[name] for name in ("targets", "labels")}
        names = ("radius", "num_eligible", "prediction")
        found = {each: arrays[f"{self.conclusion.name}/{each}"] for each in names}
        return CertifiedTargets(**common, **found, seconds=float(arrays["seconds"]))
