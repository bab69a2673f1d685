"""The front as a picture, with its points labelled."""

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from graycert._files import write_atomically
from graycert.reproduction.style import BLUE, GREY, VERMILION, new_figure, paper_style
from graycert.tuning.measures import RADII
from graycert.tuning.trial import TRAINING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from graycert.tuning.result import Tuning


def draw_front(tuning: "Tuning", path: Path) -> Path:
    """Draw accuracy against certificates at radius 1, 3 and 5, and write the picture; the labels are (p_d, p_a)."""
    with paper_style():
        figure, panels = new_figure(columns=len(RADII), width=4.2, height=3.8)
        for axes, radius in zip(panels[0], RADII, strict=True):
            draw_panel(axes, tuning, radius)
        name_accuracy(panels[0, 0], tuning)
        trained = "p_d, p_a (and in training)" if tuning.training is not None else "p_d, p_a"
        figure.suptitle(f"Validation nodes; labels are {trained}", fontsize=9)
        panels[0, 0].legend(loc="best")
        write_atomically(path, lambda file: figure.savefig(file))
    return path


def name_accuracy(axes: "Axes", tuning: "Tuning") -> None:
    """Say at the vertical axis which accuracy it is."""
    averaged = ", averaged over classes" if tuning.unequal else ""
    axes.set_ylabel(f"accuracy of the smoothed classifier{averaged}")


def draw_panel(axes: "Axes", tuning: "Tuning", radius: int) -> None:
    """Draw all settings, the front with its points labelled, and the one that is recommended, at a radius."""
    table, x, y = tuning.table, tuning.correct_column(radius), tuning.accuracy_column
    front = table[table[f"front_{radius}"]].sort_values([x, y], ascending=[True, False])
    chosen = table[table["recommended"]]
    axes.scatter(table[x], table[y], s=14, color=GREY, alpha=0.5, linewidths=0, label="settings")
    axes.plot(front[x], front[y], color=BLUE, marker="o", label="front")
    axes.scatter(chosen[x], chosen[y], s=70, marker="*", color=VERMILION, zorder=3, label="recommended")
    labelled = front if chosen.index[0] in front.index else pd.concat([front, chosen])
    for place, row in enumerate(labelled.drop_duplicates([x, y]).to_dict("records")):
        text = f"{row['p_delete']:.3g}, {row['p_ablate']:.3g}"
        if TRAINING[0] in row:
            text += f" ({row[TRAINING[0]]:.3g}, {row[TRAINING[1]]:.3g})"
        above = place % 2 == 0  # neighbours on the front are close: labels take turns
        axes.annotate(
            text,
            (row[x], row[y]),
            xytext=(4, 5 if above else -5),
            textcoords="offset points",
            va="bottom" if above else "top",
            fontsize=7,
        )
    axes.set_xlabel(f"certified and correct at radius {radius}")
    axes.margins(x=0.2, y=0.12)
