"""The graph of a run, loaded and prepared again as the run says."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graycert.data.load import load_arrays
from graycert.data.preparation import STEPS, prepare_graph
from graycert.data.tables.options import TABLE_OPTIONS
from graycert.errors import GraycertError, InvalidFileError, InvalidParameterError
from graycert.setup import Setup


def rebuild_graph(
    setup: Setup,
    *,
    source: str | Path | None = None,
    nodes: str | Path | None = None,
    data_root: str | Path | None = None,
) -> Any:
    """Load and prepare the graph of a run again: arrays, or a ``Data`` where it lies in a file of PyTorch.

    Args:
        setup: That of a run, which names its graph and how it was prepared.
        source: Where the graph is now, if it has moved.
        nodes: Where its node table is now.
        data_root: Folder with graph files.

    Raises:
        InvalidFileError: If the graph cannot be read.
        InvalidParameterError: If neither the run nor ``source`` names a graph.
    """
    named = setup.provenance.get("graph") or {}
    if not isinstance(named, Mapping):
        raise InvalidFileError(f"config.toml: `provenance.graph` must be a section, got {named!r}. Certify again.")
    if source is None:
        source, nodes = named.get("source"), nodes or named.get("nodes")
    if source is None:
        raise InvalidParameterError(
            "`data` must be given, because the run does not say where its graph comes from. Pass the graph that was "
            "certified (`--graph` on the command line)."
        )
    options, steps = named.get("options") or {}, named.get("steps") or []
    known = {*TABLE_OPTIONS, *STEPS}
    if not isinstance(options, Mapping) or not set(options) <= known:
        raise InvalidFileError(f"config.toml: [provenance.graph.options] must have keys of {sorted(known)}.")
    if not isinstance(steps, list) or not all(isinstance(each, list) and set(each) <= set(STEPS) for each in steps):
        raise InvalidFileError(f"config.toml: `provenance.graph.steps` must hold lists of {', '.join(STEPS)}.")
    try:
        graph = load_arrays(source, nodes=nodes, data_root=data_root, **options)
        for step in steps:
            graph = prepare_graph(graph, **{name: name in step for name in STEPS})
        return graph
    except (InvalidFileError, InvalidParameterError) as error:
        raise type(error)(
            f"{error} The run's config.toml names the graph {named.get('source')!r} and the node table "
            f"{named.get('nodes')!r}; if they have moved, pass `--graph`, and `--nodes` if there was a node table."
        ) from error
    except (GraycertError, KeyboardInterrupt):
        raise
    except Exception as error:  # the run names something that is no place, or no option
        raise InvalidFileError(
            f"config.toml: [provenance.graph] must say where the graph is, got {dict(named)!r} "
            f"({type(error).__name__}: {error}). Pass the graph that was certified."
        ) from error
