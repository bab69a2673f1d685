"""`graycert bounds --grid`: which p_d and p_a could certify how many nodes, before there is a model."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graycert.cli import graphs
from graycert.cli.configs import BoundsConfig
from graycert.cli.console import Console, table
from graycert.cli.declared import as_options
from graycert.cli.places import check_file, write_file
from graycert.cli.repetition import WHERE
from graycert.errors import InvalidParameterError
from graycert.threats import Threat

if TYPE_CHECKING:
    from graycert.bounds import SettingsGrid

PICTURES = (".png", ".pdf", ".svg")


@dataclass(frozen=True, kw_only=True)
class GridAsked:
    """What is asked for, checked before a graph is loaded.

    Attributes:
        p_delete: Values of p_d.
        p_ablate: Values of p_a.
        radius: The radius whose counts are shown.
        heatmap: File for the picture, or None.
    """

    p_delete: tuple[float, ...]
    p_ablate: tuple[float, ...]
    radius: int
    heatmap: Path | None

    @classmethod
    def of(cls, config: BoundsConfig) -> "GridAsked | None":
        """Return what the options ask for; None if it is no grid.

        Raises:
            InvalidParameterError: If options do not fit each other, or the grid cannot be read.
            InvalidFileError: If the picture cannot be written.
        """
        if config.grid is None:
            if config.heatmap is not None:
                raise InvalidParameterError("`--heatmap` draws a grid. Add --grid all, or leave it out.")
            return None
        options: dict[str, Any] = dict(config)
        for name in ("p_delete", "p_ablate"):
            if options[name] is not None:
                raise InvalidParameterError(
                    f"`--{name.replace('_', '-')}` is one value, and --grid has its own. Leave one of them out."
                )
        if config.radius > config.max_radius:
            raise InvalidParameterError(
                f"`--radius` must be at most --max-radius ({config.max_radius}), got {config.radius}. Raise the latter."
            )
        heatmap, (p_delete, p_ablate) = config.heatmap, _values(config.grid)
        return cls(
            p_delete=p_delete,
            p_ablate=p_ablate,
            radius=config.radius,
            heatmap=None
            if heatmap is None
            else check_file(heatmap, overwrite=config.overwrite, suffixes=PICTURES, flag="heatmap"),
        )

    def run(
        self,
        config: BoundsConfig,
        data: Any,
        console: Console,
        *,
        targets: Any,
        num_layers: int,
        threat: Threat,
        out: Path | None,
    ) -> int:
        """Count, write and tell."""
        from graycert.bounds import settings_grid

        found = settings_grid(
            data,
            targets,
            threat=threat,
            num_layers=num_layers,
            max_radius=config.max_radius,
            bound=config.bound,
            progress=console.progress,
            p_delete=self.p_delete,
            p_ablate=self.p_ablate,
        )
        files = [str(path) for path in (out, self.heatmap) if path is not None]
        if out is not None:
            _write_table(found, out)
        if self.heatmap is not None:
            _write_picture(found, self.radius, self.heatmap)
        record = {
            "command": "bounds",
            "graph": graphs.graph_record(data),
            "options": {**config.model_dump(exclude=WHERE), **as_options(threat), "num_layers": num_layers},
            "num_targets": found.num_targets,
            "p_delete": found.p_delete.tolist(),
            "p_ablate": found.p_ablate.tolist(),
            "certifiable": found.certifiable.tolist(),
            "or_whole_field": found.or_whole_field.tolist(),
            "best": {str(radius): [vars(each) for each in found.best(radius)] for radius in _radii(found)},
            "files": files,
        }
        console.result(_text(found, self.radius, files), record)
        return 0


def _values(text: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the values of p_d and of p_a that a grid names."""
    if text == "all":
        from graycert.bounds.settings_grid import P_ABLATE, P_DELETE

        return P_DELETE, P_ABLATE
    try:
        p_delete, p_ablate = (tuple(float(part) for part in half.split(",")) for half in text.split(":"))
    except ValueError:
        p_delete, p_ablate = (), ()
    if not p_delete or not all(0 <= value <= 1 for value in (*p_delete, *p_ablate)):
        raise InvalidParameterError(
            f"`--grid` must be all, or values of p_d, a colon and values of p_a, each in [0, 1] with commas between, "
            f"got {text!r}. For instance --grid 0,0.3,0.6:0.7,0.8,0.9."
        )
    return p_delete, p_ablate


def _radii(found: "SettingsGrid") -> range:
    return range(1, found.certifiable.shape[2] + 1)


def _write_table(found: "SettingsGrid", file: Path) -> None:
    from graycert.tuning.planning import grid_table

    frame = grid_table(found)
    is_csv = file.suffix.lower() == ".csv"
    write_file(file, lambda path: frame.to_csv(path, index=False) if is_csv else frame.to_parquet(path, index=False))


def _write_picture(found: "SettingsGrid", radius: int, file: Path) -> None:
    from graycert.reproduction.style import new_figure
    from graycert.tuning.planning import draw_grid

    figure, panels = new_figure(width=5.6, height=4.6)
    draw_grid(found, radius, panels[0, 0])
    kind = file.suffix.removeprefix(".").lower()
    write_file(file, lambda path: figure.savefig(path, format=kind), flag="heatmap")


def _text(found: "SettingsGrid", radius: int, files: list[str]) -> str:
    total = max(found.num_targets, 1)
    shares = found.certifiable[:, :, radius - 1]
    rows = [
        (f"{p_d:g}", *(_share(count, total) for count in row))
        for p_d, row in zip(found.p_delete.tolist(), shares.tolist(), strict=True)
    ]
    best = [
        (f"{each.p_delete:g}", f"{each.p_ablate:g}", _share(each.certifiable, total), f"{100 * each.arrives:.1f} %")
        for each in found.best(radius)
    ]
    parts = [
        f"Share of {found.num_targets:,} nodes that any model of {found.num_layers} message-passing steps could "
        f"certify at ρ = {radius}, hostile nodes {found.threat.describe()}, bound '{found.bound}'; p_d down, p_a "
        "across:",
        table(("p_d \\ p_a", *(f"{p_a:g}" for p_a in found.p_ablate.tolist())), rows, left=0),
    ]
    if best:
        parts += [
            f"Worth trying for ρ = {radius}, since no other pair of the grid lets as much of a neighbour's features "
            "arrive and could certify as many:",
            table(("p_d", "p_a", "certifiable", "arrives"), best, left=0),
        ]
    else:
        parts.append(f"No pair of the grid could certify a node at ρ = {radius}.")
    parts.append(
        "Certifiable: Δ̄ < 1/2 up to ρ and at least ρ nodes could attack: an upper limit, whatever the votes; shares "
        "are rounded down. How accurate a model is at a pair, `graycert tune` measures."
    )
    parts += [f"Written: {file}" for file in files]
    return "\n\n".join(parts)


def _share(count: int, total: int) -> str:
    return f"{count * 1000 // total / 10:.1f} %"
