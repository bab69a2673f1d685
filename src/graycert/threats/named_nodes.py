"""Nodes by their names: wherever rows of the graph are taken, ids are."""

import dataclasses
from typing import Any

import numpy as np

from graycert._types import BoolArray, IntArray
from graycert._validation import check_targets
from graycert.errors import InvalidParameterError
from graycert.threats.threat import Threat


def target_nodes(targets: Any, data: Any) -> IntArray:
    """Return the targets as distinct node indices; all nodes if there are none.

    Args:
        targets: Node indices, shape (num_targets,), a boolean mask, shape (num_nodes,), or names of nodes, where
            ``data.node_ids`` has them.
        data: The graph.

    Raises:
        InvalidParameterError: If they are not distinct nodes of the graph.
    """
    num_nodes = int(data.num_nodes)
    if targets is None:
        return np.arange(num_nodes, dtype=np.int64)
    if hasattr(targets, "detach"):  # a tensor; torch itself is not imported here
        targets = targets.detach().cpu().numpy()
    nodes = np.asarray(targets)
    if nodes.dtype == np.bool_ and nodes.shape == (num_nodes,):  # a mask, as PyTorch Geometric's data.test_mask
        nodes = np.flatnonzero(nodes)
    elif nodes.dtype.kind in "US" or (nodes.dtype == object and all(isinstance(each, str) for each in nodes.flat)):
        nodes = named_nodes("targets", nodes.astype(np.str_), getattr(data, "node_ids", None))
    return check_targets(nodes, num_nodes=num_nodes)


def with_trusted_nodes(threat: Threat, data: Any) -> Threat:
    """Return a threat whose trusted nodes are a mask, where it names them by their ids, or by the types of others.

    Raises:
        InvalidParameterError: If the graph has no such ids or types.
    """
    trusted, eligible = (getattr(threat, name, None) for name in ("trusted", "eligible_types"))
    if trusted is not None and trusted.dtype.kind == "U":
        mask = np.zeros(int(data.num_nodes), dtype=np.bool_)
        mask[named_nodes("trusted", trusted, getattr(data, "node_ids", None))] = True
        trusted = mask
    elif eligible is None:
        return threat
    if eligible is not None:
        others = ~_are_of(eligible, data)
        trusted = others if trusted is None or trusted.size != others.size else trusted | others
    return dataclasses.replace(threat, **{"trusted": trusted})  # not every threat has it


def _are_of(node_types: tuple[str, ...], data: Any) -> BoolArray:
    are_of = getattr(getattr(data, "types", None), "are_of", None)
    if are_of is None:
        raise InvalidParameterError(
            f"`eligible_types` must be None for a graph without node types, got {', '.join(node_types)}. Pass a "
            "HeteroData, or say by `trusted` which nodes are not hostile."
        )
    return np.asarray(are_of(node_types))


def named_nodes(argument: str, names: Any, node_ids: Any) -> IntArray:
    """Return the indices of nodes that are named by their ids.

    Raises:
        InvalidParameterError: If the graph has no such ids, or several nodes have one of them.
    """
    if node_ids is None:
        raise InvalidParameterError(
            f"`{argument}` must be node indices, because the graph has no `node_ids`, got the name "
            f"{str(names.flat[0])!r}."
        )
    known = np.asarray(node_ids, dtype=np.str_)
    order = np.argsort(known, kind="stable")
    places = np.minimum(np.searchsorted(known[order], names), known.size - 1)
    unknown = names[known[order][places] != names]
    if unknown.size:
        raise InvalidParameterError(f"`{argument}` must be names in `data.node_ids`, got {str(unknown[0])!r}.")
    following = np.minimum(places + 1, known.size - 1)
    twice = names[(following > places) & (known[order][following] == names)]
    if twice.size:
        raise InvalidParameterError(
            f"`{argument}`: several nodes have the name {str(twice[0])!r}, so it names none of them."
        )
    return np.asarray(order[places], dtype=np.int64)
