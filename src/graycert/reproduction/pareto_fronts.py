"""Fronts of trials: those that no other trial of their line beats in both accuracy and robustness, drawn and compared.

Trials are tables with the columns ``panel``, ``line``, ``clean_accuracy`` and ``normalized_aucrc``.
"""

from itertools import combinations
from typing import TYPE_CHECKING

from graycert.reproduction.smoothing_sweep import ROBUSTNESS
from graycert.reproduction.style import LINES, ORDER

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MARGIN = 0.05
"""The paper shows what is at most this far below the best accuracy of the panel."""

_SHOWN = 0.2  # figures reach this far below the best accuracy


def marked(trials: "pd.DataFrame", *, margin: float = MARGIN) -> "pd.DataFrame":
    """Add to trials whether no other one of their line dominates them, and whether they are accurate enough.

    Args:
        trials: See the module.
        margin: Trials are marked ``within`` if their accuracy is at most so far below the best of the panel.
    """
    from graycert.metrics.pareto import dominating_points, within_accuracy

    trials = trials.assign(dominating=False, within=False)
    for _, group in trials.groupby(["panel", "line"]):
        trials.loc[group.index, "dominating"] = dominating_points(group["clean_accuracy"], group[ROBUSTNESS])
    for _, group in trials.groupby("panel"):
        trials.loc[group.index, "within"] = within_accuracy(group["clean_accuracy"], margin=margin)
    return trials


def mean_robustness(trials: "pd.DataFrame", *, best: float, margin: float = MARGIN) -> float:
    r"""Return the largest robustness that trials reach at an accuracy, averaged over the accuracies that count.

    $$\frac{1}{m}\int_{b-m}^{b} \max\{r_i : a_i \ge a\}\,da$$ for the best accuracy b of the panel and the margin
    m; 0 counts where no trial reaches the accuracy.
    """
    from graycert.metrics.pareto import dominated_area

    above = (trials["clean_accuracy"] - (best - margin)).clip(lower=0.0)
    return dominated_area(above, trials[ROBUSTNESS]) / margin


def draw_panel(axes: "Axes", trials: "pd.DataFrame", *, margin: float = MARGIN) -> None:
    """Draw the trials of one panel faintly, and lines through those that no other one dominates."""
    best = float(trials["clean_accuracy"].max())
    lowest = max(best - _SHOWN, 0.0)
    shown = trials[trials["clean_accuracy"] >= lowest]
    axes.axhspan(
        lowest - 1.0, best - margin, color="0.92", zorder=0, linewidth=0, label=f"> {margin:.0%} below the best"
    )
    for number, name in enumerate(dict.fromkeys(trials["line"])):
        style = LINES.get(name) or {"color": ORDER[number % len(ORDER)], "marker": "os^Dv"[number % 5]}
        mine = trials[trials["line"] == name]
        axes.scatter(
            mine[ROBUSTNESS], mine["clean_accuracy"], s=10, marker=style["marker"], color=style["color"], alpha=0.3,
            linewidths=0,
        )  # fmt: skip
        front = mine[mine["dominating"]].sort_values([ROBUSTNESS, "clean_accuracy"], ascending=[True, False])
        axes.plot(front[ROBUSTNESS], front["clean_accuracy"], label=name, **style)
    axes.set_xlim(0.0, max(float(shown[ROBUSTNESS].max()) * 1.05, 0.1))
    axes.set_ylim(lowest, best + 0.02)
    axes.set_xlabel("normalised AUCRC")
    axes.set_ylabel("clean accuracy")


def compare_fronts(trials: "pd.DataFrame", fronts: "pd.DataFrame") -> "pd.DataFrame":
    """Compare each line with each later one of its panel, among trials of an accuracy that counts."""
    import pandas as pd

    from graycert.metrics.pareto import dominated_share

    rows = []
    for panel, of_panel in fronts.groupby("panel", sort=False):
        within = trials[(trials["panel"] == panel) & trials["within"]]
        areas = dict(zip(of_panel["line"], of_panel["mean_robustness"], strict=True))
        for line, other in combinations(areas, 2):
            mine, others = within[within["line"] == line], within[within["line"] == other]
            share = (
                dominated_share(
                    others["clean_accuracy"],
                    others[ROBUSTNESS],
                    other_accuracy=mine["clean_accuracy"],
                    other_robustness=mine[ROBUSTNESS],
                )
                if len(others)
                else float("nan")
            )
            gain = areas[line] - areas[other]
            rows.append({"panel": panel, "line": line, "other": other, "gain": gain, "dominated_share": share})
    return pd.DataFrame(rows, columns=["panel", "line", "other", "gain", "dominated_share"])
