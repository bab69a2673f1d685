"""Where trials lie: points drawn in advance, or points that a sampler chooses after what it has seen."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from graycert._validation import check_choice, check_integer, check_seed
from graycert.errors import InvalidParameterError

Ranges = Mapping[str, tuple[float, float]]

SAMPLERS = ("nsga2", "tpe")


@dataclass(frozen=True, kw_only=True)
class RandomDesign:
    r"""Points drawn independently and uniformly from a box, or spread evenly over it.

    Point i is a function of the seed and i alone: it depends neither on the number of trials, so that 1,000 trials
    extend the first 24, nor on which worker runs which trial.

    Args:
        ranges: Lowest and highest value of each parameter, finite, e.g. ``{"p_delete": (0, 1)}``.
        seed: An int in [0, 2^64).
        low_discrepancy: Take the scrambled Sobol sequence instead: it leaves smaller gaps in small sweeps.

    Raises:
        InvalidParameterError: If an argument is outside its domain.

    Example:
        >>> design = RandomDesign(ranges={"p_delete": (0, 1), "p_ablate": (0, 1)}, seed=13)
        >>> sorted(design.point(0))
        ['p_ablate', 'p_delete']

    References:
        Scholten et al. (2022), Section 7 (probabilities drawn from [0, 1] for each experiment).
    """

    kind: ClassVar[str] = "random"

    ranges: Ranges
    seed: int
    low_discrepancy: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "ranges", check_ranges(self.ranges))
        check_seed(self.seed)

    def point(self, index: int) -> dict[str, float]:
        """Return the parameters of trial ``index``, in the order of ``ranges``."""
        index = check_integer("index", index, at_least=0)
        units = self._spread(index) if self.low_discrepancy else self._independent(index)
        return {
            name: min(low + (high - low) * float(unit), high)  # the product may round upward
            for (name, (low, high)), unit in zip(self.ranges.items(), units, strict=True)
        }

    def _independent(self, index: int) -> NDArray[np.float64]:
        # the bits of a bit generator, unlike the floats made of them, are the same in every version of NumPy
        bits = np.random.Philox(np.random.SeedSequence(self.seed, spawn_key=(index,))).random_raw(len(self.ranges))
        return np.asarray(bits >> np.uint64(11), dtype=np.float64) * 2.0**-53

    def _spread(self, index: int) -> NDArray[np.float64]:
        from scipy.stats import qmc  # takes a second to import

        sequence = qmc.Sobol(len(self.ranges), scramble=True, seed=np.random.default_rng(self.seed))
        if index:  # SciPy cannot go forward by 0
            sequence.fast_forward(index)
        return np.asarray(sequence.random(1)[0], dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class AdaptiveDesign:
    """Points that a sampler of Optuna chooses after the values of the trials before.

    With several workers the choice depends on which trials are finished when, so no two such sweeps are the same.

    Args:
        ranges: Lowest and highest value of each parameter, finite.
        seed: An int in [0, 2^64).
        sampler: "nsga2" (genetic; starts with 50 random points) or "tpe" (density estimates; starts with 10).

    Raises:
        InvalidParameterError: If an argument is outside its domain.

    References:
        Deb et al. (2002), NSGA-II; Ozaki et al. (2020), multi-objective TPE.
    """

    kind: ClassVar[str] = "adaptive"

    ranges: Ranges
    seed: int
    sampler: str = "nsga2"

    def __post_init__(self) -> None:
        object.__setattr__(self, "ranges", check_ranges(self.ranges))
        check_seed(self.seed)
        check_choice("sampler", self.sampler, SAMPLERS)


@dataclass(frozen=True, kw_only=True)
class ListedDesign:
    """Points that were written down, in their order.

    Args:
        points: Value of each parameter, by name; the same names in all of them.

    Raises:
        InvalidParameterError: If there is no point, or names differ.
    """

    kind: ClassVar[str] = "listed"

    points: tuple[Mapping[str, float], ...]

    def __post_init__(self) -> None:
        if not self.points or any(set(point) != set(self.points[0]) for point in self.points):
            raise InvalidParameterError("`points` must give a value to the same parameters, at least once.")

    @property
    def ranges(self) -> Ranges:
        """Lowest and highest value of each parameter."""
        columns = {name: [float(point[name]) for point in self.points] for name in self.points[0]}
        return {name: (min(values), max(values)) for name, values in columns.items()}

    def point(self, index: int) -> dict[str, float]:
        """Return the parameters of trial ``index``."""
        return dict(self.points[index])


Design = RandomDesign | AdaptiveDesign | ListedDesign


def check_ranges(ranges: Ranges) -> dict[str, tuple[float, float]]:
    """Return at least one range, each a pair of finite numbers in order."""
    if not ranges:
        raise InvalidParameterError("`ranges` must have at least one parameter, got none. Name what is varied.")
    for name, pair in ranges.items():
        if len(list(pair)) != 2 or not (-math.inf < pair[0] <= pair[1] < math.inf):  # refuses NaN, too
            raise InvalidParameterError(
                f"`ranges` must give a lowest and a highest finite value, got {name} = {pair!r}. "
                "Write (0.0, 1.0), for instance."
            )
    return {name: (float(low), float(high)) for name, (low, high) in ranges.items()}
