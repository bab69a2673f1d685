"""What an experiment computes, as checked values that have a hash."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from graycert._parameters import Parameters
from graycert.draws import DRAWS
from graycert.errors import InvalidParameterError
from graycert.models.names import check_new_model, is_own
from graycert.smoothing import SMOOTHINGS
from graycert.threats import THREATS, Threat

Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Count = Annotated[int, Field(ge=1)]
Distance = Annotated[int, Field(ge=0)]
Level = Annotated[float, Field(gt=0.0, lt=1.0)]
"""A failure probability."""
Architecture = Annotated[str, AfterValidator(check_new_model)]
"""Name of a model that can be trained."""


class Settings(BaseModel):
    """Values that cannot be changed; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def settings_hash(name: str, settings: dict[str, Any]) -> str:
    """Return 32 hexadecimal digits that differ for different settings (canonical JSON, SHA-256)."""
    text = json.dumps([name, settings], sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class GraphSettings(Settings):
    """A graph, and how its nodes are split.

    Args:
        graph: Name of a graph (`graycert datasets`), or a path.
        split: "inductive", or "transductive" as in the appendix.
        per_class: Training, and validation, nodes per class.
    """

    graph: str
    split: Literal["inductive", "transductive"] = "inductive"
    per_class: Count = 20


class SplitSettings(GraphSettings):
    """A graph and the nodes that a model is trained, validated and tested on; for the rest see `GraphSettings`.

    Args:
        seed: Seed of the split.
    """

    seed: int = 0


class Layered(Settings):
    """What has message-passing steps.

    Args:
        num_layers: Message-passing steps: nodes within so many hops can be hostile to a target. None leaves them to a
            model of the user, in which they are counted.
    """

    num_layers: Count | None = None

    @property
    def steps(self) -> int:
        """Return the number of steps, where it has to be known before the model is looked at.

        Raises:
            InvalidParameterError: If it is left to the model.
        """
        if self.num_layers is None:
            raise InvalidParameterError(
                "`num_layers` must be given for a model of your own where nodes in reach are counted without it, got "
                "nothing. Say how many message-passing steps it has."
            )
        return self.num_layers


class ModelSettings(Layered):
    """What a model is and how it is trained, but for smoothing in training. Defaults are the paper's.

    Args:
        architecture: "gcn", "gat", "gatv2" or "sma"; or package.module:Class of your own, see
            `graycert.models.by_name`.
        skip: Whether it has the skip connection; a class of your own is built as it is.
        num_layers: See `Layered`; 2 unless something else is said, or those of a class of your own.
        learning_rate: Of Adam.
        weight_decay: Of Adam.
        max_epochs: Limit of epochs.
        patience: Epochs without improvement before stopping.
    """

    architecture: Architecture = "gat"
    skip: bool = False
    learning_rate: Annotated[float, Field(gt=0.0)] = 1e-3
    weight_decay: Annotated[float, Field(ge=0.0)] = 5e-4
    max_epochs: Count = 1_000
    patience: Count = 50

    @model_validator(mode="before")
    @classmethod
    def _has_two_layers(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        own = is_own(str(values.get("architecture", "")))
        return values if own or values.get("num_layers") is not None else {**values, "num_layers": 2}

    @model_validator(mode="after")
    def _adds_nothing_to_own_models(self) -> Self:
        if self.skip and is_own(self.architecture):
            raise ValueError("`skip` must be left out for a class of your own, which is built as it is")
        return self


class TrainedModel(SplitSettings, Layered):
    """A trained model: the seed of the split is also that of its initial weights and of training.

    Args:
        recipe: How it is trained, see `graycert.reproduction.recipes`.
    """

    recipe: str

    @property
    def key(self) -> str:
        """Identify the trained model."""
        return settings_hash("training", self.model_dump(mode="json"))


class TrainingSettings(ModelSettings, TrainedModel):
    """A model that is trained under message interception.

    Args:
        p_delete: p_d in training.
        p_ablate: p_a in training.
    """

    recipe: Literal["interception"] = "interception"
    p_delete: Probability = 0.0
    p_ablate: Probability = 0.0


class SparseTraining(ModelSettings, TrainedModel):
    """A model that is trained under sparse smoothing of attributes; it has no skip connection.

    Args:
        p_plus: Probability of setting a 0 to 1.
        p_minus: Probability of setting a 1 to 0.
    """

    recipe: Literal["sparse"] = "sparse"
    p_plus: Probability
    p_minus: Probability

    @model_validator(mode="after")
    def _hides_attributes(self) -> "SparseTraining":
        if self.skip:
            raise ValueError("`skip` must be false, because a skip connection shows attributes before they are drawn")
        if is_own(self.architecture):
            raise ValueError("`architecture` must be one of graycert's for training under flips")
        return self


class MLPTraining(TrainedModel):
    """An MLP, trained as `train_mlp` does unless told otherwise.

    Args:
        num_layers: Steps of the models that it is held against: it is certified for the nodes that could attack them.
    """

    recipe: Literal["mlp"] = "mlp"
    num_layers: Annotated[int, Field(ge=2)] = 2


class DistilledTraining(TrainedModel):
    """A model that sees one node at a time, distilled from the default teacher as `graycert.distill` does.

    Args:
        num_layers: Steps of the models that it is held against as a floor; None where it is not. The model is the same.
    """

    recipe: Literal["distilled"] = "distilled"

    @property
    def key(self) -> str:
        """Identify the trained model."""
        return settings_hash("training", self.model_dump(mode="json", exclude={"num_layers"}))


AnyTraining = Annotated[
    TrainingSettings | SparseTraining | MLPTraining | DistilledTraining, Field(discriminator="recipe")
]


class Named(BaseModel):
    """What is chosen by its name, with parameters of its own; both are checked, and equal where they mean the same.

    Attributes:
        kinds: What can be chosen, by name.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    kinds: ClassVar[Mapping[str, type[Parameters]]]

    name: str

    @classmethod
    def of(cls, name: str = "", **parameters: Any) -> Self:
        """Return what has a name, or what is usual, with these parameters."""
        return cls.model_validate(parameters | ({"name": name} if name else {}))

    @model_validator(mode="before")
    @classmethod
    def _known(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        given = dict(values)
        name = given.pop("name", cls.model_fields["name"].default)
        if name not in cls.kinds:
            raise ValueError(f"`name` must be one of {', '.join(cls.kinds)}, got {name!r}")
        return {"name": name, **cls.kinds[name].restored(given, {}).stored()[0]}

    @property
    def parameters(self) -> dict[str, Any]:
        """Its parameters, as they are stored."""
        return dict(self.model_extra or {})

    def made(self) -> Any:
        """Return what was chosen."""
        return self.kinds[self.name].restored(self.parameters, {})

    def __hash__(self) -> int:
        return hash((type(self), *sorted(self.model_dump().items())))


class SmoothingSettings(Named):
    """What a classifier is smoothed over.

    Example:
        >>> SmoothingSettings.of("retention", keep_ratio=0.1)
        SmoothingSettings(name='retention', keep_ratio='1/10', tau=100000)
    """

    kinds: ClassVar[Mapping[str, type[Parameters]]] = SMOOTHINGS


class DrawSettings(Named):
    """How much is drawn; a fixed number if nothing else is said.

    Example:
        >>> DrawSettings.of(num_estimation=500)
        DrawSettings(name='fixed', num_selection=1000, num_estimation=500)
    """

    kinds: ClassVar[Mapping[str, type[Parameters]]] = DRAWS

    name: str = "fixed"


class Conclusion(Settings):
    """What is concluded from votes: against whom, by which rule and bound, at which failure probability.

    Args:
        threat: Who is hostile, see ``graycert.threats.THREATS``.
        min_distance: Hostile nodes are at least so many hops away. Where the threat knows no distance, it says which
            nodes are counted as those that could be hostile.
        bound: See `graycert.delta_bounds`; "multiplicative" is the paper's Theorem 3.
        rule: See `graycert.certify`.
        alpha: Failure probability per target.
        simultaneous: Whether ``alpha`` is for all targets at once.
        budgets: Numbers ρ of nodes, rising, of one adversary against all targets at once; none leaves it out.
    """

    threat: str = "node-features"
    min_distance: Distance = 1
    bound: str = "multiplicative"
    rule: str = "sound"
    alpha: Level = 0.01
    simultaneous: bool = False
    budgets: tuple[Count, ...] = ()

    @field_validator("threat")
    @classmethod
    def _is_known(cls, threat: str) -> str:
        if threat not in THREATS:
            raise ValueError(f"`threat` must be one of {', '.join(THREATS)}, got {threat!r}")
        return threat

    @property
    def name(self) -> str:
        """Name the conclusion among those of a job."""
        whom = "" if self.threat == "node-features" else f"{self.threat}-"
        level = f"{self.alpha:g}{'-simultaneous' if self.simultaneous else ''}"
        return f"{whom}distance{self.min_distance}-{self.bound}-{self.rule}-{level}"

    def adversary(self) -> Threat:
        """Return who is hostile."""
        kind = THREATS[self.threat]
        knows_distance = "min_distance" in {each.name for each in dataclasses.fields(kind)}
        return kind.restored({"min_distance": self.min_distance} if knows_distance else {}, {})

    def terms(self) -> dict[str, Any]:
        """Return how it is concluded, as `graycert.certify` and `Certificates.again` take it."""
        return self.model_dump(include={"bound", "rule", "alpha", "simultaneous"})
