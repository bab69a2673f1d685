"""A heterogeneous graph as one graph: nodes type by type, features in columns of their type, edges with a relation."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from graycert._types import IntArray
from graycert._validation import check_targets
from graycert.data.checks import refuse_batch, validate_data
from graycert.errors import InvalidParameterError
from graycert.graph.typed_nodes import Relation, TypedNodes, relation_in_words
from graycert.heterogeneous.classifier import EDGE_TYPE
from graycert.threats.named_nodes import named_nodes


def one_graph(data: HeteroData, *, target_type: str | None = None, edge_inputs: Sequence[str] = ()) -> Data:
    """Return a heterogeneous graph as one graph.

    Args:
        data: Node types with ``x``; relations with ``edge_index``; ``y``, ``node_ids`` and ``class_names`` of types.
        target_type: Whose labels and names of classes are carried over; None for those of nobody.
        edge_inputs: Names of further values per edge, beside the relation.

    Returns:
        ``x``, ``edge_index``, ``edge_type``, ``node_ids`` ("type:name"), ``types`` (`TypedNodes`), and values per
        edge, padded with zeros to the same length.

    Raises:
        InvalidParameterError: If a type has no features, or something is malformed.
        UnsoundSetupError: ``batch-not-graph``.
    """
    refuse_batch(data)
    types = typed_nodes(data)
    types = replace(types, lengths=tuple((name, _lengths(data, types.relations, name)) for name in edge_inputs))
    made = Data(
        x=_features(data, types),
        edge_index=columns_of_one_graph(data, types),
        edge_type=_repeated(types, [data[relation].edge_index.size(1) for relation in types.relations]),
        node_ids=_names(data, types),
        types=types,
    )
    for name, lengths in types.lengths:
        made[name] = _padded(data, types.relations, name, lengths)
    if target_type is not None:
        _carry_labels(data, made, types, target_type)
    validate_data(made)
    return made


def typed_nodes(data: HeteroData) -> TypedNodes:
    """Return node types and relations of a graph.

    Raises:
        InvalidParameterError: If a type has no features, or a relation no edges in ``edge_index``.
    """
    relations = [tuple(relation) for relation in data.edge_types]
    named = dict.fromkeys([*data.node_types, *(end for source, _, receiver in relations for end in (source, receiver))])
    for name in named:
        _check_features(data, name)
    for relation in relations:
        _check_edges(data, relation)
    if not named:
        raise InvalidParameterError("`data` must have node types, got an empty HeteroData.")
    return TypedNodes(
        node_types=tuple(named),
        num_nodes=tuple(int(data[name].x.size(0)) for name in named),
        widths=tuple(int(data[name].x.size(1)) for name in named),
        relations=tuple(relations),
    )


def columns_of_one_graph(data: HeteroData, types: TypedNodes) -> Tensor:
    """Return the edges of all relations, one relation after the other, between the nodes of one graph."""
    parts = [torch.empty(2, 0, dtype=torch.long)]
    for relation in types.relations:
        first = [types.nodes_of(end).start for end in (relation[0], relation[2])]
        parts.append(data[relation].edge_index.cpu() + torch.tensor(first).unsqueeze(1))
    return torch.cat(parts, dim=1)


def _check_features(data: HeteroData, name: str) -> None:
    x = data[name].get("x") if name in data.node_types else None
    if x is None:
        raise InvalidParameterError(
            f"`data[{name!r}].x` must hold the features of the nodes of type {name!r}, got none: the certificate is "
            "about features that hostile nodes choose. If the nodes have none, give them a constant, data"
            f"[{name!r}].x = torch.ones(num_nodes, 1), or the rows of the embedding that your model keeps of them, and "
            f"let forward use these rows; NodeFeatureThreat(eligible_types=...) says that nodes of type {name!r} are "
            "not hostile."
        )
    if not isinstance(x, Tensor) or x.layout != torch.strided or x.dim() != 2 or not x.size(1):
        found = f"{x.dtype} of shape {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
        raise InvalidParameterError(
            f"`data[{name!r}].x` must be a dense tensor of shape (num_nodes, num_features >= 1), got {found}."
        )
    if not x.is_floating_point() or x.dtype != data[data.node_types[0]].x.dtype:
        raise InvalidParameterError(
            f"`data[{name!r}].x` must hold floats of the same type as those of every other node type, got {x.dtype}. "
            f"Convert it: data[{name!r}].x = data[{name!r}].x.float()."
        )

    if not bool((finite := torch.isfinite(x)).all()):
        node, column = (int(i) for i in (~finite).nonzero()[0])
        raise InvalidParameterError(
            f"`data[{name!r}].x` must be finite, got {float(x[node, column])} at node {node}, column {column}. Replace "
            "missing values before certifying, e.g. by the column's mean."
        )


def _check_edges(data: HeteroData, relation: Relation) -> None:
    words, edges = relation_in_words(relation), data[relation].get("edge_index")
    if edges is None and data[relation].get("adj_t") is not None:
        raise InvalidParameterError(
            f"`data[{words}].edge_index` must hold the edges, got `adj_t`. Convert it: data[{words}].edge_index = "
            f"torch_geometric.utils.to_edge_index(data[{words}].adj_t)[0].flip(0); del data[{words}].adj_t."
        )
    if type(edges) is not Tensor or edges.dtype != torch.long or edges.dim() != 2 or edges.size(0) != 2:
        found = f"{edges.dtype} of shape {tuple(edges.shape)}" if isinstance(edges, Tensor) else type(edges).__name__
        raise InvalidParameterError(f"`data[{words}].edge_index` must be int64 of shape (2, num_edges), got {found}.")
    for row, name in ((0, relation[0]), (1, relation[2])):
        num_nodes = int(data[name].x.size(0))
        if edges.numel() and not 0 <= int(edges[row].min()) <= int(edges[row].max()) < num_nodes:
            raise InvalidParameterError(
                f"`data[{words}].edge_index[{row}]` must lie in [0, {num_nodes - 1}] for {num_nodes} nodes of type "
                f"{name!r}, got {int(edges[row].min())} to {int(edges[row].max())}."
            )


def _features(data: HeteroData, types: TypedNodes) -> Tensor:
    x = torch.zeros(sum(types.num_nodes), sum(types.widths), dtype=data[types.node_types[0]].x.dtype)
    for name in types.node_types:
        x[types.nodes_of(name), types.columns_of(name)] = data[name].x.detach().cpu()
    return x


def _repeated(types: TypedNodes, counts: list[int]) -> Tensor:
    return torch.arange(len(types.relations)).repeat_interleave(torch.tensor(counts, dtype=torch.long))


def _names(data: HeteroData, types: TypedNodes) -> list[str]:
    """Return "type:name" of every node, its number within the type where it has no name."""
    names: list[str] = []
    for name, size in zip(types.node_types, types.num_nodes, strict=True):
        own = data[name].get("node_ids")
        if own is not None and len(own) != size:
            raise InvalidParameterError(
                f"`data[{name!r}].node_ids` must name each of the {size} nodes, got {len(own)} names."
            )
        names += [f"{name}:{each}" for each in (range(size) if own is None else own)]
    return names


def _lengths(data: HeteroData, relations: Sequence[Relation], name: str) -> tuple[int | None, ...]:
    found: list[int | None] = []
    for relation in relations:
        values, size = data[relation].get(name), data[relation].edge_index.size(1)
        if values is None:
            found.append(None)
            continue
        if not isinstance(values, Tensor) or not _is_per_edge(values, size) or name == EDGE_TYPE:
            shape = f"shape {tuple(values.shape)}" if isinstance(values, Tensor) else type(values).__name__
            raise InvalidParameterError(
                f"`edge_inputs` must name tensors with a row, or a number, for each edge of a relation, got {name!r} "
                f"with {shape} for {relation_in_words(relation)}, which has {size} edges."
            )
        found.append(values.size(1) if values.dim() == 2 else 0)
    given = {width for width in found if width is not None}
    kinds = {data[relation][name].dtype for relation, width in zip(relations, found, strict=True) if width is not None}
    if not given or (0 in given and len(given) > 1) or len(kinds) > 1:
        what = (
            "no relation has it" if not given else "they differ from relation to relation in their axes or their type"
        )
        raise InvalidParameterError(
            f"`edge_inputs` must name values per edge of one type, with as many axes in all relations, got {name!r}: "
            f"{what}."
        )
    return tuple(found)


def _is_per_edge(values: Tensor, size: int) -> bool:
    return values.dim() in (1, 2) and values.size(0) == size and 0 not in values.shape[1:]


def _padded(data: HeteroData, relations: Sequence[Relation], name: str, lengths: Sequence[int | None]) -> Tensor:
    longest = max(length for length in lengths if length is not None)
    present = next(data[relation][name] for relation, each in zip(relations, lengths, strict=True) if each is not None)
    parts = []
    for relation, length in zip(relations, lengths, strict=True):
        size = data[relation].edge_index.size(1)
        part = torch.zeros(size, *([longest] if longest else []), dtype=present.dtype)
        if length is not None:
            part[..., : length or None] = data[relation][name].detach().cpu()
        parts.append(part)
    return torch.cat(parts)


def _carry_labels(data: HeteroData, made: Data, types: TypedNodes, target_type: str) -> None:
    store, own = data[target_type], types.nodes_of(target_type)
    if store.get("y") is not None:
        if not isinstance(store.y, Tensor) or store.y.dtype != torch.long or store.y.shape != (own.stop - own.start,):
            found = f"{store.y.dtype} of shape {tuple(store.y.shape)}" if isinstance(store.y, Tensor) else "no tensor"
            raise InvalidParameterError(
                f"`data[{target_type!r}].y` must be int64 of shape ({own.stop - own.start},), got {found}. It holds "
                "one class number for each node, -1 if unknown."
            )
        made.y = torch.full((sum(types.num_nodes),), -1)
        made.y[own] = store.y.detach().cpu()
    if store.get("class_names") is not None:
        made.class_names = list(store.class_names)


def target_type_of(data: HeteroData, given: Any = None) -> str:
    """Return the type whose nodes are classified: the one that is named, else the only one that has labels.

    Args:
        data: The graph.
        given: A dict with one type as its key, or anything else.

    Raises:
        InvalidParameterError: If no type is named, and none or several have labels; or several are named.
    """
    known = ", ".join(data.node_types)
    if isinstance(given, Mapping):
        if len(given) != 1:
            raise InvalidParameterError(
                f"`targets` must be of one node type, got {', '.join(map(str, given)) or 'none'}. A model gives scores "
                "of one type at a time, and classes of two types are other classes: certify each type on its own."
            )
        name = next(iter(given))
        if name not in data.node_types:
            raise InvalidParameterError(f"`targets` must be of a node type of the graph, {known}, got {name!r}.")
        return str(name)
    prefixes = {str(each).partition(":")[0] for each in _texts(given)}
    if prefixes and prefixes <= set(data.node_types):
        return target_type_of(data, dict.fromkeys(sorted(prefixes)))
    labelled = [name for name in data.node_types if data[name].get("y") is not None]
    if len(labelled) != 1:
        raise InvalidParameterError(
            f"`targets` must say of which node type ({known}) the targets are, because "
            f"{'no type has' if not labelled else f'{len(labelled)} types have'} labels `y`. Write e.g. "
            f'targets={{"{data.node_types[0]}": None}} for all nodes of a type, or a mask or node indices in the place '
            "of None."
        )
    return str(labelled[0])


def nodes_of_type(data: HeteroData, types: TypedNodes, target_type: str, given: Any, *, name: str) -> IntArray:
    """Return nodes of a type as numbers in the one graph.

    Args:
        data: The graph.
        types: Its types.
        target_type: The type.
        given: None for all, a boolean mask over the nodes of the type, their indices within it, or their names; or a
            dict with the type as its only key and one of these.
        name: What the argument is called.

    Raises:
        InvalidParameterError: If they are not distinct nodes of the type.
    """
    if isinstance(given, Mapping):
        given = given[target_type]
    own = types.nodes_of(target_type)
    texts, size = _texts(given), own.stop - own.start
    if texts:
        names = [each if each.startswith(f"{target_type}:") else f"{target_type}:{each}" for each in texts]
        return named_nodes(name, np.array(names), _names(data, types))
    values = np.asarray(given.detach().cpu() if isinstance(given, Tensor) else given)
    if given is None:
        values = np.arange(size)
    elif values.dtype == np.bool_:
        if values.shape != (size,):
            raise InvalidParameterError(
                f"`{name}` must be a mask of shape ({size},), one entry per node of type {target_type!r}, got shape "
                f"{values.shape}."
            )
        values = np.flatnonzero(values)
    try:
        return np.asarray(own.start + check_targets(values, num_nodes=size))
    except InvalidParameterError as error:
        raise InvalidParameterError(
            f"{str(error).replace('`targets`', f'`{name}`')} They are nodes of type {target_type!r}."
        ) from error


def _texts(given: Any) -> list[str]:
    """Return names, if that is what was given."""
    if given is None or isinstance(given, Mapping | Tensor):
        return []
    values = np.asarray(given).ravel().tolist()
    return values if values and all(isinstance(each, str) for each in values) else []
