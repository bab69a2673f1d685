"""Certify a trained model by Levine and Feizi's randomized ablation (App. B)."""

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from graycert.reproduction.lab import Lab
from graycert.reproduction.model_job import SampledJob
from graycert.reproduction.settings import Count, Probability


class LevineJob(SampledJob):
    """One model under ablation of a fixed number of nodes, against hostile nodes at several distances.

    Args:
        training: The model.
        scope: Nodes are drawn from the whole graph ("global"), or from each receptive field ("local").
        p_ablate: As many nodes are kept as independent ablation with this probability keeps.
        min_distances: Hostile nodes are at least so many hops away; all are concluded from the same votes. All must
            exclude the target if the model has a skip connection.
        num_selection: n0.
        num_estimation: n1.
        alpha: Failure probability per target.
        num_targets: Certify so many test nodes, drawn by the seed; None takes all.
        max_radius: Largest radius looked at.

    The result has ``targets``, ``labels``, ``prediction`` (num_targets,), and for each distance d ``distanceD/radius``
    and ``distanceD/num_eligible``, the eligible nodes of the receptive field, in both scopes.
    """

    job: ClassVar[str] = "levine"

    scope: Literal["global", "local"]
    p_ablate: Probability
    min_distances: Annotated[tuple[Count, ...], Field(min_length=1)] = (1,)
    alpha: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.01
    max_radius: Count = 40

    def run(self, lab: Lab) -> dict[str, Any]:
        """Draw votes once, and conclude for every distance."""
        import graycert as gc

        split = lab.split(self.training)
        data = split.test.data
        targets = self.test_nodes(split)
        nearest = min(self.min_distances)
        found = gc.certify_randomized_ablation(
            lab.model(self.training),
            data,
            smoothing=gc.RandomizedAblation(scope=self.scope, p_ablate=self.p_ablate),
            targets=targets,
            threat=gc.NodeFeatureThreat(min_distance=nearest),
            num_selection=self.num_selection,
            num_estimation=self.num_estimation,
            alpha=self.alpha,
            max_radius=self.max_radius,
            seed=self.training.seed,
        )
        arrays: dict[str, Any] = {
            "targets": targets,
            "labels": data.y[targets].numpy(),
            "prediction": found.certificates.prediction,
        }
        within = {each: self._within_reach(data, targets, each) for each in self.min_distances}
        for distance, reachable in within.items():
            nearer = within[nearest] - reachable  # both scopes: of all that may be hostile, these no longer may
            arrays[f"distance{distance}/radius"] = self._radius(found, found.num_eligible - nearer)
            arrays[f"distance{distance}/num_eligible"] = reachable
        return arrays

    def _within_reach(self, data: Any, targets: NDArray[np.int64], min_distance: int) -> NDArray[np.int64]:
        import graycert as gc
        from graycert.graph.eligible_nodes import eligible_nodes

        threat = gc.NodeFeatureThreat(min_distance=min_distance)
        return eligible_nodes(data, targets, threat, num_layers=self.training.num_layers).counts

    def _radius(self, found: Any, num_eligible: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the radius from the votes of ``found`` if so many of the nodes that are drawn from may be hostile."""
        from graycert.bounds.levine import levine_delta
        from graycert.rules import certify_votes

        cases = np.stack([found.num_candidates, found.num_kept, num_eligible], axis=1)
        unique, which = np.unique(cases, axis=0, return_inverse=True)
        delta_upper = np.stack(
            [
                levine_delta(num_nodes=n, num_kept=k, num_eligible=m, max_radius=self.max_radius)
                for n, k, m in unique.tolist()
            ]
        )[which.reshape(-1)]
        return certify_votes(found.selection_votes, found.estimation_votes, delta_upper, alpha=self.alpha).radius
