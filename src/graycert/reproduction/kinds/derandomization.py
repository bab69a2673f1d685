"""Certificates without a confidence level under node retention (Table 1)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from graycert.reproduction.certify_job import CertifyJob
from graycert.reproduction.curve import Draws
from graycert.reproduction.experiment import Kind
from graycert.reproduction.graph_jobs import DerandomizedShareJob
from graycert.reproduction.over_seeds import over_seeds
from graycert.reproduction.settings import (
    Conclusion,
    Count,
    Probability,
    Settings,
    SmoothingSettings,
    TrainingSettings,
)
from graycert.reproduction.style import DIFFERENCES, new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from graycert.reproduction.job import Job
    from graycert.reproduction.results import Results

QUANTITIES = {"derandomized": "Der.", "differing": "Eq.", "abstained": "Abst.", "accuracy": "Acc."}
"""Columns of the table, by their heads in the paper."""

PAPER: dict[tuple[str, float], tuple[float, float, float, float]] = {
    ("Cora-ML", 0.01): (0.87, 0.22, 6.27e-4, 0.73),
    ("Cora-ML", 0.03): (0.72, 0.23, 5.69e-4, 0.73),
    ("Cora-ML", 0.1): (0.50, 0.28, 5.02e-3, 0.74),
    ("Cora-ML", 0.3): (0.31, 0.46, 1.42e-2, 0.80),
    ("Citeseer", 0.01): (1.00, 0.41, 0.0, 0.65),
    ("Citeseer", 0.03): (0.94, 0.42, 0.0, 0.66),
    ("Citeseer", 0.1): (0.87, 0.42, 1.63e-3, 0.65),
    ("Citeseer", 0.3): (0.73, 0.53, 7.61e-3, 0.68),
    ("PubMed", 0.01): (0.94, 0.15, 0.0, 0.73),
    ("PubMed", 0.03): (0.81, 0.16, 1.56e-3, 0.73),
    ("PubMed", 0.1): (0.61, 0.19, 4.24e-3, 0.74),
    ("PubMed", 0.3): (0.37, 0.38, 6.23e-3, 0.77),
}
"""The paper's numbers by graph and k_rel, in the order of `QUANTITIES`."""


_PLACE = ["graph", "keep_ratio"]


class Part(Settings):
    """A graph of the table.

    Args:
        title: Name in the paper.
        structure: Graph that the first two columns are about; it needs no features.
        graph: Graph that the model is trained and tested on.
    """

    title: Literal["Cora-ML", "Citeseer", "PubMed"]
    structure: str
    graph: str


class Derandomization(Kind, Draws):
    """Share of derandomized nodes, of differing kept sets, abstentions and accuracy, per graph and k_rel.

    What is drawn, see `Draws`, is drawn for nodes that are not derandomized.

    Args:
        parts: Graphs.
        keep_ratios: Values of k_rel.
        training: The model; graph and seed are replaced.
        seeds: Of splits, models and draws.
        tau: Most kept sets of a derandomized node.
    """

    kind: ClassVar[str] = "derandomization"

    parts: Annotated[tuple[Part, ...], Field(min_length=1)]
    keep_ratios: Annotated[tuple[Probability, ...], Field(min_length=1)]
    training: TrainingSettings
    seeds: Annotated[tuple[int, ...], Field(min_length=1)]
    tau: Count = 100_000

    def jobs(self) -> "list[Job]":
        """Return, per graph and k_rel, a job about all nodes, and one per seed about test nodes."""
        found: list[Job] = []
        for part in self.parts:
            for kept in self.keep_ratios:
                found += [self._share_job(part, kept), *(self._job(part, kept, seed) for seed in self.seeds)]
        return found

    def _share_job(self, part: Part, kept: float) -> DerandomizedShareJob:
        return DerandomizedShareJob(graph=part.structure, keep_ratio=kept, num_layers=self.training.steps, tau=self.tau)

    def _job(self, part: Part, kept: float, seed: int) -> CertifyJob:
        return CertifyJob(
            model=self.training.model_copy(update={"graph": part.graph, "seed": seed}),
            smoothing=SmoothingSettings.of("retention", keep_ratio=kept, tau=self.tau),
            draws=self.draw_settings,
            conclusions=(self._conclusion,),
            num_targets=self.num_targets,
            max_radius=1,  # whether one hostile node can change the prediction
        )

    @property
    def _conclusion(self) -> Conclusion:
        return Conclusion(bound="auto", alpha=self.alpha)

    def tables(self, results: "Results") -> dict[str, "pd.DataFrame"]:
        """Return ``derandomization``, a row per graph and k_rel beside the paper's, and ``seeds`` with counts."""
        import pandas as pd

        seeds = pd.DataFrame(
            [
                {"graph": part.title, "keep_ratio": kept, "seed": seed, **self._counts(part, kept, seed, results)}
                for part in self.parts
                for kept in self.keep_ratios
                for seed in self.seeds
            ]
        )
        rows = pd.DataFrame([self._row(part, kept, results) for part in self.parts for kept in self.keep_ratios])
        names = {"num_abstained": "abstained", "num_tied": "tied", "num_correct": "accuracy"}
        shares = seeds[list(names)].rename(columns=names).div(seeds["num_targets"], axis=0).join(seeds[_PLACE])
        means = over_seeds(shares, by=_PLACE, means=list(names.values()), counts=[], ddof=0)
        return {"derandomization": rows.merge(means, on=_PLACE), "seeds": seeds}

    def _counts(self, part: Part, kept: float, seed: int, results: "Results") -> dict[str, int]:
        arrays, name = results[self._job(part, kept, seed)], self._conclusion.name
        concluded = {each: arrays[f"{name}/{each}"] for each in ("radius", "prediction")}
        return _counts({**concluded, "labels": arrays["labels"], "exact": arrays[f"{name}/evaluation"] == "exact"})

    def _row(self, part: Part, kept: float, results: "Results") -> dict[str, Any]:
        """Return what is counted over all nodes, and the paper's numbers."""
        share = results[self._share_job(part, kept)]
        paper = PAPER.get((part.title, kept), (float("nan"),) * len(QUANTITIES))
        return {
            "graph": part.title,
            "keep_ratio": kept,
            "num_nodes": int(share["num_nodes"]),
            "derandomized": float(share["by_kept_sets"]),
            "derandomized_by_evaluations": float(share["by_representatives"]),
            "differing": float(share["mean_distinct"]),
            **dict(zip((f"{name}_paper" for name in QUANTITIES), paper, strict=True)),
        }

    def measures(self, tables: Mapping[str, "pd.DataFrame"]) -> dict[str, float]:
        """Return values of the table, the largest differences from the paper's, and how columns change with k_rel."""
        rows = tables["derandomization"]
        found = {f"largest_difference_{name}": float(_difference(rows, name).abs().max()) for name in QUANTITIES}
        for name in QUANTITIES:
            for row in rows.to_dict("records"):
                found[f"{name}_{row['graph']}_{row['keep_ratio']:g}"] = float(row[name])
        drops = -rows.sort_values("keep_ratio").groupby("graph")["derandomized"].diff()
        found["largest_abstained"] = float(rows["abstained"].max())
        found["smallest_drop_of_derandomized"] = float(drops.min())
        by_graph = rows.pivot_table(index="keep_ratio", columns="graph", values="derandomized")
        if {"Citeseer", "Cora-ML"} <= set(by_graph):
            found["citeseer_above_cora_ml"] = float((by_graph["Citeseer"] - by_graph["Cora-ML"]).min())
        gain = rows["derandomized_by_evaluations"] - rows["derandomized"]
        return found | {
            "smallest_gain_by_evaluations": float(gain.min()),
            "largest_gain_by_evaluations": float(gain.max()),
        }

    def draw(self, tables: Mapping[str, "pd.DataFrame"]) -> "Figure":
        """Draw one grid per graph: our number above the paper's, coloured by the difference."""
        figure, panels = new_figure(1, len(self.parts), width=2.6, height=2.9)
        for axes, part in zip(panels[0], self.parts, strict=True):
            rows = tables["derandomization"]
            image = _draw_grid(axes, rows[rows["graph"] == part.title])
            axes.set_title(part.title if part.graph == part.structure else f"{part.title}; models on {part.graph}")
        panels[0][0].set_ylabel("share of kept nodes $k_{rel}$")
        figure.colorbar(image, ax=panels, label="ours - the paper's", shrink=0.8)
        return figure


def _counts(found: Mapping[str, Any]) -> dict[str, int]:
    """Count as the paper does: where all kept sets are known a tie is a prediction, of the lowest class."""
    predicted = (found["radius"] >= 0) | found["exact"]
    return {
        "num_targets": found["radius"].size,
        "num_exact": int(found["exact"].sum()),
        "num_tied": int((found["exact"] & (found["radius"] < 0)).sum()),
        "num_abstained": int((~predicted).sum()),
        "num_correct": int((predicted & (found["prediction"] == found["labels"])).sum()),
        "num_robust_to_one": int((found["radius"] >= 1).sum()),
    }


def _difference(rows: "pd.DataFrame", name: str) -> "pd.Series[float]":
    return rows[name] - rows[f"{name}_paper"]


def _draw_grid(axes: "Axes", rows: "pd.DataFrame") -> Any:
    """Draw the values of one graph; returns what a colour bar needs."""
    differences = np.stack([_difference(rows, name).to_numpy() for name in QUANTITIES], axis=1)
    image = axes.imshow(differences, cmap=DIFFERENCES, vmin=-0.2, vmax=0.2, aspect="auto")
    for row, values in enumerate(rows.to_dict("records")):
        for column, name in enumerate(QUANTITIES):
            axes.text(column, row - 0.02, _number(values[name]), ha="center", va="bottom", fontsize=9)
            axes.text(column, row + 0.08, _number(values[f"{name}_paper"]), ha="center", va="top", fontsize=7)
    axes.set_xticks(range(len(QUANTITIES)), list(QUANTITIES.values()))
    axes.set_yticks(range(len(rows)), [f"{kept:g}" for kept in rows["keep_ratio"]])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.grid(visible=False)
    return image


def _number(value: float) -> str:
    """Return two digits after the point, small shares with three, so that an abstention in a thousand shows."""
    return f"{value:.2f}" if value == 0.0 or value >= 0.1 else f"{value:.3f}"
