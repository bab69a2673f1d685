"""A figure or table of the paper: its settings, its claims, and what a small run of it leaves out."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, model_validator

from graycert.reproduction.job import Job
from graycert.reproduction.settings import Settings

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from graycert.reproduction.results import Results
    from graycert.reproduction.smoothing_sweep import SmoothingSweep

Scale = Literal["paper", "small"]
SCALES: tuple[Scale, ...] = ("paper", "small")


class Kind(Settings):
    """How experiments of one kind are computed and drawn; a subclass has the settings of its TOML files as fields.

    Attributes:
        kind: Its name in TOML files.
    """

    kind: ClassVar[str]

    @abstractmethod
    def jobs(self) -> list[Job]:
        """Return the computations that the tables need; several experiments may share some."""

    def sweeps(self) -> "list[SmoothingSweep]":
        """Return the sweeps that the tables need; none, but for figures of robustness against accuracy."""
        return []

    @property
    def graphs(self) -> tuple[str, ...]:
        """Names of the graphs that it needs."""
        needed = [job.graphs for job in self.jobs()] + [sweep.graphs for sweep in self.sweeps()]
        return tuple(dict.fromkeys(name for names in needed for name in names))

    @abstractmethod
    def tables(self, results: "Results") -> dict[str, "pd.DataFrame"]:
        """Return the numbers behind the figure from the results of all jobs; the first table is the main one."""

    @abstractmethod
    def measures(self, tables: Mapping[str, "pd.DataFrame"]) -> dict[str, float]:
        """Return the numbers that claims of the paper are compared with."""

    @abstractmethod
    def draw(self, tables: Mapping[str, "pd.DataFrame"]) -> "Figure":
        """Draw the figure from the tables alone."""


class Claim(Settings):
    """A statement of the paper that a measured number can support or contradict.

    Args:
        text: The statement, in our words.
        measure: Name of the number, one of `Kind.measures`.
        at_least: Smallest value that agrees with it.
        at_most: Largest value that agrees with it.
        scales: Scales at which it can be checked; a stand-in for a missing graph cannot.
        remark: What a reader should know about the comparison, e.g. why it comes out otherwise.
    """

    text: str
    measure: str
    at_least: float | None = None
    at_most: float | None = None
    scales: tuple[Scale, ...] = SCALES
    remark: str = ""

    @model_validator(mode="after")
    def _has_a_limit(self) -> "Claim":
        if self.at_least is None and self.at_most is None:
            raise ValueError("needs at_least or at_most")
        return self

    def agrees(self, value: float) -> bool:
        """Whether ``value`` supports the claim; NaN does not."""
        low = self.at_least is None or value >= self.at_least
        high = self.at_most is None or value <= self.at_most
        return low and high and value == value


class SmallScale(Settings):
    """What the small scale changes.

    Args:
        reduction: In words, what is less than in the paper.
        settings: Settings that replace those of the paper.
    """

    reduction: str
    settings: dict[str, Any] = Field(default_factory=dict)


class Experiment(Settings):
    """One TOML file.

    Args:
        id: Its name, e.g. "fig-3a"; also the name of its files.
        title: Title of the figure.
        source: What it is in the paper, e.g. "Figure 3 (a)", or "beyond the paper".
        description: What is shown and in which setting, in a sentence or two.
        kind: How it is computed and drawn.
        minutes: Measured minutes on two cores, per scale; shown by --list.
        settings: Settings of the kind, those of the paper.
        small: The small scale; None where the paper's size is small.
        claims: What the paper says about it.
        remark: What differs from the paper at every scale, e.g. another graph.
    """

    id: str = Field(pattern="^[a-z0-9-]+$")
    title: str
    source: str
    description: str
    kind: str
    minutes: dict[Scale, float] = Field(default_factory=dict)
    settings: dict[str, Any] = Field(default_factory=dict)
    small: SmallScale | None = None
    claims: tuple[Claim, ...] = ()
    remark: str = ""

    def at_scale(self, scale: Scale) -> Kind:
        """Return the experiment's kind with its settings at ``scale``.

        Raises:
            InvalidParameterError: If the kind is unknown or its settings are wrong.
        """
        from graycert.reproduction.catalogue import kind_of

        changes = self.small.settings if self.small is not None and scale == "small" else {}
        return kind_of(self, {**self.settings, **changes})
