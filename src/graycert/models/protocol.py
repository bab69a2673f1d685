"""What a model must offer, and what it may offer, to be smoothed."""

from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from graycert.errors import GraycertError, InvalidParameterError, UnsoundSetupError

if TYPE_CHECKING:  # needed where a model is called; whether one shows the target is asked where there is none
    from torch import Tensor, nn


class NodeClassifier(Protocol):
    """Anything that maps features and edges to one row of class scores per node.

    ``x`` has shape (num_nodes, num_features), ``edge_index`` shape (2, num_edges) with row 0 = source and row 1 =
    target; the result has shape (num_nodes, num_classes). Every ``torch.nn.Module`` written for PyTorch Geometric
    with ``forward(x, edge_index)`` fits. Two optional attributes are respected:

    * ``ablation_token``: tensor (num_features,), the trained representation t of an ablated node;
    * ``skip``: True if ``skip_logits(x)`` is to be added to the output (see `InterceptionGNN`).
    """

    def __call__(self, x: "Tensor", edge_index: "Tensor") -> "Tensor":
        """Return class scores, shape (num_nodes, num_classes)."""
        ...


@runtime_checkable
class RowwiseStart(Protocol):
    """A classifier whose first operation acts on each row of ``x`` alone.

    ``forward(x, edge_index)`` equals ``propagate(project(x), edge_index)``. Ablated nodes all share one projected
    row, so a sampler projects the distinct rows once and never again.
    """

    def project(self, x: "Tensor") -> "Tensor":
        """Return the row-wise image of ``x``, shape (num_nodes, width)."""
        ...

    def propagate(self, hidden: "Tensor", edge_index: "Tensor") -> "Tensor":
        """Return class scores from projected rows, shape (num_nodes, num_classes)."""
        ...


def starts_rowwise(model: "nn.Module", x: "Tensor", edge_index: "Tensor", scores: "Tensor") -> bool:
    """Return whether ``propagate(project(x), edge_index)`` is the forward pass, whose result is ``scores``.

    Names prove nothing: a foreign module may call one of several steps ``propagate``. A certificate for that step
    alone would be about another classifier, so such a module is evaluated as a whole.
    """
    import torch

    if not isinstance(model, RowwiseStart):
        return False
    try:
        split: Any = model.propagate(model.project(x.clone()), edge_index)
    except Exception:  # another signature: whatever it raises, it is not this protocol
        return False
    if not isinstance(split, torch.Tensor) or split.shape != scores.shape:
        return False
    scale = float(scores.abs().amax())
    return torch.allclose(split, scores, rtol=1e-4, atol=1e-5 * scale)


def evaluate(model: "nn.Module", rows: "Tensor", edge_index: "Tensor", *, rowwise: bool) -> "Tensor":
    """Return class scores from projected rows (``rowwise``) or from features.

    Raises:
        InvalidParameterError: If the model fails on this graph.
    """
    import torch

    from graycert.models.private_copy import one_line

    try:
        out: Tensor = cast("RowwiseStart", model).propagate(rows, edge_index) if rowwise else model(rows, edge_index)
    except (GraycertError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        raise InvalidParameterError(
            f"`model` must run on every graph that is drawn, got {one_line(error)} for {rows.size(0):,} nodes with "
            f"{edge_index.size(1):,} edges. Some aggregations need an edge: aggregate otherwise, or add a self-loop to "
            "every node inside forward."
        ) from error
    return out


def has_skip(model: Any) -> bool:
    """Return whether the model declares a skip connection around the smoothing.

    A layer that happens to be called ``skip`` is none: inside ``forward`` it only sees ablated features.
    """
    declared = getattr(model, "skip", False)
    return bool(declared) if isinstance(declared, bool | int) else hasattr(model, "skip_logits")


def require_skip_logits(model: Any) -> None:
    """Refuse a model that declares a skip connection without offering what it adds.

    Raises:
        UnsoundSetupError: ``skip-not-local``.
    """
    if has_skip(model) and not hasattr(model, "skip_logits"):
        raise UnsoundSetupError(
            "skip-not-local",
            "`model.skip` is True but the model has no `skip_logits(x)`, so what the skip connection shows of "
            "non-ablated features is unknown. Add the method, or remove the attribute; if it means something else, "
            "give it another name.",
        )
