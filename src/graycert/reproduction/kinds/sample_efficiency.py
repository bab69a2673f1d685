"""How much certificates gain from more samples, or from a larger failure probability (Figures 4 (c), 19 and 20)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from graycert.reproduction.certified_kind import CertifiedKind
from graycert.reproduction.curve_lines import draw_curve, radius_axis, share_axis
from graycert.reproduction.heatmap import draw_cells
from graycert.reproduction.methods import Interception, InterceptionSettings
from graycert.reproduction.over_seeds import over_seeds
from graycert.reproduction.settings import Count, Level
from graycert.reproduction.style import new_figure, numbered_look

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from graycert.reproduction.results import Results


class SampleEfficiency(CertifiedKind, InterceptionSettings):
    """Certified ratio and clean accuracy for several n1 and α; each n1 has its own draws, which all α share.

    Args:
        num_estimations: Values of n1, increasing; they take the place of ``num_estimation``.
        alphas: Failure probabilities, decreasing; they take the place of ``alpha``.
        shown: "ratio over samples" draws a line per radius (for one α), "ratio over radius" a line per α (for one
            n1), and "accuracy" a heat map over both.
        max_radius: Largest radius looked at, which also ends the area under the curve.
    """

    kind: ClassVar[str] = "sample-efficiency"

    num_estimations: Annotated[tuple[Count, ...], Field(min_length=1)]
    alphas: Annotated[tuple[Level, ...], Field(min_length=1)] = (0.01,)
    shown: Literal["ratio over samples", "ratio over radius", "accuracy"]
    max_radius: Count = 6

    @model_validator(mode="after")
    def _can_be_shown(self) -> "SampleEfficiency":
        if list(self.num_estimations) != sorted(set(self.num_estimations)):
            raise ValueError("num_estimations must increase")
        if list(self.alphas) != sorted(set(self.alphas), reverse=True):
            raise ValueError("alphas must decrease")
        if self.shown == "ratio over samples" and len(self.alphas) > 1:
            raise ValueError("'ratio over samples' shows one of alphas")
        if self.shown == "ratio over radius" and len(self.num_estimations) > 1:
            raise ValueError("'ratio over radius' shows one of num_estimations")
        if {"num_estimation", "alpha"} & self.model_fields_set:
            raise ValueError(
                "num_estimation and alpha must be left out, because they follow num_estimations and alphas"
            )
        return self

    @property
    def all_curves(self) -> list[Interception]:
        """Return one curve for each n1 and α."""
        return [
            self.curve(f"n1 = {samples}, α = {alpha:g}", num_estimation=samples, alpha=alpha)
            for samples in self.num_estimations
            for alpha in self.alphas
        ]

    def tables(self, results: "Results") -> "dict[str, pd.DataFrame]":
        """Return ``ratios`` per n1, α and radius, and ``scores`` per n1 and α, as means over the seeds.

        The certified ratio at ρ is taken among the targets that at least ρ nodes could attack, as in the paper.
        """
        import pandas as pd

        points, scores = [], []
        for seed in self.seeds:
            for curve, found in self.certified(seed, results):
                cell = {name: getattr(curve, name) for name in _CELL}
                scores.append({**cell, **found.summary()})
                points.append(found.curve(last_radius=self.max_radius).assign(**cell))
        counted, scored = ["certified", "targets"], ["clean_accuracy", "abstain_ratio", "AUCRC"]
        return {
            "ratios": over_seeds(pd.concat(points), by=[*_CELL, "radius"], means=["share"], counts=counted),
            "scores": over_seeds(pd.DataFrame(scores), by=_CELL, means=scored, counts=["targets"]),
        }

    def measures(self, tables: "Mapping[str, pd.DataFrame]") -> dict[str, float]:
        """Return what is lost with fewer samples than the most, and with a smaller α than the largest.

        Shares are taken of what the largest n1 reaches at the same α, and the smallest over all α is returned; losses
        are differences to the largest α at the same n1 (and radius), of which the largest is returned.
        """
        ratios, scores = tables["ratios"], tables["scores"]
        measured = {"largest radius": float(_largest_radius(ratios))}
        for name, label in {"AUCRC": "AUCRC", "clean_accuracy": "clean accuracy"}.items():
            grid = scores.pivot_table(index="num_estimation", columns="alpha", values=name)
            shares = (grid / grid.iloc[-1]).min(axis=1)
            lost = (grid[[self.alphas[0]]].to_numpy() - grid).max(axis=0)
            measured |= {f"{label} at alpha {a:g}, n1 = {n}": grid.loc[n, a] for n in grid.index for a in grid.columns}
            measured |= {f"smallest share of {label} at n1 = {n}": float(shares[n]) for n in shares.index}
            measured |= {f"largest loss of {label} at alpha {a:g}": float(lost[a]) for a in self.alphas[1:]}
        curves = ratios.pivot_table(index=["num_estimation", "radius"], columns="alpha", values="share")
        lost = (curves[[self.alphas[0]]].to_numpy() - curves).max(axis=0)
        return measured | {f"largest loss of certified ratio at alpha {a:g}": float(lost[a]) for a in self.alphas[1:]}

    def draw(self, tables: "Mapping[str, pd.DataFrame]") -> "Figure":
        """Draw what is ``shown``; bands are one standard deviation over the seeds."""
        if self.shown == "accuracy":
            return _draw_accuracy(tables["scores"])
        if self.shown == "ratio over radius":
            return _draw_over_radius(tables["ratios"])
        return _draw_over_samples(tables["ratios"], tables["scores"])


_CELL = ["num_estimation", "alpha"]


def _largest_radius(ratios: "pd.DataFrame") -> int:
    return int(ratios["radius"].where(ratios["certified"] > 0, 0).max())


def _draw_over_samples(ratios: "pd.DataFrame", scores: "pd.DataFrame") -> "Figure":
    figure, panels = new_figure(1, 2, width=3.2)
    left, right = panels[0]
    for radius in range(1, max(_largest_radius(ratios), 1) + 1):
        rows = ratios[ratios["radius"] == radius]
        draw_curve(left, rows, x=_CELL[0], look=numbered_look(radius - 1), label=rf"$\rho = {radius}$", clip_on=False)
    draw_curve(right, scores, x=_CELL[0], y="AUCRC", look=numbered_look(0), highest=None, clip_on=False)
    left.set_ylabel("certified ratio")
    share_axis(left)
    left.legend(loc="lower right", ncols=2)
    right.set_ylabel("area under certified ratio curve")
    right.set_ylim(bottom=0.0)
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xlabel("Monte-Carlo samples $n_1$")
    return figure


def _draw_over_radius(ratios: "pd.DataFrame") -> "Figure":
    figure, panels = new_figure()
    axes = panels[0][0]
    last = _largest_radius(ratios) + 1
    shown = ratios[ratios["radius"] <= last]
    for index, alpha in enumerate(shown["alpha"].unique().tolist()):
        rows = shown[shown["alpha"] == alpha]
        label = rf"$\alpha$ = {np.format_float_positional(alpha, trim='-')}"
        size = max(9.0 - 1.5 * index, 3.0)  # equal curves are seen
        draw_curve(axes, rows, look=numbered_look(index), label=label, markersize=size, clip_on=False)
    axes.set_title(f"$n_1 = {ratios['num_estimation'].iloc[0]:,}$")
    axes.set_ylabel("certified ratio")
    radius_axis(axes, last=last)
    axes.legend()
    return figure


def _draw_accuracy(scores: "pd.DataFrame") -> "Figure":
    figure, panels = new_figure(width=5.4, height=2.9)
    axes = panels[0][0]
    grid = scores.pivot_table(index="alpha", columns="num_estimation", values="clean_accuracy").sort_index()
    numbers = grid.to_numpy()
    mesh = draw_cells(axes, grid, lowest=float(numbers.min()), highest=float(numbers.max()))
    axes.set_xlabel("Monte-Carlo samples $n_1$")
    axes.set_ylabel(r"failure probability $\alpha$")
    figure.colorbar(mesh, ax=axes, label="clean accuracy")
    return figure
