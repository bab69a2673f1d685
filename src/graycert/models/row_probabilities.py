"""Probabilities of single rows of features by a model of single nodes, the same bits in any company."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from graycert._types import FloatArray
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.models.node_model import NodeModel, RowNetwork, finite_rows
from graycert.models.one_thread import one_thread
from graycert.models.private_copy import give_copies, private_copy
from graycert.models.row_products import rows_times
from graycert.models.row_scaling import RowScaling
from graycert.models.watcher import Watcher

BLOCK = 512
"""Rows per pass: a multiple of what a processor handles at once, so that no row is a remainder."""

_Evaluate = Callable[[Tensor], Tensor]
_LOOKED_AT = 8  # rows that are evaluated once more, elsewhere and in other company
_FLOATS = (torch.float32, torch.float64)
_OF_NODE_MODELS = {NodeModel, RowNetwork, RowScaling, nn.ModuleList, nn.Linear, nn.Dropout}


def row_probabilities(model: nn.Module, x: Tensor) -> FloatArray:
    r"""Return the class probabilities of each row of features by a per-node model, such as an MLP.

    $$p_c(x_v) = e^{z_c(x_v)} / \sum_{c'} e^{z_{c'}(x_v)}$$

    The scores z are what ``model(x, edge_index)`` returns without any edge; log-probabilities give their probabilities.
    Rows go through the model in blocks of `BLOCK` rows, the last one filled up with zeros, on one thread of the CPU.
    Matrix products are taken row by row in a fixed order (`rows_times`); a model with operations that are not known to
    treat rows alike is shown one row at a time. The softmax is in float64. So the bits of a row depend on that row
    alone: not on other rows, their number or order, nor on threads.

    Guarantee:
        Row v is a function of row v of ``x``, total on all of R^d with NaN and infinities: a row with an entry that is
        not finite, or scores that are not, is uniform. Rounding is part of that function; it may differ between
        processors, not within one.

    Args:
        model: A module ``forward(x, edge_index)`` -> scores (num_rows, num_classes) that reads no row for another one;
            evaluated as a copy, in evaluation mode.
        x: Features, shape (num_rows, num_features).

    Returns:
        Float64, shape (num_rows, num_classes), rows sum to 1 up to rounding.

    Raises:
        InvalidParameterError: If the model does not return scores for each row.
        UnsoundSetupError: ``not-per-node``, if the model says that it moves messages, or rows of a pass change others.
    """
    if getattr(model, "num_layers", 0) != 0:
        raise UnsoundSetupError(
            "not-per-node",
            f"`model` must classify each node by its own features alone, got {type(model).__name__} with "
            f"{model.num_layers} steps of messages. Distil it: graycert.distill(split, teacher=model).",
        )
    copied = private_copy(model).cpu().eval()
    for layer in copied.modules():
        if type(layer) is nn.Linear:  # products take weights column by column: once, not in each block
            layer.weight.data = layer.weight.data.t().contiguous().t()
    known = sees_rows_alone(copied)
    evaluate: _Evaluate = cast("NodeModel", copied).of_rows if known else partial(_without_edges, copied)
    rows = x.detach().cpu()
    with one_thread(), torch.no_grad():
        watched = _Operations()
        scores = _in_blocks(evaluate, rows, BLOCK, watched)
        if watched.others and not known:
            scores = _in_blocks(evaluate, rows, 1, _Operations())
        elif not known:
            _refuse_mixing(evaluate, rows, scores)
    return np.concatenate([_softmax(part) for part in np.split(scores, range(BLOCK, scores.shape[0], BLOCK))])


def sees_rows_alone(model: nn.Module) -> bool:
    """Return whether a model is a `NodeModel` as graycert wrote it: what it does is known, and need not be tested."""
    return type(model) is NodeModel and all(
        type(module) in _OF_NODE_MODELS
        and not any(map(callable, vars(module).values()))  # such as a method of this object alone
        and not module._forward_hooks
        and all(hook is give_copies for hook in module._forward_pre_hooks.values())
        for module in model.modules()
    )


def _in_blocks(evaluate: _Evaluate, rows: Tensor, size: int, operations: "_Operations") -> FloatArray:
    """Return the scores of all rows, float64, evaluated in blocks of one size; NaN for rows that are not finite."""
    found = []
    for block in torch.split(rows, size):
        finite = finite_rows(block)
        filled = torch.zeros(size, rows.size(1), dtype=rows.dtype)
        filled[: block.size(0)] = block
        filled[: block.size(0)][~finite] = 0.0
        with operations:
            every = _checked(evaluate(filled), filled)
        scores = every[: block.size(0)].double()
        scores[~finite] = torch.nan
        found.append(scores.numpy())
    return np.concatenate(found)


def _without_edges(model: nn.Module, rows: Tensor) -> Any:
    return model(rows, torch.empty(2, 0, dtype=torch.long))


def _checked(scores: object, rows: Tensor) -> Tensor:
    if not isinstance(scores, Tensor) or scores.dim() != 2 or scores.size(0) != rows.size(0) or scores.size(1) < 2:
        shape = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
        raise InvalidParameterError(
            f"`model` must return scores (num_nodes, num_classes) with at least two classes, got {shape} for "
            f"{rows.size(0)} nodes."
        )
    return scores


def _refuse_mixing(evaluate: _Evaluate, rows: Tensor, scores: FloatArray) -> None:
    """Evaluate some rows among zeros, at other places: their bits must be the same."""
    usable = np.flatnonzero(np.isfinite(scores).all(axis=1))
    if not usable.size:
        return
    chosen = usable[np.unique(np.linspace(0, usable.size - 1, _LOOKED_AT).astype(np.int64))]
    places = (37 * np.arange(chosen.size) + 5) % BLOCK
    elsewhere = torch.zeros(BLOCK, rows.size(1), dtype=rows.dtype)
    elsewhere[places] = rows[chosen]
    with _Operations():
        found = evaluate(elsewhere)
    differing = np.flatnonzero((found[places].double().numpy() != scores[chosen]).any(axis=1))
    if differing.size:
        raise UnsoundSetupError(
            "not-per-node",
            f"`model` must classify each node by its own features alone, but the scores of row {chosen[differing[0]]} "
            "change with the rows beside it. Leave out what mixes rows, such as a statistic over the nodes of a pass.",
        )


def _softmax(scores: FloatArray) -> FloatArray:
    """Return softmax of each row of a block, uniform where a score is not finite."""
    filled = np.zeros((BLOCK, scores.shape[1]))
    filled[: scores.shape[0]] = np.where(np.isfinite(scores).all(axis=1, keepdims=True), scores, 0.0)
    powers = np.exp(filled - filled.max(axis=1, keepdims=True))
    found: FloatArray = (powers / powers.sum(axis=1, keepdims=True))[: scores.shape[0]]
    return found


class _Operations(Watcher):
    """Takes matrix products row by row, and lists operations that may treat a row by its place."""

    def __init__(self) -> None:
        super().__init__()
        self.others: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        name = func._schema.name.removeprefix("aten::")
        if name in _PRODUCTS and not kwargs and args[-1].dtype in _FLOATS:
            return _PRODUCTS[name](*args)
        if not (func.is_view or torch.Tag.pointwise in func.tags or name in _ALIKE):
            self.others.add(name)
        return func(*args, **(kwargs or {}))


_PRODUCTS: dict[str, Callable[..., Tensor]] = {
    "mm": rows_times,
    "bmm": rows_times,
    "addmm": lambda shift, rows, weights: rows_times(rows, weights) + shift,
}

_ALIKE = {
    *("_softmax", "_log_softmax", "logsumexp", "native_batch_norm", "native_layer_norm", "linalg_vector_norm"),
    *(
        "all",
        "any",
        "amax",
        "amin",
        "argmax",
        "constant_pad_nd",
        "max",
        "mean",
        "min",
        "sum",
        "cat",
        "stack",
        "clone",
        "copy_",
        "detach",
        "lift_fresh",
    ),
    *("arange", "empty", "empty_like", "empty_strided", "fill_", "full", "full_like", "ones", "ones_like"),
    *("scalar_tensor", "zeros", "zeros_like", "_reshape_alias", "_to_copy", "_unsafe_view"),
}
