"""Monte-Carlo votes as a textbook writes them: one full graph per sample, one coin at a time."""

import numpy as np
import torch

from support.reference_coins import is_intercepted


def intercept(x, edge_index, token, smoothing, *, seed, purpose, sample):
    """Return the ablated features and the surviving edges of one sample."""
    num_nodes = x.size(0)
    kept = [
        position
        for position, (source, target) in enumerate(edge_index.t().tolist())
        if not is_intercepted(seed, purpose, "edge", sample, source * num_nodes + target, smoothing.p_delete)
    ]
    shown = x.clone()
    for node in range(num_nodes):
        if is_intercepted(seed, purpose, "node", sample, node, smoothing.p_ablate):
            shown[node] = token
    return shown, edge_index[:, kept]


def textbook_votes(
    forward, x, edge_index, targets, token, smoothing, *, seed, purpose, num_samples, first_sample=0, skip=None
):
    """Votes (num_targets, num_classes) of ``forward(x, edge_index)`` plus the scores ``skip`` of the skip branch."""
    votes = None
    for sample in range(first_sample, first_sample + num_samples):
        shown, kept = intercept(x, edge_index, token, smoothing, seed=seed, purpose=purpose, sample=sample)
        with torch.no_grad():
            scores = forward(shown, kept)
        if skip is not None:
            scores = scores + skip
        if votes is None:
            votes = np.zeros((len(targets), scores.size(1)), dtype=np.int64)
        for row, target in enumerate(targets):
            values = scores[target].tolist()
            if values.count(max(values)) == 1:  # else no class has the largest score alone
                votes[row, values.index(max(values))] += 1
    return votes
