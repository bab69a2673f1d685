"""How much certificates gain from more samples, or from a larger failure probability (Figures 4 (c), 19 and 20)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from graycert._types import IntArray
from graycert.metrics import abstain_ratio, aucrc, certified_ratio, clean_accuracy
from graycert.reproduction.certify_job import CertifyJob
from graycert.reproduction.experiment import Kind
from graycert.reproduction.heatmap import draw_cells
from graycert.reproduction.over_seeds import over_seeds
from graycert.reproduction.settings import Conclusion, Count, Probability, TrainingSettings
from graycert.reproduction.style import ORDER, new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from graycert.reproduction.job import Job
    from graycert.reproduction.results import Results

Alpha = Annotated[float, Field(gt=0.0, lt=1.0)]

_MARKERS = "osD^vPX"
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


class SampleEfficiency(Kind):
    """Certified ratio and clean accuracy for several n1 and α; each n1 has its own draws, which all α share.

    Args:
        training: The model; each of the ``seeds`` takes the place of its seed.
        p_delete: p_d at inference.
        p_ablate: p_a at inference.
        num_estimations: Values of n1, increasing.
        alphas: Failure probabilities, decreasing.
        min_distance: Hostile nodes are at least so many hops away.
        shown: "ratio over samples" draws a line per radius (for one α), "ratio over radius" a line per α (for one
            n1), and "accuracy" a heat map over both.
        num_selection: n0, the same for all.
        max_radius: Largest radius looked at, which also ends the area under the curve.
        seeds: Of splits, models and draws.
    """

    kind: ClassVar[str] = "sample-efficiency"

    training: TrainingSettings
    p_delete: Probability
    p_ablate: Probability
    num_estimations: Annotated[tuple[Count, ...], Field(min_length=1)]
    alphas: Annotated[tuple[Alpha, ...], Field(min_length=1)] = (0.01,)
    min_distance: Annotated[int, Field(ge=0)] = 1
    shown: Literal["ratio over samples", "ratio over radius", "accuracy"]
    num_selection: Count = 1_000
    max_radius: Count = 6
    seeds: Annotated[tuple[int, ...], Field(min_length=1)] = (13, 17, 26, 35, 69)

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
        return self

    def jobs(self) -> "list[Job]":
        """Return one job for each seed and n1."""
        return [self._job(seed, samples) for seed in self.seeds for samples in self.num_estimations]

    def _job(self, seed: int, samples: int) -> CertifyJob:
        return CertifyJob(
            training=self.training.model_copy(update={"seed": seed}),
            p_delete=self.p_delete,
            p_ablate=self.p_ablate,
            conclusions=tuple(self._conclusion(alpha) for alpha in self.alphas),
            num_selection=self.num_selection,
            num_estimation=samples,
            max_radius=self.max_radius,
        )

    def _conclusion(self, alpha: float) -> Conclusion:
        return Conclusion(min_distance=self.min_distance, alpha=alpha)

    def tables(self, results: "Results") -> dict[str, "pd.DataFrame"]:
        """Return ``ratios`` per n1, α and radius, and ``scores`` per n1 and α, as means over the seeds.

        The certified ratio at ρ is taken among the targets that at least ρ nodes could attack, as in the paper.
        """
        import pandas as pd

        curves, scores = [], []
        for seed in self.seeds:
            for samples in self.num_estimations:
                arrays = results[self._job(seed, samples)]
                for alpha in self.alphas:
                    name = self._conclusion(alpha).name
                    found = {each: arrays[f"{name}/{each}"] for each in ("radius", "num_eligible", "prediction")}
                    cell = {"num_estimation": samples, "alpha": alpha}
                    scores.append({**cell, **self._scores(**found, labels=arrays["labels"])})
                    curves.append(pd.DataFrame({**cell, **self._curve(found["radius"], found["num_eligible"])}))
        return {
            "ratios": over_seeds(
                pd.concat(curves),
                by=["num_estimation", "alpha", "radius"],
                means=["certified_ratio"],
                counts=["certified", "targets"],
            ),
            "scores": over_seeds(
                pd.DataFrame(scores),
                by=["num_estimation", "alpha"],
                means=["clean_accuracy", "abstain_ratio", "aucrc"],
                counts=["targets"],
            ),
        }

    def _curve(self, radius: IntArray, eligible: IntArray) -> dict[str, Any]:
        curve = certified_ratio(radius, eligible, max_radius=self.max_radius, denominator="paper")
        counts = {"certified": curve.counts, "targets": curve.totals}
        return {"radius": np.arange(self.max_radius + 1), "certified_ratio": curve.values, **counts}

    def _scores(
        self, radius: IntArray, num_eligible: IntArray, prediction: IntArray, labels: IntArray
    ) -> dict[str, float]:
        return {
            "clean_accuracy": clean_accuracy(radius, prediction=prediction, labels=labels),
            "abstain_ratio": abstain_ratio(radius),
            "aucrc": aucrc(radius, num_eligible),
            "targets": radius.size,
        }

    def measures(self, tables: Mapping[str, "pd.DataFrame"]) -> dict[str, float]:
        """Return what is lost with fewer samples than the most, and with a smaller α than the largest.

        Shares are taken of what the largest n1 reaches at the same α, and the smallest over all α is returned; losses
        are differences to the largest α at the same n1 (and radius), of which the largest is returned.
        """
        ratios, scores = tables["ratios"], tables["scores"]
        measured = {"largest radius": float(_largest_radius(ratios))}
        for name in ("aucrc", "clean_accuracy"):
            grid = scores.pivot_table(index="num_estimation", columns="alpha", values=name)
            shares = (grid / grid.iloc[-1]).min(axis=1)
            lost = (grid[[self.alphas[0]]].to_numpy() - grid).max(axis=0)
            label = {"aucrc": "AUCRC"}.get(name, name.replace("_", " "))
            measured |= {f"{label} at alpha {a:g}, n1 = {n}": grid.loc[n, a] for n in grid.index for a in grid.columns}
            measured |= {f"smallest share of {label} at n1 = {n}": float(shares[n]) for n in shares.index}
            measured |= {f"largest loss of {label} at alpha {a:g}": float(lost[a]) for a in self.alphas[1:]}
        curves = ratios.pivot_table(index=["num_estimation", "radius"], columns="alpha", values="certified_ratio")
        lost = (curves[[self.alphas[0]]].to_numpy() - curves).max(axis=0)
        return measured | {f"largest loss of certified ratio at alpha {a:g}": float(lost[a]) for a in self.alphas[1:]}

    def draw(self, tables: Mapping[str, "pd.DataFrame"]) -> "Figure":
        """Draw what is ``shown``; bands are one standard deviation over the seeds."""
        if self.shown == "accuracy":
            return _draw_accuracy(tables["scores"])
        if self.shown == "ratio over radius":
            return _draw_over_radius(tables["ratios"])
        return _draw_over_samples(tables["ratios"], tables["scores"])


def _largest_radius(ratios: "pd.DataFrame") -> int:
    return int(ratios["radius"].where(ratios["certified"] > 0, 0).max())


def _draw_over_samples(ratios: "pd.DataFrame", scores: "pd.DataFrame") -> "Figure":
    figure, panels = new_figure(1, 2, width=3.2)
    left, right = panels[0]
    for radius in range(1, max(_largest_radius(ratios), 1) + 1):
        rows = ratios[ratios["radius"] == radius]
        _draw_line(left, rows, "num_estimation", "certified_ratio", index=radius - 1, label=rf"$\rho = {radius}$")
    _draw_line(right, scores, "num_estimation", "aucrc", index=0)
    left.set_ylabel("certified ratio")
    left.set_ylim(0.0, 1.02)
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
        _draw_line(axes, rows, "radius", "certified_ratio", index=index, label=label, size=9.0 - 1.5 * index)
    axes.set_title(f"$n_1 = {ratios['num_estimation'].iloc[0]:,}$")
    axes.set_xlabel(r"hostile nodes $\rho$")
    axes.set_ylabel("certified ratio")
    axes.set_xlim(0.0, last)
    axes.set_ylim(0.0, 1.02)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend()
    return figure


def _draw_line(
    axes: "Axes", rows: "pd.DataFrame", x: str, y: str, *, index: int, label: str = "", size: float = 4.0
) -> None:
    place, mean, deviation = (rows[name].to_numpy() for name in (x, y, f"{y}_standard_deviation"))
    colour = ORDER[index % len(ORDER)]
    look: dict[str, Any] = {"marker": _MARKERS[index % len(_MARKERS)], "linestyle": _DASHES[index % len(_DASHES)]}
    axes.plot(place, mean, color=colour, label=label, markersize=max(size, 3.0), clip_on=False, **look)
    axes.fill_between(place, mean - deviation, mean + deviation, color=colour, alpha=0.2, linewidth=0.0)


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
