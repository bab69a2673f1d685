"""What outputs depend on: the features of nodes at all, and the number of nodes."""

import itertools
from collections.abc import Callable

import torch
from torch import Tensor, nn

from graycert.audit.blocks import union_of_blocks
from graycert.audit.report import AuditCheck
from graycert.models.private_copy import private_copy

_NOTICEABLE = 1e-5  # change of a score, relative to the largest
Call = Callable[[nn.Module, Tensor, Tensor], Tensor]


def check_features_matter(
    model: nn.Module,
    x: Tensor,
    edge_index: Tensor,
    scores: Tensor,
    moved: Tensor,
    targets: Tensor,
    call: Call,
    *,
    local: bool,
) -> AuditCheck:
    """Refuse a model none of whose targets depends on any row of the features, although others could attack them.

    Such a model may have read the features beforehand: it is then no function of what the adversary changes.

    Args:
        model: A copy.
        x: Features.
        edge_index: Edges.
        scores: Its scores.
        moved: Its scores for other features.
        targets: Nodes that are asked for.
        call: Calls a model.
        local: Whether only nodes with an edge to a target can attack it.
    """
    name = "dependence on features"
    louder = (call(model, torch.full_like(x, value), edge_index) for value in (1e4, -1e4))
    if any(_changed(scores, other, targets) for other in itertools.chain([moved], louder)):
        return AuditCheck(name=name, passed=True, detail="the scores change with the features")
    inner = edge_index[:, edge_index[0] != edge_index[1]]
    if local and not bool(torch.isin(targets, inner[1]).any()):
        return AuditCheck(name=name, passed=True, detail="nothing reaches any target")
    return AuditCheck(
        name=name,
        passed=False,
        slug="ignores-features",
        detail="`model` must compute its scores from `x`, but no target's scores changed when all features did. "
        "Features that were propagated or read beforehand (a buffer, a global) hide from the proof what hostile nodes "
        "change. Let forward compute everything from the `x` and `edge_index` that it is given.",
    )


def _changed(before: Tensor, after: Tensor, targets: Tensor) -> bool:
    scale = before.abs().amax().clamp(min=torch.finfo(before.dtype).tiny)
    change = (before[targets] - after[targets]).abs()
    return not bool((change <= _NOTICEABLE * scale).all())


def reads_num_nodes(pristine: nn.Module, x: Tensor, edge_index: Tensor) -> bool:
    """Return whether outputs change when nodes without edges are added; False where nobody can say."""
    blocks = union_of_blocks(x, edge_index, num_hops=1, seed=1)
    more = torch.cat([blocks.x, blocks.x])
    try:
        few = private_copy(pristine)(blocks.x, blocks.edge_index)
        many = private_copy(pristine)(more, blocks.edge_index)[: blocks.x.size(0)]
    except Exception:  # foreign code that runs on no other number of nodes: what it would do is its user's word
        return False
    scale = few.abs().amax()
    return not torch.allclose(few, many, rtol=1e-4, atol=1e-5 * float(scale), equal_nan=True)
