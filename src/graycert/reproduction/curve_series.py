"""One curve over ρ: which model, smoothed how, and what is concluded from its votes."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from graycert.reproduction.certify_job import CertifyJob
from graycert.reproduction.settings import Conclusion, Count, Probability, Settings, SplitSettings, TrainingSettings


class CurveSettings(Settings):
    """What curves can differ in; see `TrainingSettings`, `CertifyJob` and `Conclusion` for what is not said here.

    Args:
        training_p_delete: p_d in training.
        training_p_ablate: p_a in training.
        p_delete: p_d at inference.
        p_ablate: p_a at inference.
        test_graph: The graph at test time.
        targets: "all" test nodes that were certified, or those with "tree-shaped" receptive fields in the full graph.
        num_targets: Certify so many test nodes, drawn by the seed.
    """

    graph: str = "cora_ml"
    split: Literal["inductive", "transductive"] = "inductive"
    per_class: Count = 20
    architecture: Literal["gcn", "gat", "gatv2", "sma"] = "gat"
    skip: bool = False
    num_layers: Count = 2
    training_p_delete: Probability = 0.0
    training_p_ablate: Probability = 0.0
    learning_rate: Annotated[float, Field(gt=0.0)] = 1e-3
    weight_decay: Annotated[float, Field(ge=0.0)] = 5e-4
    max_epochs: Count = 1_000
    patience: Count = 50
    p_delete: Probability = 0.0
    p_ablate: Probability = 0.0
    test_graph: Literal["as it is", "diffusion", "trees"] = "as it is"
    targets: Literal["all", "tree-shaped"] = "all"
    num_targets: Count | None = None
    num_selection: Count = 1_000
    num_estimation: Count = 3_000
    min_distance: Annotated[int, Field(ge=0)] = 1
    method: str = "multiplicative"
    rule: str = "sound"
    alpha: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.01

    def split_settings(self, seed: int) -> SplitSettings:
        """Return the split of a seed."""
        return SplitSettings(graph=self.graph, split=self.split, seed=seed, per_class=self.per_class)

    @property
    def conclusion(self) -> Conclusion:
        """What is concluded."""
        return Conclusion(min_distance=self.min_distance, method=self.method, rule=self.rule, alpha=self.alpha)

    def job(self, seed: int) -> CertifyJob:
        """Return the computation of a seed, for this curve alone."""
        training = TrainingSettings(
            **self.split_settings(seed).model_dump(),
            architecture=self.architecture,
            skip=self.skip,
            num_layers=self.num_layers,
            p_delete=self.training_p_delete,
            p_ablate=self.training_p_ablate,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            max_epochs=self.max_epochs,
            patience=self.patience,
        )
        return CertifyJob(
            training=training,
            p_delete=self.p_delete,
            p_ablate=self.p_ablate,
            conclusions=(self.conclusion,),
            test_graph=self.test_graph,
            num_selection=self.num_selection,
            num_estimation=self.num_estimation,
            num_targets=self.num_targets,
        )


class Series(CurveSettings):
    """A curve of a figure.

    Args:
        label: In the legend; the same label looks the same in all figures.
        panel: Title of its panel; empty if there is only one.
    """

    label: Annotated[str, Field(min_length=1)]
    panel: str = ""

    @property
    def name(self) -> str:
        """Name it among all curves of the figure."""
        return f"{self.panel}, {self.label}" if self.panel else self.label


def shared_jobs(series: Sequence[Series], seed: int) -> list[CertifyJob]:
    """Return one computation per curve; curves of one model under one smoothing share it, and so its votes."""
    alone = [each.job(seed) for each in series]
    wanted: dict[CertifyJob, set[Conclusion]] = defaultdict(set)
    for job in alone:
        wanted[_without_conclusions(job)].update(job.conclusions)
    shared = {
        bare: bare.model_copy(update={"conclusions": tuple(sorted(found, key=lambda each: each.name))})
        for bare, found in wanted.items()
    }
    return [shared[_without_conclusions(job)] for job in alone]


def _without_conclusions(job: CertifyJob) -> CertifyJob:
    return job.model_copy(update={"conclusions": ()})
