"""What a setting comes to on the validation nodes: overall, averaged over classes, and class by class."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert.tuning.trial import CERTIFYING

RADII = (1, 3, 5)
"""At which radii the table says how many nodes are certified and correct."""

_UNEQUAL = 2  # the largest class is so many times the smallest


@dataclass(frozen=True, kw_only=True)
class Measures:
    """Computes numbers from the result of a trial.

    Args:
        class_names: Name per class.
        radii: Radii ρ at which certified and correct nodes are counted.
    """

    class_names: tuple[str, ...]
    radii: tuple[int, ...] = RADII

    def __call__(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, float]:
        """Return ``accuracy``, ``correct_1``, ..., the same ``balanced_``, and per class, ``accuracy of NAME``, ....

        Abstaining is wrong. A node counts at ρ if it is correct, certified at ρ, and at least ρ nodes could attack it.
        """
        labels, radius = arrays["labels"], arrays["radius"]
        right = (arrays["prediction"] == labels) & (radius >= 0)
        holds = {"accuracy": right}
        for each in self.radii:
            holds[f"correct_{each}"] = right & (radius >= each) & (arrays["num_eligible"] >= each)
        numbers = {name: float(mask.mean()) for name, mask in holds.items()}
        of_class = {
            f"{name} of {word}": float(mask[labels == number].mean())
            for name, mask in holds.items()
            for number, word in self._present(labels)
        }
        balanced = {
            f"balanced_{name}": float(np.mean([of_class[f"{name} of {word}"] for _, word in self._present(labels)]))
            for name in holds
        }
        abstained, seconds = float((radius < 0).mean()), float(arrays[CERTIFYING])
        return {**numbers, **balanced, "abstained": abstained, **of_class, CERTIFYING: seconds}

    def _present(self, labels: NDArray[Any]) -> Sequence[tuple[int, str]]:
        return [(number, self.class_names[number]) for number in np.unique(labels).tolist()]


def are_unequal(labels: NDArray[Any]) -> bool:
    """Return whether classes are so unequal that accuracies are averaged over them.

    Example:
        >>> are_unequal(np.array([0, 0, 0, 1])), are_unequal(np.array([0, 0, 1]))
        (True, True)
        >>> are_unequal(np.array([0, 1, 0, 1, 0]))
        False
    """
    counts = np.unique(labels, return_counts=True)[1]
    return bool(counts.max() >= _UNEQUAL * counts.min())
