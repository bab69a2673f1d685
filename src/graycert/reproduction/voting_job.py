"""Certify a trained model by deterministic voting over hash-made subgraphs."""

from typing import Annotated, Any, ClassVar

from pydantic import Field

from graycert.reproduction.lab import Lab
from graycert.reproduction.model_job import ModelJob
from graycert.reproduction.settings import Count


class VotingJob(ModelJob):
    """One model that votes in T subgraphs, against hostile nodes at several distances.

    Args:
        training: The model; `graycert.smoothing.subgraphs.training.training_smoothing` says what suits T subgraphs.
        num_subgraphs: T.
        min_distances: Hostile nodes are at least so many hops away.

    The result has ``targets``, ``labels``, ``prediction``, ``radius``, the rival's own, for any distance
    (num_targets,), and for each distance d ``distanceD/tightened_radius`` and ``distanceD/num_eligible``.
    """

    job: ClassVar[str] = "voting"

    num_subgraphs: Count
    min_distances: Annotated[tuple[Count, ...], Field(min_length=1)] = (1, 2)

    def run(self, lab: Lab) -> dict[str, Any]:
        """Vote and conclude, once per distance (voting takes about a second)."""
        import graycert as gc
        from graycert.smoothing.subgraphs.certify import certify_subgraph_voting

        split = lab.split(self.training)
        data, targets = split.test.data, split.test.nodes.numpy()
        arrays: dict[str, Any] = {"targets": targets, "labels": data.y[targets].numpy()}
        for distance in self.min_distances:
            found = certify_subgraph_voting(
                lab.model(self.training),
                data,
                num_subgraphs=self.num_subgraphs,
                targets=targets,
                threat=gc.NodeFeatureThreat(min_distance=distance),
                seed=self.training.seed,
            )
            arrays |= {"prediction": found.prediction, "radius": found.radius}  # the same for every distance
            arrays[f"distance{distance}/tightened_radius"] = found.tightened_radius
            arrays[f"distance{distance}/num_eligible"] = found.num_eligible
        return arrays
