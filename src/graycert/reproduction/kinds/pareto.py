"""Robustness against accuracy: the trials of sweeps, and the lines through those that no other one dominates."""

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from graycert.errors import InvalidParameterError
from graycert.reproduction.experiment import Kind
from graycert.reproduction.pareto_fronts import MARGIN, compare_fronts, draw_panel, marked, mean_robustness
from graycert.reproduction.pareto_splits import averaged, gains_of_splits
from graycert.reproduction.settings import Architecture, Conclusion, Count, Settings, TrainingSettings
from graycert.reproduction.smoothing_sweep import Smoothed, SmoothingSweep, TrainingRule, trial_numbers
from graycert.reproduction.style import add_legend, new_figure, paper_style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from graycert.reproduction.job import Job
    from graycert.reproduction.results import Results

BOUNDS = {
    "Theorem 3": Conclusion(min_distance=2),
    "exact": Conclusion(min_distance=2, bound="auto"),
}
"""What is concluded from the votes of every trial: attacks from the second hop, as in the paper."""

TITLES = {
    "cora_ml": "Cora-ML",
    "citeseer": "Citeseer",
    "pubmed": "PubMed",
    "pubmed_partial": "PubMed (partial)",
}
_ARCHITECTURES = {"gcn": "GCN", "gat": "GAT", "gatv2": "GATv2", "sma": "SMA"}
TRAINING_RULES = {
    "equal": "as much in training",
    "more": "0.1 more in training",
    "less": "0.1 less in training",
    "drawn separately": "drawn separately",
}


def architecture_title(name: str) -> str:
    """Return what a model is called in figures: a class of the user by its own name."""
    return _ARCHITECTURES.get(name, name.rpartition(":")[2])


class Line(Settings):
    """One set of trials in one panel.

    Args:
        panel: Title of the panel.
        name: In the legend.
        sweeps: Its trials, on one split each.
    """

    panel: str
    name: str
    sweeps: tuple[SmoothingSweep, ...]


class ParetoFronts(Kind):
    """Clean accuracy against area under the certified ratio curve, one panel per graph, with and without skip.

    Args:
        lines: What the lines of a panel differ in; of all else but ``datasets`` and ``skips`` there is one value.
        datasets: Graphs, one column each.
        skips: Without, with skip connection: one row each, unless the lines differ in it.
        architectures: Models.
        smoothed: What is smoothed.
        training_rules: See `SmoothingSweep`.
        bound: The bound of Δ that is shown; all of `BOUNDS` are computed from the same votes.
        split: "inductive" or "transductive".
        seeds: Of splits, models and draws; trials are averaged over them. The first is that of the distributions, too.
        learning_rate: Of Adam.
        max_epochs: Limit of epochs.
        patience: Epochs without improvement before stopping.
        num_selection: n0.
        num_estimation: n1.
        num_targets: Certify so many test nodes; None takes all.
        num_trials: Distributions per line and panel.
        trials_per_training: Trials that share a model, where training parameters are drawn separately; None: none do.
        low_discrepancy: Spread the distributions evenly instead of drawing them independently.
        margin: Fronts are compared where the accuracy is at most so far below the best of the panel.
    """

    kind: ClassVar[str] = "pareto"

    lines: Literal["smoothed", "architecture", "skip", "training rule"] = "smoothed"
    datasets: Annotated[tuple[str, ...], Field(min_length=1)]
    skips: Annotated[tuple[bool, ...], Field(min_length=1)] = (False,)
    architectures: Annotated[tuple[Architecture, ...], Field(min_length=1)] = ("gat",)
    smoothed: Annotated[tuple[Smoothed, ...], Field(min_length=1)] = ("deletion and ablation",)
    training_rules: Annotated[tuple[TrainingRule, ...], Field(min_length=1)] = ("drawn separately",)
    bound: Literal["Theorem 3", "exact"] = "Theorem 3"
    split: Literal["inductive", "transductive"] = "inductive"
    seeds: Annotated[tuple[int, ...], Field(min_length=1)] = (13,)
    learning_rate: float = 1e-3
    max_epochs: Count = 1_000
    patience: Count = 50
    num_selection: Count = 1_000
    num_estimation: Count = 3_000
    num_targets: Count | None = None
    num_trials: Count = 1_000
    trials_per_training: Count | None = None
    low_discrepancy: bool = False
    margin: Annotated[float, Field(gt=0.0, le=1.0)] = MARGIN

    @model_validator(mode="after")
    def _differs_in_one(self) -> "ParetoFronts":
        several = {
            "smoothed": self.smoothed,
            "architecture": self.architectures,
            "training rule": self.training_rules,
        }
        for name, values in several.items():
            if name != self.lines and len(values) > 1:
                raise ValueError(f"the lines differ in {self.lines!r}, so there must be one {name} only")
        return self

    def jobs(self) -> "list[Job]":
        """Return nothing: the sweeps compute all."""
        return []

    def sweeps(self) -> list[SmoothingSweep]:
        """Return one sweep per split, line and panel."""
        return [sweep for line in self.lines_of_panels() for sweep in line.sweeps]

    def lines_of_panels(self) -> list[Line]:
        """Return all lines, row by row of panels."""
        return [
            Line(
                panel=self._panel(dataset, skip=skip),
                name=self._name(architecture, skip, smoothed, rule),
                sweeps=tuple(self._sweep(dataset, architecture, skip, smoothed, rule, seed) for seed in self.seeds),
            )
            for skip, dataset, architecture, smoothed, rule in product(
                self.skips, self.datasets, self.architectures, self.smoothed, self.training_rules
            )
        ]

    def tables(self, results: "Results") -> "dict[str, pd.DataFrame]":
        """Return all trials, the front of each line, and how the fronts of a panel compare, also split by split."""
        import pandas as pd

        rows = [row for line in self.lines_of_panels() for row in self._trials(line, results)]
        done = averaged(pd.DataFrame(rows), num_splits=len(self.seeds)) if rows else pd.DataFrame()
        if done.empty:
            raise InvalidParameterError("`results` must hold at least one trial, got none. See why the trials failed.")
        trials = marked(done, margin=self.margin)
        fronts = self._fronts(trials)
        compared = compare_fronts(trials, fronts)
        if len(self.seeds) == 1:
            return {"trials": trials, "fronts": fronts, "comparisons": compared}
        splits = []
        for seed, of_seed in pd.DataFrame(rows).groupby("seed", sort=False):
            alone = marked(of_seed, margin=self.margin)
            splits.append(compare_fronts(alone, self._fronts(alone)).assign(seed=seed))
        compared = compared.merge(gains_of_splits(pd.concat(splits)), how="left")
        return {"trials": trials, "fronts": fronts, "comparisons": compared, "splits": pd.concat(splits)}

    def measures(self, tables: "Mapping[str, pd.DataFrame]") -> dict[str, float]:
        """Return the mean robustness of each front, and of each two of a panel the difference and who dominates.

        With several splits also the differences of the fronts of each split: their mean and its standard error.
        """
        found = {}
        for _, row in tables["fronts"].iterrows():
            found[f"{row['panel']}: {row['line']}"] = float(row["mean_robustness"])
        for _, row in tables["comparisons"].iterrows():
            pair = f"{row['panel']}: {row['line']} over {row['other']}"
            found[pair] = float(row["gain"])
            for name in ("mean_of_splits", "standard_error"):
                if name in row:
                    found[f"{pair}, {name.replace('_', ' ')}"] = float(row[name])
            found[f"{row['panel']}: share of {row['other']} dominated by {row['line']}"] = float(row["dominated_share"])
        return found

    def draw(self, tables: "Mapping[str, pd.DataFrame]") -> "Figure":
        """Draw one panel per graph, with and without skip connection."""
        trials = tables["trials"]
        panels = list(dict.fromkeys(line.panel for line in self.lines_of_panels()))
        columns = len(self.datasets)
        with paper_style():
            figure, axes = new_figure(len(panels) // columns, columns, height=3.0)
            for place, panel in zip(axes.flat, panels, strict=True):
                draw_panel(place, trials[trials["panel"] == panel], margin=self.margin)
                place.set_title(panel)
            for place in axes[:-1].flat:
                place.set_xlabel("")
            for place in axes[:, 1:].flat:
                place.set_ylabel("")
            add_legend(figure)
        return figure

    def _panel(self, dataset: str, *, skip: bool) -> str:
        title = TITLES.get(dataset, dataset)
        return f"{title}, with skip" if skip and self.lines != "skip" else title

    def _name(self, architecture: str, skip: bool, smoothed: str, rule: str) -> str:
        names = {
            "architecture": architecture_title(architecture),
            "skip": "with skip" if skip else "without skip",
            "smoothed": smoothed,
            "training rule": TRAINING_RULES[rule],
        }
        return names[self.lines]

    def _sweep(
        self, dataset: str, architecture: Architecture, skip: bool, smoothed: Smoothed, rule: TrainingRule, seed: int
    ) -> SmoothingSweep:
        training = TrainingSettings(
            graph=dataset,
            split=self.split,
            seed=seed,
            architecture=architecture,
            skip=skip,
            learning_rate=self.learning_rate,
            max_epochs=self.max_epochs,
            patience=self.patience,
        )
        return SmoothingSweep(
            training=training,
            smoothed=smoothed,
            training_rule=rule,
            conclusions=tuple(BOUNDS.values()),
            num_selection=self.num_selection,
            num_estimation=self.num_estimation,
            num_targets=self.num_targets,
            num_trials=self.num_trials,
            trials_per_training=self.trials_per_training if rule == "drawn separately" else None,
            low_discrepancy=self.low_discrepancy,
            seed=self.seeds[0],
        )

    def _trials(self, line: Line, results: "Results") -> list[dict[str, Any]]:
        """Return one row per split and trial that was done."""
        rows = []
        for index, job in ((index, job) for sweep in line.sweeps for index, job in enumerate(sweep.jobs())):
            if job not in results:  # it failed
                continue
            arrays = results[job]
            in_training = {f"train_{name}": getattr(job.model, name) for name in ("p_delete", "p_ablate")}
            drawn = in_training | job.smoothing.parameters
            numbers = trial_numbers(arrays, BOUNDS[self.bound])
            seconds = float(arrays["seconds"])
            where = {"panel": line.panel, "line": line.name, "seed": job.model.seed, "trial": index}
            rows.append({**where, **drawn, **numbers, "seconds": seconds})
        return rows

    def _fronts(self, trials: "pd.DataFrame") -> "pd.DataFrame":
        import pandas as pd

        return pd.DataFrame([self._front(line, trials) for line in self.lines_of_panels()])

    def _front(self, line: Line, trials: "pd.DataFrame") -> dict[str, Any]:
        of_panel = trials[trials["panel"] == line.panel]
        mine = of_panel[of_panel["line"] == line.name]
        best = float(of_panel["clean_accuracy"].max())
        return {
            "panel": line.panel,
            "line": line.name,
            "trials": len(mine),
            "failed": self.num_trials - len(mine),
            "dominating": int(mine["dominating"].sum()),
            "dominating_within": int((mine["dominating"] & mine["within"]).sum()),
            "best_accuracy": float(mine["clean_accuracy"].max()),
            "best_accuracy_of_panel": best,
            "mean_robustness": mean_robustness(mine, best=best, margin=self.margin),
        }
