"""How many test nodes survive one adversary, against one adversary for each (beyond the paper)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from graycert.reproduction.collective_job import CollectiveJob
from graycert.reproduction.curve_lines import draw_curve, radius_axis
from graycert.reproduction.experiment import Kind
from graycert.reproduction.methods import Probabilities, TrainedSettings
from graycert.reproduction.over_seeds import over_seeds
from graycert.reproduction.settings import Count, Level
from graycert.reproduction.style import LINES, new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from graycert.reproduction.job import Job
    from graycert.reproduction.results import Results

_LABELS = {"together": "together", "exact": "one by one, exact", "theorem_3": "one by one, Theorem 3"}
_LOOKS = {"together": LINES["together"], "exact": LINES["exact"], "theorem_3": LINES["Theorem 3"]}


class CollectiveCurves(Kind, TrainedSettings, Probabilities):
    """Share of test nodes that keep their prediction, over the number of hostile nodes.

    Args:
        seeds: Of splits, models and draws.
        budgets: Numbers ρ of hostile nodes, rising.
        num_selection: n0.
        num_estimation: n1.
        alpha: Failure probability for all test nodes together.
    """

    kind: ClassVar[str] = "collective-curves"

    seeds: Annotated[tuple[int, ...], Field(min_length=1)]
    budgets: Annotated[tuple[Count, ...], Field(min_length=1)]
    num_selection: Count = 1_000
    num_estimation: Count = 3_000
    alpha: Level = 0.01

    def jobs(self) -> "list[Job]":
        """Return one job per seed."""
        return [self._job(seed) for seed in self.seeds]

    def _job(self, seed: int) -> CollectiveJob:
        return CollectiveJob(
            training=self.training(seed),
            **self.model_dump(include={"p_delete", "p_ablate", "budgets", "num_selection", "num_estimation", "alpha"}),
        )

    def tables(self, results: "Results") -> dict[str, "pd.DataFrame"]:
        """Return ``curves``, mean and standard deviation over seeds, and ``counts`` of each seed."""
        import pandas as pd

        parts = []
        for seed in self.seeds:
            found = results[self._job(seed)]
            columns = {name: found[name] for name in _LABELS}
            totals = {name: int(found[name]) for name in ("num_predicted", "num_targets")}
            parts.append(pd.DataFrame({"seed": seed, "radius": self.budgets, **columns, **totals}))
        counts = pd.concat(parts, ignore_index=True)
        points = counts.melt(["radius", "num_targets"], list(_LABELS), var_name="label", value_name="certified")
        points = points.rename(columns={"num_targets": "targets"})
        points["share"] = points["certified"] / points["targets"]
        by, summed = ["label", "radius"], ["certified", "targets"]
        return {"curves": over_seeds(points, by=by, means=["share"], counts=summed, ddof=0), "counts": counts}

    def measures(self, tables: "Mapping[str, pd.DataFrame]") -> dict[str, float]:
        """Return the shares, and the least gain over separate certificates of any seed and budget."""
        counts, curves = tables["counts"], tables["curves"]
        found = {f"{row['label']}_at_{row['radius']}": float(row["share"]) for row in curves.to_dict("records")}
        gain = counts["together"] - counts[["exact", "theorem_3"]].max(axis=1)
        return found | {
            "smallest_gain_in_nodes": float(gain.min()),
            "predicted": float((counts["num_predicted"] / counts["num_targets"]).mean()),
        }

    def draw(self, tables: "Mapping[str, pd.DataFrame]") -> "Figure":
        """Draw the three curves with bands of one standard deviation."""
        figure, panels = new_figure(width=4.4, height=3.2)
        axes = panels[0][0]
        for name, label in _LABELS.items():
            draw_curve(axes, tables["curves"].query("label == @name"), look=_LOOKS[name], label=label)
        radius_axis(axes)
        axes.set_ylabel("share of test nodes that\nprovably keep their prediction")
        axes.legend()
        return figure
