"""The grid of p_d and p_a as a table and as a heat map."""

from typing import TYPE_CHECKING

import pandas as pd

from graycert.bounds.settings_grid import SettingsGrid
from graycert.reproduction.heatmap import draw_cells
from graycert.reproduction.style import VERMILION, paper_style
from graycert.runs.pictures import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def grid_table(grid: SettingsGrid) -> pd.DataFrame:
    """Return the counts of a grid of p_d and p_a as a data frame: a row for each pair, a column for each radius."""
    rows = []
    for row, p_d in enumerate(grid.p_delete.tolist()):
        for column, p_a in enumerate(grid.p_ablate.tolist()):
            cells = {"p_delete": p_d, "p_ablate": p_a, "arrives": (1 - p_d) * (1 - p_a), "targets": grid.num_targets}
            for index, count in enumerate(grid.certifiable[row, column].tolist(), start=1):
                cells[f"certifiable_{index}"] = count
            for index, count in enumerate(grid.or_whole_field[row, column].tolist(), start=1):
                cells[f"or_whole_field_{index}"] = count
            rows.append(cells)
    return pd.DataFrame(rows)


def draw_grid(grid: SettingsGrid, radius: int, ax: "Axes | None" = None) -> "Axes":
    """Draw the heat map of a grid of p_d and p_a: the share of nodes that any model could certify at a radius.

    Args:
        grid: See `graycert.bounds.settings_grid`.
        radius: Number of hostile nodes, in 1..max_radius.
        ax: Matplotlib axes to draw into. Default: those of a new figure.

    Returns:
        The axes; ``.figure`` is what can be saved. Frames mark the pairs of ``grid.best(radius)``.

    Raises:
        InvalidParameterError: If the radius was not looked at.
    """
    shares = grid.certifiable[:, :, grid.column(radius)] / max(grid.num_targets, 1)
    with paper_style():
        from matplotlib.patches import Rectangle

        ax = new_axes(ax)
        table = pd.DataFrame(shares, index=grid.p_delete, columns=grid.p_ablate)
        draw_cells(ax, table, lowest=0.0, highest=1.0)
        for each in grid.best(radius):
            place = grid.p_ablate.tolist().index(each.p_ablate), grid.p_delete.tolist().index(each.p_delete)
            ax.add_patch(Rectangle(place, 1, 1, fill=False, edgecolor=VERMILION, linewidth=2))
        ax.set_xlabel("p_a, chance of ablating a node")
        ax.set_ylabel("p_d, chance of deleting an edge")
        ax.set_title(
            f"Share of {grid.num_targets:,} nodes that could be certified at ρ = {radius}; framed: worth trying"
        )
    return ax
