"""The textbook loop with a probability per edge and node: one full graph per sample, one coin at a time."""

import numpy as np
import torch

from support.reference_coins import is_intercepted


def votes_one_by_one(
    forward, x, edge_index, targets, token, p_delete, p_ablate, *, seed, purpose, num_samples, skip=None
):
    """Votes (num_targets, num_classes); ``p_delete`` per column of ``edge_index``, ``p_ablate`` per node."""
    num_nodes, votes = x.size(0), 0
    for sample in range(num_samples):
        kept = [
            column
            for column, (source, target) in enumerate(edge_index.t().tolist())
            if not is_intercepted(seed, purpose, "edge", sample, source * num_nodes + target, p_delete[column])
        ]
        hidden = [is_intercepted(seed, purpose, "node", sample, node, p_ablate[node]) for node in range(num_nodes)]
        shown = x.clone()
        shown[torch.tensor(hidden)] = token
        with torch.no_grad():
            scores = forward(shown, edge_index[:, kept])
        scores = (scores if skip is None else scores + skip)[torch.as_tensor(targets)]
        alone = (scores == scores.max(dim=1, keepdim=True).values).sum(dim=1) == 1  # never where one is NaN
        votes = votes + np.eye(scores.size(1), dtype=np.int64)[scores.argmax(dim=1).numpy()] * alone.numpy()[:, None]
    return votes
