"""What a certificate says about each target, and the shares that curves show."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert.metrics import (
    DENOMINATORS,
    RatioCurve,
    abstain_ratio,
    aucrc,
    certified_accuracy,
    certified_ratio,
    clean_accuracy,
    normalized_aucrc,
    normalized_certified_ratio,
)

NUM_SHARES = 101
"""Points of a normalised curve: each percent of the attack surface."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CertifiedTargets:
    """Certificates of one experiment, shape (num_targets,) each.

    Attributes:
        targets: Node indices, ascending.
        labels: True classes.
        radius: Certified radius, -1 where the classifier abstains.
        num_eligible: Nodes that may be hostile.
        prediction: Reported classes.
    """

    targets: NDArray[np.int64]
    labels: NDArray[np.int64]
    radius: NDArray[np.int64]
    num_eligible: NDArray[np.int64]
    prediction: NDArray[np.int64]

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], conclusion: str) -> "CertifiedTargets":
        """Take one conclusion from the result of a `CertifyJob`."""
        found = {name: arrays[f"{conclusion}/{name}"] for name in ("radius", "num_eligible", "prediction")}
        return cls(targets=arrays["targets"], labels=arrays["labels"], **found)

    def only(self, targets: NDArray[np.int64]) -> "CertifiedTargets":
        """Return what is known of those that are among ``targets``."""
        kept = np.isin(self.targets, targets)
        return CertifiedTargets(**{name: values[kept] for name, values in vars(self).items()})

    def by_mlp(self, floor: Mapping[str, NDArray[Any]]) -> "CertifiedTargets":
        """Return the same targets as the MLP of an `MLPJob` certifies them: against all that may be hostile."""
        places = np.searchsorted(floor["targets"], self.targets)
        return replace(self, radius=self.num_eligible, prediction=floor["prediction"][places])

    def summary(self) -> dict[str, float]:
        """Return numbers of the experiment as a whole; AUCRC is the mean certified radius, 0 where it abstains."""
        return {
            "targets": self.radius.size,
            "clean_accuracy": clean_accuracy(self.radius, prediction=self.prediction, labels=self.labels),
            "abstain_ratio": abstain_ratio(self.radius),
            "AUCRC": aucrc(self.radius, self.num_eligible),
            "normalised_AUCRC": normalized_aucrc(self.radius, self.num_eligible),
            "largest_radius": int(np.minimum(self.radius, self.num_eligible).max()),
        }

    def curves(self, *, only_correct: bool, last_radius: int | None) -> list[RatioCurve]:
        """Return the shares certified at ρ = 0..``last_radius`` in all conventions; None: the normalised curve.

        Args:
            only_correct: Count correct predictions only: an accuracy instead of a ratio.
            last_radius: Largest ρ.
        """
        correct: dict[str, Any] = {"prediction": self.prediction, "labels": self.labels} if only_correct else {}
        if last_radius is None:
            return [normalized_certified_ratio(self.radius, self.num_eligible, num_points=NUM_SHARES, **correct)]
        count = certified_accuracy if only_correct else certified_ratio
        setting = {"max_radius": last_radius, **correct}
        return [count(self.radius, self.num_eligible, denominator=each, **setting) for each in DENOMINATORS]
