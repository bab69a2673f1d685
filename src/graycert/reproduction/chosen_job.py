"""Choose among settings on validation nodes, and certify the test nodes under the chosen ones."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field, SerializeAsAny, model_validator

from graycert.reproduction.certify_job import CertifyJob
from graycert.reproduction.job import Job
from graycert.reproduction.lab import Lab
from graycert.reproduction.settings import Count

if TYPE_CHECKING:
    from graycert.reproduction.results import Arrays

CHOICE_RADII = (1, 5, 10)
"""Settings are judged by the mean of the certified accuracies at these numbers of hostile nodes."""


class ChosenJob(Job):
    """Test nodes under the settings of the largest certified accuracy on validation nodes, averaged over radii.

    A target all of whose eligible nodes may be hostile counts at every larger radius too. Of equal settings the first
    is chosen.

    Args:
        candidates: Settings to choose from, with one conclusion each.
        radii: Numbers of hostile nodes that certified accuracies are averaged over.

    The result is that of the chosen candidate, with its place among them, ``chosen``, and the ``scores`` of all on
    validation nodes, shape (num_candidates,).
    """

    job: ClassVar[str] = "chosen"

    candidates: Annotated[tuple[SerializeAsAny[CertifyJob], ...], Field(min_length=1)]
    radii: Annotated[tuple[Count, ...], Field(min_length=1)] = CHOICE_RADII

    @model_validator(mode="after")
    def _concludes_once(self) -> "ChosenJob":
        if any(len(each.conclusions) > 1 for each in self.candidates):
            raise ValueError("each candidate must have one conclusion, by which it is judged")
        return self

    @property
    def graphs(self) -> tuple[str, ...]:
        """Names of the graphs that it needs."""
        return tuple(dict.fromkeys(name for each in self.candidates for name in each.graphs))

    def run(self, lab: Lab) -> dict[str, Any]:
        """Judge all candidates, then certify under the best one only."""
        seen = {"part": "validation", "num_targets": None}
        scores = [self._score(lab.do(each.model_copy(update=seen)), each) for each in self.candidates]
        chosen = int(np.argmax(scores))
        return {**lab.do(self.candidates[chosen]), "chosen": chosen, "scores": scores}

    def _score(self, arrays: "Arrays", candidate: CertifyJob) -> float:
        from graycert.metrics import certified_accuracy

        name = candidate.conclusions[0].name
        radius, eligible, prediction = (arrays[f"{name}/{each}"] for each in ("radius", "num_eligible", "prediction"))
        found = certified_accuracy(
            radius,
            eligible,
            prediction=prediction,
            labels=arrays["labels"],
            max_radius=max(self.radii),
            denominator="whole_field",
        )
        return float(found.counts[list(self.radii)].sum() / (len(self.radii) * radius.size))  # equal counts are a tie
