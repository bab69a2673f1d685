"""Sweeps over smoothing parameters: how accurate and how robust is one architecture under many distributions?"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from graycert.models.names import is_own
from graycert.reproduction.certify_job import CertifyJob
from graycert.reproduction.job import Job
from graycert.reproduction.lab import Lab
from graycert.reproduction.pool import run_jobs
from graycert.reproduction.recipes import untrained
from graycert.reproduction.settings import (
    Conclusion,
    Count,
    DrawSettings,
    Settings,
    SmoothingSettings,
    TrainingSettings,
)
from graycert.reproduction.sweep.design import RandomDesign

if TYPE_CHECKING:
    from graycert.problem import Execution
    from graycert.reproduction.results import Arrays
    from graycert.reproduction.sweep import Sweep
    from graycert.reproduction.sweep.budget import Budget
    from graycert.reproduction.sweep.design import Design

Smoothed = Literal["deletion and ablation", "deletion", "ablation"]
TrainingRule = Literal["drawn separately", "equal", "more", "less"]

ROBUSTNESS = "normalized_aucrc"
"""How robust a trial is: bounded, so that it depends neither on the largest radius looked at nor on a few hubs."""

OBJECTIVES = {"clean_accuracy": "maximize", ROBUSTNESS: "maximize"}
"""What a trial is judged by."""

MAX_RADIUS = 10
"""Certified ratios are kept up to this radius."""

_MORE_ABLATION = {"equal": 0.0, "more": 0.1, "less": -0.1}


@dataclass(frozen=True, kw_only=True)
class SharedTrainingDesign(RandomDesign):
    """Points of which several have the training parameters in common, so that their model is trained once.

    Neighbours differ in their model, so that two workers do not train the same: with two trials per training, the
    models of trials 0 to 7 are 0, 1, 0, 1, 2, 3, 2, 3. Model i has the training parameters of point i.

    Args:
        trials_per_training: Number of trials that share a model.
    """

    trials_per_training: int

    def point(self, index: int) -> dict[str, float]:
        """Return the parameters of trial ``index``."""
        block, place = divmod(index, 2 * self.trials_per_training)
        training = super().point(2 * block + place % 2)
        return {
            name: training[name] if name.startswith("train_") else value for name, value in super().point(index).items()
        }


class SmoothingSweep(Settings):
    """One architecture on one split, trained and certified under many smoothing distributions.

    Args:
        training: The model. Its probabilities are those that the trials replace, so they must be 0.
        smoothed: What is smoothed, in training and at inference; the other probability is 0.
        training_rule: "drawn separately" from those at inference; or "equal" to them, but for 0.1 "more" or "less"
            ablation, kept within [0, 1] (Figure 5c).
        conclusions: What is concluded from the votes of a trial; trials are judged by the first.
        num_selection: n0.
        num_estimation: n1.
        num_targets: Certify so many test nodes, drawn by the seed; None takes all.
        num_trials: Number of distributions.
        trials_per_training: Number of trials that share a model, if training parameters are drawn separately; None
            trains one for each trial.
        low_discrepancy: Spread the distributions evenly instead of drawing them independently.
        seed: Seed of the distributions, so sweeps with equal seeds visit the same ones.

    References:
        Scholten et al. (2022), Section 7 (1,000 distributions per setting, drawn from [0, 1]^4).
    """

    training: TrainingSettings
    smoothed: Smoothed = "deletion and ablation"
    training_rule: TrainingRule = "drawn separately"
    conclusions: Annotated[tuple[Conclusion, ...], Field(min_length=1)] = (Conclusion(min_distance=2),)
    num_selection: Count = 1_000
    num_estimation: Count = 3_000
    num_targets: Count | None = None
    num_trials: Count = 1_000
    trials_per_training: Count | None = None
    low_discrepancy: bool = False
    seed: Annotated[int, Field(ge=0, lt=2**64)] = 13

    @model_validator(mode="after")
    def _draws_all_probabilities(self) -> "SmoothingSweep":
        if self.training.p_delete or self.training.p_ablate:
            raise ValueError("training.p_delete and training.p_ablate must be left out, because they are swept")
        if self.trials_per_training is not None and self.training_rule != "drawn separately":
            raise ValueError("trials_per_training needs the training rule 'drawn separately'")
        return self

    @property
    def graphs(self) -> tuple[str, ...]:
        """Names of the graphs that it needs."""
        return (self.training.graph,)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of what is drawn from [0, 1]."""
        names = {"deletion": ("p_delete",), "ablation": ("p_ablate",)}.get(self.smoothed, ("p_delete", "p_ablate"))
        return (*(f"train_{name}" for name in names), *names) if self.training_rule == "drawn separately" else names

    @property
    def design(self) -> RandomDesign:
        """Where its trials lie."""
        ranges = dict.fromkeys(self.parameters, (0.0, 1.0))
        if self.trials_per_training is None:
            return RandomDesign(ranges=ranges, seed=self.seed, low_discrepancy=self.low_discrepancy)
        return SharedTrainingDesign(
            ranges=ranges,
            seed=self.seed,
            low_discrepancy=self.low_discrepancy,
            trials_per_training=self.trials_per_training,
        )

    def job(self, point: Mapping[str, float]) -> CertifyJob:
        """Return what a trial computes."""
        p_delete, p_ablate = point.get("p_delete", 0.0), point.get("p_ablate", 0.0)
        if self.training_rule == "drawn separately":
            in_training = {name: point.get(f"train_{name}", 0.0) for name in ("p_delete", "p_ablate")}
        else:
            shifted = p_ablate + _MORE_ABLATION[self.training_rule]
            in_training = {"p_delete": p_delete, "p_ablate": max(min(shifted, 1.0), 0.0)}
        return CertifyJob(
            model=self.training.model_copy(update=in_training),
            smoothing=SmoothingSettings.of("interception", p_delete=p_delete, p_ablate=p_ablate),
            draws=DrawSettings.of(num_selection=self.num_selection, num_estimation=self.num_estimation),
            conclusions=self.conclusions,
            num_targets=self.num_targets,
        )

    def refuse(self, lab: Lab) -> None:
        """Refuse before the first trial what each would be refused for; a class of the user is audited.

        Raises:
            InvalidParameterError: If the model cannot be made, or its depth is not known.
            InvalidFileError: If its class is another than in earlier results.
            UnsoundSetupError: If what it predicts could not be certified.
        """
        from graycert.audit import audit_model, refuse_exposed_target
        from graycert.bounds import check_bound

        training, test = self.training, lab.split(self.training).test
        lab.refuse_changed_class(training)
        model = untrained(training, lab.split(training), seed=training.seed).eval()
        nodes = test.nodes.numpy()
        for each in self.conclusions:
            refuse_exposed_target(model, each.adversary(), nodes)
        if is_own(training.architecture):
            report = audit_model(model, test.data, num_layers=training.num_layers, targets=nodes)
            report.require()
        num_layers = report.num_layers if is_own(training.architecture) else training.steps
        for each in self.conclusions:
            check_bound(each.bound, num_layers=num_layers)

    def jobs(self) -> list[CertifyJob]:
        """Return what all trials compute, in order."""
        design = self.design
        return [self.job(design.point(index)) for index in range(self.num_trials)]

    def numbers(self, arrays: "Arrays") -> dict[str, float]:
        """Return the numbers of a trial by its first conclusion, and those by others with their names before them."""
        first, *others = self.conclusions
        numbers = trial_numbers(arrays, first)
        for each in others:
            numbers |= {f"{each.name}/{name}": value for name, value in trial_numbers(arrays, each).items()}
        return numbers

    def tidy(self, lab: Lab, job: Job) -> None:
        """Remove the model of a trial that no other needs: thousands would fill the disk."""
        if self.trials_per_training is None and isinstance(job, CertifyJob):
            lab.forget_model(job.model)

    def as_sweep(
        self,
        lab: Lab,
        *,
        directory: Path,
        design: "Design | None" = None,
        budget: "Budget | None" = None,
    ) -> "Sweep":
        """Return the sweep to run.

        Args:
            lab: Keeps results and models.
            directory: Folder of the sweep itself.
            design: Where trials lie instead of ``design``.
            budget: When it ends instead of after ``num_trials``.
        """
        from graycert.reproduction.sweep import Budget, Sweep

        settings = self.model_dump(mode="json", exclude={"num_trials", "seed", "low_discrepancy"}, exclude_none=True)
        return Sweep(
            directory=directory,
            name=f"{Path(self.training.graph).stem}-{self.training.architecture}-{self.smoothed}".replace(" ", "-"),
            lab=lab,
            job=self.job,
            numbers=self.numbers,
            tidy=partial(self.tidy, lab),
            directions=OBJECTIVES,
            design=design or self.design,
            budget=budget or Budget(trials=self.num_trials),
            settings=settings,
        )


def trial_numbers(arrays: "Arrays", conclusion: Conclusion) -> dict[str, float]:
    """Return what a trial is judged by, from the result of its `CertifyJob`.

    Returns:
        ``clean_accuracy``, ``aucrc`` (mean of the certified radius over all targets, capped by the number of nodes
        that could be hostile; radii beyond the job's ``max_radius`` are not looked for), ``normalized_aucrc``,
        ``abstain_ratio``, ``mean_radius`` (capped likewise; of the targets with a prediction, NaN without any), and
        ``certified_ratio_1`` to ``certified_ratio_10`` (of all targets).
    """
    import numpy as np

    from graycert.metrics import abstain_ratio, aucrc, certified_ratio, clean_accuracy, normalized_aucrc

    radius, eligible, prediction = (
        arrays[f"{conclusion.name}/{name}"] for name in ("radius", "num_eligible", "prediction")
    )
    predicted = np.minimum(radius, eligible)[radius >= 0]
    ratios = certified_ratio(radius, eligible, max_radius=MAX_RADIUS).values
    return {
        "clean_accuracy": clean_accuracy(radius, prediction=prediction, labels=arrays["labels"]),
        "aucrc": aucrc(radius, eligible),
        "normalized_aucrc": normalized_aucrc(radius, eligible),
        "abstain_ratio": abstain_ratio(radius),
        "mean_radius": float(predicted.mean()) if predicted.size else float("nan"),
        **{f"certified_ratio_{reached}": float(ratios[reached]) for reached in range(1, MAX_RADIUS + 1)},
    }


def run_smoothing_sweeps(
    sweeps: Sequence[SmoothingSweep],
    lab: Lab,
    *,
    execution: "Execution | None" = None,
    progress: bool = False,
    say: Callable[[str], None] | None = None,
) -> None:
    """Do the trials of sweeps that were not done, in order; those that failed are tried again.

    Args:
        sweeps: Some may be equal, or have trials in common.
        lab: Keeps the results.
        execution: Who works; this process if it is left out.
        progress: Show progress on standard error if it is a terminal.
        say: Told of trials that failed.
    """
    jobs: dict[Job, SmoothingSweep] = {job: each for each in sweeps for job in each.jobs()}
    run_jobs(
        jobs,
        lab.folder,
        data_root=lab.data_root,
        execution=execution,
        progress=progress,
        say=say,
        tidy=lambda job: jobs[job].tidy(lab, job),
    )
