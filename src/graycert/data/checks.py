"""Is this a graph that graycert can work on? Refuses what would be misread, with the reason."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from graycert.data.arrays import GraphArrays
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.graph.conversion import as_array

_DENSE = "torch.strided"

if TYPE_CHECKING:
    from torch_geometric.data import Data


def validate_data(data: "Data | GraphArrays", *, need_features: bool = True, need_labels: bool = False) -> None:
    """Refuse a graph that is malformed, naming the attribute, the rule and the value.

    Args:
        data: ``edge_index`` int64, shape (2, num_edges), entries in [0, num_nodes), row 0 = source; ``x``
            finite floats, shape (num_nodes, num_features); ``y`` int64, shape (num_nodes,), -1 = unlabelled;
            optionally ``node_ids`` and ``class_names``, lists of distinct texts.
        need_features: Refuse a graph without ``x``; False is for what needs the structure only, as bounds do.
        need_labels: Refuse a graph without ``y`` or with only unlabelled nodes.

    Raises:
        InvalidParameterError: If a rule is broken.
    """
    kind = _kind_of_values(data)
    num_nodes = count_nodes(data)
    _check_edges(_edges_of(data), num_nodes, kind)
    if data.get("x") is not None:
        _check_features(data.x, num_nodes, kind)
    elif need_features:
        raise InvalidParameterError(
            "`data.x` must hold the node features, got none. Set `data.x` (for tables: pass the node table "
            "as `nodes`); without features only bounds that need no model can be computed."
        )
    if data.get("y") is not None:
        _check_labels(data.y, num_nodes, kind)
    if need_labels and (data.get("y") is None or not bool((data.y >= 0).any())):
        raise InvalidParameterError(
            "`data.y` must label at least one node, got no labels. Set `data.y`, with -1 for nodes whose "
            "label is unknown; of tables, `label` (`--label COLUMN`) says which column has the classes."
        )
    _check_names(data, num_nodes)


def _kind_of_values(data: Any) -> Any:
    """Return what edges, features and labels of a graph must be: arrays if it is one of arrays, else tensors."""
    if isinstance(data, GraphArrays):
        return np.ndarray
    from torch import Tensor
    from torch_geometric.data import Data

    if not isinstance(data, Data):
        raise InvalidParameterError(
            f"`data` must be a torch_geometric.data.Data, got {type(data).__name__}. A HeteroData is taken "
            "by certify, audit_model, train and verify alone; batches and tuples are not supported; "
            "graycert.load_graph reads files and tables."
        )
    return Tensor


BATCH_ATTRIBUTES = ("n_id", "input_id", "batch_size", "e_id")


def refuse_batch(data: Any) -> None:
    """Refuse a mini-batch of a neighbour loader: its border nodes lack neighbours, so their fields are not whole.

    Raises:
        UnsoundSetupError: ``batch-not-graph``.
    """
    stores = getattr(data, "stores", (data,))  # of a HeteroData one for each type, and its own
    found = next((name for store in stores for name in BATCH_ATTRIBUTES if store.get(name) is not None), None)
    if found is not None:
        it = f"the attribute `{found}` of every type" if len(stores) > 1 else f"the attribute: del data.{found}"
        raise UnsoundSetupError(
            "batch-not-graph",
            f"`data` must be a whole graph, got one with `{found}`, as NeighborLoader makes them: nodes at the border "
            "of a batch lack neighbours, so certificates would be about another graph. Pass the graph that the loader "
            f"was given; if it is whole after all, delete {it}.",
        )


def count_nodes(data: Any) -> int:
    """Return the number of nodes; never guesses it from the largest index in ``edge_index``.

    Raises:
        InvalidParameterError: If it is not known or zero.
    """
    stored = data.get("num_nodes")
    for name in ("x", "y"):
        value = data.get(name)
        if stored is None and getattr(value, "ndim", 0) > 0:
            stored = value.shape[0]
    if stored is None:
        raise InvalidParameterError(
            "`data.num_nodes` must be set for a graph without `x` and `y`, got none. "
            "Counting from the largest edge index would lose nodes without edges."
        )
    if int(stored) < 1:
        raise InvalidParameterError("`data` must have at least one node, got an empty graph. Check how it was built.")
    return int(stored)


def _edges_of(data: Any) -> Any:
    """Return ``edge_index``; refuse other ways to store edges with the line that converts them."""
    edge_index = data.get("edge_index")
    if edge_index is None and data.get("adj_t") is not None:
        raise InvalidParameterError(
            "`data.edge_index` must hold the edges, got `data.adj_t`. Convert it: data.edge_index = "
            "torch_geometric.utils.to_edge_index(data.adj_t)[0].flip(0); del data.adj_t."
        )
    if not isinstance(data, GraphArrays) and _has_caches(edge_index):
        raise InvalidParameterError(
            "`data.edge_index` must be a plain tensor, got an EdgeIndex, whose caches describe edges that draws "
            "delete. Convert it: data.edge_index = data.edge_index.as_tensor()."
        )
    return edge_index


def _has_caches(edge_index: Any) -> bool:
    from torch_geometric import EdgeIndex

    return isinstance(edge_index, EdgeIndex)


def _check_edges(edge_index: Any, num_nodes: int, kind: Any) -> None:
    if not isinstance(edge_index, kind):
        found = "none" if edge_index is None else type(edge_index).__name__
        raise InvalidParameterError(
            f"`data.edge_index` must be a tensor of shape (2, num_edges), got {found}. For a graph without "
            "edges use torch.empty((2, 0), dtype=torch.long); a graph stored as `adj_t` must be converted "
            "first."
        )
    if not _is_int64(edge_index) or edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise InvalidParameterError(
            f"`data.edge_index` must be int64 of shape (2, num_edges), got {edge_index.dtype} of shape "
            f"{tuple(edge_index.shape)}. Row 0 holds the sources, row 1 the targets."
        )
    if edge_index.shape[1]:
        low, high = int(edge_index.min()), int(edge_index.max())
        if low < 0 or high >= num_nodes:
            raise InvalidParameterError(
                f"`data.edge_index` must lie in [0, {num_nodes - 1}] for {num_nodes} nodes, got "
                f"{low if low < 0 else high}. Nodes are numbered from 0, in the order of the rows of `x`."
            )


def _check_features(x: Any, num_nodes: int, kind: Any) -> None:
    layout = str(getattr(x, "layout", _DENSE))
    if not isinstance(x, kind) or layout != _DENSE:
        found = f"a {layout} tensor" if isinstance(x, kind) else type(x).__name__
        raise InvalidParameterError(f"`data.x` must be a dense tensor, got {found}. Convert it with `.to_dense()`.")
    if not (x.dtype.kind == "f" if isinstance(x, np.ndarray) else x.is_floating_point()):
        raise InvalidParameterError(f"`data.x` must hold floats, got {x.dtype}. Convert it with `data.x.float()`.")
    if x.ndim != 2 or x.shape[0] != num_nodes or x.shape[1] == 0:
        raise InvalidParameterError(
            f"`data.x` must have shape ({num_nodes}, num_features >= 1), got {tuple(x.shape)}. "
            "It needs one row of features for each node."
        )
    # NaN and infinity survive a sum, which needs no memory; a sum of huge numbers may overflow, too
    with np.errstate(over="ignore", invalid="ignore"):
        is_finite = math.isfinite(x.sum().item())  # of a tensor that asks for gradients, float() warns
    if not is_finite and not bool((finite := np.isfinite(x) if isinstance(x, np.ndarray) else x.isfinite()).all()):
        node, column = (int(i) for i in np.argwhere(as_array(~finite))[0])
        raise InvalidParameterError(
            f"`data.x` must be finite, got {x[node, column].item()} at node {node}, column {column}. "
            "Replace missing values before certifying, e.g. by the column's mean."
        )


def _check_labels(y: Any, num_nodes: int, kind: Any) -> None:
    if not isinstance(y, kind) or not _is_int64(y) or tuple(y.shape) != (num_nodes,):
        found = f"{y.dtype} of shape {tuple(y.shape)}" if isinstance(y, kind) else type(y).__name__
        raise InvalidParameterError(
            f"`data.y` must be int64 of shape ({num_nodes},), got {found}. It holds one class number for "
            "each node, -1 if unknown; use `y.view(-1)` for a column and `y.argmax(dim=1)` for one-hot "
            "labels."
        )
    if int(y.min()) < -1:
        raise InvalidParameterError(
            f"`data.y` must be >= -1, got {int(y.min())}. Classes are numbered from 0; -1 marks an unknown label."
        )


def _check_names(data: Any, num_nodes: int) -> None:
    node_ids, class_names = data.get("node_ids"), data.get("class_names")
    if node_ids is not None:
        if len(node_ids) != num_nodes:
            raise InvalidParameterError(
                f"`data.node_ids` must name each of the {num_nodes} nodes, got {len(node_ids)} names."
            )
        repeated = first_repeated(node_ids)
        if repeated is not None:
            raise InvalidParameterError(
                f"`data.node_ids` must be distinct, got {repeated!r} more than once. Results are reported by node id."
            )
    if class_names is not None and (repeated := first_repeated([str(name) for name in class_names])) is not None:
        raise InvalidParameterError(f"`data.class_names` must be distinct, got {repeated!r} more than once.")
    if class_names is not None and data.get("y") is not None and int(data.y.max()) >= len(class_names):
        raise InvalidParameterError(
            f"`data.class_names` must name every class, got {len(class_names)} names for labels up to "
            f"{int(data.y.max())}."
        )


def _is_int64(values: Any) -> bool:
    return str(values.dtype).removeprefix("torch.") == "int64"


def first_repeated(names: list[str]) -> str | None:
    """Return the first name that was seen before, or None."""
    if len(set(names)) == len(names):
        return None
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
