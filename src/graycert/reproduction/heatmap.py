"""Heat maps of a number over two parameters, one cell for each pair of values."""

from typing import TYPE_CHECKING, Any

import numpy as np

from graycert.reproduction.style import HEATMAP

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh

_DARK = 0.55  # share of the colour scale up to which white text is read better than black
_MOST_NUMBERS = 64


def draw_cells(axes: "Axes", values: "pd.DataFrame", *, lowest: float, highest: float) -> "QuadMesh":
    """Draw one cell of equal size for each value, with the number in it unless there are too many.

    Args:
        axes: Where to draw.
        values: Index and columns are the parameters, shown upward and to the right in this order.
        lowest: Value of the darkest colour.
        highest: Value of the lightest colour; numbers are scaled between both.

    Returns:
        What a colour bar needs.
    """
    numbers = values.to_numpy()
    mesh = axes.pcolormesh(numbers, cmap=HEATMAP, vmin=lowest, vmax=highest, edgecolors="white", linewidth=0.5)
    if numbers.size <= _MOST_NUMBERS:
        for (row, column), value in zip(_places(numbers.shape), numbers.ravel().tolist(), strict=True):
            colour = "white" if value < lowest + _DARK * (highest - lowest) else "black"
            text = f"{value:.3f}"[1:] if 0.0 <= value < 0.9995 else f"{value:.2f}"
            axes.text(column + 0.5, row + 0.5, text, color=colour, ha="center", va="center", fontsize=7)
    axes.set_xticks([column + 0.5 for column in range(numbers.shape[1])], [_text(each) for each in values.columns])
    axes.set_yticks([row + 0.5 for row in range(numbers.shape[0])], [_text(each) for each in values.index])
    axes.tick_params(length=0)
    axes.grid(visible=False)
    return mesh


def _text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else np.format_float_positional(value, trim="-")


def _places(shape: tuple[int, ...]) -> list[tuple[int, int]]:
    return [(row, column) for row in range(shape[0]) for column in range(shape[1])]
