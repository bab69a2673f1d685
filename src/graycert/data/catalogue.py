"""The graphs that have a name: what they are, where they come from and how they are prepared."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from graycert.data.roots import search_folders

EMBEDDED_NAME = "wordnet_nouns"
GENERATED_NAME = "noisy_features"
NO_LICENCE = "none stated by the source"

Availability = Literal["embedded", "generated", "file", "download", "absent"]

PAPER_PREPARATION: Mapping[str, bool] = MappingProxyType(
    {
        "undirected": True,
        "drop_self_loops": True,
        "coalesce": True,
        "largest_component": True,
        "binarize": True,
    }
)
"""What the paper does to its graphs (Scholten et al. 2022, Appendix on hyperparameters)."""

OGB_PREPARATION: Mapping[str, bool] = MappingProxyType(
    {
        "undirected": True,
        "drop_self_loops": True,
        "coalesce": True,
        "largest_component": False,
        "binarize": False,
    }
)
"""The features of ogbn-arxiv are word embeddings of both signs, which binarising would destroy."""


@dataclass(frozen=True, kw_only=True)
class NamedGraph:
    """A catalogue entry; sizes are those after ``preparation``, edges are undirected ones.

    ``files`` are the places under the data root where it is looked for, the first being the one to recommend.
    ``downloader`` names the library call that can fetch it; None if no library has this graph. A ``generated`` graph
    needs no file.
    """

    name: str
    description: str
    source: str
    licence: str
    num_nodes: int
    num_edges: int
    num_features: int
    num_classes: int
    files: tuple[str, ...]
    downloader: str | None = None
    generated: bool = False
    preparation: Mapping[str, bool] = field(default_factory=lambda: PAPER_PREPARATION)


@dataclass(frozen=True, kw_only=True)
class DatasetRow:
    """One line of ``graycert datasets``.

    ``available`` says how the graph is at hand: ``embedded`` in the package, ``generated`` when it is asked for, as a
    ``file`` at ``path``, after a ``download`` by ``downloader``, or ``absent``: the user must put the file from
    ``source`` under the data root.
    """

    name: str
    description: str
    num_nodes: int
    num_edges: int
    num_features: int
    num_classes: int
    licence: str
    source: str
    downloader: str | None
    available: Availability
    path: Path | None


_ENTRIES = (
    NamedGraph(
        name=EMBEDDED_NAME,
        description="WordNet 3.0 nouns (body, event, food, shape, substance, time); ships with graycert",
        source="Debian package wordnet-base, built by scripts/build_wordnet_graph.py",
        licence="WordNet 3.0 licence (WORDNET-LICENSE.txt beside the file)",
        num_nodes=9_668,
        num_edges=11_679,
        num_features=500,
        num_classes=6,
        files=(),
    ),
    NamedGraph(
        name="cora_ml",
        description="Cora-ML citation graph of the paper",
        source="https://github.com/abojchevski/graph2gauss/raw/master/data/cora_ml.npz",
        licence=NO_LICENCE,
        num_nodes=2_810,
        num_edges=7_981,
        num_features=2_879,
        num_classes=7,
        files=("cora_ml.npz", "cora_ml/raw/cora_ml.npz"),
        downloader="torch_geometric.datasets.CitationFull(root, 'Cora_ML')",
    ),
    NamedGraph(
        name="citeseer",
        description="Citeseer citation graph of the paper",
        source="https://github.com/shchur/gnn-benchmark/raw/master/data/npz/citeseer.npz",
        licence=NO_LICENCE,
        num_nodes=2_110,
        num_edges=3_668,
        num_features=3_703,
        num_classes=6,
        files=("citeseer.npz",),
    ),
    NamedGraph(
        name="pubmed",
        description="PubMed citation graph of the paper",
        source="https://github.com/abojchevski/graph2gauss/raw/master/data/pubmed.npz",
        licence=NO_LICENCE,
        num_nodes=19_717,
        num_edges=44_324,
        num_features=500,
        num_classes=3,
        files=(
            "pubmed.npz",
            "pubmed/raw/pubmed.npz",
            "pubmed/processed/data_undirected.pt",
            "PubMed/processed/data.pt",
        ),
        downloader="torch_geometric.datasets.CitationFull(root, 'PubMed')",
    ),
    NamedGraph(
        name="ogbn-arxiv",
        description="Citations between arXiv papers (large); 1,166,243 directed edges as published",
        source="https://ogb.stanford.edu/docs/nodeprop/#ogbn-arxiv",
        licence="ODC-BY",
        num_nodes=169_343,
        num_edges=1_157_799,
        num_features=128,
        num_classes=40,
        files=("ogbn_arxiv/raw/edge.csv.gz",),
        downloader="ogb.nodeproppred.NodePropPredDataset('ogbn-arxiv', root)",
        preparation=OGB_PREPARATION,
    ),
    NamedGraph(
        name="pubmed_partial",
        description="A part of PubMed with binary features; not the paper's graph",
        source="a subgraph of PubMed",
        licence=NO_LICENCE,
        num_nodes=11_021,
        num_edges=22_477,
        num_features=500,
        num_classes=3,
        files=("pubmed_partial.npz",),
    ),
    NamedGraph(
        name="pubmed_structure",
        description="PubMed without features: enough for bounds, not for classifying",
        source="the edges and labels of PubMed",
        licence=NO_LICENCE,
        num_nodes=19_717,
        num_edges=44_324,
        num_features=0,
        num_classes=3,
        files=("pubmed_structure.npz",),
        preparation=MappingProxyType({**PAPER_PREPARATION, "binarize": False}),
    ),
    NamedGraph(
        name="wordnet30_synsets",
        description="All synsets of WordNet 3.0 (large); label = lexicographer file",
        source="Debian package wordnet-base",
        licence="WordNet 3.0 licence",
        num_nodes=115_426,
        num_edges=182_922,
        num_features=1_000,
        num_classes=45,
        files=("wordnet30_synsets.npz",),
    ),
    NamedGraph(
        name="dblp",
        description="DBLP citation graph",
        source="https://github.com/abojchevski/graph2gauss/raw/master/data/dblp.npz",
        licence=NO_LICENCE,
        num_nodes=16_191,
        num_edges=51_913,
        num_features=1_639,
        num_classes=4,
        files=("dblp.npz", "dblp/raw/dblp.npz"),
        downloader="torch_geometric.datasets.CitationFull(root, 'DBLP')",
    ),
    NamedGraph(
        name="ms_academic_cs",
        description="Co-authors in computer science",
        source="https://github.com/shchur/gnn-benchmark/raw/master/data/npz/ms_academic_cs.npz",
        licence=NO_LICENCE,
        num_nodes=18_333,
        num_edges=81_894,
        num_features=6_805,
        num_classes=15,
        files=("ms_academic_cs.npz",),
    ),
    NamedGraph(
        name="ms_academic_phy",
        description="Co-authors in physics",
        source="https://github.com/shchur/gnn-benchmark/raw/master/data/npz/ms_academic_phy.npz",
        licence=NO_LICENCE,
        num_nodes=34_493,
        num_edges=247_962,
        num_features=8_415,
        num_classes=5,
        files=("ms_academic_phy.npz",),
    ),
    NamedGraph(
        name="amazon_electronics_photo",
        description="Photo products that are often bought together",
        source="https://github.com/shchur/gnn-benchmark/raw/master/data/npz/amazon_electronics_photo.npz",
        licence=NO_LICENCE,
        num_nodes=7_487,
        num_edges=119_043,
        num_features=745,
        num_classes=8,
        files=("amazon_electronics_photo.npz",),
    ),
    NamedGraph(
        name=GENERATED_NAME,
        description="A graph in which the features of most nodes are noise",
        source="graycert.data.generated.noisy_features",
        licence="that of graycert",
        num_nodes=5_996,
        num_edges=23_915,
        num_features=480,
        num_classes=6,
        files=(),
        generated=True,
    ),
)

CATALOGUE: Mapping[str, NamedGraph] = MappingProxyType({entry.name: entry for entry in _ENTRIES})


def embedded_path() -> Path:
    """Return where the package has the file of `wordnet_nouns`."""
    return Path(str(files("graycert.data").joinpath("embedded", "wordnet_nouns.npz")))


def find_named_file(entry: NamedGraph, folders: tuple[Path, ...]) -> Path | None:
    """Return the first file of ``entry`` that exists: folder by folder, in the order of ``entry.files``."""
    for folder in folders:
        for name in entry.files:
            if (folder / name).is_file():
                return folder / name
    return None


def describe_datasets(data_root: str | os.PathLike[str] | None = None) -> list[DatasetRow]:
    """Return a row for each named graph, saying whether it is at hand and where.

    Args:
        data_root: Folder with graph files; None takes GRAYCERT_DATA. The cache folder is searched too.

    Raises:
        InvalidFileError: If the data root is not an existing folder.

    Example:
        >>> describe_datasets()[0].name
        'wordnet_nouns'
    """
    folders = search_folders(data_root)
    return [_row(entry, folders) for entry in CATALOGUE.values()]


def _row(entry: NamedGraph, folders: tuple[Path, ...]) -> DatasetRow:
    path = embedded_path() if entry.name == EMBEDDED_NAME else find_named_file(entry, folders)
    available: Availability
    if entry.name == EMBEDDED_NAME:
        available = "embedded"
    elif entry.generated:
        available = "generated"
    elif path is not None:
        available = "file"
    else:
        available = "download" if entry.downloader else "absent"
    return DatasetRow(
        name=entry.name,
        description=entry.description,
        num_nodes=entry.num_nodes,
        num_edges=entry.num_edges,
        num_features=entry.num_features,
        num_classes=entry.num_classes,
        licence=entry.licence,
        source=entry.source,
        downloader=entry.downloader,
        available=available,
        path=path,
    )
