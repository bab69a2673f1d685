"""Drawings of results that hold none: from the graph, or in words why there are none."""

from pathlib import Path
from typing import Any

import numpy as np

from graycert._files import write_atomically
from graycert.certificates import Certificates
from graycert.errors import InvalidParameterError
from graycert.graph import CanonicalGraph
from graycert.graph.named_graph import NamedGraph
from graycert.runs.neighbourhoods import neighbourhoods_of
from graycert.runs.votes_file import write_votes


def with_drawings(c: Certificates, data: Any) -> Certificates:
    """Return a result whose receptive fields can be drawn, from its graph.

    Args:
        c: A result, loaded without its graph.
        data: The graph that it is about.

    Raises:
        InvalidParameterError: If it is another graph, or nothing can be drawn of it either.
    """
    from graycert.certification import refuse_another_graph
    from graycert.heterogeneous import graph_of_run

    one = graph_of_run(data, edge_inputs=c.setup.edge_inputs, targets=c.targets)
    refuse_another_graph(c, one)
    graph = CanonicalGraph.of(one, merge_parallel=c.setup.allows_parallel_edges)
    known = c.replace(graph=NamedGraph(graph=graph, node_ids=getattr(one, "node_ids", None)), neighbourhoods=None)
    drawn = neighbourhoods_of(known)
    if drawn is None:
        raise InvalidParameterError(f"`graph` must be one whose fields can be drawn. {why_none(c)}")
    return known.replace(neighbourhoods=drawn)


def keep_drawings(c: Certificates, folder: Path) -> None:
    """Write what can be drawn of a result into the votes.npz of its run, from where `verify` takes it."""
    write_atomically(folder / "votes.npz", lambda path: write_votes(c, path))


def why_none(c: Certificates) -> str:
    """Say why a result has no drawings; the same for the same set-up, loaded or not."""
    if not c.setup.num_layers and c.setup.smoothing.heard(c, np.zeros(0, dtype=np.int64)) is None:
        return (
            "Nothing is assumed of how far this model's messages go, so that it is not known who can reach a target: "
            "there is nothing to draw."
        )
    return (
        "The run does not hold who can reach whom: it was made before pages had drawings, or the fields are too large "
        "to be drawn. Where its graph is at hand, graycert report with the folder of this run and --graph draws them."
    )
