"""Kinds of figures that show certificates of several curves, each computed for several seeds."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from graycert.reproduction.certified_targets import CertifiedTargets
from graycert.reproduction.curve import Curve
from graycert.reproduction.curve_jobs import all_jobs, certified_curves
from graycert.reproduction.experiment import Kind
from graycert.reproduction.job import Job
from graycert.reproduction.settings import Count

if TYPE_CHECKING:
    from graycert.reproduction.results import Results


class CertifiedKind(Kind):
    """A figure about curves, in the widest sense: what a method certifies in some setting.

    Args:
        seeds: Of split, weights, training and draws; each is one experiment.
        also_distances: From the votes it is also concluded for hostile nodes that are at least so many hops away, as
            other figures do, so that they share the computations.
    """

    seeds: Annotated[tuple[int, ...], Field(min_length=1)] = (13, 17, 26, 35, 69)
    also_distances: tuple[Count, ...] = ()

    @property
    @abstractmethod
    def all_curves(self) -> Sequence[Curve]:
        """Return all curves, with all their settings."""

    def jobs(self) -> list[Job]:
        """Return the computations of all curves and seeds; curves share what they can."""
        jobs = [job for seed in self.seeds for job in all_jobs(self.curves_of(seed), seed, also=self.also_distances)]
        return list(dict.fromkeys(jobs))

    def curves_of(self, seed: int) -> list[Curve]:
        """Return the curves that a seed is done for."""
        return [each for each in self.all_curves if not each.seeds or seed in each.seeds]

    def certified(self, seed: int, results: "Results") -> Iterator[tuple[Curve, CertifiedTargets]]:
        """Yield each curve of a seed, and what its results say of the curve's targets."""
        return certified_curves(self.curves_of(seed), seed, results, also=self.also_distances)
