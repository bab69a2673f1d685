"""How many test nodes survive one adversary, against one adversary for each (beyond the paper)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from graycert.reproduction.collective_job import CollectiveJob
from graycert.reproduction.experiment import Kind
from graycert.reproduction.settings import Count, Probability, TrainingSettings
from graycert.reproduction.style import LINES, new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from graycert.reproduction.job import Job
    from graycert.reproduction.results import Results

_LABELS = {"together": "together", "exact": "one by one, exact", "theorem_3": "one by one, Theorem 3"}
_STYLES = {"together": LINES["together"], "exact": LINES["exact"], "theorem_3": LINES["Theorem 3"]}


class CollectiveCurves(Kind):
    """Share of test nodes that keep their prediction, over the number of hostile nodes.

    Args:
        training: The model; its seed is replaced by each of ``seeds``.
        seeds: Of splits, models and draws.
        p_delete: p_d at inference.
        p_ablate: p_a at inference.
        budgets: Numbers ρ of hostile nodes, rising.
        num_selection: n0.
        num_estimation: n1.
        alpha: Failure probability for all test nodes together.
    """

    kind: ClassVar[str] = "collective-curves"

    training: TrainingSettings
    seeds: Annotated[tuple[int, ...], Field(min_length=1)]
    p_delete: Probability
    p_ablate: Probability
    budgets: Annotated[tuple[Count, ...], Field(min_length=1)]
    num_selection: Count = 1_000
    num_estimation: Count = 3_000
    alpha: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.01

    def jobs(self) -> "list[Job]":
        """Return one job per seed."""
        return [self._job(seed) for seed in self.seeds]

    def _job(self, seed: int) -> CollectiveJob:
        return CollectiveJob(
            training=self.training.model_copy(update={"seed": seed}),
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
            parts.append(pd.DataFrame({"seed": seed, "budget": self.budgets, **columns, **totals}))
        counts = pd.concat(parts, ignore_index=True)
        shares = counts[list(_LABELS)].div(counts["num_targets"], axis=0).assign(budget=counts["budget"])
        long = shares.melt("budget", var_name="certificate", value_name="share")
        curves = long.groupby(["certificate", "budget"], sort=False)["share"].agg(
            mean="mean", standard_deviation=lambda each: each.std(ddof=0)
        )
        return {"curves": curves.reset_index(), "counts": counts}

    def measures(self, tables: Mapping[str, "pd.DataFrame"]) -> dict[str, float]:
        """Return the shares, and the least gain over separate certificates of any seed and budget."""
        counts, curves = tables["counts"], tables["curves"]
        found = {f"{row['certificate']}_at_{row['budget']}": float(row["mean"]) for row in curves.to_dict("records")}
        gain = counts["together"] - counts[["exact", "theorem_3"]].max(axis=1)
        return found | {
            "smallest_gain_in_nodes": float(gain.min()),
            "predicted": float((counts["num_predicted"] / counts["num_targets"]).mean()),
        }

    def draw(self, tables: Mapping[str, "pd.DataFrame"]) -> "Figure":
        """Draw the three curves with bands of one standard deviation."""
        figure, panels = new_figure(width=4.4, height=3.2)
        axes = panels[0][0]
        for name, label in _LABELS.items():
            rows = tables["curves"].query("certificate == @name")
            low, high = rows["mean"] - rows["standard_deviation"], rows["mean"] + rows["standard_deviation"]
            axes.plot(rows["budget"], rows["mean"], label=label, **_STYLES[name])
            axes.fill_between(rows["budget"], low, high, color=_STYLES[name]["color"], alpha=0.2, linewidth=0.0)
        axes.set_xlabel(r"hostile nodes $\rho$")
        axes.set_ylabel("share of test nodes that\nprovably keep their prediction")
        axes.set_ylim(0.0, 1.02)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.legend()
        return figure
