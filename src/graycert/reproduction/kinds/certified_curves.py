"""Certified ratios and accuracies over the number of hostile nodes, averaged over seeds."""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from graycert.reproduction.certified_targets import NUM_SHARES, CertifiedTargets
from graycert.reproduction.curve_series import CurveSettings, Series, shared_jobs
from graycert.reproduction.experiment import Kind
from graycert.reproduction.mlp_job import MLPJob
from graycert.reproduction.settings import Count
from graycert.reproduction.style import LINES, ORDER, new_figure, paper_style
from graycert.reproduction.tree_shaped_job import TreeShapedJob

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from graycert.reproduction.job import Job
    from graycert.reproduction.results import Results

MLP = "MLP"
"""Label of the floor."""


class CertifiedCurves(Kind, CurveSettings):
    """Shares of certified targets over ρ, or over the share of the attack surface that is hostile.

    Settings of `CurveSettings` are those of every series that does not say otherwise.

    Args:
        series: The curves.
        seeds: Of split, weights, training and draws; each is one experiment.
        quantity: What is shown. An abstention is never certified; for an accuracy the prediction must also be right.
        denominator: Which targets a share is taken of, see `graycert.metrics`; the table has all conventions. Of
            normalised quantities there is only one, all targets.
        last_radius: Largest ρ shown.
        mlp_floor: Also show the accuracy of an MLP, which holds at every ρ if the targets are trusted.
    """

    kind: ClassVar[str] = "certified-curves"

    series: Annotated[tuple[Series, ...], Field(min_length=1)]
    seeds: Annotated[tuple[int, ...], Field(min_length=1)] = (13, 17, 26, 35, 69)
    quantity: Literal["certified ratio", "certified accuracy", "normalised ratio", "normalised accuracy"]
    denominator: Literal["all", "whole_field", "paper"] = "paper"
    last_radius: Count = 10
    mlp_floor: bool = False

    @model_validator(mode="before")
    @classmethod
    def _hand_down(cls, values: dict[str, Any]) -> dict[str, Any]:
        shared = {name: values[name] for name in CurveSettings.model_fields if name in values}
        series = [{**shared, **each} if isinstance(each, dict) else each for each in values.get("series", ())]
        return {**values, "series": series}

    @model_validator(mode="after")
    def _series_are_distinct(self) -> "CertifiedCurves":
        if len({each.name for each in self.series}) < len(self.series):
            raise ValueError("each series of a panel must have a label of its own")
        if any(each.targets != "all" and each.test_graph != "as it is" for each in self.series):
            raise ValueError("`targets` are chosen in the full graph, so `test_graph` must be 'as it is'")
        return self

    @model_validator(mode="after")
    def _floor_is_comparable(self) -> "CertifiedCurves":
        if not self.mlp_floor:
            return self
        if not self._is_accuracy or not (self._is_normalised or self.denominator == "whole_field"):
            raise ValueError("`mlp_floor` needs a normalised accuracy, or an accuracy with denominator 'whole_field'")
        if any(each.min_distance == 0 for each in self.series):
            raise ValueError("`mlp_floor` needs trusted targets: `min_distance` >= 1")
        if len({(each.split_settings(0), each.targets, each.num_targets) for each in self.series}) > 1:
            raise ValueError("`mlp_floor` needs the same targets in all series")
        return self

    @property
    def _is_normalised(self) -> bool:
        return self.quantity.startswith("normalised")

    @property
    def _is_accuracy(self) -> bool:
        return self.quantity.endswith("accuracy")

    def jobs(self) -> "list[Job]":
        """Return certificates, floors and the shapes of fields; the series share what they can."""
        jobs: list[Job] = []
        for seed in self.seeds:
            jobs += shared_jobs(self.series, seed)
            jobs += [_shape_job(each, seed) for each in self.series if each.targets == "tree-shaped"]
            jobs += [self._floor_job(seed)] if self.mlp_floor else []
        return list(dict.fromkeys(jobs))

    def _floor_job(self, seed: int) -> MLPJob:
        return MLPJob(split=self.series[0].split_settings(seed))

    def tables(self, results: "Results") -> "dict[str, pd.DataFrame]":
        """Return ``curves``, means over the seeds with the targets counted, and ``seeds``, one row per experiment."""
        import pandas as pd

        axis: dict[str, Any] = {"radius": np.arange(self.last_radius + 1)}
        if self._is_normalised:
            axis = {"share": np.arange(NUM_SHARES) / (NUM_SHARES - 1)}
        points, seeds = [], []
        for seed in self.seeds:
            for panel, label, found in self._certified(seed, results):
                about = {"panel": panel, "label": label}
                seeds.append({**about, "seed": seed, **found.summary()})
                last = None if self._is_normalised else self.last_radius
                for curve in found.curves(only_correct=self._is_accuracy, last_radius=last):
                    shares = {"share_certified": curve.values, "certified": curve.counts, "targets": curve.totals}
                    points.append(pd.DataFrame({**about, "denominator": curve.denominator, **axis, **shares}))
        curves = (
            pd.concat(points)
            .groupby(["panel", "label", "denominator", *axis], sort=False)
            .agg(
                mean=("share_certified", "mean"),
                standard_deviation=("share_certified", "std"),
                certified=("certified", "sum"),
                targets=("targets", "sum"),
            )
            .fillna({"standard_deviation": 0.0})  # one seed
        )
        curves.insert(0, "quantity", self.quantity)
        return {"curves": curves.reset_index(), "seeds": pd.DataFrame(seeds)}

    def _certified(self, seed: int, results: "Results") -> Iterator[tuple[str, str, CertifiedTargets]]:
        """Yield panel, label and what was found, panel by panel, the floor last."""
        panels: dict[str, dict[str, CertifiedTargets]] = {}
        for each, job in zip(self.series, shared_jobs(self.series, seed), strict=True):
            found = CertifiedTargets.from_arrays(results[job], each.conclusion.name)
            if each.targets == "tree-shaped":
                found = found.only(results[_shape_job(each, seed)]["targets"])
            panels.setdefault(each.panel, {})[each.label] = found
        for panel, members in panels.items():
            if self.mlp_floor:
                members[MLP] = next(iter(members.values())).by_mlp(results[self._floor_job(seed)])
            for label, found in members.items():
                yield panel, label, found

    def measures(self, tables: Mapping[str, "pd.DataFrame"]) -> dict[str, float]:
        """Return the numbers of each series (means over the seeds), and what each later one of a panel gains."""
        measured: dict[str, float] = {}
        for panel, curves in self._shown(tables).groupby("panel", sort=False):
            rows = tables["seeds"].query("panel == @panel").groupby("label", sort=False)
            means, largest = rows[list(_AVERAGED)].mean(), rows["largest_radius"].max()
            labels, prefix = [str(label) for label in means.index], f"{panel!s}, " if panel else ""
            lines = {label: curves.query("label == @label") for label in labels}
            for label, line in lines.items():
                name = f"{prefix}{label}"
                measured |= {f"{name}: {words}": float(means[key][label]) for key, words in _AVERAGED.items()}
                measured[f"{name}: largest radius"] = float(largest[label])
                measured |= {f"{name}: {self.quantity} at {place}": share for place, share in self._read(line)}
            for one, other in combinations(labels, 2):
                name = f"{prefix}{other} over {one}"
                gain = (lines[other]["mean"].to_numpy() - lines[one]["mean"].to_numpy())[1:]  # from ρ = 1
                measured |= {f"{name}: smallest gain": float(gain.min()), f"{name}: largest gain": float(gain.max())}
                for key in ("AUCRC", "clean_accuracy"):
                    measured[f"{name}: gain in {_AVERAGED[key]}"] = float(means[key][other] - means[key][one])
                if means["AUCRC"][one] > 0.0:
                    measured[f"{name}: relative gain in AUCRC"] = float(means["AUCRC"][other] / means["AUCRC"][one] - 1)
        return measured

    def _shown(self, tables: Mapping[str, "pd.DataFrame"]) -> "pd.DataFrame":
        denominator = "all" if self._is_normalised else self.denominator
        curves = tables["curves"]
        return curves[curves["denominator"] == denominator]

    def _read(self, line: "pd.DataFrame") -> list[tuple[str, float]]:
        """Return the curve at each ρ > 0, or at each tenth of the attack surface."""
        if self._is_normalised:
            return [(f"{share:.0%}", mean) for share, mean in line[["share", "mean"]].to_numpy()[10::10].tolist()]
        return [(f"{radius:.0f}", mean) for radius, mean in line[["radius", "mean"]].to_numpy()[1:].tolist()]

    def draw(self, tables: Mapping[str, "pd.DataFrame"]) -> "Figure":
        """Draw one panel after the other; bands are one standard deviation over the seeds."""
        panels = list(self._shown(tables).groupby("panel", sort=False))
        with paper_style():
            figure, axes = new_figure(1, len(panels))
            for place, (panel, curves) in zip(axes[0], panels, strict=True):
                for index, (label, line) in enumerate(curves.groupby("label", sort=False)):
                    self._draw_line(place, str(label), line, LINES.get(str(label), _style(index)))
                place.set_title(_words(str(panel)))
                self._draw_axes(place)
                place.legend()
            axes[0][0].set_ylabel(f"certified {'accuracy' if self._is_accuracy else 'ratio'}")
        return figure

    def _draw_axes(self, axes: "Axes") -> None:
        from matplotlib.ticker import MaxNLocator

        axes.set_ylim(-0.02, 1.02)
        axes.margins(x=0.02)
        if self._is_normalised:
            axes.set_xlabel("share of the attack surface")
            return
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        whole = ", or all if fewer" if self.denominator == "whole_field" else ""
        axes.set_xlabel(f"hostile nodes $\\rho${whole}")

    def _draw_line(self, axes: "Axes", label: str, line: "pd.DataFrame", style: dict[str, Any]) -> None:
        positions = line["share" if self._is_normalised else "radius"].to_numpy()
        mean, deviation = line["mean"].to_numpy(), line["standard_deviation"].to_numpy()
        every = 10 if self._is_normalised else 1
        axes.plot(positions, mean, label=_words(label), markevery=every, **style)
        low, high = np.clip(mean - deviation, 0.0, 1.0), np.clip(mean + deviation, 0.0, 1.0)
        axes.fill_between(positions, low, high, color=style["color"], alpha=0.2, linewidth=0.0)


_AVERAGED = {
    "clean_accuracy": "clean accuracy",
    "abstain_ratio": "abstain ratio",
    "AUCRC": "AUCRC",
    "normalised_AUCRC": "normalised AUCRC",
}
"""Columns of the experiments, and what their means are called."""


def _shape_job(series: Series, seed: int) -> TreeShapedJob:
    return TreeShapedJob(split=series.split_settings(seed), num_layers=series.num_layers)


def _words(text: str) -> str:
    return text.replace(">=", "≥").replace("p_d", "$p_d$").replace("p_a", "$p_a$")


def _style(index: int) -> dict[str, Any]:
    """Return the look of something that has no name in all figures."""
    lines, markers = ("-", "--", "-.", ":"), "os^Dv<>"
    return {
        "color": ORDER[index % len(ORDER)],
        "linestyle": lines[index % len(lines)],
        "marker": markers[index % len(markers)],
    }
