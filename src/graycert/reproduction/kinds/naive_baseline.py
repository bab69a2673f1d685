"""Certificates for a few attributes, converted to whole nodes, beside certificates for whole nodes (Figure 3 (c))."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from graycert.metrics import certified_ratio, clean_accuracy
from graycert.reproduction.certify_job import CertifyJob
from graycert.reproduction.curve_series import CurveSettings
from graycert.reproduction.experiment import Kind
from graycert.reproduction.settings import Count, Probability
from graycert.reproduction.sparse_job import SparseJob
from graycert.reproduction.style import GREY, LINES, new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from graycert.reproduction.job import Job
    from graycert.reproduction.results import Results

OURS, RIVAL = "interception smoothing", "sparse smoothing"

_DISTANCES = (1, 2)  # as in Figure 3 (a), so that votes are shared


class NaiveBaseline(Kind):
    """Certified ratio over ρ: interception smoothing, and sparse smoothing with ρ = ρ̃ / d for several d.

    Args:
        ours: Model and smoothing; ``min_distance`` says how near hostile nodes may be.
        attributes: Numbers d of attributes per node.
        seeds: Of split, weights, training and draws; each is one experiment.
        p_plus: Probability that sparse smoothing sets a 0 to 1.
        p_minus: Probability that it sets a 1 to 0.
        num_selection: n0 of sparse smoothing.
        num_estimation: n1 of sparse smoothing.
        max_deletions: Largest ρ̃ looked at.
        last_radius: Largest ρ shown.
        denominator: Which targets the ratio of interception smoothing is taken of, see `graycert.metrics`; that of
            sparse smoothing, which knows no receptive fields, is always taken of all.
    """

    kind: ClassVar[str] = "naive-baseline"

    ours: CurveSettings
    attributes: Annotated[tuple[Count, ...], Field(min_length=1)] = (1, 8, 64, 512, 2_879)
    seeds: Annotated[tuple[int, ...], Field(min_length=1)] = (13, 17, 26, 35, 69)
    p_plus: Probability = 0.0
    p_minus: Probability = 0.6
    num_selection: Count = 1_000
    num_estimation: Count = 100_000
    max_deletions: Count = 40
    last_radius: Count = 40
    denominator: Literal["all", "whole_field", "paper"] = "all"

    @model_validator(mode="after")
    def _targets_are_the_same(self) -> "NaiveBaseline":
        if self.ours.targets != "all" or self.ours.test_graph != "as it is":
            raise ValueError("`ours` must certify all targets on the graph as it is, as sparse smoothing does")
        if tuple(sorted(set(self.attributes))) != self.attributes:
            raise ValueError(f"`attributes` must rise, got {self.attributes}")
        return self

    def jobs(self) -> "list[Job]":
        """Return both computations of each seed."""
        return [job for seed in self.seeds for job in (self._our_job(seed), self._rival_job(seed))]

    def _our_job(self, seed: int) -> CertifyJob:
        """Return the computation, with the conclusions for other distances that Figure 3 (a) draws."""
        conclusion = self.ours.conclusion
        distances = sorted({*_DISTANCES, conclusion.min_distance})
        conclusions = tuple(conclusion.model_copy(update={"min_distance": each}) for each in distances)
        return self.ours.job(seed).model_copy(update={"conclusions": conclusions})

    def _rival_job(self, seed: int) -> SparseJob:
        training = self.ours.job(seed).training
        return SparseJob(
            training=training.model_copy(update={"skip": False, "p_delete": 0.0, "p_ablate": 0.0}),
            p_plus=self.p_plus,
            p_minus=self.p_minus,
            num_selection=self.num_selection,
            num_estimation=self.num_estimation,
            alpha=self.ours.alpha,
            num_targets=self.ours.num_targets,
            max_deletions=self.max_deletions,
        )

    def tables(self, results: "Results") -> "dict[str, pd.DataFrame]":
        """Return ``curves`` over real ρ, ``nodes`` over whole ones (means over seeds), and ``seeds`` with extremes."""
        import pandas as pd

        points, seeds = [], []
        for seed in self.seeds:
            ours, rival = results[self._our_job(seed)], results[self._rival_job(seed)]
            points += list(self._our_points(ours)) + list(self._rival_points(rival))
            seeds += [{"seed": seed, **each} for each in self._summaries(ours, rival)]
        shares = pd.concat([pd.DataFrame(each) for each in points])
        groups = shares.groupby(["table", "method", "attributes", "radius"], sort=False)
        means = groups.agg(
            mean=("share", "mean"),
            standard_deviation=("share", "std"),
            certified=("certified", "sum"),
            targets=("targets", "sum"),
        ).reset_index()
        means["standard_deviation"] = means["standard_deviation"].fillna(0.0)  # one seed
        found = {name: rows.drop(columns="table") for name, rows in means.groupby("table", sort=False)}
        return {"curves": found["curves"], "nodes": found["nodes"], "seeds": pd.DataFrame(seeds)}

    def _our_points(self, arrays: dict[str, NDArray[Any]]) -> Iterator[dict[str, Any]]:
        """Yield the ratio at each ρ: between two whole numbers nothing changes."""
        name = self.ours.conclusion.name
        curve = certified_ratio(
            arrays[f"{name}/radius"],
            arrays[f"{name}/num_eligible"],
            max_radius=self.last_radius,
            denominator=self.denominator,
        )
        about = {"method": OURS, "attributes": 0, "radius": np.arange(self.last_radius + 1, dtype=np.float64)}
        for table in ("curves", "nodes"):
            yield about | {
                "table": table,
                "share": curve.values,
                "certified": curve.counts,
                "targets": curve.totals,
            }

    def _rival_points(self, arrays: dict[str, NDArray[Any]]) -> Iterator[dict[str, Any]]:
        """Yield the ratio at each ρ̃ / d, and at each whole ρ."""
        from graycert.smoothing.sparse.certify import naive_certified_nodes

        deletions = arrays["certified_deletions"]
        for number in self.attributes:
            about = {"method": RIVAL, "attributes": number, "targets": deletions.size}
            steps = np.arange(self.max_deletions + 1)
            yield about | {"table": "curves", "radius": steps / number, **_shares(deletions, steps)}
            steps = np.arange(self.last_radius + 1)
            nodes = naive_certified_nodes(deletions, number)
            yield about | {"table": "nodes", "radius": steps.astype(np.float64), **_shares(nodes, steps)}

    def _summaries(self, ours: dict[str, NDArray[Any]], rival: dict[str, NDArray[Any]]) -> Iterator[dict[str, Any]]:
        """Yield what each method reaches; both accuracies count an abstention as wrong."""
        name = self.ours.conclusion.name
        radius = np.minimum(ours[f"{name}/radius"], ours[f"{name}/num_eligible"])
        for method, unit, reached, prediction, arrays in (
            (OURS, "nodes", radius, ours[f"{name}/prediction"], ours),
            (RIVAL, "attributes", rival["certified_deletions"], rival["prediction"], rival),
        ):
            yield {
                "method": method,
                "unit": unit,
                "clean_accuracy": clean_accuracy(reached, prediction=prediction, labels=arrays["labels"]),
                "largest": int(reached.max()),
                "median": float(np.median(reached)),
                "core_seconds": float(arrays["seconds"]),
            }

    def measures(self, tables: Mapping[str, "pd.DataFrame"]) -> dict[str, float]:
        """Return the largest certified ρ of each curve, the ratio at ρ = 1, accuracies, and the d that ends it all."""
        measured: dict[str, float] = {}
        for name, rows in self._lines(tables["nodes"]):
            certified = rows[(rows["certified"] > 0) & (rows["radius"] > 0)]
            measured[f"{name}: largest radius"] = float(certified["radius"].max()) if len(certified) else 0.0
            measured[f"{name}: certified ratio at 1"] = float(rows.loc[rows["radius"] == 1, "mean"].iloc[0])
        for method in (OURS, RIVAL):
            rows = tables["seeds"][tables["seeds"]["method"] == method]
            measured[f"{method}: clean accuracy"] = float(rows["clean_accuracy"].mean())
        attributes = tables["seeds"].loc[tables["seeds"]["method"] == RIVAL, "largest"].max()
        measured[f"{RIVAL}: largest d with a certified node"] = float(max(attributes, 0))
        measured[f"{RIVAL}: largest radius at the largest d"] = float(max(attributes, 0)) / self.attributes[-1]
        return measured

    def _lines(self, table: "pd.DataFrame") -> "Iterator[tuple[str, pd.DataFrame]]":
        """Yield the name and the rows of each curve, ours first."""
        yield OURS, table[table["method"] == OURS]
        for number in self.attributes:
            yield f"{RIVAL}, d = {number}", table[(table["method"] == RIVAL) & (table["attributes"] == number)]

    def draw(self, tables: Mapping[str, "pd.DataFrame"]) -> "Figure":
        """Draw all curves over a logarithmic ρ, where another d shifts a curve and leaves its form."""
        figure, panels = new_figure(width=4.8, height=3.0)
        axes = panels[0][0]
        low = 0.5 / self.attributes[-1]
        axes.axvspan(low, 1.0, color=GREY, alpha=0.12, linewidth=0.0)
        axes.text(low * 1.3, 0.945, "less than one node", color="#555555", va="bottom", fontsize=8)
        (_, ours), *rivals = self._lines(tables["curves"])
        for number, (_, rows) in zip(self.attributes, rivals, strict=True):
            label = rf"{RIVAL}, $\tilde\rho$ / $d$" if number == self.attributes[0] else None
            _draw_steps(axes, rows, low=low, style=LINES[RIVAL], label=label)
            _write_attributes(axes, rows, number)
        _draw_steps(axes, ours, low=low, style=LINES[OURS], label=OURS)
        axes.set_xscale("log")
        axes.set_xlim(low, self.last_radius)
        axes.set_ylim(0.0, 1.02)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_xlabel(r"hostile nodes $\rho$ (of $d$ attributes each)")
        axes.set_ylabel("certified ratio")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        return figure


def _shares(reached: NDArray[np.int64], steps: NDArray[np.int64]) -> dict[str, Any]:
    counts = (reached[None, :] >= steps[:, None]).sum(axis=1)
    return {"share": counts / reached.size, "certified": counts}


def _draw_steps(axes: "Axes", rows: "pd.DataFrame", *, low: float, style: dict[str, Any], label: str | None) -> None:
    """Draw a ratio that falls after each of its positions, from ``low`` on, with its band."""
    positions = np.append(low, rows["radius"].to_numpy()[1:])
    mean, deviation = (np.append(each[1], each[1:]) for each in (rows["mean"].to_numpy(), _deviation(rows)))
    axes.plot(positions, mean, drawstyle="steps-pre", color=style["color"], linestyle=style["linestyle"], label=label)
    edges = np.clip(mean - deviation, 0.0, 1.0), np.clip(mean + deviation, 0.0, 1.0)
    axes.fill_between(positions, *edges, step="pre", color=style["color"], alpha=0.2, linewidth=0.0)


def _deviation(rows: "pd.DataFrame") -> NDArray[np.float64]:
    deviation: NDArray[np.float64] = rows["standard_deviation"].to_numpy()
    return deviation


def _write_attributes(axes: "Axes", rows: "pd.DataFrame", number: int) -> None:
    """Write d where the curve is half as high as at its beginning."""
    mean = rows["mean"].to_numpy()[1:]
    place = int(np.argmax(mean < 0.5 * mean[0])) if (mean < 0.5 * mean[0]).any() else mean.size - 1
    axes.text(
        rows["radius"].iloc[place + 1],
        0.5 * mean[0],
        f"$d$ = {number:,}",
        ha="center",
        va="center",
        fontsize=7,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85},
    )
