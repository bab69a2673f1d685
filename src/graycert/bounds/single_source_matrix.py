"""Δ̄_w of every node of every receptive field as one sparse matrix: what a shared adversary is bounded with."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from graycert.bounds.block import Block, Setting
from graycert.bounds.by_paths import single_sources
from graycert.graph import Adjacency, receptive_fields, target_blocks
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats.node_features import NodeFeatureThreat


def single_source_matrix(
    adjacency: Adjacency,
    targets: ArrayLike,
    *,
    smoothing: InterceptionSmoothing,
    threat: NodeFeatureThreat,
    num_layers: int,
) -> sp.csr_array:
    """Bound, for each target and node, the probability that this one hostile node's message reaches the target.

    Guarantee:
        Entry [i, w] is at least Δ_w for target i where w is eligible. It is 0 where w is trusted or cannot reach the
        target, and 1 where the threat excludes w for this target only, being too close to it (such as a target that
        shows its own features): whoever controls w is taken to control the target. Rounded upward.

    Args:
        adjacency: The graph.
        targets: Distinct node indices, shape (num_targets,).
        smoothing: p_d in the order of ``adjacency``.
        threat: Which nodes may be hostile.
        num_layers: Number of message-passing steps k, >= 1.

    Returns:
        Shape (num_targets, num_nodes).

    Example:
        >>> from graycert.graph import path_graph
        >>> smoothing, threat = InterceptionSmoothing(p_delete=0.5, p_ablate=0.5), NodeFeatureThreat(min_distance=1)
        >>> single_source_matrix(path_graph(3), [0], smoothing=smoothing, threat=threat, num_layers=2).toarray()
        array([[1.   , 0.25 , 0.125]])

    References:
        Scholten et al. (2022), Theorem 2.
    """
    setting = Setting(
        adjacency=adjacency, p_delete=smoothing.p_delete, p_ablate=smoothing.p_ablate, num_layers=num_layers, budget=1
    )
    parts = []
    for some in target_blocks(adjacency, targets, num_layers=num_layers):
        fields = receptive_fields(adjacency, some, num_layers=num_layers)
        eligible = threat.eligible(fields.nodes, fields.distances, num_nodes=adjacency.num_nodes)
        bounds, _ = single_sources(setting, Block(fields=fields, eligible=eligible))
        trusted = np.zeros(fields.nodes.size, dtype=np.bool_)
        if threat.trusted is not None:
            trusted = threat.trusted[fields.nodes]
        values = np.where(eligible, bounds, np.where(trusted, 0.0, 1.0))
        shape = (fields.targets.size, adjacency.num_nodes)
        parts.append(sp.csr_array((values, fields.nodes, fields.indptr), shape=shape))
    return sp.csr_array(sp.vstack(parts))
