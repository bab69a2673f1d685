"""One computation of an experiment, known by its settings: done once, stored, never done again."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from graycert.reproduction.settings import Settings, settings_hash

if TYPE_CHECKING:
    from graycert.reproduction.lab import Lab

VERSION = 1  # raise it when results of equal settings change; stored results of another version are not used


class Job(Settings):
    """A computation whose result depends on its settings alone. Subclasses add the settings as fields.

    Attributes:
        job: Name of the kind of computation; part of the key.
        one_thread: Whether it is kept to one thread, so that sums are in the same order whoever does it.
    """

    job: ClassVar[str]
    one_thread: ClassVar[bool] = True

    @property
    def key(self) -> str:
        """Identify the result."""
        return settings_hash(f"{self.job}-{VERSION}", self.model_dump(mode="json"))

    @property
    @abstractmethod
    def graphs(self) -> tuple[str, ...]:
        """Names of the graphs that it needs."""

    @abstractmethod
    def run(self, lab: "Lab") -> dict[str, Any]:
        """Compute the result: names and arrays (no objects)."""


def silent(message: str) -> None:
    """Say nothing: what experiments come across, e.g. a setting that certifies nothing, is a result and no warning."""
    del message
