"""Certify what the labels of training nodes say alone, spread over the graph."""

from typing import Any, ClassVar

from graycert.reproduction.certify_job import CertifyJob, chosen_targets
from graycert.reproduction.lab import Lab
from graycert.reproduction.votes_job import training_labels


class LabelsJob(CertifyJob):
    """As `CertifyJob`, for label propagation: it reads no feature, so each prediction holds whatever features are.

    Of ``model`` it needs the split and the number of steps, by which nodes are counted that could attack others. No
    model is trained, and there is nothing to smooth.
    """

    job: ClassVar[str] = "certify-labels"

    def run(self, lab: Lab) -> dict[str, Any]:
        """Predict the class of the largest share, the lowest of equal ones, and certify it against everybody."""
        from graycert.graph import as_adjacency
        from graycert.graph.eligible_nodes import eligible_nodes
        from graycert.smoothing.bounded_votes.label_propagation import propagated_labels
        from graycert.threats import NodeFeatureThreat

        split = lab.split(self.model)
        part = getattr(split, self.part)
        targets = chosen_targets(part.nodes.numpy(), self.num_targets, seed=self.model.seed)
        labels = part.data.y.numpy()
        known = training_labels(split, part)
        shares = propagated_labels(as_adjacency(part.data), known, num_classes=int(labels.max()) + 1)
        arrays: dict[str, Any] = {"targets": targets, "labels": labels[targets]}
        for each in self.conclusions:
            hostile = NodeFeatureThreat(min_distance=each.min_distance)
            counts = eligible_nodes(part.data, targets, hostile, num_layers=self.model.steps).counts
            values = {"radius": counts, "num_eligible": counts, "prediction": shares[targets].argmax(axis=1)}
            arrays |= {f"{each.name}/{name}": value for name, value in values.items()}
        return arrays
