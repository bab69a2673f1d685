"""Conditions on shares of targets, such as correct@2=0.6, and whether certificates meet them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from graycert.certificates import Certificates
from graycert.errors import InvalidParameterError
from graycert.metrics.ratios import certified_accuracy, certified_ratio
from graycert.runs.shares import percent, percent_upward
from graycert.setup import Setup

QUANTITIES = {
    "certified": "certified: at least ρ could attack the target, and any ρ of them fail",
    "holds": "certified, or whole field: whatever all that could attack the target do, up to ρ of them",
    "correct": "certified and correct, of the targets with a label",
    "accuracy": "predicted correctly, of the targets with a label; abstaining is wrong",
    "abstained": "without a prediction",
}
"""What a share can be of, and what that means; of all but the last there should be many."""

_AT_A_RADIUS = ("certified", "holds", "correct")
_OF_LABELS = ("correct", "accuracy")
_FORM = re.compile(r"(?P<quantity>\w+)(@(?P<radius>\d{1,9}))?(\[(?P<named>.+)\])?\s*=\s*(?P<limit>[^=\s]+)")
_LIMIT = re.compile(r"0*[01](\.\d{1,12})?|\.\d{1,12}")
_EXAMPLES = "correct@2=0.6, certified@1=0.5, accuracy=0.8, abstained=0.1 or correct@2[fraud]=0.3"


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A share of the targets that must be reached; of "abstained", one that must not be exceeded.

    Attributes:
        text: As it was written.
        quantity: One of `QUANTITIES`.
        radius: Budget ρ of the adversary; 0 where the quantity knows none.
        class_named: Name, or number, of the class whose targets (by their labels) it is about; None: all targets.
        limit: The share, exactly as it was written.
    """

    text: str
    quantity: str
    radius: int
    class_named: str | None
    limit: Fraction

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """Return the condition that a text says: QUANTITY@ρ[CLASS]=SHARE, with ρ and CLASS where they belong.

        Raises:
            InvalidParameterError: If it is malformed.

        Example:
            >>> found = Condition.parse("correct@2[fraud]=0.3")
            >>> found.quantity, found.radius, found.class_named, found.limit
            ('correct', 2, 'fraud', Fraction(3, 10))
        """
        match = _FORM.fullmatch(text.strip())
        if match is None:
            raise _malformed(text, f"must be such as {_EXAMPLES}")
        quantity, radius, limit = match["quantity"], match["radius"], match["limit"]
        if quantity not in QUANTITIES:
            raise _malformed(text, f"must be about {', '.join(QUANTITIES)}")
        if (radius is not None) != (quantity in _AT_A_RADIUS):
            rule = (
                f"must have a radius: {quantity}@1={limit}"
                if radius is None
                else f"must be without a radius: {quantity}={limit}"
            )
            raise _malformed(text, rule)
        if radius is not None and int(radius) == 0:
            raise _malformed(text, "must have a radius of at least 1; of predictions say accuracy or abstained")
        if not _LIMIT.fullmatch(limit) or Fraction(limit) > 1:
            raise _malformed(text, "must end in a share from 0 to 1, such as 0.6 for 60 %")
        return cls(
            text=text.strip(),
            quantity=quantity,
            radius=int(radius or 0),
            class_named=match["named"],
            limit=Fraction(limit),
        )

    @property
    def at_least(self) -> bool:
        """Whether the share must be at least the limit, rather than at most."""
        return self.quantity != "abstained"

    def check(self, setup: Setup, *, num_classes: int, class_names: Sequence[str] | None) -> None:
        """Refuse what cannot be judged, before anything is computed.

        Args:
            setup: What is asked for.
            num_classes: Classes that labels tell apart; 0 without labels.
            class_names: Names of the classes, or None.

        Raises:
            InvalidParameterError: If there are no labels, no such class, or radii are not looked at so far; or if a
                certificate is asked for of a rule that is not sound.
        """
        if not num_classes and (self.class_named is not None or self.quantity in _OF_LABELS):
            raise _malformed(self.text, "needs labels, and the graph has none")
        if self.class_named is not None and class_names is not None and self.class_named not in class_names:
            raise _malformed(self.text, f"must name a class of {', '.join(class_names)}")
        if self.class_named is not None and class_names is None:
            if not self.class_named.isdecimal():
                raise _malformed(self.text, "must give the class as a number, because the classes have no names")
            if int(self.class_named) >= num_classes:
                raise _malformed(self.text, f"must name a class from 0 to {num_classes - 1}")
        most = None if setup.smoothing.examines_all_radii else setup.max_radius
        if most is not None and self.radius > most:
            raise _malformed(self.text, f"must have a radius of at most {most}, the largest looked at (--max-radius)")
        if self.radius and not setup.the_rule.is_sound:
            raise _malformed(self.text, f"needs a sound rule, because '{setup.rule}' certifies nothing")

    def judge(self, certificates: Certificates) -> "Verdict":
        """Say whether certificates meet it.

        Raises:
            InvalidParameterError: As `check`.
        """
        c = certificates
        self.check(c.setup, num_classes=0 if c.labels is None else c.setup.num_classes, class_names=c.setup.class_names)
        chosen = np.ones(len(c), dtype=np.bool_)
        if self.quantity in _OF_LABELS and c.labels is not None:
            chosen = c.labels >= 0
        if self.class_named is not None and c.labels is not None:
            names = c.setup.class_names
            number = int(self.class_named) if names is None else names.index(self.class_named)
            chosen = c.labels == number
        total = int(np.count_nonzero(chosen))
        return Verdict(condition=self, count=self._count(c, chosen) if total else 0, total=total)

    def _count(self, c: Certificates, chosen: Any) -> int:
        radius, eligible = c.radius[chosen], c.num_eligible[chosen]
        if self.quantity == "abstained":
            return int(np.count_nonzero(radius < 0))
        if self.quantity in _OF_LABELS:
            assert c.labels is not None  # checked before
            found = certified_accuracy(
                radius, eligible, prediction=c.prediction[chosen], labels=c.labels[chosen], max_radius=self.radius
            )
        else:
            denominator = "whole_field" if self.quantity == "holds" else "all"
            found = certified_ratio(radius, eligible, max_radius=self.radius, denominator=denominator)
        return int(found.counts[self.radius])


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether a condition is met.

    Attributes:
        condition: The condition.
        count: Targets that count.
        total: Targets that it is about; of none nothing is met.
    """

    condition: Condition
    count: int
    total: int

    @property
    def passed(self) -> bool:
        """Whether it is met, decided without rounding."""
        limit = self.condition.limit * self.total
        return self.total > 0 and (self.count >= limit if self.condition.at_least else self.count <= limit)

    @property
    def value(self) -> float | None:
        """The share; None of no target."""
        return self.count / self.total if self.total else None

    def __str__(self) -> str:
        """Say it in a line; shares are rounded to the side of caution."""
        asked = self.condition
        share = (percent if asked.at_least else percent_upward)(self.count, self.total)
        of = f"{self.count:,} of {self.total:,}" if self.total else "of no target"
        rule = f"{'at least' if asked.at_least else 'at most'} {float(asked.limit):g}"
        return f"{'passed' if self.passed else 'FAILED'}  {asked.text}: {share}, {of}; must be {rule}"

    def record(self) -> dict[str, Any]:
        """Return plain values."""
        asked = self.condition
        return {
            "condition": asked.text,
            "quantity": asked.quantity,
            "radius": asked.radius if asked.quantity in _AT_A_RADIUS else None,
            "class": asked.class_named,
            "at_least": asked.at_least,
            "limit": float(asked.limit),
            "value": self.value,
            "count": self.count,
            "total": self.total,
            "passed": self.passed,
        }


def _malformed(text: str, rule: str) -> InvalidParameterError:
    return InvalidParameterError(f"The condition {text!r} {rule}.")
