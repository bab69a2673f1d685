"""Certified ratios and accuracies over the number of hostile nodes, averaged over seeds."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args

import numpy as np
from pydantic import Field, model_validator

from graycert._types import FloatArray
from graycert.reproduction.certified_kind import CertifiedKind
from graycert.reproduction.certified_targets import CertifiedTargets, Denominator, Quantity
from graycert.reproduction.curve import Curve, CurveSettings, Draws
from graycert.reproduction.curve_jobs import choices_of_curves
from graycert.reproduction.curve_lines import draw_curve, radius_axis, share_axis
from graycert.reproduction.methods import METHODS, MLP, AnyCurve, Distilled, InterceptionSettings, handed_down
from graycert.reproduction.over_seeds import over_seeds
from graycert.reproduction.settings import Count
from graycert.reproduction.style import LINES, MOST_SHADES, add_legend, letter, new_figure, numbered_look, shaded_look

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from graycert.reproduction.results import Results

_LINE = ["panel", "label"]
_MOST_INSIDE = 4  # so many names leave room for the curves


class Curves(CertifiedKind, InterceptionSettings):
    """Shares of certified targets over ρ, or over the share of the attack surface that is hostile, in panels.

    Settings of `InterceptionSettings` are those of every curve that knows them and does not say otherwise. In files
    there may be ``panels``, too: tables of settings, with the title as ``panel``; each shows all curves under its
    settings, e.g. on another graph.

    Args:
        curves: What is compared; see `graycert.reproduction.methods`. Without ``method``: interception smoothing.
        quantity: What is shown; the table also has the other of ratio and accuracy.
        denominator: Which targets a share is taken of, see `graycert.metrics`; the table has all conventions. Of
            normalised quantities there is only one, all targets.
        last_radius: Largest ρ shown.
        draws: How much is drawn by a method, whatever its curves say: "interception smoothing", "sparse smoothing",
            "Levine, local", "Levine, global".
        floors: Curves that are shown in every panel.
        mlp_floor: Also show the accuracy of an MLP, which holds at every ρ if the targets are trusted, in every panel.
        distilled_floor: The same of a model of single nodes that is distilled from a GNN.
        background: Title of the panel whose curves are also shown, thin, in those of other methods.
    """

    kind: ClassVar[str] = "curves"

    curves: Annotated[tuple[AnyCurve, ...], Field(min_length=1)]
    quantity: Quantity
    denominator: Denominator = "paper"
    last_radius: Count = 10
    draws: dict[str, Draws] = Field(default_factory=dict)
    floors: tuple[AnyCurve, ...] = ()
    mlp_floor: bool = False
    distilled_floor: bool = False
    background: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _hand_down(cls, values: dict[str, Any]) -> dict[str, Any]:
        shared = {name: values[name] for name in InterceptionSettings.model_fields if name in values}
        panels: Sequence[Mapping[str, Any]] = values.get("panels") or ({},)
        known = {name for each in METHODS.values() for name in each.model_fields}
        unknown = {name for each in panels for name in each} - known
        if unknown:
            raise ValueError(f"`panels` must hold settings of curves, got {sorted(unknown)}")
        lists = {
            "curves": [handed_down({**shared, **panel}, each) for panel in panels for each in values.get("curves", ())],
            "floors": [handed_down(shared, each) for each in values.get("floors", ())],
        }
        first = {name: panels[0][name] for name in ("graph",) if name in panels[0]}
        return {**first, **{name: value for name, value in values.items() if name != "panels"}, **lists}

    @model_validator(mode="after")
    def _floor_is_comparable(self) -> "Curves":
        if not self._fixed_floors:
            return self
        name = "mlp_floor" if self.mlp_floor else "distilled_floor"
        if not self._is_accuracy or not (self._is_normalised or self.denominator == "whole_field"):
            raise ValueError(f"`{name}` needs a normalised accuracy, or an accuracy with denominator 'whole_field'")
        if any(each.min_distance == 0 for each in self._compared):
            raise ValueError(f"`{name}` needs trusted targets: `min_distance` >= 1")
        methods = {each.look for each in self._compared}
        chosen = {(each.look, getattr(each, "num_targets", None)) for each in self._compared}
        if len({(each.split_settings(0), each.targets) for each in self._compared}) > 1 or len(chosen) > len(methods):
            raise ValueError(f"`{name}` needs the same targets in all curves (but methods may certify fewer of them)")
        return self

    @model_validator(mode="after")
    def _curves_differ(self) -> "Curves":
        names = [(each.panel, each.label) for each in self.all_curves]
        if len(set(names)) < len(names):
            raise ValueError("each curve of a panel must have a label of its own")
        if self._compares and max(Counter((each.panel, each.look) for each in self.all_curves).values()) > MOST_SHADES:
            raise ValueError(f"a panel may show at most {MOST_SHADES} settings of one method")
        if any(each.targets != "all" and getattr(each, "test_graph", "as it is") != "as it is" for each in self.curves):
            raise ValueError("`targets` are chosen in the full graph, so `test_graph` must be 'as it is'")
        return self

    @model_validator(mode="after")
    def _seeds_are_known(self) -> "Curves":
        unknown = {seed for each in self.all_curves for seed in each.seeds} - set(self.seeds)
        if unknown:
            raise ValueError(f"`seeds` of curves must be among those of the figure, got {sorted(unknown)}")
        return self

    @model_validator(mode="after")
    def _names_are_known(self) -> "Curves":
        known = {name for each in self.all_curves for name in type(each).model_fields}
        unused = (self.model_fields_set & set(InterceptionSettings.model_fields)) - known
        if unused:
            raise ValueError(f"settings of the figure must be those of some curve, got {sorted(unused)}")
        unknown = set(self.draws) - {each.look for each in self.all_curves if isinstance(each, Draws)}
        if unknown:
            raise ValueError(f"`draws` must name methods that are compared and draw, got {sorted(unknown)}")
        if self.background is not None and self.background not in self._panels:
            raise ValueError(f"`background` must be the title of a panel, got {self.background!r}")
        return self

    @property
    def _is_normalised(self) -> bool:
        return self.quantity.startswith("normalised")

    @property
    def _is_accuracy(self) -> bool:
        return self.quantity.endswith("accuracy")

    @property
    def _fixed_floors(self) -> list[type[MLP] | type[Distilled]]:
        """Floors without settings of their own."""
        shown: list[tuple[bool, type[MLP] | type[Distilled]]]
        shown = [(self.mlp_floor, MLP), (self.distilled_floor, Distilled)]
        return [kind for wanted, kind in shown if wanted]

    @property
    def _compares(self) -> bool:
        """Whether methods are told apart, and not only settings of one."""
        return len({each.look for each in self._compared}) > 1

    @property
    def _panels(self) -> list[str]:
        return list(dict.fromkeys(each.panel for each in self.curves))

    @property
    def _compared(self) -> list[Curve]:
        """Return the curves of one panel after the other, each followed by the floors, with what is drawn."""
        found: list[Curve] = []
        for panel in self._panels:
            found += [each for each in self.curves if each.panel == panel]
            found += [each.model_copy(update={"panel": panel}) for each in self.floors]
        drawn = {name: draws.model_dump(exclude_unset=True) for name, draws in self.draws.items()}
        return [each.model_copy(update=drawn.get(each.look, {})) for each in found]

    @property
    def all_curves(self) -> list[Curve]:
        """Return the curves of one panel after the other, each followed by the floors, those without settings last."""
        found: list[Curve] = []
        for panel in self._panels:
            own = [each for each in self._compared if each.panel == panel]
            found += [*own, *(_floor_beside(own[0], kind) for kind in self._fixed_floors)]
        return found

    def tables(self, results: "Results") -> "dict[str, pd.DataFrame]":
        """Return ``curves``, means over seeds with the targets counted, ``seeds``, and what each ``method`` is."""
        import pandas as pd

        points, seeds = [], []
        for seed in self.seeds:
            for panel, label, found in self._lines(seed, results):
                about = {"panel": panel, "label": label}
                seeds.append({**about, "seed": seed, **found.summary()})
                points += [
                    found.curve(quantity, denominator=each, last_radius=self.last_radius).assign(**about)
                    for quantity, each in self._shares
                ]
        x = "attack_surface" if self._is_normalised else "radius"
        by = [*_LINE, "quantity", "denominator", x]
        methods = [(each.panel, each.label, each.family, each.guarantee) for each in self.all_curves]
        tables = {
            "curves": over_seeds(pd.concat(points), by=by, means=["share"], counts=["certified", "targets"]),
            "seeds": pd.DataFrame(seeds),
            "methods": pd.DataFrame(methods, columns=["panel", "label", "method", "guarantee"]),
        }
        choices = [row for seed in self.seeds for row in choices_of_curves(self.curves_of(seed), seed, results)]
        return tables | ({"choices": pd.DataFrame(choices)} if choices else {})

    @property
    def _shares(self) -> list[tuple[Quantity, Denominator]]:
        """Return both quantities in all conventions."""
        if self._is_normalised:
            return [("normalised ratio", "all"), ("normalised accuracy", "all")]
        return [(name, each) for name in ("certified ratio", "certified accuracy") for each in get_args(Denominator)]

    def _lines(self, seed: int, results: "Results") -> Iterator[tuple[str, str, CertifiedTargets]]:
        """Yield panel, label and what was found, panel by panel, the floor last, for as many targets as there are."""
        certified = list(self.certified(seed, results))
        compared = [(each, found) for each, found in certified if each in self._compared]
        for each, found in certified:
            beside = [other.targets for curve, other in compared if curve.min_distance == each.min_distance]
            is_floor = isinstance(each, MLP) and each not in self._compared
            yield each.panel, each.label, found.only(max(beside, key=len)) if is_floor else found

    def measures(self, tables: "Mapping[str, pd.DataFrame]") -> dict[str, float]:
        """Return the numbers of each curve (means over the seeds), and what curves and methods gain over others.

        Each later curve of a panel is compared with each earlier one, and the very first with all others. "Best" takes
        the best setting of a method at each place anew: no setting of it lies above.
        """
        places = self._places(tables)
        shown = self._shown(tables).groupby(_LINE, sort=False)
        lines: dict[Any, FloatArray] = {key: rows["share"].to_numpy() for key, rows in shown}
        seeds = tables["seeds"].groupby(_LINE, sort=False)
        means: dict[Any, Any] = seeds[list(_AVERAGED)].mean().to_dict("index")
        largest = seeds["largest_radius"].max().to_dict()
        measured: dict[str, float] = {}
        for key, line in lines.items():
            name = _name(*key)
            measured |= {f"{name}: {words}": means[key][column] for column, words in _AVERAGED.items()}
            measured[f"{name}: largest radius"] = float(largest[key])
            measured |= {f"{name}: {self.quantity} at {words}": float(line[place]) for place, words in places.items()}
        for one, other in combinations(lines, 2):
            if one[0] == other[0]:
                gain = _gains(means[one], means[other], lines[other] - lines[one])
                measured |= {f"{_name(*other)} over {one[1]}: {words}": value for words, value in gain.items()}
        first, *others = lines
        for other in others:
            name, ahead = f"{_name(*first)} over {_name(*other)}", lines[first] - lines[other]
            measured |= {f"{name}: gain at {words}": float(ahead[place]) for place, words in places.items()}
        return measured | (self._best_against_best(lines) if len({each.graph for each in self.all_curves}) == 1 else {})

    def _best_against_best(self, lines: dict[Any, FloatArray]) -> dict[str, float]:
        families = {(each.panel, each.label): each.family for each in self.all_curves}
        best: dict[str, FloatArray] = {}
        for key, line in lines.items():
            family = families[key]
            best[family] = np.maximum(best.get(family, line), line)
        first, *others = best
        return {
            f"best {first} over best {other}: {words}": value
            for other in others
            for words, value in _extremes(best[first] - best[other]).items()
        }

    def _shown(self, tables: "Mapping[str, pd.DataFrame]") -> "pd.DataFrame":
        curves, denominator = tables["curves"], "all" if self._is_normalised else self.denominator
        return curves[(curves["quantity"] == self.quantity) & (curves["denominator"] == denominator)]

    def _places(self, tables: "Mapping[str, pd.DataFrame]") -> dict[int, str]:
        """Return where curves are read, and how that is called: at each ρ > 0, or each tenth of the attack surface."""
        if self._is_normalised:
            shares = tables["curves"]["attack_surface"].unique().tolist()
            return {place: f"{shares[place]:.0%}" for place in range(10, len(shares), 10)}
        return {place: str(place) for place in range(1, self.last_radius + 1)}

    def draw(self, tables: "Mapping[str, pd.DataFrame]") -> "Figure":
        """Draw at most two panels beside each other; bands are one standard deviation over the seeds."""
        shown, panels = self._shown(tables), self._panels
        columns = min(2, len(panels))
        size = {"width": 3.6, "height": 2.8} if len(panels) < 3 else {"width": 4.0, "height": 3.2}
        figure, axes = new_figure(-(-len(panels) // columns), columns, **size)
        for place in axes.flat[len(panels) :]:
            place.set_axis_off()
        for index, (place, panel) in enumerate(zip(axes.flat, panels, strict=False)):
            if self._families(self.background).isdisjoint(self._families(panel)):
                self._draw_background(place, shown)
            self._draw_panel(place, shown[shown["panel"] == panel])
            self._draw_axes(place)
            place.set_title(f"{letter(index)} {_words(panel)}" if len(panels) > 1 else _words(panel))
            if len(place.get_lines()) <= _MOST_INSIDE:
                place.legend()
            elif len(panels) > 1:
                place.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2, fontsize=7)
            else:
                figure.set_size_inches(4.8, 4.2)
                add_legend(figure)
        for row in axes:
            row[0].set_ylabel(f"certified {'accuracy' if self._is_accuracy else 'ratio'}")
        return figure

    def _draw_axes(self, axes: "Axes") -> None:
        if self._is_normalised:
            axes.set_xlabel("share of the attack surface")
            axes.set_xlim(0.0, 1.0)
            share_axis(axes)
        else:
            whole = ", or all if fewer" if self.denominator == "whole_field" else ""
            radius_axis(axes, last=self.last_radius, note=whole)

    def _families(self, panel: str | None) -> set[str]:
        return {each.family for each in self.curves if each.panel == panel}

    def _draw_background(self, axes: "Axes", shown: "pd.DataFrame") -> None:
        members = [each for each in self.curves if each.panel == self.background]
        for index, each in enumerate(members):
            rows = shown[(shown["panel"] == each.panel) & (shown["label"] == each.label)]
            label = f"thin: curves of {letter(self._panels.index(each.panel))}" if index == 0 else None
            x = "attack_surface" if self._is_normalised else "radius"
            axes.plot(rows[x], rows["share"], color=LINES[each.look]["color"], linewidth=0.7, label=label)

    def _draw_panel(self, axes: "Axes", shown: "pd.DataFrame") -> None:
        """Draw the curves of a panel, later ones with smaller markers, so that equal curves are seen."""
        looks = self._looks(shown["panel"].iloc[0])
        x, every = ("attack_surface", 10) if self._is_normalised else ("radius", 1)
        for place, (label, rows) in enumerate(shown.groupby("label", sort=False)):
            look = {"markersize": max(6.5 - 1.5 * place, 3.5)} | looks[str(label)]
            draw_curve(axes, rows, x=x, look=look, label=_words(str(label)), markevery=every, clip_on=False)

    def _looks(self, panel: str) -> dict[str, dict[str, Any]]:
        """Return the look of each label: that of its method where methods are compared, else its own."""
        looks: dict[str, dict[str, Any]] = {}
        seen = Counter[str]()
        for index, each in enumerate(each for each in self.all_curves if each.panel == panel):
            looks[each.label] = (
                shaded_look(each.look, seen[each.look])
                if self._compares
                else LINES.get(each.label) or numbered_look(index)
            )
            seen[each.look] += 1
        return looks


def _floor_beside(curve: Curve, kind: type[MLP] | type[Distilled]) -> Curve:
    """Return the floor for the nodes that may be hostile to a curve, and all of its test nodes."""
    shared = {name: getattr(curve, name) for name in set(CurveSettings.model_fields) - {"num_targets"}}
    method: Any = kind.family.lower()
    return kind(method=method, label=kind.family, panel=curve.panel, seeds=curve.seeds, **shared)


_AVERAGED = {
    "clean_accuracy": "clean accuracy",
    "abstain_ratio": "abstain ratio",
    "AUCRC": "AUCRC",
    "normalised_AUCRC": "normalised AUCRC",
}
"""Columns of the experiments, and what their means are called."""


def _gains(one: Mapping[str, float], other: Mapping[str, float], gain: FloatArray) -> dict[str, float]:
    """Return what one curve gains over an earlier one."""
    found = _extremes(gain) | {
        f"gain in {_AVERAGED[name]}": other[name] - one[name] for name in ("AUCRC", "clean_accuracy")
    }
    return found | ({"relative gain in AUCRC": other["AUCRC"] / one["AUCRC"] - 1} if one["AUCRC"] > 0.0 else {})


def _extremes(gain: FloatArray) -> dict[str, float]:
    """Return the gains from ρ = 1 on."""
    return {"smallest gain": float(gain[1:].min()), "largest gain": float(gain[1:].max())}


def _name(panel: str, label: str) -> str:
    return f"{panel}, {label}" if panel else label


def _words(text: str) -> str:
    plain = "$" not in text
    return text.replace(">=", "≥").replace("p_d", "$p_d$").replace("p_a", "$p_a$") if plain else text
