"""Certified ratios and accuracies of rival methods over ρ, on the same splits (Figure 7, and beyond the paper)."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from graycert.metrics import (
    DENOMINATORS,
    RatioCurve,
    abstain_ratio,
    certified_accuracy,
    certified_ratio,
    clean_accuracy,
)
from graycert.reproduction.contenders import AnyContender, Certified, Contender, Draws
from graycert.reproduction.experiment import Kind
from graycert.reproduction.mlp_job import MLPJob
from graycert.reproduction.settings import Count, SplitSettings, TrainingSettings
from graycert.reproduction.style import LINES, new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from graycert.reproduction.job import Job
    from graycert.reproduction.results import Results

MLP = "MLP"

_LINE = ["panel", "label"]
_QUANTITIES = ("certified ratio", "certified accuracy")
_NOTES = {"all": "", "paper": "", "whole_field": "\n(whole fields count at every $\\rho$)"}
_SHADES = (0.0, 0.5, -0.45, 0.25)  # from the colour of a method towards white, or black
_LINES = ("-", "--", ":", "-.")
_MARKERS = "os^D"
_MORE_SETTINGS = len(_SHADES)  # of one method in one panel


class BaselineCurves(Kind):
    """Shares of certified targets over ρ for several methods, one panel or several.

    Args:
        base: What all models have in common; seeds and smoothing in training are set for each.
        contenders: The curves, at most four settings of one method in a panel. All trust the targets.
        seeds: Of split, weights, training and draws; each is one experiment.
        min_distance: Hostile nodes are at least so many hops away.
        quantity: What is shown; the table has both.
        denominator: Which targets a share is taken of, see `graycert.metrics`; the table has all conventions.
        last_radius: Largest ρ shown.
        draws: How much is drawn, by "interception smoothing", "sparse smoothing", "Levine, local", "Levine, global";
            what is not named takes the paper's 1,000 and 3,000.
        floors: Curves that are shown in every panel.
        mlp_floor: Also show the accuracy of an MLP, which holds at every ρ, in every panel.
        background: Title of the panel whose curves are also shown, thin, in those of other methods.
    """

    kind: ClassVar[str] = "baseline-curves"

    base: TrainingSettings
    contenders: Annotated[tuple[AnyContender, ...], Field(min_length=1)]
    seeds: Annotated[tuple[int, ...], Field(min_length=1)] = (13, 17, 26, 35, 69)
    min_distance: Literal[1, 2] = 1
    quantity: Literal["certified ratio", "certified accuracy"] = "certified accuracy"
    denominator: Literal["all", "whole_field", "paper"] = "whole_field"
    last_radius: Count = 20
    draws: dict[str, Draws] = Field(default_factory=dict)
    floors: tuple[AnyContender, ...] = ()
    mlp_floor: bool = False
    background: str | None = None

    @model_validator(mode="after")
    def _curves_differ(self) -> "BaselineCurves":
        labels = [(each.panel, each.label) for each in self._curves]
        if len(set(labels)) < len(labels) or any(label == MLP for _, label in labels):
            raise ValueError(f"each contender of a panel must have a label of its own, and none may be {MLP!r}")
        drawn = [(each.panel, each.draws_name) for each in self._curves]
        if max(drawn.count(each) for each in drawn) > _MORE_SETTINGS:
            raise ValueError(f"a panel may show at most {_MORE_SETTINGS} settings of one method")
        return self

    @model_validator(mode="after")
    def _names_are_known(self) -> "BaselineCurves":
        unknown = set(self.draws) - {each.draws_name for each in self._curves}
        if unknown:
            raise ValueError(f"`draws` must name methods that are compared, got {sorted(unknown)}")
        if self.background is not None and self.background not in {each.panel for each in self.contenders}:
            raise ValueError(f"`background` must be the title of a panel, got {self.background!r}")
        if self.mlp_floor and (self.quantity == "certified ratio" or self.denominator != "whole_field"):
            raise ValueError("`mlp_floor` needs the certified accuracy with the denominator 'whole_field'")
        return self

    @property
    def _curves(self) -> list[Contender]:
        """Return the contenders of one panel after the other, each followed by the floors."""
        curves: list[Contender] = []
        for panel in self._panels:
            curves += [each for each in self.contenders if each.panel == panel]
            curves += [each.model_copy(update={"panel": panel}) for each in self.floors]
        return curves

    @property
    def _panels(self) -> list[str]:
        return list(dict.fromkeys(each.panel for each in self.contenders))

    def jobs(self) -> "list[Job]":
        """Return one computation per contender and seed, and the floors."""
        jobs: list[Job] = []
        for seed in self.seeds:
            jobs += [self._job(each, seed) for each in self._curves]
            if self.mlp_floor:
                jobs.append(self._floor_job(seed))
        return list(dict.fromkeys(jobs))

    def _job(self, contender: Contender, seed: int) -> "Job":
        base = self.base.model_copy(update={"seed": seed})
        return contender.job(base, self.draws.get(contender.draws_name, Draws()))

    def _floor_job(self, seed: int) -> MLPJob:
        names = SplitSettings.model_fields
        return MLPJob(split=SplitSettings(**{name: getattr(self.base, name) for name in names} | {"seed": seed}))

    def tables(self, results: "Results") -> "dict[str, pd.DataFrame]":
        """Return ``curves``, means over the seeds with the targets counted; ``seeds``; and what each ``method`` is."""
        import pandas as pd

        points: list[pd.DataFrame] = []
        seeds: list[dict[str, Any]] = []
        for seed in self.seeds:
            for panel, label, found, seconds in self._certified(seed, results):
                about = {"panel": panel, "label": label}
                seeds.append({**about, "seed": seed, **_summary(found), "core_seconds": seconds})
                for quantity, curve in _curves(found, last_radius=self.last_radius):
                    shown = {**about, "quantity": quantity, "denominator": curve.denominator}
                    shares = {"share": curve.values, "certified": curve.counts, "targets": curve.totals}
                    points.append(pd.DataFrame({**shown, "radius": np.arange(self.last_radius + 1), **shares}))
        groups = pd.concat(points).groupby([*_LINE, "quantity", "denominator", "radius"], sort=False)
        curves = groups.agg(
            mean=("share", "mean"),
            standard_deviation=("share", "std"),
            certified=("certified", "sum"),
            targets=("targets", "sum"),
        )
        curves["standard_deviation"] = curves["standard_deviation"].fillna(0.0)  # one seed
        methods = [(each.panel, each.label, each.family, each.guarantee) for each in self._curves]
        return {
            "curves": curves.reset_index(),
            "seeds": pd.DataFrame(seeds),
            "methods": pd.DataFrame(methods, columns=["panel", "label", "method", "guarantee"]),
        }

    def _certified(self, seed: int, results: "Results") -> Iterator[tuple[str, str, Certified, float]]:
        """Yield panel, label, what was found and the seconds that it took, panel by panel, the floor last."""
        for panel in self._panels:
            for each in (each for each in self._curves if each.panel == panel):
                arrays = results[self._job(each, seed)]
                found = each.certified(arrays, min_distance=self.min_distance)
                yield panel, each.label, found, float(arrays["seconds"])
            if self.mlp_floor:
                arrays = results[self._floor_job(seed)]
                yield panel, MLP, self._floor(arrays, seed, results), float(arrays["seconds"])

    def _floor(self, arrays: dict[str, Any], seed: int, results: "Results") -> Certified:
        """Return all that the MLP certifies: whatever the eligible nodes of the others' receptive fields do."""
        every = (results[self._job(each, seed)] for each in self.contenders)
        whole = next(
            each.certified(found, min_distance=self.min_distance)
            for each, found in zip(self.contenders, every, strict=True)
            if found["targets"].size == arrays["targets"].size
        )
        common = {name: arrays[name] for name in ("targets", "labels", "prediction")}
        return common | {"radius": whole["num_eligible"], "num_eligible": whole["num_eligible"]}

    def measures(self, tables: Mapping[str, "pd.DataFrame"]) -> dict[str, float]:
        """Return the numbers of each curve, what the first gains over each other, and the best of each method.

        Means over the seeds. "Best" takes the best setting at each ρ anew: no setting of a method lies above its best.
        """
        measured: dict[str, float] = {}
        for (panel, label), rows in tables["seeds"].groupby(_LINE, sort=False):
            name = _name(panel, label)
            measured[f"{name}: clean accuracy"] = float(rows["clean_accuracy"].mean())
            measured[f"{name}: largest radius"] = float(rows["largest_radius"].max())
        lines = {key: rows["mean"].to_numpy() for key, rows in self._shown(tables).groupby(_LINE, sort=False)}
        for key, line in lines.items():
            measured |= {f"{_name(*key)}: {self.quantity} at {radius}": each for radius, each in _whole(line)}
        first, *others = lines
        for key in others:
            name = f"{_name(*first)} over {_name(*key)}"
            measured |= {f"{name}: gain at {radius}": each for radius, each in _whole(lines[first] - lines[key])}
        return measured | self._best_against_best(lines)

    def _best_against_best(self, lines: dict[Any, NDArray[np.float64]]) -> dict[str, float]:
        families = {(each.panel, each.label): each.family for each in self._curves}
        best: dict[str, NDArray[np.float64]] = {}
        for key, line in lines.items():
            family = families.get(key, MLP)
            best[family] = np.maximum(best.get(family, line), line)
        first, *others = best
        measured: dict[str, float] = {}
        for other in others:
            gain = (best[first] - best[other])[1:]
            measured[f"best {first} over best {other}: smallest gain"] = float(gain.min())
            measured[f"best {first} over best {other}: largest gain"] = float(gain.max())
        return measured

    def _shown(self, tables: Mapping[str, "pd.DataFrame"]) -> "pd.DataFrame":
        curves = tables["curves"]
        return curves[(curves["quantity"] == self.quantity) & (curves["denominator"] == self.denominator)]

    def draw(self, tables: Mapping[str, "pd.DataFrame"]) -> "Figure":
        """Draw two panels beside each other; bands are one standard deviation over the seeds."""
        shown = self._shown(tables)
        panels = self._panels
        columns = min(2, len(panels))
        size = (3.6, 2.8) if columns == 1 else (4.0, 3.2)
        figure, axes = new_figure(-(-len(panels) // columns), columns, width=size[0], height=size[1])
        for place in axes.flat[len(panels) :]:
            place.set_axis_off()
        for index, (place, panel) in enumerate(zip(axes.flat, panels, strict=False)):
            if self._families(self.background).isdisjoint(self._families(panel)):
                self._draw_background(place, shown)
            self._draw_panel(place, panel, shown[shown["panel"] == panel])
            place.set_title(f"{_letter(index)} {panel}" if panel else "")
            place.set_xlabel(r"hostile nodes $\rho$")
            place.set_xlim(0.0, self.last_radius)
            place.set_ylim(0.0, 1.02)
            place.xaxis.get_major_locator().set_params(integer=True)
            below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.22), "ncols": 2, "fontsize": 7}
            place.legend(**(below if len(panels) > 1 else {}))  # many curves leave no room inside
        note = _NOTES[self.denominator]
        for row in axes:
            row[0].set_ylabel(f"{self.quantity}{note}")
        return figure

    def _families(self, panel: str | None) -> set[str]:
        return {each.family for each in self.contenders if each.panel == panel}

    def _draw_background(self, axes: "Axes", shown: "pd.DataFrame") -> None:
        members = [each for each in self.contenders if each.panel == self.background]
        for index, each in enumerate(members):
            rows = shown[(shown["panel"] == self.background) & (shown["label"] == each.label)]
            label = f"thin: curves of {_letter(self._panels.index(each.panel))}" if index == 0 else None
            axes.plot(rows["radius"], rows["mean"], color=LINES[each.draws_name]["color"], linewidth=0.7, label=label)

    def _draw_panel(self, axes: "Axes", panel: str, rows: "pd.DataFrame") -> None:
        seen: dict[str, int] = {}
        for place, each in enumerate(each for each in self._curves if each.panel == panel):
            index = seen.get(each.draws_name, 0)
            seen[each.draws_name] = index + 1
            style = _style(each.draws_name, index) | {
                "markersize": max(6.5 - 1.5 * place, 3.5)
            }  # equal curves are seen
            _draw_line(axes, each.label, rows[rows["label"] == each.label], style)
        if self.mlp_floor:
            _draw_line(axes, MLP, rows[rows["label"] == MLP], LINES[MLP])


def _curves(found: Certified, *, last_radius: int) -> Iterator[tuple[str, RatioCurve]]:
    """Yield both quantities in all conventions."""
    radius, eligible = found["radius"], found["num_eligible"]
    for denominator in DENOMINATORS:
        setting: dict[str, Any] = {"max_radius": last_radius, "denominator": denominator}
        yield _QUANTITIES[0], certified_ratio(radius, eligible, **setting)
        setting |= {"prediction": found["prediction"], "labels": found["labels"]}
        yield _QUANTITIES[1], certified_accuracy(radius, eligible, **setting)


def _summary(found: Certified) -> dict[str, float]:
    radius = found["radius"]
    return {
        "targets": radius.size,
        "clean_accuracy": clean_accuracy(radius, prediction=found["prediction"], labels=found["labels"]),
        "abstain_ratio": abstain_ratio(radius),
        "largest_radius": int(np.minimum(radius, found["num_eligible"]).max()),
    }


def _whole(line: NDArray[np.float64]) -> Iterator[tuple[int, float]]:
    """Yield each ρ > 0 and the value there."""
    yield from zip(range(1, line.size), line[1:].tolist(), strict=True)


def _name(panel: object, label: object) -> str:
    return f"{panel}, {label}" if panel else str(label)


def _letter(index: int) -> str:
    return f"({chr(ord('a') + index)})"


def _style(name: str, index: int) -> dict[str, Any]:
    """Return the look of a method; more settings of it have other shades, lines and markers."""
    from matplotlib.colors import to_rgb

    style = LINES[name]
    if index == 0:
        return style
    towards = 1.0 if _SHADES[index] > 0 else 0.0
    share = abs(_SHADES[index])
    colour = tuple((1 - share) * part + share * towards for part in to_rgb(style["color"]))
    lines = [style["linestyle"], *(each for each in _LINES if each != style["linestyle"])]
    markers = [style["marker"], *(each for each in _MARKERS if each != style["marker"])]
    return {"color": colour, "linestyle": lines[index], "marker": markers[index]}


def _draw_line(axes: "Axes", label: str, rows: "pd.DataFrame", style: dict[str, Any]) -> None:
    radius, mean, deviation = (rows[name].to_numpy() for name in ("radius", "mean", "standard_deviation"))
    axes.plot(radius, mean, label=label, clip_on=False, **style)
    low, high = np.clip(mean - deviation, 0.0, 1.0), np.clip(mean + deviation, 0.0, 1.0)
    axes.fill_between(radius, low, high, color=style["color"], alpha=0.2, linewidth=0.0)
