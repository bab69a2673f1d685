"""Certify bounded votes of a model that sees one node at a time."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from graycert._types import IntArray
from graycert.reproduction.certify_job import CertifyJob
from graycert.reproduction.lab import Lab
from graycert.reproduction.settings import Conclusion

if TYPE_CHECKING:
    from graycert.certificates import Certificates


class VotesJob(CertifyJob):
    """As `CertifyJob`, for bounded votes.

    Args:
        spread_labels: Also count the labels of the training nodes, spread over the graph.
        label_weight: Their weight λ.
    """

    job: ClassVar[str] = "certify-votes"

    spread_labels: bool = False
    label_weight: Annotated[float, Field(gt=0.0)] = 0.5

    def _smoothing(self, lab: Lab) -> Any:
        made = super()._smoothing(lab)
        if not self.spread_labels:
            return made
        split = lab.split(self.model)
        known = training_labels(split, getattr(split, self.part))
        return replace(made, label_propagation=known, label_weight=self.label_weight)

    def _num_eligible(self, found: "Certificates", data: Any, conclusion: Conclusion) -> IntArray:
        """Count voters: nobody else matters."""
        del data, conclusion
        return found.num_eligible


def training_labels(split: Any, part: Any) -> IntArray:
    """Return the labels of the training nodes by the node numbers of a part of the split, -1 for all other nodes.

    Returns:
        int64, shape (num_nodes of the part,).
    """
    known = np.isin(part.original.numpy(), split.train.original[split.train.nodes].numpy())
    return np.where(known, part.data.y.numpy(), -1).astype(np.int64)
