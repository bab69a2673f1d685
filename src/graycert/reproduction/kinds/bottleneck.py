"""Δ and its bounds where all messages share one edge (Figure 10 (b))."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from graycert.bounds import arrival_probability
from graycert.bounds.evaluation import delta_bounds
from graycert.graph import bottleneck_graph
from graycert.reproduction.experiment import Kind
from graycert.reproduction.job import Job
from graycert.reproduction.settings import Count, Probability
from graycert.reproduction.style import LINES, new_figure
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats.node_features import NodeFeatureThreat

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from graycert.reproduction.results import Results


class Bottleneck(Kind):
    """Exact Δ, Theorem 3 and the union bound for second-hop nodes behind one neighbour of the target.

    Args:
        p_deletes: Values of p_d, one panel each.
        p_ablate: p_a.
        num_attackers: Second-hop nodes, and the largest ρ.
    """

    kind: ClassVar[str] = "bottleneck"

    p_deletes: Annotated[tuple[Probability, ...], Field(min_length=1)] = (0.2, 0.5, 0.8)
    p_ablate: Probability = 0.0
    num_attackers: Count = 20

    def jobs(self) -> list[Job]:
        """Return nothing: the bounds take no time worth storing."""
        return []

    def tables(self, results: "Results") -> dict[str, "pd.DataFrame"]:
        """Return ``bounds`` over p_d and ρ, and the paper's formula; the union bound is the plain sum, above 1 too."""
        import pandas as pd

        del results
        radii = np.arange(1, self.num_attackers + 1)
        parts = []
        for p_delete in self.p_deletes:
            theorem_3 = self._theorem_3(p_delete)
            columns = {
                "exact": self._exact(p_delete),
                "theorem_3": theorem_3,
                "union_bound": radii * theorem_3[0],  # all sources have the same Δ_w, so any ρ are the largest
                "closed_form": self._closed_form(p_delete, radii),
            }
            parts.append(pd.DataFrame({"p_delete": p_delete, "radius": radii, **columns}))
        return {"bounds": pd.concat(parts, ignore_index=True)}

    def _exact(self, p_delete: float) -> list[float]:
        """Return Δ(ρ): all sets of ρ sources are alike. `delta_bounds` is exact only up to the first Δ >= 1/2."""
        graph = bottleneck_graph(self.num_attackers)
        sets = [range(2, 2 + radius) for radius in range(1, self.num_attackers + 1)]
        return [
            arrival_probability(graph, 0, each, p_delete=p_delete, p_ablate=self.p_ablate, num_layers=2).p_upper
            for each in sets
        ]

    def _closed_form(self, p_delete: float, radii: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the paper's formula, here with p_a: the shared edge is there, and not all ρ sources are silent."""
        silent = np.power(1.0 - (1.0 - p_delete) * (1.0 - self.p_ablate), radii, dtype=np.float64)
        return np.asarray((1.0 - p_delete) * (1.0 - silent))

    def _theorem_3(self, p_delete: float) -> NDArray[np.float64]:
        bounds = delta_bounds(
            bottleneck_graph(self.num_attackers),
            [0],
            smoothing=InterceptionSmoothing(p_delete=p_delete, p_ablate=self.p_ablate),
            threat=NodeFeatureThreat(min_distance=2),
            max_radius=self.num_attackers,
            method="multiplicative",
        )
        return np.asarray(bounds[0])

    def measures(self, tables: Mapping[str, "pd.DataFrame"]) -> dict[str, float]:
        """Return by how much each bound exceeds the next tighter one, the largest values, and the formula's error."""
        bounds = tables["bounds"]
        return {
            "error_of_closed_form": float((bounds["exact"] - bounds["closed_form"]).abs().max()),
            "theorem_3_above_exact_at_least": float((bounds["theorem_3"] - bounds["exact"]).min()),
            "theorem_3_above_exact_at_most": float((bounds["theorem_3"] - bounds["exact"]).max()),
            "union_above_theorem_3_at_least": float((bounds["union_bound"] - bounds["theorem_3"]).min()),
            **{f"largest_{name}": float(bounds[name].max()) for name in _LABELS},
        }

    def draw(self, tables: Mapping[str, "pd.DataFrame"]) -> "Figure":
        """Draw one panel per p_d; values above 1 are no probabilities, so the axis ends a little above."""
        figure, panels = new_figure(1, len(self.p_deletes), width=2.5, height=2.6)
        for axes, p_delete in zip(panels[0], self.p_deletes, strict=True):
            rows = tables["bounds"].query("p_delete == @p_delete")
            for name, label in _LABELS.items():
                axes.plot(rows["radius"], rows[name], label=label, **LINES[label])
            axes.axhline(1.0, color="black", linewidth=0.8)
            axes.set_title(f"$p_d = {p_delete:g}$")
            axes.set_xlabel(r"hostile nodes $\rho$")
            axes.set_ylim(0.0, 1.55)
            axes.xaxis.get_major_locator().set_params(integer=True)
        panels[0][0].set_ylabel(r"bound of $\Delta$")
        panels[0][-1].legend(loc="upper left")
        return figure


_LABELS = {"union_bound": "union bound", "theorem_3": "Theorem 3", "exact": "exact"}
