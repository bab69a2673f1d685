"""How often the smoothed classifier abstains, over the two smoothing probabilities (Figure 17)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from graycert.metrics import abstain_ratio, clean_accuracy
from graycert.reproduction.certify_job import CertifyJob
from graycert.reproduction.experiment import Kind
from graycert.reproduction.heatmap import draw_cells
from graycert.reproduction.over_seeds import over_seeds
from graycert.reproduction.settings import Conclusion, Count, Probability, TrainingSettings
from graycert.reproduction.style import new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from graycert.reproduction.job import Job
    from graycert.reproduction.results import Arrays, Results

Probabilities = Annotated[tuple[Probability, ...], Field(min_length=1)]


class SmoothingHeatmap(Kind):
    """Shares of targets without a prediction, and with the right one, for a grid of (p_d, p_a) at inference.

    Args:
        training: The model. Its probabilities follow the cell, so they must be 0; each of the ``seeds`` takes the
            place of its seed.
        p_deletes: Values of p_d at inference.
        p_ablates: Values of p_a at inference.
        same_in_training: Which probabilities of a cell its model is trained with; the others are 0 in training.
        alpha: Failure probability per target.
        min_distance: Hostile nodes are at least so many hops away; a skip connection needs 1.
        num_selection: n0.
        num_estimation: n1.
        seeds: Of splits, models and draws.
    """

    kind: ClassVar[str] = "smoothing-heatmap"

    training: TrainingSettings
    p_deletes: Probabilities
    p_ablates: Probabilities
    same_in_training: Literal["ablation", "deletion and ablation"] = "ablation"
    alpha: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.01
    min_distance: Annotated[int, Field(ge=0)] = 0
    num_selection: Count = 1_000
    num_estimation: Count = 3_000
    seeds: Annotated[tuple[int, ...], Field(min_length=1)] = (13, 17, 26, 35, 69)

    @model_validator(mode="after")
    def _is_a_grid(self) -> "SmoothingHeatmap":
        if self.training.p_delete or self.training.p_ablate:
            raise ValueError("training.p_delete and training.p_ablate must be left out, because they follow the grid")
        for name in ("p_deletes", "p_ablates"):
            if list(getattr(self, name)) != sorted(set(getattr(self, name))):
                raise ValueError(f"{name} must increase")
        return self

    def jobs(self) -> "list[Job]":
        """Return one job for each seed and cell, those of a model together."""
        return [
            self._job(seed, p_delete, p_ablate)
            for seed in self.seeds
            for p_ablate in self.p_ablates
            for p_delete in self.p_deletes
        ]

    def _job(self, seed: int, p_delete: float, p_ablate: float) -> CertifyJob:
        deleted = p_delete if self.same_in_training == "deletion and ablation" else 0.0
        return CertifyJob(
            training=self.training.model_copy(update={"seed": seed, "p_delete": deleted, "p_ablate": p_ablate}),
            p_delete=p_delete,
            p_ablate=p_ablate,
            conclusions=(self._conclusion,),
            num_selection=self.num_selection,
            num_estimation=self.num_estimation,
            max_radius=1,  # whether there is a prediction does not depend on it
        )

    @property
    def _conclusion(self) -> Conclusion:
        return Conclusion(min_distance=self.min_distance, alpha=self.alpha)

    def tables(self, results: "Results") -> dict[str, "pd.DataFrame"]:
        """Return ``cells`` per p_d and p_a, as means over the seeds."""
        import pandas as pd

        rows = [
            {"p_delete": p_delete, "p_ablate": p_ablate, **self._shares(results[self._job(seed, p_delete, p_ablate)])}
            for seed in self.seeds
            for p_ablate in self.p_ablates
            for p_delete in self.p_deletes
        ]
        columns = {"means": ["abstain_ratio", "clean_accuracy"], "counts": ["abstained", "targets"]}
        return {"cells": over_seeds(pd.DataFrame(rows), by=["p_delete", "p_ablate"], **columns)}

    def _shares(self, arrays: "Arrays") -> dict[str, float]:
        radius, prediction = (arrays[f"{self._conclusion.name}/{each}"] for each in ("radius", "prediction"))
        return {
            "abstain_ratio": abstain_ratio(radius),
            "clean_accuracy": clean_accuracy(radius, prediction=prediction, labels=arrays["labels"]),
            "abstained": int(np.count_nonzero(radius < 0)),
            "targets": radius.size,
        }

    def measures(self, tables: Mapping[str, "pd.DataFrame"]) -> dict[str, float]:
        """Return mean abstain ratios for small and large probabilities, the largest one, and where it is."""
        cells = tables["cells"]
        larger = cells[["p_delete", "p_ablate"]].max(axis=1)
        small, large = (cells.loc[each, "abstain_ratio"].mean() for each in (larger < 0.5, larger >= 0.5))
        most = cells.iloc[int(cells["abstain_ratio"].argmax())]
        all_ablated = cells.loc[cells["p_ablate"] == 1.0, "abstain_ratio"]
        return {
            "mean abstain ratio, both below 1/2": float(small),
            "mean abstain ratio, one at least 1/2": float(large),
            "abstains more with one at least 1/2": float(large - small),
            "largest abstain ratio": float(most["abstain_ratio"]),
            "p_d of the largest abstain ratio": float(most["p_delete"]),
            "p_a of the largest abstain ratio": float(most["p_ablate"]),
            "largest abstain ratio at p_a = 1": float(all_ablated.max()),
        }

    def draw(self, tables: Mapping[str, "pd.DataFrame"]) -> "Figure":
        """Draw the abstain ratio, and the clean accuracy beside it."""
        figure, panels = new_figure(1, 2, width=3.9, height=3.2)
        for axes, (column, label) in zip(panels[0], _PANELS.items(), strict=True):
            grid = tables["cells"].pivot_table(index="p_ablate", columns="p_delete", values=column)
            highest = 1.0 if column == "clean_accuracy" else float(grid.to_numpy().max()) or 1.0
            mesh = draw_cells(axes, grid, lowest=0.0, highest=highest)
            axes.set_xlabel("edge deletion $p_d$")
            axes.set_ylabel("node ablation $p_a$" if axes is panels[0][0] else "")
            figure.colorbar(mesh, ax=axes, label=label)
        return figure


_PANELS = {"abstain_ratio": "abstained ratio", "clean_accuracy": "clean accuracy"}
