"""Two paths that share an edge, and two that do not (Figure 9)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from graycert.graph import Adjacency
from graycert.reproduction.formulas.second_hop import exact_delta, theorem_3
from graycert.reproduction.settings import Count, Probability
from graycert.reproduction.style import BLACK, BLUE, GREY, VERMILION, new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The target is 0, and the sources are the two nodes with the largest numbers.
_EDGES = {"shared edge": ((1, 0), (2, 1), (3, 1)), "no shared edge": ((1, 0), (2, 0), (3, 1), (4, 2))}
_PLACES = {
    "shared edge": ((0.0, 0.0), (0.0, 1.0), (-0.7, 2.0), (0.7, 2.0)),
    "no shared edge": ((0.0, 0.0), (-0.7, 1.0), (0.7, 1.0), (-0.7, 2.0), (0.7, 2.0)),
}


def tables(*, p_ablate: Probability = 0.0, steps: Count = 100) -> "dict[str, pd.DataFrame]":
    """Return ``arrival``: per graph and p_d the exact chance that a message arrives, that none does, and Theorem 3.

    Args:
        p_ablate: p_a.
        steps: The curves have so many steps of p_d.
    """
    import pandas as pd

    rows = []
    for name, edges in _EDGES.items():
        graph = Adjacency.from_edge_index(np.array(edges).T, num_nodes=len(_PLACES[name]))
        for p_delete in (np.arange(steps + 1) / steps).tolist():
            smoothing = {"p_delete": p_delete, "p_ablate": p_ablate}
            exact = exact_delta(graph, (graph.num_nodes - 2, graph.num_nodes - 1), **smoothing)
            bound = float(theorem_3(graph, max_radius=2, **smoothing)[1])
            rows.append((name, p_delete, exact, 1.0 - exact, bound))
    names = ["paths", "p_delete", "some_arrives", "none_arrives", "theorem_3"]
    return {"arrival": pd.DataFrame(rows, columns=names)}


def measures(tables: "Mapping[str, pd.DataFrame]") -> dict[str, float]:
    """Return how much more arrives without a shared edge, and how far Theorem 3 is from exact on each graph."""
    arrival = tables["arrival"]
    some = arrival.pivot_table(index="p_delete", columns="paths", values="some_arrives")
    gain = (some["no shared edge"] - some["shared edge"]).to_numpy()
    error = (arrival["theorem_3"] - arrival["some_arrives"]).abs().groupby(arrival["paths"]).max()
    return {
        "smallest_gain": float(gain[1:-1].min()),  # at p_d = 0 and 1 there is none
        "largest_gain": float(gain.max()),
        "error_of_theorem_3_shared_edge": float(error["shared edge"]),
        "error_of_theorem_3_no_shared_edge": float(error["no shared edge"]),
    }


def draw(tables: "Mapping[str, pd.DataFrame]") -> "Figure":
    """Draw the two graphs, and the chances over p_d beside them."""
    figure, panels = new_figure(1, 3, width=2.3, height=2.7)
    for axes, name in zip(panels[0], _EDGES, strict=False):
        _draw_graph(axes, name)
    axes = panels[0][2]
    styles = {"shared edge": (VERMILION, "--"), "no shared edge": (BLUE, "-")}
    for name, (colour, line) in styles.items():
        rows = tables["arrival"].query("paths == @name")
        axes.plot(rows["p_delete"], rows["some_arrives"], color=colour, linestyle=line, label=name)
    axes.set_xlabel("edge deletion $p_d$")
    axes.set_ylabel("chance that a message arrives")
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(0.0, 1.02)
    axes.legend()
    return figure


def _draw_graph(axes: "Axes", name: str) -> None:
    """Draw the target v, the hostile sources w, and the edges, one that both paths use bold."""
    places = _PLACES[name]
    names = dict(enumerate(["$v$", *[""] * (len(places) - 3), "$w_1$", "$w_2$"]))
    colours = {"$v$": BLUE, "": GREY}
    for start, end in _EDGES[name]:
        shared = name == "shared edge" and (start, end) == (1, 0)
        arrow = {"arrowstyle": "-|>", "shrinkA": 9, "shrinkB": 9, "lw": 3.2 if shared else 1.2, "color": BLACK}
        axes.annotate("", xy=places[end], xytext=places[start], arrowprops=arrow)
    for node, (x, y) in enumerate(places):
        colour = colours.get(names[node], VERMILION)
        axes.plot(x, y, marker="o", markersize=15, color=colour, linestyle="none")
        axes.text(x, y, names[node], color="white", ha="center", va="center", fontsize=9)
    axes.set_title(name)
    axes.set_xlim(-1.2, 1.2)
    axes.set_ylim(-0.4, 2.4)
    axes.axis("off")
