"""Train (or take) a model, draw votes once, and conclude from them in several ways."""

from typing import Any, ClassVar, Literal

import numpy as np

from graycert.reproduction.job import silent
from graycert.reproduction.lab import Lab
from graycert.reproduction.model_job import SampledJob
from graycert.reproduction.settings import Conclusion, Count, Probability


class CertifyJob(SampledJob):
    """One model under one smoothing distribution.

    Args:
        training: The model.
        p_delete: p_d at inference.
        p_ablate: p_a at inference.
        conclusions: What is concluded from the same votes, one of each name. All must exclude the target if one
            of them does because of a skip connection.
        test_graph: "as it is", or sparsified by "diffusion" (GDC) or to "trees" (App. D) before it is attacked.
        num_selection: n0.
        num_estimation: n1.
        num_targets: Certify so many test nodes, drawn by the seed; None takes all.
        max_radius: Largest radius looked at.
        seed: Seed of the draws; None takes that of the model.

    The result has ``targets``, ``labels`` (num_targets,), and for each conclusion, by its name, ``NAME/radius``,
    ``NAME/num_eligible``, ``NAME/prediction``, ``NAME/p_lower``, ``NAME/p_upper`` (num_targets,).
    """

    job: ClassVar[str] = "certify"

    p_delete: Probability
    p_ablate: Probability
    conclusions: tuple[Conclusion, ...] = (Conclusion(),)
    test_graph: Literal["as it is", "diffusion", "trees"] = "as it is"
    max_radius: Count = 40
    seed: int | None = None

    def run(self, lab: Lab) -> dict[str, Any]:
        """Certify, and conclude in every way asked for."""
        import graycert as gc
        from graycert.certification.again import certify_again

        split = lab.split(self.training)
        targets = self.test_nodes(split)
        data = self._graph(split.test.data, targets)
        first = min(self.conclusions, key=lambda each: (each.rule != "event-aware", each.min_distance))
        nearest = min(each.min_distance for each in self.conclusions)
        certificates = gc.certify(
            lab.model(self.training),
            data,
            smoothing=gc.InterceptionSmoothing(p_delete=self.p_delete, p_ablate=self.p_ablate),
            targets=targets,
            threat=gc.NodeFeatureThreat(min_distance=nearest),
            num_selection=self.num_selection,
            num_estimation=self.num_estimation,
            alpha=first.alpha,
            rule=first.rule,
            method=first.method,
            max_radius=self.max_radius,
            seed=self.training.seed if self.seed is None else self.seed,
            say=silent,  # a sweep visits settings that certify nothing: that is a result, not a warning
        )
        arrays: dict[str, Any] = {"targets": certificates.targets, "labels": certificates.labels}
        for each in self.conclusions:
            found = certificates
            if each != first or each.min_distance != nearest:
                threat = gc.NodeFeatureThreat(min_distance=each.min_distance)
                found = certify_again(
                    certificates, data, threat=threat, rule=each.rule, method=each.method, alpha=each.alpha
                )
            for name in ("radius", "num_eligible", "prediction", "p_lower", "p_upper"):
                arrays[f"{each.name}/{name}"] = getattr(found, name)
        return arrays

    def _graph(self, data: Any, targets: Any) -> Any:
        if self.test_graph == "as it is":
            return data
        if self.test_graph == "diffusion":
            from graycert.data.diffusion import sparsify_by_diffusion

            return sparsify_by_diffusion(data)
        import torch

        from graycert.graph import as_adjacency
        from graycert.graph.trees import sparsify_to_trees

        adjacency = as_adjacency(data)
        kept = sparsify_to_trees(adjacency, targets, num_layers=self.training.num_layers)
        edges = np.stack([adjacency.sources[kept], adjacency.targets[kept]]).astype(np.int64)
        thinner = data.clone()
        thinner.edge_index = torch.from_numpy(edges)
        return thinner
