"""Certificates for a few attributes, converted to whole nodes, beside certificates for whole nodes (Figure 3 (c))."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field, model_validator

from graycert.reproduction.certified_kind import CertifiedKind
from graycert.reproduction.certified_targets import CertifiedTargets, Denominator
from graycert.reproduction.curve import Curve
from graycert.reproduction.curve_lines import draw_curve, share_axis
from graycert.reproduction.methods import InterceptionSettings, Sparse
from graycert.reproduction.over_seeds import over_seeds
from graycert.reproduction.settings import Count, Probability
from graycert.reproduction.style import GREY, LINES, new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from graycert.reproduction.results import Results

OURS, RIVAL = "interception smoothing", "sparse smoothing"


class NaiveBaseline(CertifiedKind):
    """Certified ratio over ρ: interception smoothing, and sparse smoothing with ρ = ρ̃ / d for several d.

    Args:
        ours: Model and smoothing; ``min_distance`` says how near hostile nodes may be.
        attributes: Numbers d of attributes per node.
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

    ours: InterceptionSettings
    attributes: Annotated[tuple[Count, ...], Field(min_length=1)] = (1, 8, 64, 512, 2_879)
    p_plus: Probability = 0.0
    p_minus: Probability = 0.6
    num_selection: Count = 1_000
    num_estimation: Count = 100_000
    max_deletions: Count = 40
    last_radius: Count = 40
    denominator: Denominator = "all"
    also_distances: tuple[Count, ...] = (1, 2)  # as in Figure 3 (a), so that votes are shared

    @model_validator(mode="after")
    def _targets_are_the_same(self) -> "NaiveBaseline":
        if self.ours.targets != "all" or self.ours.test_graph != "as it is":
            raise ValueError("`ours` must certify all targets on the graph as it is, as sparse smoothing does")
        if tuple(sorted(set(self.attributes))) != self.attributes:
            raise ValueError(f"`attributes` must rise, got {self.attributes}")
        return self

    @property
    def all_curves(self) -> list[Curve]:
        """Return ours, and sparse smoothing of nodes with one attribute, of which all others are made."""
        shared = {name: value for name, value in self.ours if name in set(Sparse.model_fields) - {"min_distance"}}
        drawn = self.model_dump(include={"p_plus", "p_minus", "num_selection", "num_estimation", "max_deletions"})
        return [self.ours.curve(OURS), Sparse(method="sparse", label=RIVAL, num_attributes=1, **shared | drawn)]

    def tables(self, results: "Results") -> "dict[str, pd.DataFrame]":
        """Return ``curves`` over real ρ, ``nodes`` over whole ones (means over seeds), and ``seeds`` with extremes."""
        import pandas as pd

        points: list[pd.DataFrame] = []
        seeds = []
        for seed in self.seeds:
            (_, ours), (_, rival) = self.certified(seed, results)
            # Attributes may be deleted anywhere, so no field limits their number.
            rival = replace(rival, num_eligible=np.full_like(rival.radius, max(self.max_deletions, self.last_radius)))
            points += [*self._our_points(ours), *self._rival_points(rival)]
            for method, unit, found in ((OURS, "nodes", ours), (RIVAL, "attributes", rival)):
                seeds.append({"seed": seed, "method": method, "unit": unit, **found.summary()})
        by, counts = ["table", "method", "attributes", "radius"], ["certified", "targets"]
        means = over_seeds(pd.concat(points), by=by, means=["share"], counts=counts)
        tables = {name: means[means["table"] == name].drop(columns="table") for name in ("curves", "nodes")}
        return tables | {"seeds": pd.DataFrame(seeds)}

    def _our_points(self, found: CertifiedTargets) -> "Iterator[pd.DataFrame]":
        """Yield the ratio at each ρ, for both tables: between two whole numbers nothing changes."""
        shares = found.curve(denominator=self.denominator, last_radius=self.last_radius)
        for table in ("curves", "nodes"):
            yield shares.assign(table=table, method=OURS, attributes=0)

    def _rival_points(self, found: CertifiedTargets) -> "Iterator[pd.DataFrame]":
        """Yield the ratio at each ρ̃ / d, and at each whole ρ."""
        from graycert.smoothing.sparse.conversion import naive_certified_nodes

        shares = found.curve(denominator="all", last_radius=self.max_deletions)
        for number in self.attributes:
            about: dict[str, Any] = {"method": RIVAL, "attributes": number}
            yield shares.assign(table="curves", radius=shares["radius"] / number, **about)
            nodes = replace(found, radius=naive_certified_nodes(found.radius, number))
            yield nodes.curve(denominator="all", last_radius=self.last_radius).assign(table="nodes", **about)

    def measures(self, tables: "Mapping[str, pd.DataFrame]") -> dict[str, float]:
        """Return the largest certified ρ of each curve, the ratio at ρ = 1, accuracies, and the d that ends it all."""
        measured: dict[str, float] = {}
        for name, rows in self._lines(tables["nodes"]):
            certified = rows[(rows["certified"] > 0) & (rows["radius"] > 0)]
            measured[f"{name}: largest radius"] = float(certified["radius"].max()) if len(certified) else 0.0
            measured[f"{name}: certified ratio at 1"] = float(rows.loc[rows["radius"] == 1, "share"].iloc[0])
        for method in (OURS, RIVAL):
            rows = tables["seeds"][tables["seeds"]["method"] == method]
            measured[f"{method}: clean accuracy"] = float(rows["clean_accuracy"].mean())
        attributes = tables["seeds"].loc[tables["seeds"]["method"] == RIVAL, "largest_radius"].max()
        measured[f"{RIVAL}: largest d with a certified node"] = float(max(attributes, 0))
        measured[f"{RIVAL}: largest radius at the largest d"] = float(max(attributes, 0)) / self.attributes[-1]
        return measured

    def _lines(self, table: "pd.DataFrame") -> "Iterator[tuple[str, pd.DataFrame]]":
        """Yield the name and the rows of each curve, ours first."""
        yield OURS, table[table["method"] == OURS]
        for number in self.attributes:
            yield f"{RIVAL}, d = {number}", table[(table["method"] == RIVAL) & (table["attributes"] == number)]

    def draw(self, tables: "Mapping[str, pd.DataFrame]") -> "Figure":
        """Draw all curves over a logarithmic ρ, where another d shifts a curve and leaves its form."""
        figure, panels = new_figure(width=4.8, height=3.0)
        axes = panels[0][0]
        low = 0.5 / self.attributes[-1]
        axes.axvspan(low, 1.0, color=GREY, alpha=0.12, linewidth=0.0)
        axes.text(low * 1.3, 0.945, "less than one node", color="#555555", va="bottom", fontsize=8)
        (_, ours), *rivals = self._lines(tables["curves"])
        for number, (_, rows) in zip(self.attributes, rivals, strict=True):
            label = rf"{RIVAL}, $\tilde\rho$ / $d$" if number == self.attributes[0] else None
            _draw_steps(axes, rows, low=low, method=RIVAL, label=label)
            _write_attributes(axes, rows, number)
        _draw_steps(axes, ours, low=low, method=OURS, label=OURS)
        axes.set_xscale("log")
        axes.set_xlim(low, self.last_radius)
        share_axis(axes)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_xlabel(r"hostile nodes $\rho$ (of $d$ attributes each)")
        axes.set_ylabel("certified ratio")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        return figure


def _draw_steps(axes: "Axes", rows: "pd.DataFrame", *, low: float, method: str, label: str | None) -> None:
    """Draw a ratio that falls after each of its positions, from ``low`` on, with its band."""
    steps = rows.iloc[[1, *range(1, len(rows))]]
    steps = steps.assign(radius=[low, *steps["radius"].iloc[1:]])
    draw_curve(axes, steps, look=LINES[method] | {"marker": ""}, drawstyle="steps-pre", label=label)


def _write_attributes(axes: "Axes", rows: "pd.DataFrame", number: int) -> None:
    """Write d where the curve is half as high as at its beginning."""
    mean = rows["share"].to_numpy()[1:]
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
