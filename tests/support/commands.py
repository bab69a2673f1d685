"""Running commands in this process, on a small graph, and looking at what they leave on disk."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graycert.certificates import Certificates
from graycert.cli.main import main
from graycert.cli.places import shown
from graycert.runs.floor import with_folder

FAST = (
    *("--per-class", "5", "--max-epochs", "2", "--num-selection", "20", "--num-estimation", "20", "--max-radius", "4"),
    "--quiet",
)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a command did."""

    status: int
    out: str
    err: str

    @property
    def record(self) -> dict[str, Any]:
        return json.loads(self.out)


def run_command(capsys, *arguments: object) -> Outcome:
    capsys.readouterr()
    status = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return Outcome(status=status, out=captured.out, err=captured.err)


def write_graph(path: Path, *, num_nodes: int = 60, seed: int = 0, extra_edges: int = 0) -> Path:
    """Write a graph of two classes that features and neighbours tell apart, as an undirected .npz file."""
    generator = np.random.default_rng(seed)
    labels = np.arange(num_nodes) % 2
    ring = np.stack([np.arange(num_nodes), (np.arange(num_nodes) + 2) % num_nodes])
    extra = np.stack([np.arange(extra_edges), np.arange(extra_edges) + 1])
    pairs = np.concatenate([ring, extra], axis=1)
    features = generator.random((num_nodes, 4)) < np.where(labels, 0.8, 0.2)[:, None]
    np.savez(path, A=np.concatenate([pairs, pairs[::-1]], axis=1), X=features.astype(np.float32), y=labels)
    return path


def write_tables(folder: Path, *, num_nodes: int = 60) -> tuple[Path, Path]:
    """Write the same kind of graph as an edge table and a node table whose ids are names."""
    labels = ["even", "odd"]
    edges = [f"n{i},n{(i + 2) % num_nodes}\nn{(i + 2) % num_nodes},n{i}" for i in range(num_nodes)]
    nodes = [f"n{i},{labels[i % 2]},{i % 2},{(i * 7) % 5}" for i in range(num_nodes)]
    (folder / "edges.csv").write_text("source,target\n" + "\n".join(edges) + "\n")
    (folder / "nodes.csv").write_text("id,label,a,b\n" + "\n".join(nodes) + "\n")
    return folder / "edges.csv", folder / "nodes.csv"


def summary_of(folder: Path) -> str:
    """Return the summary of a run as the command line gives it, with the folder where it names the run."""
    return with_folder(Certificates.load(folder).summary(), shown(folder))


def left_behind(folder: Path) -> list[str]:
    """Return every name below the folder, hidden ones too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
