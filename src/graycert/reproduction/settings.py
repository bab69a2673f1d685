"""What an experiment computes, as checked values that have a hash."""

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Count = Annotated[int, Field(ge=1)]
Distance = Annotated[int, Field(ge=0)]
Level = Annotated[float, Field(gt=0.0, lt=1.0)]
"""A failure probability."""


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


class ModelSettings(Settings):
    """What a model is and how it is trained, but for smoothing in training. Defaults are the paper's.

    Args:
        architecture: "gcn", "gat", "gatv2" or "sma".
        skip: Whether it has the skip connection.
        num_layers: Message-passing steps.
        learning_rate: Of Adam.
        weight_decay: Of Adam.
        max_epochs: Limit of epochs.
        patience: Epochs without improvement before stopping.
    """

    architecture: Literal["gcn", "gat", "gatv2", "sma"] = "gat"
    skip: bool = False
    num_layers: Count = 2
    learning_rate: Annotated[float, Field(gt=0.0)] = 1e-3
    weight_decay: Annotated[float, Field(ge=0.0)] = 5e-4
    max_epochs: Count = 1_000
    patience: Count = 50


class TrainingSettings(SplitSettings, ModelSettings):
    """A trained model: the seed of the split is also that of its initial weights and of training.

    Args:
        p_delete: p_d in training.
        p_ablate: p_a in training.
    """

    p_delete: Probability = 0.0
    p_ablate: Probability = 0.0

    @property
    def key(self) -> str:
        """Identify the trained model."""
        return settings_hash("training", self.model_dump(mode="json"))


class Conclusion(Settings):
    """What is concluded from votes: against whom, by which rule and bound, at which failure probability.

    Args:
        min_distance: Hostile nodes are at least so many hops away.
        method: See `graycert.delta_bounds`; "multiplicative" is the paper's Theorem 3.
        rule: See `graycert.certify`.
        alpha: Failure probability per target.
    """

    min_distance: Distance = 1
    method: str = "multiplicative"
    rule: str = "sound"
    alpha: Level = 0.01

    @property
    def name(self) -> str:
        """Name the conclusion among those of a job."""
        return f"distance{self.min_distance}-{self.method}-{self.rule}-{self.alpha:g}"
