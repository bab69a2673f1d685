"""The largest radius that ablation alone can certify (Figure 21 (a))."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from graycert.bounds.ablation_only import largest_ablation_only_radius
from graycert.reproduction.settings import Count
from graycert.reproduction.style import BLUE, VERMILION, new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_STEP = 1e-12  # from a threshold to either side
_MARKED = (1, 2, 4, 6, 10)


def tables(*, steps: Count = 1_000, max_radius: Count = 20) -> "dict[str, pd.DataFrame]":
    """Return ``limit``, the largest radius over p_a, and ``thresholds`` with it on both sides of each 0.5^(1/ρ).

    Args:
        steps: The curve has so many steps of p_a from 0 to 1; at 1 there is no limit.
        max_radius: Largest radius shown.
    """
    import pandas as pd

    ablated = np.arange(steps + 1) / steps
    radii = np.arange(1, max_radius + 1)
    roots = 0.5 ** (1.0 / radii)
    limit = pd.DataFrame({"p_ablate": ablated, "largest_radius": [_limit(each) for each in ablated.tolist()]})
    thresholds = pd.DataFrame(
        {
            "radius": radii,
            "threshold": roots,
            "limit_below": [_limit(each - _STEP) for each in roots.tolist()],
            "limit_above": [_limit(each + _STEP) for each in roots.tolist()],
        }
    )
    return {"limit": limit, "thresholds": thresholds}


def measures(tables: "Mapping[str, pd.DataFrame]") -> dict[str, float]:
    """Return limits at some p_a, what p_a some radii need, and the number of wrong thresholds."""
    limit, thresholds = tables["limit"], tables["thresholds"]
    steps = thresholds[["limit_below", "limit_above"]].sub(thresholds["radius"], axis=0)
    wrong = (steps["limit_below"] != -1) | (steps["limit_above"] != 0)
    needed = limit.groupby("largest_radius")["p_ablate"].min()
    return {
        "limit_up_to_0.5": float(limit.loc[limit["p_ablate"] <= 0.5, "largest_radius"].max()),
        "limit_at_0.7": _limit(0.7),
        "limit_at_0.85": _limit(0.85),
        "p_ablate_of_radius_10": float(needed[needed.index >= 10].min()),
        "wrong_thresholds": float(wrong.sum()),
    }


def draw(tables: "Mapping[str, pd.DataFrame]") -> "Figure":
    """Draw the limit as steps, with the thresholds of some radii marked."""
    figure, panels = new_figure(width=4.4, height=3.0)
    axes = panels[0][0]
    max_radius = int(tables["thresholds"]["radius"].max())
    limit = tables["limit"].query("largest_radius <= @max_radius")
    axes.plot(limit["p_ablate"], limit["largest_radius"], color=BLUE, drawstyle="steps-post")
    marked = tables["thresholds"][tables["thresholds"]["radius"].isin(_MARKED)]
    axes.plot(
        marked["threshold"],
        marked["radius"],
        color=VERMILION,
        marker="s",
        markerfacecolor="white",  # at the threshold itself the smaller radius holds
        linestyle="none",
        label=r"$p_a = 0.5^{1/\rho}$",
    )
    for radius, threshold in zip(marked["radius"], marked["threshold"], strict=True):
        axes.annotate(f"{threshold:.3f}", (threshold, radius), xytext=(-5, 1), textcoords="offset points", ha="right")
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(-0.3, max_radius + 0.5)
    axes.set_xlabel("node ablation $p_a$ (no edge is deleted)")
    axes.set_ylabel(r"largest certifiable radius $\rho$")
    axes.legend(loc="upper left")
    axes.yaxis.get_major_locator().set_params(integer=True)
    return figure


def _limit(p_ablate: float) -> float:
    """Return the largest radius; infinity where there is no limit."""
    radius = largest_ablation_only_radius(p_ablate=p_ablate)
    return float("inf") if radius is None else float(radius)
