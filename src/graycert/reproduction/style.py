"""How figures look: one colour and line for each method or model, everywhere the same."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from graycert.errors import InvalidParameterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Colours for readers with any colour vision (Okabe and Ito, 2008); lines tell them apart in black and white.
BLACK, ORANGE, SKY, GREEN, YELLOW = "#000000", "#e69f00", "#56b4e9", "#009e73", "#f0e442"
BLUE, VERMILION, PURPLE, GREY = "#0072b2", "#d55e00", "#cc79a7", "#7f7f7f"

LINES: dict[str, dict[str, Any]] = {
    # who is hostile
    "distance >= 1": {"color": BLUE, "linestyle": "-", "marker": "o"},
    "distance 2": {"color": VERMILION, "linestyle": "--", "marker": "s"},
    # bound and rule
    "Theorem 3": {"color": BLUE, "linestyle": "-", "marker": "o"},
    "exact": {"color": GREEN, "linestyle": "--", "marker": "^"},
    "event-aware": {"color": PURPLE, "linestyle": "-.", "marker": "D"},
    "union bound": {"color": ORANGE, "linestyle": ":", "marker": "v"},
    "tree": {"color": GREEN, "linestyle": "--", "marker": "^"},
    # baselines
    "interception smoothing": {"color": BLUE, "linestyle": "-", "marker": "o"},
    "sparse smoothing": {"color": ORANGE, "linestyle": "--", "marker": "v"},
    "Levine, local": {"color": VERMILION, "linestyle": "-.", "marker": "s"},
    "Levine, global": {"color": PURPLE, "linestyle": ":", "marker": "D"},
    "subgraph voting": {"color": GREEN, "linestyle": "--", "marker": "^"},
    "bounded votes": {"color": VERMILION, "linestyle": "-", "marker": "s"},
    "distilled": {"color": BLACK, "linestyle": (0, (1, 1)), "marker": ""},
    "labels alone": {"color": ORANGE, "linestyle": (0, (6, 2, 1, 2)), "marker": ""},
    "MLP": {"color": GREY, "linestyle": (0, (1, 1)), "marker": ""},
    "no messages": {"color": BLACK, "linestyle": (0, (6, 2)), "marker": ""},
    # architectures
    "GCN": {"color": ORANGE, "linestyle": ":", "marker": "v"},
    "GAT": {"color": BLUE, "linestyle": "-", "marker": "o"},
    "GATv2": {"color": GREEN, "linestyle": "--", "marker": "^"},
    "SMA": {"color": PURPLE, "linestyle": "-.", "marker": "D"},
    # what is smoothed
    "deletion and ablation": {"color": BLUE, "linestyle": "-", "marker": "o"},
    "deletion": {"color": VERMILION, "linestyle": "--", "marker": "s"},
    "ablation": {"color": GREEN, "linestyle": ":", "marker": "^"},
    "0.1 less in training": {"color": GREEN, "linestyle": "-", "marker": "o"},
    "as much in training": {"color": BLUE, "linestyle": "--", "marker": "s"},
    "0.1 more in training": {"color": VERMILION, "linestyle": ":", "marker": "^"},
    # one adversary against all targets
    "together": {"color": VERMILION, "linestyle": "-", "marker": "s"},
    # graph before the attack
    "full graph": {"color": BLUE, "linestyle": "-", "marker": "o"},
    "GDC": {"color": VERMILION, "linestyle": "--", "marker": "s"},
    # model variants
    "without skip": {"color": BLUE, "linestyle": "-", "marker": "o"},
    "with skip": {"color": VERMILION, "linestyle": "--", "marker": "s"},
}
"""Line style by the name in the legend."""

ORDER = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
"""Colours of things that have no name above, e.g. five values of a parameter."""

_DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
_MARKERS = "osD^vPX"
_SHADES = (0.0, 0.5, -0.45, 0.25)  # from the colour of a method towards white, or black
MOST_SHADES = len(_SHADES)
"""So many things of one name can be told apart."""

HEATMAP = "viridis"  # rises in lightness, also in print
DIFFERENCES = "PuOr"  # of both signs, for readers with any colour vision

_RC: Any = {  # matplotlib types each key
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,  # text stays text
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
}


def numbered_look(index: int) -> dict[str, Any]:
    """Return the look of something that has no name in all figures."""
    looks = {"color": ORDER, "linestyle": _DASHES, "marker": _MARKERS}
    return {name: values[index % len(values)] for name, values in looks.items()}


def shaded_look(name: str, index: int) -> dict[str, Any]:
    """Return the look of a name; more things of it (``index`` > 0) have other shades, lines and markers."""
    from matplotlib.colors import to_rgb

    look = LINES[name]
    if index == 0:
        return look
    towards, share = float(_SHADES[index] > 0), abs(_SHADES[index])
    lines = [look["linestyle"], *(each for each in _DASHES if each != look["linestyle"])]
    markers = [look["marker"], *(each for each in _MARKERS if each != look["marker"])]
    return {
        "color": tuple((1 - share) * part + share * towards for part in to_rgb(look["color"])),
        "linestyle": lines[index],
        "marker": markers[index],
    }


def letter(index: int) -> str:
    """Return the letter of a panel: (a), (b), ..."""
    return f"({chr(ord('a') + index)})"


@contextmanager
def paper_style() -> Iterator[None]:
    """Draw in the style of all figures while the block runs.

    Raises:
        InvalidParameterError: If matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
    except ModuleNotFoundError as error:
        raise InvalidParameterError('figures need matplotlib: pip install "graycert[figures]".') from error
    with mpl.rc_context(_RC):
        yield


def new_figure(rows: int = 1, columns: int = 1, *, width: float = 3.6, height: float = 2.8) -> "tuple[Figure, Any]":
    """Return a figure of panels, each ``width`` by ``height`` inches, and its axes, shape (rows, columns)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(columns * width, rows * height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def add_legend(figure: "Figure") -> None:
    """Name the lines of the first panel below all panels, where no point can be."""
    first, *others = figure.axes
    handles, labels = first.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels) if others else 2)
