"""What all adversaries have in common."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from graycert._parameters import Parameters
from graycert._types import BoolArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Threat(Parameters):
    """An adversary with a budget ρ: what a certificate of radius ρ is about.

    Attributes:
        unit: What the budget counts, in the plural.
        within_field: Whether only what lies in the target's receptive field can be of use to the adversary, so that
            ``num_eligible`` counts nodes of the field.
    """

    unit: ClassVar[str] = "nodes"
    within_field: ClassVar[bool] = True

    @property
    def claimed_as(self) -> str:
        """Under which name proofs are claimed: that of the class, unless a parameter makes it another adversary."""
        return self.name

    @property
    @abstractmethod
    def includes_target(self) -> bool:
        """Whether a target may be hostile itself (unless it is trusted)."""

    def exposes(self, targets: IntArray) -> BoolArray:
        """Return which targets may be hostile themselves, shape (num_targets,).

        Args:
            targets: Node indices, shape (num_targets,).
        """
        trusted = getattr(self, "trusted", None)
        if not self.includes_target:
            return np.zeros(targets.size, dtype=np.bool_)
        return np.ones(targets.size, dtype=np.bool_) if trusted is None else ~np.asarray(trusted)[targets]

    @abstractmethod
    def describe(self) -> str:
        """Return who is hostile, in words."""

    @property
    @abstractmethod
    def statement(self) -> str:
        """What a certificate of radius ρ says, to follow "the classifier keeps its prediction for a target"."""

    def against(self, budget: int) -> str:
        """Say what a prediction that is certified at a budget withstands, to follow "keep their prediction".

        Args:
            budget: What the adversary may spend, >= 1.
        """
        return self.statement.replace("up to ρ", f"up to {budget:,}").replace("ρ", f"{budget:,}").rstrip(".")

    def is_no_wider_than(self, before: "Threat") -> bool:
        """Whether votes that were drawn against ``before`` may be concluded from again for this threat.

        Votes do not depend on the threat, but a model may show what the first threat excluded.
        """
        return self.includes_target <= before.includes_target


def any_of(budget: int, one: str, several: str) -> str:
    """Return "any one node", "any 3 nodes".

    Example:
        >>> any_of(1, "node", "nodes"), any_of(3, "node", "nodes")
        ('any one node', 'any 3 nodes')
    """
    return f"any one {one}" if budget == 1 else f"any {budget:,} {several}"
