"""How often the smoothed classifier abstains, over the two smoothing probabilities (Figure 17)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from graycert.reproduction.certified_kind import CertifiedKind
from graycert.reproduction.heatmap import draw_cells
from graycert.reproduction.methods import Interception, InterceptionSettings
from graycert.reproduction.over_seeds import over_seeds
from graycert.reproduction.settings import Distance, Probability
from graycert.reproduction.style import new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from graycert.reproduction.results import Results

Probabilities = Annotated[tuple[Probability, ...], Field(min_length=1)]

_CELL = ["p_delete", "p_ablate"]


class SmoothingHeatmap(CertifiedKind, InterceptionSettings):
    """Shares of targets without a prediction, and with the right one, for a grid of (p_d, p_a) at inference.

    Args:
        p_deletes: Values of p_d at inference; they take the place of ``p_delete``.
        p_ablates: Values of p_a at inference; they take the place of ``p_ablate``.
        same_in_training: Which probabilities of a cell its model is trained with; the others are 0 in training.
        min_distance: Hostile nodes are at least so many hops away; a skip connection needs 1.
    """

    kind: ClassVar[str] = "smoothing-heatmap"

    p_deletes: Probabilities
    p_ablates: Probabilities
    same_in_training: Literal["ablation", "deletion and ablation"] = "ablation"
    min_distance: Distance = 0

    @model_validator(mode="after")
    def _is_a_grid(self) -> "SmoothingHeatmap":
        following = {*_CELL, "training_p_delete", "training_p_ablate", "max_radius"} & self.model_fields_set
        if following:
            raise ValueError(f"{', '.join(sorted(following))} must be left out, because they follow the grid")
        for name in ("p_deletes", "p_ablates"):
            if list(getattr(self, name)) != sorted(set(getattr(self, name))):
                raise ValueError(f"{name} must increase")
        return self

    @property
    def all_curves(self) -> list[Interception]:
        """Return one for each cell, those of a model together."""
        deleted = self.same_in_training == "deletion and ablation"
        return [
            self.curve(
                f"p_d = {p_delete:g}, p_a = {p_ablate:g}",
                p_delete=p_delete,
                p_ablate=p_ablate,
                training_p_delete=p_delete if deleted else 0.0,
                training_p_ablate=p_ablate,
                max_radius=1,  # whether there is a prediction does not depend on it
            )
            for p_ablate in self.p_ablates
            for p_delete in self.p_deletes
        ]

    def tables(self, results: "Results") -> "dict[str, pd.DataFrame]":
        """Return ``cells`` per p_d and p_a, as means over the seeds."""
        import pandas as pd

        rows = [
            {**{name: getattr(curve, name) for name in _CELL}, **found.summary()}
            for seed in self.seeds
            for curve, found in self.certified(seed, results)
        ]
        means, counts = ["abstain_ratio", "clean_accuracy"], ["abstained", "targets"]
        return {"cells": over_seeds(pd.DataFrame(rows), by=_CELL, means=means, counts=counts)}

    def measures(self, tables: "Mapping[str, pd.DataFrame]") -> dict[str, float]:
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

    def draw(self, tables: "Mapping[str, pd.DataFrame]") -> "Figure":
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
