"""The certified ratio over the radius, as a picture inside the page."""

import io
from collections.abc import Sequence
from typing import Any

from graycert.runs.page.view_data import Curve

# Colours that read on white and on black, for readers with any colour vision (Okabe and Ito, 2008).
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
_LINES = ("-", "--", ":", "-.")
_STYLE: Any = {  # matplotlib types each key
    "svg.hashsalt": "graycert",  # the same numbers give the same bytes
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def certified_ratio_svg(curves: Sequence[Curve]) -> str | None:
    """Draw step curves of shares over the radius.

    Args:
        curves: At least one curve; all of the same length.

    Returns:
        An ``<svg>`` element whose text and axes take the colour of the surrounding text, the same for the
        same curves; None if matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator, PercentFormatter
    except ModuleNotFoundError:
        return None
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.add_subplot()
        last = max(len(curve.values) for curve in curves) - 1
        for index, curve in enumerate(curves):
            colour, line = _COLOURS[index % len(_COLOURS)], _LINES[index % len(_LINES)]
            radii = range(len(curve.values))
            axes.step(radii, curve.values, where="mid", color=colour, linestyle=line, linewidth=2, label=curve.label)
            axes.plot(radii, curve.values, linestyle="none", marker="o", markersize=4, color=colour)
        axes.set_xlim(-0.5, last + 0.5)
        axes.set_ylim(0.0, 1.02)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_formatter(PercentFormatter(xmax=1.0))
        axes.set_xlabel("radius ρ: number of hostile nodes")
        axes.set_ylabel("share of all targets")
        axes.grid(axis="y", alpha=0.25)
        axes.legend(frameon=False)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _inline(buffer.getvalue())


def _inline(svg: str) -> str:
    """Drop the prologue (it names an external document type) and let black follow the colour of the text."""
    element = svg[svg.index("<svg") :]
    for black in ("#000000", "black"):
        element = element.replace(f"fill: {black}", "fill: currentColor").replace(
            f"stroke: {black}", "stroke: currentColor"
        )
    return element.replace("<svg ", '<svg role="img" aria-label="Certified share of targets over the radius" ', 1)
