"""What computations about one trained model have in common."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert.reproduction.job import Job
from graycert.reproduction.settings import Count, TrainingSettings
from graycert.reproduction.target_choice import chosen_targets


class ModelJob(Job):
    """A computation about one model.

    Args:
        training: The model.
    """

    training: TrainingSettings

    @property
    def graphs(self) -> tuple[str, ...]:
        """Names of the graphs that it needs."""
        return (self.training.graph,)


class SampledJob(ModelJob):
    """A certification of one model by votes.

    Args:
        num_selection: n0.
        num_estimation: n1.
        num_targets: Certify so many test nodes, drawn by the seed; None takes all.
    """

    num_selection: Count = 1_000
    num_estimation: Count = 3_000
    num_targets: Count | None = None

    def test_nodes(self, split: Any) -> NDArray[np.int64]:
        """Return the test nodes that are certified, the same for all methods that are compared."""
        return chosen_targets(split.test.nodes.numpy(), self.num_targets, seed=self.training.seed)
