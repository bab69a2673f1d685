"""Train under sparse smoothing of attributes and certify by its regions (Bojchevski et al. 2020)."""

from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from graycert.reproduction.lab import Lab
from graycert.reproduction.model_job import SampledJob
from graycert.reproduction.settings import Count, Probability


class SparseJob(SampledJob):
    """One model trained and certified under the same flips of attributes.

    Args:
        training: The model; no skip connection, and nothing is deleted or ablated in training.
        p_plus: Probability of setting a 0 to 1.
        p_minus: Probability of setting a 1 to 0.
        min_distances: Eligible nodes are also counted for these distances, so that curves compare. The certificate
            itself is about attributes of any nodes.
        num_selection: n0.
        num_estimation: n1.
        alpha: Failure probability per target.
        num_targets: Certify so many test nodes, drawn by the seed; None takes all.
        max_deletions: Largest number of deleted attributes looked at.

    The result has ``targets``, ``labels``, ``prediction``, ``certified_deletions`` ρ̃ (num_targets,; -1 where the
    classifier abstains), and for each distance d ``distanceD/num_eligible``.
    """

    job: ClassVar[str] = "sparse"

    p_plus: Probability = 0.0
    p_minus: Probability = 0.6
    min_distances: Annotated[tuple[Count, ...], Field(min_length=1)] = (1, 2)
    num_estimation: Count = 100_000
    alpha: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.01
    max_deletions: Count = 40

    @model_validator(mode="after")
    def _trains_without_interception(self) -> "SparseJob":
        if self.training.skip or self.training.p_delete or self.training.p_ablate:
            raise ValueError("`training` needs skip = false and p_delete = p_ablate = 0")
        return self

    def run(self, lab: Lab) -> dict[str, Any]:
        """Train, certify, and count eligible nodes."""
        import graycert as gc
        from graycert.graph.eligible_nodes import eligible_nodes
        from graycert.smoothing.sparse.certify import SparseSmoothing, certify_sparse_smoothing

        split = lab.split(self.training)
        data = split.test.data
        targets = self.test_nodes(split)
        smoothing = SparseSmoothing(p_plus=self.p_plus, p_minus=self.p_minus)
        found = certify_sparse_smoothing(
            self._trained(split, smoothing),
            data,
            smoothing=smoothing,
            targets=targets,
            num_selection=self.num_selection,
            num_estimation=self.num_estimation,
            alpha=self.alpha,
            max_deletions=self.max_deletions,
            seed=self.training.seed,
        )
        arrays: dict[str, Any] = {
            "targets": targets,
            "labels": data.y[targets].numpy(),
            "prediction": found.prediction,
            "certified_deletions": found.certified_deletions,
        }
        for distance in self.min_distances:
            threat = gc.NodeFeatureThreat(min_distance=distance)
            eligible = eligible_nodes(data, targets, threat, num_layers=self.training.num_layers)
            arrays[f"distance{distance}/num_eligible"] = eligible.counts
        return arrays

    def _trained(self, split: Any, smoothing: Any) -> Any:
        import graycert as gc
        from graycert.smoothing.sparse.training import train_sparse_smoothing

        settings = self.training
        model = gc.build_model(settings.architecture, split, num_layers=settings.num_layers, seed=settings.seed)
        train_sparse_smoothing(
            model,
            split,
            smoothing=smoothing,
            learning_rate=settings.learning_rate,
            weight_decay=settings.weight_decay,
            max_epochs=settings.max_epochs,
            patience=settings.patience,
            seed=settings.seed,
        )
        return model
