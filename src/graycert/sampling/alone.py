"""What a model says of a node that is shown alone: nothing done to other nodes or to edges can change it."""

import torch
from torch import Tensor, nn

from graycert._types import IntArray
from graycert.models.row_probabilities import sees_rows_alone
from graycert.sampling.voting import skip_logits_of


def scores_alone(model: nn.Module, x: Tensor, targets: IntArray) -> Tensor:
    """Return the scores of each target, shown alone: one node and no edge; shape (num_targets, num_classes).

    Args:
        model: In evaluation mode. Rows of a `NodeModel` are alone in every pass, so that it needs only one.
        x: Features, shape (num_nodes, num_features), where the model is.
        targets: Node indices, shape (num_targets,).
    """
    if sees_rows_alone(model):
        scores: Tensor = model(x[torch.tensor(targets, device=x.device)])
        return scores
    return torch.stack([_alone(model, x[target : target + 1]) for target in targets.tolist()])


def _alone(model: nn.Module, row: Tensor) -> Tensor:
    edges = torch.empty(2, 0, dtype=torch.long, device=row.device)
    scores: Tensor = model(row, edges)[0]
    skip = skip_logits_of(model, row)
    return scores if skip is None else scores + skip[0]
