r"""Deterministic voting over hash-made subgraphs, in the style of AGNNCert and PGNNCert (Li et al. 2025).

The directed edges are divided among T subgraphs by a hash of their source: edge (u, w) lies in subgraph h(u). Every
subgraph has all nodes with their features. One GNN classifies a target in each of them, and the class with the most
votes wins, ties going to the smaller class.

Threat model: the adversary knows everything, hash and weights included, and sets all features of up to ρ nodes to
anything, NaN included. The target itself is trusted, because its own features are in every subgraph. The guarantee is
deterministic: no draws, no failure probability. `SubgraphVotingCertificates.radius`, the rival's own, holds even if the
hostile nodes also add and remove edges that start at them; `tightened_radius` is for a fixed structure, as all other
certificates of graycert are. Nobody may change which node has which number,
and the model is fixed: training data are not attacked (PGNNCert's case, which needs one model per subgraph).

The proof is in docs/proofs/subgraph_voting.md.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from graycert._types import BoolArray, IntArray
from graycert._validation import check_integer, check_seed, check_targets
from graycert.audit import audit_model
from graycert.data import validate_data
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.graph import receptive_fields
from graycert.graph.conversion import simple_adjacency
from graycert.graph.eligible_nodes import EligibleNodes, eligible_nodes
from graycert.models.protocol import RowwiseStart, evaluate
from graycert.models.rowwise_start import rowwise_start
from graycert.sampling import evaluation_mode
from graycert.sampling.streams import mix
from graycert.sampling.voting import check_scores, skip_logits_of
from graycert.smoothing.subgraphs.flipped_votes import attackable_radius, majority_radius
from graycert.smoothing.subgraphs.training import MOST_SUBGRAPHS
from graycert.threats.node_features import NodeFeatureThreat


@dataclass(frozen=True, kw_only=True, eq=False)
class SubgraphVotingCertificates:
    """Predictions and deterministic certificates, in the order of the targets.

    Attributes:
        targets: Node index of each target, shape (num_targets,).
        prediction: Class with the most votes, shape (num_targets,).
        radius: The rival's own radius M, from the votes alone, >= 0, shape (num_targets,).
        tightened_radius: The radius if only subgraphs count in which an eligible node has a path to the target;
            ``num_eligible`` where no number of them suffices. At least min(radius, num_eligible), at most num_eligible.
        votes: Subgraphs that vote for each class, shape (num_targets, num_classes); rows sum to ``num_subgraphs``.
        num_attackable: Subgraphs in which an eligible node has a path to the target, shape (num_targets,).
        num_eligible: Nodes within reach in the whole graph that may be hostile, shape (num_targets,).
        num_subgraphs: Number T of subgraphs.
        num_layers: Number k of propagation steps that paths are counted with.
    """

    targets: IntArray
    prediction: IntArray
    radius: IntArray
    tightened_radius: IntArray
    votes: IntArray
    num_attackable: IntArray
    num_eligible: IntArray
    num_subgraphs: int
    num_layers: int


def certify_subgraph_voting(
    model: nn.Module,
    data: Any,
    *,
    num_subgraphs: int,
    targets: ArrayLike,
    threat: NodeFeatureThreat | None = None,
    num_layers: int | None = None,
    seed: int = 0,
) -> SubgraphVotingCertificates:
    r"""Say for every target how many hostile nodes cannot change the majority vote over T subgraphs.

    $$M = \min_{b \ne a} \Bigl\lfloor \frac{n_a - n_b - [a > b]}{2} \Bigr\rfloor$$

    Guarantee:
        No change of all features of up to ``radius`` nodes other than the target, and of edges that start at them,
        changes the prediction of the vote. If the structure is fixed, no change of the features of up to
        ``tightened_radius`` eligible nodes does. Both are exact integers, hold with certainty, and assume that the
        model is local, which the audit tests. If all attackable subgraphs can be made to vote for anything,
        ``tightened_radius`` is the largest such number.

    Args:
        model: ``forward(x, edge_index)`` -> class scores (num_nodes, num_classes); see `graycert.models.protocol`.
        data: Graph (`torch_geometric.data.Data`) with ``x`` and ``edge_index``; parallel edges are allowed.
        num_subgraphs: Number T of subgraphs, in [1, 2^20].
        targets: Distinct node indices, shape (num_targets,).
        threat: Which nodes may be hostile; default all but the target.
        num_layers: Number k of propagation steps; default counted by the audit.
        seed: Seeds the hash.

    Returns:
        One certificate per target. There is no abstaining.

    Raises:
        InvalidParameterError: If an argument is out of its domain.
        UnsoundSetupError: ``target-in-every-subgraph`` if the threat contains a target; any slug of `audit_model`.

    References:
        Li and Wang (2025), AGNNCert (node-centred division); docs/proofs/subgraph_voting.md.
    """
    threat = threat if threat is not None else NodeFeatureThreat(min_distance=1)
    if not isinstance(threat, NodeFeatureThreat):
        raise InvalidParameterError(f"`threat` must be a NodeFeatureThreat, got {type(threat).__name__}.")
    validate_data(data)
    nodes = check_targets(targets, num_nodes=data.num_nodes)
    division = hash_division(int(data.num_nodes), num_subgraphs=num_subgraphs, seed=seed)
    _refuse_hostile_target(threat, nodes, num_nodes=int(data.num_nodes))
    audit = audit_model(model, data, num_layers=num_layers, seed=seed)
    audit.require()
    depth = audit.num_layers
    classifier = SubgraphClassifier.build(model, data, nodes)
    eligible = eligible_nodes(data, nodes, threat, num_layers=depth)
    votes = np.zeros((nodes.size, classifier.num_classes), dtype=np.int64)
    attackable_votes, rows = np.zeros_like(votes), np.arange(nodes.size)
    for edges in subgraphs(data.edge_index, division, num_subgraphs=num_subgraphs):
        winner = classifier.scores(edges).argmax(dim=1).cpu().numpy()
        votes[rows, winner] += 1
        attackable_votes[rows, winner] += _is_attackable(edges, nodes, eligible, num_layers=depth)
    return SubgraphVotingCertificates(
        targets=nodes,
        prediction=votes.argmax(axis=1),
        radius=majority_radius(votes),
        tightened_radius=attackable_radius(votes, attackable_votes, eligible.counts),
        votes=votes,
        num_attackable=attackable_votes.sum(axis=1),
        num_eligible=eligible.counts,
        num_subgraphs=num_subgraphs,
        num_layers=depth,
    )


def hash_division(num_nodes: int, *, num_subgraphs: int, seed: int) -> IntArray:
    """Return the subgraph h(u) of the edges that start at each node u, in [0, num_subgraphs), shape (num_nodes,).

    h(u) is a hash of the seed and the number of the node alone: neither features nor edges change it, and it is the
    same on every machine and for every number of nodes.

    Args:
        num_nodes: Number of nodes, >= 1.
        num_subgraphs: Number T of subgraphs, in [1, 2^20].
        seed: An integer in [0, 2^64).

    Example:
        >>> first, more = (hash_division(n, num_subgraphs=5, seed=0) for n in (3, 8))
        >>> bool((first == more[:3]).all())
        True
    """
    check_integer("num_nodes", num_nodes, at_least=1)
    check_integer("num_subgraphs", num_subgraphs, at_least=1, at_most=MOST_SUBGRAPHS)
    text = f"graycert/1 subgraph division {check_seed(seed)}".encode()
    key = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little", signed=True)
    hashed = mix(mix(torch.arange(num_nodes) + key)).numpy().view(np.uint64)
    return (hashed % np.uint64(num_subgraphs)).astype(np.int64)


def subgraphs(edge_index: Tensor, division: IntArray, *, num_subgraphs: int) -> Iterator[Tensor]:
    """Yield the edges of each subgraph, int64 (2, num_edges of it), in the order in which the graph has them."""
    edges = edge_index.cpu()
    part = torch.from_numpy(division)[edges[0]]
    order = torch.argsort(part, stable=True)
    sizes = torch.bincount(part, minlength=num_subgraphs).tolist()
    yield from torch.split(edges[:, order], sizes, dim=1)


@dataclass(frozen=True, kw_only=True)
class SubgraphClassifier:
    """Classifies fixed targets of a graph for changing edges; what does not depend on edges is computed once.

    Args:
        model: What is evaluated.
        rows: Projected rows of all nodes where the model starts row-wise, else features.
        rowwise: Whether ``rows`` are projected rows.
        skip_logits: What a skip connection adds per target, or None.
        targets: Node indices, int64 (num_targets,).
        num_classes: Number C of classes.
    """

    model: nn.Module
    rows: Tensor
    rowwise: bool
    skip_logits: Tensor | None
    targets: Tensor
    num_classes: int

    @classmethod
    def build(cls, model: nn.Module, data: Any, targets: IntArray) -> "SubgraphClassifier":
        """Project the features of all nodes once, if the model starts row-wise."""
        where = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
        x, edges, nodes = data.x.to(where), data.edge_index.to(where), torch.tensor(targets, device=where)
        with torch.inference_mode(), evaluation_mode(model):
            scores = check_scores(model(x, edges), num_nodes=x.size(0), x=x)
            split = rowwise_start(model, x, edges, scores)
            return cls(
                model=model if split is None else split,
                rows=x if split is None else cast("RowwiseStart", split).project(x),
                rowwise=split is not None,
                skip_logits=skip_logits_of(model, x[nodes]),
                targets=nodes,
                num_classes=scores.size(1),
            )

    def scores(self, edges: Tensor) -> Tensor:
        """Return the class scores of the targets in the graph with these edges, shape (num_targets, num_classes)."""
        with torch.inference_mode(), evaluation_mode(self.model):
            out = evaluate(self.model, self.rows, edges.to(self.rows.device), rowwise=self.rowwise)[self.targets]
        return out if self.skip_logits is None else out + self.skip_logits


def _is_attackable(edges: Tensor, targets: IntArray, eligible: EligibleNodes, *, num_layers: int) -> BoolArray:
    """Return for which targets an eligible node has a path of at most ``num_layers`` of these edges."""
    adjacency = simple_adjacency(edges, num_nodes=eligible.num_nodes)
    fields = receptive_fields(adjacency, targets, num_layers=num_layers)
    hostile = eligible.contain(fields.rows, fields.nodes)
    return np.bincount(fields.rows[hostile], minlength=targets.size) > 0


def _refuse_hostile_target(threat: NodeFeatureThreat, targets: IntArray, *, num_nodes: int) -> None:
    own = threat.eligible(targets, np.zeros_like(targets), num_nodes=num_nodes)
    if bool(own.any()):
        raise UnsoundSetupError(
            "target-in-every-subgraph",
            f"The features of target {int(targets[own][0])} are in every subgraph, so a hostile target changes all "
            "votes at once. Use NodeFeatureThreat(min_distance=1), or trust the targets.",
        )
