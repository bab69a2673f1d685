"""What can be done to a graph before it is classified: each step is an option and noted in the result."""

from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from scipy.sparse import coo_array

from graycert._types import IntArray
from graycert.data.arrays import GraphArrays, kind_of, same_kind
from graycert.data.checks import count_nodes, validate_data
from graycert.data.edges import among, merged, with_reverse, without_loops
from graycert.data.edges_in_pieces import EdgeFile
from graycert.data.origin import ATTRIBUTE, remember_step
from graycert.errors import InvalidParameterError
from graycert.graph.conversion import as_array

if TYPE_CHECKING:
    from torch_geometric.data import Data

Graph = TypeVar("Graph", GraphArrays, "Data")
"""Arrays, or a `Data` of tensors; what is made of it is of the same kind."""

STEPS = ("undirected", "drop_self_loops", "coalesce", "largest_component", "binarize")
"""Options of `prepare_graph`."""

_ROWS = 256  # compared at a time: a copy of all features costs more than the comparison
_MASKS = ("train_mask", "val_mask", "test_mask")
STEPS_TAKEN = "steps_taken"
"""Attribute of a graph: the names of all steps that were ever asked for, whether or not they changed anything."""

_LISTS = ("class_names", "graph_name", "graph_source", "left_out_per_edge", STEPS_TAKEN)
_KNOWN = {"edge_index", "x", "y", "num_nodes", "node_ids", "preparation", ATTRIBUTE, *_MASKS, *_LISTS}


def prepare_graph(
    data: Graph,
    *,
    undirected: bool = False,
    drop_self_loops: bool = True,
    coalesce: bool = True,
    largest_component: bool = False,
    binarize: bool = False,
) -> Graph:
    """Return a prepared copy of a graph; the order of the nodes is kept.

    The result has ``x``, ``edge_index``, ``y``, PyG's three masks, ``node_ids``, ``class_names`` and
    ``graph_name`` where ``data`` has them, ``preparation``: a list of texts saying what was changed,
    ``graph_record``: by what the graph can be made again, which `certify` stores and `verify` repeats, and
    ``steps_taken``: the options that were ever chosen, by which `certify` knows which edges decide about others.
    Other attributes are left out, edge weights and edge features too, because edges change; ``left_out_per_edge`` names
    these, so that `graycert.certify` can ask for them. When nodes are removed from a graph without ``node_ids``, these
    become the old node numbers.

    Args:
        data: The graph, see :func:`graycert.data.validate_data`; features are needed for ``binarize`` only.
        undirected: Add the reverse of every edge. Without it, directed graphs stay directed.
        drop_self_loops: Remove edges from a node to itself.
        coalesce: Merge parallel edges and sort the edges by (source, target).
        largest_component: Keep only the largest weakly connected component (on a tie, the one with the first
            node).
        binarize: Replace each feature by 1 where it is > 0, else by 0.

    Raises:
        InvalidParameterError: If ``data`` is malformed, or ``undirected`` is asked for with
            ``coalesce=False``.

    Example:
        >>> import torch; from torch_geometric.data import Data
        >>> path = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 0], [1, 1]]))
        >>> prepare_graph(path, undirected=True, largest_component=True).preparation[-1]
        'kept the largest component: 2 of 3 nodes'

    References:
        Scholten et al. (2022), Appendix on hyperparameters: undirected, largest component, binary features.
    """
    validate_data(data, need_features=binarize)
    if undirected and not coalesce:
        raise InvalidParameterError(
            "`coalesce` must be True with `undirected`, got False. Adding reverse edges merges parallel edges."
        )
    result: Graph = _plain_copy(data)
    if binarize and not _is_binary(result.x):
        result.x = _binary(result.x)
        result.preparation.append("binarised the features: 1 where > 0, else 0")
    _prepare_edges(result, undirected=undirected, drop_self_loops=drop_self_loops, merge=coalesce)
    if largest_component:
        kept = _largest_component(result.edge_index, count_nodes(result))
        if kept.size < count_nodes(result):
            note = f"kept the largest component: {kept.size:,} of {count_nodes(result):,} nodes"
            result = select_nodes(result, kept)
            result.preparation.append(note)
    done = (undirected, drop_self_loops, coalesce, largest_component, binarize)
    remember_step(result, data, dict(zip(STEPS, done, strict=True)))
    take_steps(result, *(name for name, chosen in zip(STEPS, done, strict=True) if chosen))
    return result


def prepare_with_edges(
    data: GraphArrays,
    edges: EdgeFile,
    *,
    undirected: bool,
    drop_self_loops: bool,
    coalesce: bool,
    largest_component: bool,
    binarize: bool,
) -> GraphArrays:
    """Return what `prepare_graph` makes of a graph whose edges are still to be read, with less memory.

    Args:
        data: Everything but the edges.
        edges: The edges.
        undirected: See `prepare_graph`, as the following.
        drop_self_loops: See there.
        coalesce: Without it edges are kept as they are listed, which takes memory for all of them.
        largest_component: See there.
        binarize: See there.

    Raises:
        InvalidFileError: If an edge names no node.
        InvalidParameterError: As `prepare_graph`.
    """
    steps = dict(zip(STEPS, (undirected, drop_self_loops, coalesce, largest_component, binarize), strict=True))
    data, notes = copy(data), list(data.get("preparation") or [])
    if binarize or not coalesce:
        listed = [np.stack(pair) for pair in edges.read()]
        data.edge_index = np.concatenate([np.empty((2, 0), dtype=np.int64), *listed], axis=1)
        left = steps
    else:
        data.edge_index = edges.prepared(undirected=undirected, drop_self_loops=drop_self_loops, notes=notes)
        take_steps(data, *(name for name, chosen in steps.items() if chosen and name != "largest_component"))
        left = {**dict.fromkeys(STEPS, False), "largest_component": largest_component}
    data.preparation = notes
    prepared: GraphArrays = prepare_graph(data, **left)
    return prepared


def take_steps(data: Any, *names: str) -> None:
    """Note steps that a graph was made by, besides those before."""
    steps = list(dict.fromkeys([*(data.get(STEPS_TAKEN) or []), *names]))
    if steps:
        data[STEPS_TAKEN] = steps


def select_nodes(data: Any, nodes: Any) -> Any:
    """Return the subgraph induced by ``nodes``: distinct indices in ascending order, shape (num_kept,).

    Features, labels, masks, node ids and values per edge follow; without node ids, the old node numbers become the ids.
    """
    num_nodes, nodes = count_nodes(data), as_array(nodes)
    edges, stays = among(as_array(data.edge_index), nodes, num_nodes)
    result = _new(data, same_kind(data.edge_index, edges))
    for name in set(data.keys()) - _KNOWN:
        if isinstance(data[name], kind_of(data.edge_index)) and data.is_edge_attr(name):
            result[name] = data[name][same_kind(data[name], stays)]
    for name in ("x", "y", *_MASKS):
        if data.get(name) is not None:
            result[name] = data[name][same_kind(data[name], nodes)]
    if data.get("x") is None:
        result.num_nodes = nodes.size
    old_ids = data.get("node_ids")
    result.node_ids = [str(i) if old_ids is None else old_ids[i] for i in nodes.tolist()]
    _copy_lists(data, result)
    return result


def _is_binary(x: Any) -> bool:
    parts = (x[start : start + _ROWS] for start in range(0, x.shape[0], _ROWS))
    return all(bool((_binary(rows) == rows).all()) for rows in parts)


def _binary(x: Any) -> Any:
    positive = x > 0
    return positive.astype(x.dtype) if isinstance(x, np.ndarray) else positive.to(x.dtype)


def _plain_copy(data: Any) -> Any:
    """Copy what graycert understands; tensors are shared, lists are not."""
    result = _new(data, data.edge_index)
    num_nodes = count_nodes(data)
    arrays = kind_of(data.edge_index)
    for name in ("x", "y"):
        if data.get(name) is not None:
            result[name] = data[name]
    unusable: list[str] = []
    for name in _MASKS:
        mask = data.get(name)
        if isinstance(mask, arrays) and _is_truth(mask) and tuple(mask.shape) == (num_nodes,):
            result[name] = mask
        elif mask is not None:
            unusable.append(name)
    if data.get("x") is None:
        result.num_nodes = num_nodes
    if data.get("node_ids") is not None:
        result.node_ids = [str(node_id) for node_id in data.node_ids]
    _copy_lists(data, result)
    if unusable:
        result.preparation.append(f"left out {', '.join(unusable)}: not one truth value for each node")
    dropped = sorted(set(data.keys()) - _KNOWN)
    num_edges = data.edge_index.shape[1]
    per_edge = [name for name in dropped if isinstance(data[name], arrays) and data[name].shape[:1] == (num_edges,)]
    others = [name for name in dropped if name not in per_edge]
    if others:
        result.preparation.append(f"left out {', '.join(others)}: models are called with features and edges")
    if per_edge:
        result.preparation.append(
            f"left out {', '.join(per_edge)}: edges may change here; set them anew and name them in `edge_inputs`"
        )
        result.left_out_per_edge = per_edge
    return result


def _new(data: Any, edge_index: Any) -> Any:
    """Return a graph of the same kind."""
    if isinstance(data, GraphArrays):
        return GraphArrays(edge_index=edge_index)
    from torch_geometric.data import Data

    return Data(edge_index=edge_index)


def _is_truth(mask: Any) -> bool:
    return str(mask.dtype).removeprefix("torch.") == "bool"


def _copy_lists(data: Any, result: Any) -> None:
    for name in _LISTS:
        if data.get(name) is not None:
            value = data[name]
            result[name] = value if isinstance(value, str) else [str(entry) for entry in value]
    result.preparation = list(data.get("preparation") or [])


def _prepare_edges(data: Any, *, undirected: bool, drop_self_loops: bool, merge: bool) -> None:
    """Change ``data.edge_index`` in place of the old one and note what happened."""
    if not (undirected or drop_self_loops or merge):
        return
    edges, num_nodes, notes = as_array(data.edge_index), count_nodes(data), data.preparation
    if drop_self_loops:
        before = edges.shape[1]
        edges = without_loops(edges)
        if edges.shape[1] < before:
            notes.append(f"dropped self-loops: {before - edges.shape[1]:,}")
    if merge:
        before = edges.shape[1]
        edges = merged(edges, num_nodes)
        if edges.shape[1] < before:
            notes.append(f"merged parallel edges: {before - edges.shape[1]:,}")
    if undirected:
        before = edges.shape[1]
        edges = with_reverse(edges, num_nodes)
        if edges.shape[1] > before:
            notes.append(f"made undirected: {before:,} became {edges.shape[1]:,} directed edges")
    data.edge_index = same_kind(data.edge_index, edges)


def _largest_component(edge_index: Any, num_nodes: int) -> IntArray:
    from scipy.sparse.csgraph import connected_components

    sources, targets = as_array(edge_index)
    ones = np.ones(sources.size, dtype=np.int8)
    adjacency = coo_array((ones, (sources, targets)), shape=(num_nodes, num_nodes))
    _, component = connected_components(adjacency, directed=True, connection="weak")
    _, first, sizes = np.unique(component, return_index=True, return_counts=True)
    largest = min(range(sizes.size), key=lambda c: (-sizes[c], first[c]))
    return np.flatnonzero(component == largest)
