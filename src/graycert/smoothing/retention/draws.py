"""The base classifier under node retention: every reduced representative once, or Monte-Carlo draws (App. J)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import sort_edge_index

from graycert._types import NO_CLASS
from graycert._validation import check_integer
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.graph import Adjacency, receptive_fields
from graycert.graph.reduced_representatives import ReducedRepresentatives, reduced_representatives
from graycert.models.padding import reads_padding
from graycert.models.protocol import RowwiseStart, evaluate
from graycert.models.rowwise_start import rowwise_start
from graycert.sampling.scores import equal_scores, voted_class
from graycert.sampling.streams import CoinStream, Purpose, mix
from graycert.sampling.voting import check_scores, evaluation_mode, skip_logits_of
from graycert.smoothing.retention.parameters import UniformRetention
from graycert.threats import convolution_family

_NODES_PER_PASS = 2**15
_TABLE_ENTRIES = 2**22
_CHECKED_DRAWS = 32
_COMPANY = 8  # kept sets that are compared alone and together
_TOLERANCE = 1e-4  # relative to the largest logit


@dataclass(frozen=True)
class RetentionLabels:
    """What the base classifier says about a target for every class of kept sets.

    Args:
        representatives: All classes of kept sets.
        labels: Predicted class for each of them, `NO_CLASS` for none, int64 (representatives.num_classes,).
    """

    representatives: ReducedRepresentatives
    labels: NDArray[np.int64]


@dataclass(frozen=True)
class _Field:
    """The receptive field of one target; position 0 is the target.

    Args:
        nodes: Node of the graph per position, int64 (d + 1,).
        edge_index: Edges of the graph between nodes of the field, in positions, int64 (2, num_edges).
        num_kept: Number k of further nodes that stay.
    """

    nodes: Tensor
    edge_index: Tensor
    num_kept: int


@dataclass(frozen=True)
class NodeRetentionEngine:
    """Evaluates a model on what node retention leaves of the receptive field of a target.

    For a kept set K (`UniformRetention`) the model is run on the subgraph of the field that S(K) induces: the target
    and the kept nodes that are still connected to it (`reduced_representatives`). Nodes outside S(K) are absent, with
    all their edges; self-loops of nodes that stay are kept. Both ways to evaluate use S(K), so exact and sampled label
    probabilities are about the same smoothed classifier. Before the first use on a target it is checked on draws that
    the model has the same output on K and on S(K).

    Build with `build_retention_engine`.

    Args:
        model: What is evaluated, in evaluation mode.
        rows: Row of each node: projected where the model starts row-wise, else features; shape (num_nodes, width).
        rowwise: Whether ``rows`` are projected rows.
        edge_index: Edges of the graph sorted by target, int64 (2, num_edges).
        adjacency: The same graph.
        skip_logits: What the skip connection adds per node, shape (num_nodes, num_classes), or None.
        smoothing: The share of the field that stays.
        num_layers: Number h of propagation steps.
        hops: None, or the distance up to which kept nodes count as connected.
        num_classes: Number C of labels.
        merges: Whether several kept sets may share a forward pass; it is checked for each target, too.
    """

    model: nn.Module
    rows: Tensor
    rowwise: bool
    edge_index: Tensor
    adjacency: Adjacency
    skip_logits: Tensor | None
    smoothing: UniformRetention
    num_layers: int
    hops: int | None
    num_classes: int
    merges: bool = True

    def label_representatives(self, target: int, *, tau: int = 100_000) -> RetentionLabels | None:
        """Return the label of every class of kept sets, or None if there are more than τ classes.

        Args:
            target: The node v.
            tau: Largest number of evaluations, >= 1. The paper stops at C(d, k) > τ already, the number of kept sets.

        Raises:
            UnsoundSetupError: ``disconnected-nodes-matter``, see `build_retention_engine`.
        """
        field = self._field(target)
        engine = self._checked(field)
        found = reduced_representatives(
            self.adjacency,
            target,
            num_layers=self.num_layers,
            num_kept=field.num_kept,
            hops=self.hops,
            max_representatives=tau,
        )
        if not found.is_complete:
            return None
        step = _sets_at_a_time(field)
        tables = (
            torch.from_numpy(found.membership(low, min(low + step, found.num_classes))).to(self.rows.device)
            for low in range(0, found.num_classes, step)
        )
        labels = torch.cat([voted_class(engine._scores(field, table)) for table in tables])
        return RetentionLabels(found, labels.cpu().numpy())

    def votes(
        self, target: int, seed: int, purpose: Purpose, *, num_samples: int, first_sample: int = 0
    ) -> NDArray[np.int64]:
        """Return how often each class is predicted for drawn kept sets, int64 (num_classes,); the rest single out none.

        The kept set of a sample is a function of (seed, purpose, sample number, nodes of the field) alone. Equal
        connected parts are evaluated once.

        Args:
            target: The node v.
            seed: Non-negative integer.
            purpose: Which stream; selection and estimation share no draw.
            num_samples: Number of draws, >= 1.
            first_sample: Number of the first draw.

        Raises:
            InvalidParameterError: If ``num_samples`` < 1.
            UnsoundSetupError: ``disconnected-nodes-matter``, see `build_retention_engine`.
        """
        check_integer("num_samples", num_samples, at_least=1)
        field = self._field(target)
        engine = self._checked(field)
        stream, total = CoinStream(seed, purpose), torch.zeros(self.num_classes, dtype=torch.long)
        step = _sets_at_a_time(field)
        for low in range(first_sample, first_sample + num_samples, step):
            samples = torch.arange(low, min(low + step, first_sample + num_samples), device=self.rows.device)
            kept = draw_kept_sets(stream, samples, field.nodes, num_kept=field.num_kept)
            parts, times = torch.unique(self._connected(field, kept), dim=0, return_counts=True)
            labels = voted_class(engine._scores(field, parts)).cpu()
            singled_out = labels != NO_CLASS
            total.index_add_(0, labels[singled_out], times.cpu()[singled_out])
        return cast("NDArray[np.int64]", total.numpy())

    def _field(self, target: int) -> _Field:
        nodes = torch.from_numpy(receptive_fields(self.adjacency, [target], num_layers=self.num_layers).nodes.copy())
        position = torch.full((self.adjacency.num_nodes,), -1, dtype=torch.long)
        position[nodes] = torch.arange(nodes.numel())
        ends = position[self.edge_index]
        where = self.rows.device
        inside = ends[:, (ends >= 0).all(dim=0)]
        inside = inside[:, inside[1].argsort(stable=True)]  # some aggregations need edges sorted by their target
        return _Field(nodes.to(where), inside.to(where), self.smoothing.num_kept(nodes.numel() - 1))

    def _connected(self, field: _Field, kept: Tensor) -> Tensor:
        """Return S(K) of each row of ``kept``, bool (num_sets, d + 1)."""
        source, end = field.edge_index
        reached = torch.zeros_like(kept)
        reached[:, 0] = True
        for _ in range(field.nodes.numel() if self.hops is None else self.hops):
            sent = torch.zeros(kept.shape, dtype=torch.int32, device=kept.device)
            sent.index_add_(1, source, reached[:, end].to(torch.int32))
            grown = reached | (kept & (sent > 0))
            if torch.equal(grown, reached):
                break
            reached = grown
        return reached

    def _scores(self, field: _Field, sets: Tensor) -> Tensor:
        """Return class scores of the target on the subgraphs that the rows of ``sets`` induce, (num_sets, C)."""
        with torch.inference_mode(), evaluation_mode(self.model):
            scores = torch.cat([self._forward(field, part) for part in _parts(sets, self.merges)])
        skip = None if self.skip_logits is None else self.skip_logits[field.nodes[0]]
        return scores if skip is None else scores + skip

    def _forward(self, field: _Field, sets: Tensor) -> Tensor:
        numbering = (sets.flatten().cumsum(0) - 1).reshape(sets.shape)
        source, end = field.edge_index
        copy, edge = (sets[:, source] & sets[:, end]).nonzero(as_tuple=True)
        edges = torch.stack([numbering[copy, source[edge]], numbering[copy, end[edge]]])
        rows = self.rows[field.nodes[sets.nonzero(as_tuple=True)[1]]]
        return evaluate(self.model, rows, edges, rowwise=self.rowwise)[numbering[:, 0]]

    def _checked(self, field: _Field) -> "NodeRetentionEngine":
        """Return the engine, one kept set per pass if it makes a difference, once S(K) is seen to be enough."""
        samples = torch.arange(_CHECKED_DRAWS, device=self.rows.device)
        kept = draw_kept_sets(CoinStream(0, Purpose.AUDIT), samples, field.nodes, num_kept=field.num_kept)
        parts = self._connected(field, kept)
        engine = self if self._merges_faithfully(field, parts) else replace(self, merges=False)
        engine._refuse_more_than_connected(field, kept, parts)
        return engine

    def _merges_faithfully(self, field: _Field, parts: Tensor) -> bool:
        """Compare sets that share a pass with the same sets one by one, the smallest and the largest among them.

        What pads to the longest list of messages of a pass gives the target on its own another score beside the field.
        """
        if not self.merges:
            return False
        several = torch.unique(parts, dim=0)  # sorted: neighbours are alike, so some from end to end
        chosen = several[torch.linspace(0, several.size(0) - 1, min(_COMPANY, several.size(0))).long()]
        ends = several.new_ones(2, several.size(1))
        ends[0, 1:] = False
        few = torch.cat([ends, chosen])
        try:
            one_by_one = replace(self, merges=False)._scores(field, few)
            return equal_scores(self._scores(field, few), one_by_one, tolerance=_tolerance(one_by_one))
        except InvalidParameterError:  # sets that need not be drawn; what is drawn is asked one by one
            return False

    def _refuse_more_than_connected(self, field: _Field, kept: Tensor, parts: Tensor) -> None:
        """Compare outputs on K and S(K) for a few draws."""
        whole, part = self._scores(field, kept), self._scores(field, parts)
        if not equal_scores(whole, part, tolerance=_tolerance(whole)):
            raise UnsoundSetupError(
                "disconnected-nodes-matter",
                "The output of `model` at a target changes if kept nodes that count as disconnected from it are left "
                f"out (hops={self.hops}), so one evaluation cannot stand for a whole class of kept sets. A model that "
                "normalises by degrees (GCN) needs hops=None; one that normalises by the out-degree of the sender, or "
                "reads more of the graph than arrives, cannot be derandomized this way.",
            )


def build_retention_engine(
    model: nn.Module,
    data: Any,
    *,
    smoothing: UniformRetention,
    num_layers: int,
    hops: int | None = None,
    device: torch.device | None = None,
) -> NodeRetentionEngine:
    """Prepare a model for evaluation under node-retention smoothing.

    Args:
        model: ``forward(x, edge_index)`` -> (num_nodes, num_classes); see `graycert.models.protocol`.
        data: Graph with ``x`` and ``edge_index``.
        smoothing: The share of the receptive field that stays.
        num_layers: Number h of propagation steps of the model.
        hops: None for classes by paths of any length, right for every model whose degrees are in-degrees (GCN); or
            ``num_layers`` for fewer classes, right for models without degree normalisation (GAT, GATv2, SAGE, GIN).
        device: Where to compute; default where the model's parameters are.

    Raises:
        InvalidParameterError: If the model's output has the wrong shape.
        UnsoundSetupError: ``parallel-edges``; ``skip-not-local``; later, on evaluation, ``disconnected-nodes-matter``
            if the model's output depends on more than the connected part.
    """
    where = device or next((p.device for p in model.parameters()), torch.device("cpu"))
    edge_index = sort_edge_index(data.edge_index.cpu(), sort_by_row=False)
    adjacency = Adjacency.from_edge_index(edge_index.numpy(), num_nodes=data.num_nodes)
    with torch.inference_mode(), evaluation_mode(model):
        model.to(where)
        x, edges = data.x.to(where), edge_index.to(where)
        scores = check_scores(model(x, edges), num_nodes=x.size(0), x=x)
        split = rowwise_start(model, x, edges, scores)
        return NodeRetentionEngine(
            model=split or model,
            rows=x if split is None else cast("RowwiseStart", split).project(x),
            rowwise=split is not None,
            edge_index=edge_index,
            adjacency=adjacency,
            skip_logits=skip_logits_of(model, x),
            smoothing=smoothing,
            num_layers=num_layers,
            hops=hops,
            num_classes=scores.size(1),
            merges=not reads_padding(model),
        )


def draw_kept_sets(stream: CoinStream, samples: Tensor, nodes: Tensor, *, num_kept: int) -> Tensor:
    """Draw the kept set of each sample: the first node and the ``num_kept`` others with the smallest hashes.

    The hash of (seed, purpose, sample, node) differs from node to node, as each step that makes it is a bijection, so
    there are no ties; for independent uniform hashes every set of ``num_kept`` nodes is equally probable.

    Args:
        stream: Where the hashes come from.
        samples: Sample numbers, int64 (num_samples,).
        nodes: Nodes of the field in the graph, the target first, int64 (d + 1,).
        num_kept: Number k of further nodes that stay, in [0, d].

    Returns:
        bool (num_samples, d + 1).
    """
    sample_key = mix(mix(samples + stream.key("retention", "sample")))
    node_key = mix(mix(nodes[1:] + stream.key("retention", "node")))
    hashes = mix(sample_key.unsqueeze(1) ^ node_key.unsqueeze(0))
    smallest = hashes.topk(num_kept, dim=1, largest=False).indices + 1
    kept = torch.zeros(samples.numel(), nodes.numel(), dtype=torch.bool, device=nodes.device)
    kept[:, 0] = True
    return kept.scatter_(1, smallest, True)


def _tolerance(scores: Tensor) -> float:
    return _TOLERANCE * max(float(scores.nan_to_num(0.0, 0.0, 0.0).abs().max()), 1e-30)


def _sets_at_a_time(field: _Field) -> int:
    """Return how many sets may be looked at together without large tables."""
    return max(1, _TABLE_ENTRIES // max(field.nodes.numel(), field.edge_index.size(1)))


def _parts(sets: Tensor, merges: bool) -> Iterator[Tensor]:
    """Split the rows so that each part has at most some ten thousand nodes, but at least one row."""
    if not merges:
        return iter(torch.split(sets, 1))
    before = (sets.sum(dim=1).cumsum(0) - 1) // _NODES_PER_PASS
    return iter(torch.split(sets, torch.unique_consecutive(before, return_counts=True)[1].tolist()))


def hops_of_classes(model: Any, num_layers: int) -> int | None:
    """Return ``num_layers`` if no layer reads its sender's degree, as far as is known, else None.

    Convolutions that are known not to (GAT, GATv2, SAGE, GIN; see `convolution_family`) get the coarser classes of kept
    nodes within ``num_layers`` hops, all others those by paths of any length, which are right for every model whose
    degrees are in-degrees (GCN, soft medoid). Wrong knowledge costs no guarantee: what is certified is the classifier
    that sees the connected part alone.
    """
    convolutions = {type(module).__name__ for module in model.modules() if isinstance(module, MessagePassing)}
    try:
        families = {convolution_family(name) for name in convolutions}
    except UnsoundSetupError:
        return None
    return num_layers if families == {"local"} else None
