"""What a certificate says about each target, and the shares that curves show."""

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from graycert._types import IntArray
from graycert.metrics import (
    RatioCurve,
    abstain_ratio,
    aucrc,
    certified_accuracy,
    certified_ratio,
    clean_accuracy,
    normalized_aucrc,
    normalized_certified_ratio,
)

if TYPE_CHECKING:
    import pandas as pd

Quantity = Literal["certified ratio", "certified accuracy", "normalised ratio", "normalised accuracy"]
Denominator = Literal["all", "whole_field", "paper"]

NUM_SHARES = 101
"""Points of a normalised curve: each percent of the attack surface."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CertifiedTargets:
    """Certificates of one experiment, shape (num_targets,) each.

    Attributes:
        targets: Node indices, ascending.
        labels: True classes.
        prediction: Reported classes.
        radius: Certified radius, -1 where the classifier abstains.
        num_eligible: Nodes that may be hostile.
        seconds: Time that the computation took.
    """

    targets: IntArray
    labels: IntArray
    prediction: IntArray
    radius: IntArray
    num_eligible: IntArray
    seconds: float

    def only(self, targets: IntArray) -> "CertifiedTargets":
        """Return what is known of those that are among ``targets``."""
        kept = np.isin(self.targets, targets)
        names = [field.name for field in fields(self) if field.name != "seconds"]
        return replace(self, **{name: getattr(self, name)[kept] for name in names})

    def summary(self) -> dict[str, float]:
        """Return numbers of the experiment as a whole; AUCRC is the mean certified radius, 0 where it abstains."""
        reached = np.minimum(self.radius, self.num_eligible)
        return {
            "targets": self.radius.size,
            "clean_accuracy": clean_accuracy(self.radius, prediction=self.prediction, labels=self.labels),
            "abstain_ratio": abstain_ratio(self.radius),
            "abstained": int(np.count_nonzero(self.radius < 0)),
            "AUCRC": aucrc(self.radius, self.num_eligible),
            "normalised_AUCRC": normalized_aucrc(self.radius, self.num_eligible),
            "largest_radius": int(reached.max()),
            "median_radius": float(np.median(reached)),
            "core_seconds": self.seconds,
        }

    def curve(
        self, quantity: Quantity = "certified ratio", *, denominator: Denominator = "paper", last_radius: int = 0
    ) -> "pd.DataFrame":
        """Return one curve as rows: the share of targets at each ρ, or at each share of the attack surface.

        Args:
            quantity: An abstention is never certified; for an accuracy the prediction must also be right.
            denominator: Which targets a share is taken of; of normalised quantities there is only "all".
            last_radius: Largest ρ; normalised curves always end at the whole attack surface.

        Returns:
            Columns ``quantity``, ``denominator``, ``radius`` or ``attack_surface``, ``share``, and the numbers of
            targets that it is made of, ``certified`` and ``targets``.
        """
        import pandas as pd

        x: dict[str, Any] = {"radius": np.arange(last_radius + 1)}
        if quantity.startswith("normalised"):
            x = {"attack_surface": np.arange(NUM_SHARES) / (NUM_SHARES - 1)}
        found = self._ratio_curve(quantity, denominator, last_radius)
        shares = {"share": found.values, "certified": found.counts, "targets": found.totals}
        return pd.DataFrame({"quantity": quantity, "denominator": found.denominator, **x, **shares})

    def _ratio_curve(self, quantity: Quantity, denominator: Denominator, last_radius: int) -> RatioCurve:
        correct: dict[str, Any] = {"prediction": self.prediction, "labels": self.labels}
        setting: dict[str, Any] = {"max_radius": last_radius, "denominator": denominator}
        if quantity == "certified ratio":
            return certified_ratio(self.radius, self.num_eligible, **setting)
        if quantity == "certified accuracy":
            return certified_accuracy(self.radius, self.num_eligible, **setting, **correct)
        which = correct if quantity == "normalised accuracy" else {}
        return normalized_certified_ratio(self.radius, self.num_eligible, num_points=NUM_SHARES, **which)
