"""Ask the library that publishes a graph to download it, and keep nothing of a download that failed."""

import contextlib
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from graycert.data.catalogue import NamedGraph, find_named_file
from graycert.errors import InvalidFileError

_CITATION_FULL = {"cora_ml": "Cora_ML", "pubmed": "PubMed", "dblp": "DBLP"}
_OGB_ARCHIVE = "http://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"


def download_graph(entry: NamedGraph, folder: Path, *, looked_in: tuple[Path, ...]) -> Path:
    """Download a named graph into ``folder`` and return its file.

    The library works in a temporary folder, from which the finished files are moved.

    Raises:
        InvalidFileError: If no library has the graph, the library is not installed or could not download it;
            the message says where the file was looked for and where it can be put.
    """
    if entry.downloader is None:
        raise InvalidFileError(
            f"{_not_found(entry, looked_in)} and no library downloads it. {_where_to_get(entry, folder)}"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # PyG and OGB report on stdout, which belongs to the results.
        with tempfile.TemporaryDirectory(dir=folder) as temporary, contextlib.redirect_stdout(sys.stderr):
            downloaded = _downloader(entry)(Path(temporary))
            path = _move_into(downloaded, folder / downloaded.relative_to(temporary))
    except ModuleNotFoundError as error:
        raise InvalidFileError(
            f"{_not_found(entry, looked_in)} and downloading it needs the package {(error.name or '').split('.')[0]}: "
            f"pip install 'graycert[ogb]'. {_where_to_get(entry, folder)}"
        ) from error
    except Exception as error:  # the libraries let through whatever urllib, aiohttp, zipfile or the disk raises
        raise InvalidFileError(
            f"{_not_found(entry, looked_in)} and {entry.downloader} could not download it into '{folder}' "
            f"({type(error).__name__}: {error}). Without a network: {_where_to_get(entry, folder)}"
        ) from error
    found = find_named_file(entry, (folder,))
    return path if found is None else found


def _downloader(entry: NamedGraph) -> Callable[[Path], Path]:
    return _download_ogb if entry.name == "ogbn-arxiv" else lambda folder: _download_citation(entry.name, folder)


def _download_citation(name: str, folder: Path) -> Path:
    from torch_geometric.datasets import CitationFull

    CitationFull(str(folder), _CITATION_FULL[name])
    return folder / name / "raw" / f"{name}.npz"


def _download_ogb(folder: Path) -> Path:
    from ogb.nodeproppred import NodePropPredDataset

    NodePropPredDataset("ogbn-arxiv", root=str(folder))
    return folder / "ogbn_arxiv"


def _move_into(source: Path, destination: Path) -> Path:
    if not source.exists():
        raise FileNotFoundError(f"{source.name} was not downloaded")
    destination.parent.mkdir(parents=True, exist_ok=True)
    return source.replace(destination)


def _not_found(entry: NamedGraph, looked_in: tuple[Path, ...]) -> str:
    places = " or ".join(f"'{folder}'" for folder in looked_in)
    return f"The graph {entry.name!r} is not in {places} (looked for {', '.join(entry.files)})"


def _where_to_get(entry: NamedGraph, folder: Path) -> str:
    if entry.name == "ogbn-arxiv":
        how = f"Unpack {_OGB_ARCHIVE} so that its content is in '{folder / 'ogbn_arxiv'}'"
    else:
        how = f"Get {Path(entry.files[0]).name} from {entry.source} and put it at '{folder / entry.files[0]}'"
    elsewhere = "or set GRAYCERT_DATA or --data-root to the folder that has it"
    return f"{how}, {elsewhere}. The graph 'wordnet_nouns' needs no file."
