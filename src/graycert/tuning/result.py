"""What tuning has found: a table of settings, the front, and the one that is recommended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graycert.errors import InvalidParameterError
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.tuning.measures import RADII
from graycert.tuning.recommendation import recommended
from graycert.tuning.trial import CERTIFYING, TRAINING, Bench
from graycert.tuning.want import Want

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from torch import nn

    from graycert.reproduction.sweep import SweepResult


@dataclass(frozen=True, kw_only=True, eq=False)
class Tuning:
    """Settings that were compared on validation nodes.

    Attributes:
        table: A row per setting: its parameters, ``accuracy``, ``correct_1``, ``correct_3``, ``correct_5`` (certified
            and correct at that radius), the same averaged over classes (``balanced_accuracy``, ...) and per class
            (``accuracy of fraud``, ...), ``abstained``, ``seconds`` of certifying, whether no other setting is better
            in accuracy or certificates at a radius and as good in the other (``front_1``, ``front_3``, ``front_5``),
            and whether it is ``recommended``. Shares of the validation nodes.
        want: What was wanted.
        is_reached: Whether the recommended setting reaches it; else none does, and it is the closest one.
        unequal: Whether classes are so unequal that the front and the recommendation go by averages over them.
        focus: Class that the table as text shows besides: the one that is wanted, or the rarest of unequal ones.
        failed: Why settings failed, one text each.
    """

    table: "pd.DataFrame"
    want: Want
    is_reached: bool
    unequal: bool
    focus: str
    failed: tuple[str, ...]
    _bench: Bench

    @property
    def setting(self) -> dict[str, float]:
        """Parameters of the recommended setting, by name."""
        return {name: self._chosen[name] for name in (*TRAINING, "p_delete", "p_ablate") if name in self._chosen}

    @property
    def smoothing(self) -> InterceptionSmoothing:
        """What to certify with."""
        return InterceptionSmoothing(p_delete=self._chosen["p_delete"], p_ablate=self._chosen["p_ablate"])

    @property
    def training(self) -> InterceptionSmoothing | None:
        """What to train under; None where models were not trained."""
        if TRAINING[0] not in self._chosen:
            return None
        return InterceptionSmoothing(p_delete=self._chosen[TRAINING[0]], p_ablate=self._chosen[TRAINING[1]])

    @property
    def model(self) -> "nn.Module":
        """The model of the recommended setting."""
        return self._bench.ready(self._chosen)[0]

    @property
    def accuracy_column(self) -> str:
        """Column of the accuracy that the front goes by."""
        return "balanced_accuracy" if self.unequal else "accuracy"

    def correct_column(self, radius: int = 1) -> str:
        """Return the column of the certificates at a radius that the front goes by."""
        return f"balanced_correct_{radius}" if self.unequal else f"correct_{radius}"

    @property
    def certify_line(self) -> str:
        """The call to paste."""
        trained = "" if self.training is None else f"model = ...({_call(self.training)})  # train under it\n"
        return f"{trained}graycert.certify(model, data, targets=..., threat=..., smoothing={_call(self.smoothing)})"

    def figure(self, path: str | Path) -> Path:
        """Draw all settings, and the front with its points labelled; needs matplotlib.

        Args:
            path: File to write, e.g. front.png.
        """
        from graycert.tuning.figure import draw_front

        return draw_front(self, Path(path))

    def plot(self, ax: "Axes | None" = None, *, radius: int = 1) -> "Axes":
        """Plot accuracy against what is certified and correct at a radius: settings, the front, the recommended one.

        Args:
            ax: Matplotlib axes to draw into. Default: those of a new figure.
            radius: One of 1, 3 and 5.

        Returns:
            The axes.

        Raises:
            InvalidParameterError: If ``radius`` was not measured, or matplotlib is not installed.
        """
        from graycert.runs.pictures import new_axes

        if radius not in RADII:
            raise InvalidParameterError(f"`radius` must be one of {', '.join(map(str, RADII))}, got {radius!r}.")
        axes = new_axes(ax)
        from graycert.tuning.figure import draw_panel, name_accuracy

        draw_panel(axes, self, radius)
        name_accuracy(axes, self)
        axes.legend(loc="best", frameon=False)
        return axes

    def recommendation(self) -> str:
        """Return in words what is recommended."""
        row = self.table[self.table["recommended"]].iloc[0]
        opening = f"Recommended ({self.want})" if self.is_reached else f"NO SETTING REACHES {self.want}; the closest"
        kind = "balanced accuracy" if self.unequal else "accuracy"
        recalls = [str(name) for name in self.table.columns if str(name).startswith("accuracy of ")]
        never = [name.partition(" of ")[2] for name in recalls if not row[name]]
        warning = f" WARNING: it finds no node of class {', '.join(never)}." if never else ""
        return (
            f"{opening}: {_in_words(self._chosen)}.{warning} On the validation nodes that chose it: {kind} "
            f"{row[self.accuracy_column]:.1%}, certified and correct at radius 1 {row[self.correct_column()]:.1%}"
            f"{' (averaged over classes)' if self.unequal else ''}. Report what it reaches on other nodes."
        )

    def __str__(self) -> str:
        """Return the table, best accuracy first, the recommendation, and the call to paste."""
        return "\n\n".join(["\n".join(self.lines()), self.recommendation(), self.certify_line])

    def lines(self) -> list[str]:
        """Return the table as text; ``>`` is recommended."""
        shown = self.table.sort_values([self.accuracy_column, self.correct_column()], ascending=False)
        heads = {name: name.replace("train_", "train ").replace("p_delete", "p_d").replace("p_ablate", "p_a")
                 for name in self._chosen}  # fmt: skip
        heads["accuracy"] = "accuracy"
        if self.unequal:
            heads["balanced_accuracy"] = "balanced"
        heads |= {self.correct_column(radius): f"correct@{radius}" for radius in self._radii}
        if self.focus:
            radius = self.want.radius
            heads[f"accuracy of {self.focus}"] = f"{self.focus} found"
            heads[f"correct_{radius} of {self.focus}"] = f"{self.focus} correct@{radius}"
        heads |= {"abstained": "abstained", "seconds": "seconds"}
        rows = [["", *heads.values(), "front at ρ"]]
        for row in shown.to_dict("records"):
            fronts = ",".join(str(radius) for radius in RADII if row[f"front_{radius}"])
            mark = ">" if row["recommended"] else ""
            rows.append([mark, *(_cell(name, row[name], self._chosen) for name in heads), fronts])
        widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
        averaged = ", averaged over classes" if self.unequal else ""
        return [
            *("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows),
            f"> recommended. correct@ρ: certified and correct at radius ρ{averaged}. Front at ρ: no other setting is "
            "as good in accuracy and correct@ρ, and better in one.",
        ]

    @property
    def _radii(self) -> list[int]:
        return sorted({*RADII, *([self.want.radius] if self.want.measure == "radius" else [])})

    @property
    def _chosen(self) -> dict[str, float]:
        row = self.table[self.table["recommended"]].iloc[0]
        return {name: float(row[name]) for name in (*TRAINING, "p_delete", "p_ablate") if name in self.table}


def tuning_of(found: "SweepResult", bench: Bench, *, want: Want, unequal: bool, parameters: Sequence[str]) -> Tuning:
    """Return what the trials of a sweep come to.

    Raises:
        InvalidParameterError: If none was finished.
    """
    import pandas as pd

    from graycert.metrics.pareto import dominating_points

    failed = tuple(f"{_in_words(each.params)}: {each.error}" for each in found.failed)
    if not found.num_finished:
        raise InvalidParameterError(
            f"`settings` must hold one that can be tried, got none; the first says: {failed[0]}"
        )
    trials = pd.read_parquet(found.table).drop(columns=["index", "seconds"]).rename(columns={CERTIFYING: "seconds"})
    trials = trials.reset_index(drop=True)
    order = [*(name for name in (*TRAINING, "p_delete", "p_ablate") if name in parameters)]
    trials = trials[[*order, *(name for name in trials.columns if name not in {*order, "seconds"}), "seconds"]]
    prefix = "balanced_" if unequal else ""
    place, is_reached = recommended(trials, want, prefix=prefix)
    accuracy = trials[f"{prefix}accuracy"].to_numpy()
    fronts = {
        f"front_{radius}": dominating_points(accuracy, trials[f"{prefix}correct_{radius}"].to_numpy())
        for radius in RADII
    }
    table = trials.assign(**fronts, recommended=trials.index == place)
    return Tuning(
        table=table,
        want=want,
        is_reached=is_reached,
        unequal=unequal,
        focus=want.of or (bench.rarest if unequal else ""),
        failed=failed,
        _bench=bench,
    )


def _call(smoothing: InterceptionSmoothing) -> str:
    return f"graycert.InterceptionSmoothing(p_delete={smoothing.delete_in_words}, p_ablate={smoothing.ablate_in_words})"


def _in_words(params: Mapping[str, float]) -> str:
    here = f"p_d = {params['p_delete']:.3g}, p_a = {params['p_ablate']:.3g}"
    if TRAINING[0] not in params:
        return here
    return f"{here}, trained under p_d = {params[TRAINING[0]]:.3g}, p_a = {params[TRAINING[1]]:.3g}"


def _cell(name: str, value: Any, parameters: Mapping[str, float]) -> str:
    return f"{value:.3g}" if name in parameters else f"{value:.1f}" if name == "seconds" else f"{value:.1%}"
