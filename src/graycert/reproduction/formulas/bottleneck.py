"""Δ and its bounds where all messages share one edge (Figure 10 (b))."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from graycert._types import FloatArray, IntArray
from graycert.graph import bottleneck_graph
from graycert.reproduction.curve_lines import radius_axis
from graycert.reproduction.formulas.second_hop import exact_delta, theorem_3
from graycert.reproduction.settings import Count, Probability
from graycert.reproduction.style import LINES, new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_LABELS = {"union_bound": "union bound", "theorem_3": "Theorem 3", "exact": "exact"}


def tables(
    *,
    p_deletes: Annotated[tuple[Probability, ...], Field(min_length=1)] = (0.2, 0.5, 0.8),
    p_ablate: Probability = 0.0,
    num_attackers: Count = 20,
) -> "dict[str, pd.DataFrame]":
    """Return ``bounds`` for second-hop nodes behind one neighbour: exact Δ, its bounds, the paper's formula.

    Args:
        p_deletes: Values of p_d, one panel each.
        p_ablate: p_a.
        num_attackers: Second-hop nodes, and the largest ρ.

    Returns:
        A row per p_d and ρ; all sets of ρ sources are alike, and the union bound is the plain sum, above 1 too.
    """
    import pandas as pd

    graph, radii = bottleneck_graph(num_attackers), np.arange(1, num_attackers + 1)
    parts = []
    for p_delete in p_deletes:
        smoothing = {"p_delete": p_delete, "p_ablate": p_ablate}
        bound = theorem_3(graph, max_radius=num_attackers, **smoothing)
        columns = {
            "exact": [exact_delta(graph, range(2, 2 + radius), **smoothing) for radius in radii.tolist()],
            "theorem_3": bound,
            "union_bound": radii * bound[0],  # all sources have the same Δ_w, so any ρ are the largest
            "closed_form": _closed_form(p_delete, p_ablate, radii),
        }
        parts.append(pd.DataFrame({"p_delete": p_delete, "radius": radii, **columns}))
    return {"bounds": pd.concat(parts, ignore_index=True)}


def measures(tables: "Mapping[str, pd.DataFrame]") -> dict[str, float]:
    """Return by how much each bound exceeds the next tighter one, the largest values, and the formula's error."""
    bounds = tables["bounds"]
    return {
        "error_of_closed_form": float((bounds["exact"] - bounds["closed_form"]).abs().max()),
        "theorem_3_above_exact_at_least": float((bounds["theorem_3"] - bounds["exact"]).min()),
        "theorem_3_above_exact_at_most": float((bounds["theorem_3"] - bounds["exact"]).max()),
        "union_above_theorem_3_at_least": float((bounds["union_bound"] - bounds["theorem_3"]).min()),
        **{f"largest_{name}": float(bounds[name].max()) for name in _LABELS},
    }


def draw(tables: "Mapping[str, pd.DataFrame]") -> "Figure":
    """Draw one panel per p_d; values above 1 are no probabilities, so the axis ends a little above."""
    panels = list(tables["bounds"].groupby("p_delete", sort=False))
    figure, places = new_figure(1, len(panels), width=2.5, height=2.6)
    for axes, (p_delete, rows) in zip(places[0], panels, strict=True):
        for name, label in _LABELS.items():
            axes.plot(rows["radius"], rows[name], label=label, **LINES[label])
        axes.axhline(1.0, color="black", linewidth=0.8)
        axes.set_title(f"$p_d = {p_delete:g}$")
        radius_axis(axes)
        axes.set_ylim(0.0, 1.55)
    places[0][0].set_ylabel(r"bound of $\Delta$")
    places[0][-1].legend(loc="upper left")
    return figure


def _closed_form(p_delete: float, p_ablate: float, radii: IntArray) -> FloatArray:
    """Return the paper's formula, here with p_a: the shared edge is there, and not all ρ sources are silent."""
    silent = np.power(1.0 - (1.0 - p_delete) * (1.0 - p_ablate), radii, dtype=np.float64)
    return np.asarray((1.0 - p_delete) * (1.0 - silent))
