"""Δ of one hostile node over the two smoothing probabilities (Figure 2)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from graycert.bounds.single_source import single_source_bound
from graycert.reproduction.settings import Count
from graycert.reproduction.style import HEATMAP, letter, new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_PLACES = {0: "the target itself", 1: "a direct neighbour", 2: "a second-hop neighbour"}


def tables(*, distances: tuple[int, ...] = (0, 1, 2), cells: Count = 100) -> "dict[str, pd.DataFrame]":
    """Return ``heatmap`` with Δ over p_d and p_a, and ``areas`` with the share of cells below 1/2, per distance.

    Args:
        distances: Lengths of the only path to the target, one panel each; 0 is the target itself.
        cells: Cells per axis; each shows Δ in its middle.
    """
    import pandas as pd

    middles = (np.arange(cells) + 0.5) / cells
    heatmap = pd.DataFrame(
        [
            (distance, p_delete, p_ablate, single_source_bound([distance], p_delete=p_delete, p_ablate=p_ablate))
            for distance in distances
            for p_delete in middles.tolist()
            for p_ablate in middles.tolist()
        ],
        columns=["distance", "p_delete", "p_ablate", "delta"],
    )
    below = heatmap.assign(certifiable=heatmap["delta"] < 0.5).groupby("distance")["certifiable"]
    areas = below.agg(num_certifiable="sum", num_cells="count", certifiable_share="mean").reset_index()
    return {"heatmap": heatmap, "areas": areas}


def measures(tables: "Mapping[str, pd.DataFrame]") -> dict[str, float]:
    """Return the certifiable share per distance, its smallest gain per step, and how far p_d moves Δ of each."""
    shares = tables["areas"].set_index("distance")["certifiable_share"]
    spread = tables["heatmap"].groupby(["distance", "p_ablate"])["delta"].agg(lambda each: each.max() - each.min())
    found = {f"certifiable_share_distance_{distance}": float(share) for distance, share in shares.items()}
    found["smallest_gain_per_step"] = float(shares.sort_index().diff().min())
    largest = spread.groupby("distance").max()
    return found | {f"influence_of_p_delete_distance_{distance}": float(each) for distance, each in largest.items()}


def draw(tables: "Mapping[str, pd.DataFrame]") -> "Figure":
    """Draw one map per distance, with the line Δ = 1/2."""
    distances = tables["heatmap"]["distance"].unique().tolist()
    figure, panels = new_figure(1, len(distances), width=2.7, height=2.7)
    shares = tables["areas"].set_index("distance")["certifiable_share"]
    for index, (axes, distance) in enumerate(zip(panels[0], distances, strict=True)):
        rows = tables["heatmap"].query("distance == @distance")
        grid = rows.pivot_table(index="p_ablate", columns="p_delete", values="delta")
        middles, edges = grid.columns.to_numpy(), np.linspace(0.0, 1.0, len(grid) + 1)
        values = grid.to_numpy()
        mesh = axes.pcolormesh(edges, edges, values, cmap=HEATMAP, vmin=0.0, vmax=1.0, rasterized=True)
        axes.contour(middles, middles, values, levels=[0.5], colors="white", linewidths=1.6)
        axes.set_title(f"{letter(index)} {_PLACES.get(distance, f'a node {distance} edges away')}")
        axes.text(0.97, 0.95, f"{shares[distance]:.0%} below ½", color="white", ha="right", va="top")
        axes.set_xlabel("edge deletion $p_d$")
        axes.set_ylabel("node ablation $p_a$" if axes is panels[0][0] else "")
        axes.set_aspect("equal")
        axes.grid(visible=False)
    figure.colorbar(mesh, ax=panels, label=r"$\Delta_i$ (white line: ½)", shrink=0.9)
    return figure
