"""Node retention (App. J): which nodes can be derandomized, and what a trained model then predicts."""

from typing import Any, ClassVar

import numpy as np

from graycert.reproduction.job import Job
from graycert.reproduction.lab import Lab
from graycert.reproduction.model_job import SampledJob
from graycert.reproduction.settings import Count, Probability


class DerandomizedShareJob(Job):
    """The share of all nodes of a graph that can be derandomized.

    Args:
        graph: Its name; it needs no features.
        keep_ratio: Share k_rel of the receptive field that stays.
        num_layers: Message-passing steps.
        tau: Most kept sets of a derandomized node.

    The result has the fields of `DerandomizedShare` and ``num_nodes``.
    """

    job: ClassVar[str] = "derandomized-share"

    graph: str
    keep_ratio: Probability
    num_layers: Count = 2
    tau: Count = 100_000

    @property
    def graphs(self) -> tuple[str, ...]:
        """Names of the graphs that it needs."""
        return (self.graph,)

    def run(self, lab: Lab) -> dict[str, Any]:
        """Count kept sets, and those that differ to the model, of every node."""
        from graycert.graph import as_adjacency
        from graycert.smoothing.retention.derandomized_share import derandomized_share
        from graycert.smoothing.retention.parameters import UniformRetention

        adjacency = as_adjacency(lab.graph(self.graph))
        share = derandomized_share(
            adjacency,
            np.arange(adjacency.num_nodes),
            smoothing=UniformRetention(keep_ratio=self.keep_ratio),
            num_layers=self.num_layers,
            tau=self.tau,
        )
        return {
            "num_nodes": adjacency.num_nodes,
            "by_kept_sets": share.by_kept_sets,
            "mean_distinct": share.mean_distinct,
            "by_representatives": share.by_representatives,
        }


class RetentionJob(SampledJob):
    """Certificates of one model under node retention.

    Args:
        training: The model.
        keep_ratio: Share k_rel of the receptive field that stays.
        tau: Most kept sets of a derandomized target.
        num_selection: n0 of the other targets.
        num_estimation: n1 of the other targets.
        alpha: Failure probability of each of the other targets.
        num_targets: Certify so many test nodes, drawn by the seed; None takes all.

    The result has ``targets``, ``labels``, ``prediction``, ``radius`` (at most 1: whether one hostile node can change
    the prediction) and ``exact`` (num_targets,).
    """

    job: ClassVar[str] = "retention"

    keep_ratio: Probability
    tau: Count = 100_000
    alpha: Probability = 0.01

    def run(self, lab: Lab) -> dict[str, Any]:
        """Certify the test nodes."""
        from graycert.certification.by_retention import certify_by_retention
        from graycert.smoothing.retention.parameters import UniformRetention

        split = lab.split(self.training)
        targets = self.test_nodes(split)
        certificates = certify_by_retention(
            lab.model(self.training),
            split.test.data,
            retention=UniformRetention(keep_ratio=self.keep_ratio),
            targets=targets,
            tau=self.tau,
            num_selection=self.num_selection,
            num_estimation=self.num_estimation,
            alpha=self.alpha,
            max_radius=1,
            seed=self.training.seed,
        )
        return {
            "targets": targets,
            "labels": split.test.data.y.numpy()[targets],
            "prediction": certificates.prediction,
            "radius": certificates.radius,
            "exact": certificates.evaluation == "exact",
        }
