"""How many test nodes survive one adversary, against one adversary for each (beyond the paper)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from graycert.metrics import certified_ratio
from graycert.reproduction.certify_job import CertifyJob
from graycert.reproduction.curve import Draws, Probabilities, TrainedSettings
from graycert.reproduction.curve_lines import draw_curve, radius_axis
from graycert.reproduction.experiment import Kind
from graycert.reproduction.over_seeds import over_seeds
from graycert.reproduction.settings import Conclusion, Count
from graycert.reproduction.style import LINES, new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from graycert.reproduction.job import Job
    from graycert.reproduction.results import Results

_LABELS = {"together": "together", "exact": "one by one, exact", "theorem_3": "one by one, Theorem 3"}
_LOOKS = {"together": LINES["together"], "exact": LINES["exact"], "theorem_3": LINES["Theorem 3"]}


class CollectiveCurves(Kind, TrainedSettings, Probabilities, Draws):
    """Share of test nodes that keep their prediction, over the number of hostile nodes; see also `Draws`.

    ``together`` is about one adversary whose ρ nodes are chosen once, and which also takes any target that it controls;
    ``theorem_3`` and ``exact`` are certificates one by one, each about an adversary that does not control the target.

    Args:
        seeds: Of splits, models and draws.
        budgets: Numbers ρ of hostile nodes, rising.
        alpha: Failure probability for all test nodes together.
    """

    kind: ClassVar[str] = "collective-curves"

    seeds: Annotated[tuple[int, ...], Field(min_length=1)]
    budgets: Annotated[tuple[Count, ...], Field(min_length=1)]

    def jobs(self) -> "list[Job]":
        """Return one job per seed."""
        return [self._job(seed) for seed in self.seeds]

    def _job(self, seed: int) -> CertifyJob:
        return CertifyJob(
            model=self.training(seed),
            smoothing=self.interception,
            draws=self.draw_settings,
            conclusions=tuple(self._conclusions.values()),
            num_targets=self.num_targets,
            max_radius=max(self.budgets),
        )

    @property
    def _conclusions(self) -> dict[str, Conclusion]:
        """Return what is concluded from the same votes, for all targets at once; one adversary by the exact Δ."""
        exact = Conclusion(bound="exact", alpha=self.alpha, simultaneous=True, budgets=self.budgets)
        return {"exact": exact, "theorem_3": exact.model_copy(update={"bound": "multiplicative", "budgets": ()})}

    def tables(self, results: "Results") -> dict[str, "pd.DataFrame"]:
        """Return ``curves``, mean and standard deviation over seeds, and ``counts`` of each seed."""
        import pandas as pd

        budgets = list(self.budgets)
        parts = []
        for seed in self.seeds:
            arrays = results[self._job(seed)]
            alone = {
                label: certified_ratio(
                    arrays[f"{each.name}/radius"],
                    arrays[f"{each.name}/num_eligible"],
                    max_radius=max(budgets),
                    denominator="whole_field",
                ).counts[budgets]
                for label, each in self._conclusions.items()
            }
            exact = self._conclusions["exact"].name
            predicted = int((arrays[f"{exact}/radius"] >= 0).sum())
            columns = {"together": arrays[f"{exact}/together"], **alone, "num_predicted": predicted}
            parts.append(
                pd.DataFrame({"seed": seed, "radius": budgets, **columns, "num_targets": arrays["targets"].size})
            )
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
