"""The floor of certified accuracies: what the targets' own features alone predict."""

from typing import Any, ClassVar

from graycert.reproduction.job import Job
from graycert.reproduction.lab import Lab
from graycert.reproduction.settings import SplitSettings


class MLPJob(Job):
    """An MLP on a split, trained by the recipe of the other models; its predictions for all test nodes.

    Args:
        split: The graph and its nodes; the seed is also that of the weights and of training.

    The result has ``targets``, ``labels`` and ``prediction``, shape (num_targets,). The predictions hold whatever other
    nodes send.
    """

    job: ClassVar[str] = "mlp"

    split: SplitSettings

    @property
    def graphs(self) -> tuple[str, ...]:
        """Names of the graphs that it needs."""
        return (self.split.graph,)

    def run(self, lab: Lab) -> dict[str, Any]:
        """Train and predict."""
        from graycert.smoothing.features_only.certify import mlp_predictions, train_mlp

        split = lab.split(self.split)
        data, targets = split.test.data, split.test.nodes.numpy()
        model = train_mlp(split, seed=self.split.seed)
        return {
            "targets": targets,
            "labels": data.y.numpy()[targets],
            "prediction": mlp_predictions(model, data, targets),
        }
