"""How curves over ρ are drawn: a line of means, a band of one standard deviation, and their axes."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def draw_curve(
    axes: "Axes",
    rows: "pd.DataFrame",
    *,
    look: dict[str, Any],
    x: str = "radius",
    y: str = "share",
    highest: float | None = 1.0,
    **more: Any,
) -> None:
    """Draw a column of a table of means over another one, with its band.

    Args:
        axes: Where to draw.
        rows: Has the columns ``x``, ``y`` and ``y_standard_deviation``, see `over_seeds`.
        look: Colour, line and marker.
        x: Column to the right.
        y: Column upward.
        highest: Where the band is cut off; None: nowhere.
        more: Of ``axes.plot``; a ``drawstyle`` is that of the band too.
    """
    place, mean, deviation = (rows[name].to_numpy() for name in (x, y, f"{y}_standard_deviation"))
    axes.plot(place, mean, **look, **more)
    low, high = np.clip(mean - deviation, 0.0, highest), np.clip(mean + deviation, 0.0, highest)
    step: Any = "pre" if "drawstyle" in more else None
    axes.fill_between(place, low, high, color=look["color"], alpha=0.2, linewidth=0.0, step=step)


def radius_axis(axes: "Axes", *, last: float | None = None, note: str = "") -> None:
    """Name the axis of ρ, with whole numbers, and let the other one show shares."""
    axes.set_xlabel(rf"hostile nodes $\rho${note}")
    axes.locator_params(axis="x", integer=True)
    share_axis(axes)
    if last is not None:
        axes.set_xlim(0.0, last)


def share_axis(axes: "Axes") -> None:
    """Let the axis upward show shares."""
    axes.set_ylim(0.0, 1.02)
