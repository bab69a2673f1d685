"""Votes under randomized ablation: exactly k nodes keep their features, no edge is deleted (App. B)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.utils import sort_edge_index

from graycert._types import NO_CLASS, IntArray
from graycert._validation import check_integer
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.graph import receptive_fields
from graycert.graph.conversion import simple_adjacency
from graycert.models.padding import reads_padding
from graycert.models.protocol import RowwiseStart, evaluate
from graycert.models.rowwise_start import rowwise_start
from graycert.sampling.engine import Progress
from graycert.sampling.field_graph import FieldGraph, field_graph, whole_graph
from graycert.sampling.interception import ablate, disjoint_copies
from graycert.sampling.scores import equal_scores, voted_class
from graycert.sampling.streams import CoinStream, Purpose, mix
from graycert.sampling.voting import ablation_row, check_scores, evaluation_mode, skip_logits_of
from graycert.smoothing.randomized_ablation.parameters import RandomizedAblation

_ENTRIES_PER_PASS = 2**22  # of the rows and edges of all copies in one forward pass: some 16 MiB
_MOST_COPIES = 256
_COMPANY = 8  # draws that are compared alone and together


def kept_nodes(stream: CoinStream, samples: Tensor, nodes: Tensor, *, num_kept: int) -> Tensor:
    """Draw which nodes keep their features: in each sample those with the ``num_kept`` smallest hashes.

    A hash depends on (seed, stream, sample, node) alone, so a draw does not depend on batch size, device or the other
    samples. Within a sample it is a bijection of the node: there are no ties, and exactly ``num_kept`` are kept. With
    the order of the hashes treated as uniform, as every seeded generator is treated, so is the kept set.

    Args:
        stream: Where the hashes come from.
        samples: Sample numbers, int64 (num_samples,).
        nodes: Distinct nodes to draw from, as indices of the whole graph, int64 (num_nodes,).
        num_kept: How many to keep, in 0..num_nodes.

    Returns:
        bool (num_samples, num_nodes), ``num_kept`` True entries per row.
    """
    if num_kept == 0:
        return torch.zeros(samples.numel(), nodes.numel(), dtype=torch.bool, device=nodes.device)
    sample_keys = mix(mix(samples + stream.key("kept", "sample")))
    node_keys = mix(mix(nodes + stream.key("kept", "id")))
    hashes = mix(sample_keys.unsqueeze(1) ^ node_keys.unsqueeze(0))
    return hashes <= hashes.kthvalue(num_kept, dim=1, keepdim=True).values


@dataclass(frozen=True, eq=False)
class AblationDomain:
    """The nodes that one draw chooses from, and the targets that it serves.

    Args:
        nodes: Indices in the whole graph, ascending, int64 (num_nodes,).
        num_kept: How many of them keep their features.
        places: The targets, as positions in the list of targets, shape (num_places,).
        num_layers: The forward pass is on the receptive field of the targets for this many steps, in copies; 0 for
            the whole graph, one at a time.
    """

    nodes: Tensor
    num_kept: int
    places: NDArray[np.int64]
    num_layers: int


@dataclass(frozen=True, eq=False)
class RandomizedAblationEngine:
    """Draws votes under randomized ablation for fixed model, graph and targets.

    The vote of a target is the class of ``model(x, edge_index)`` on the whole graph, where exactly the drawn nodes
    have their features and all others the token, plus what the skip connection adds. Ablation selects rows, edges
    stay.

    Args:
        model: What is evaluated, in evaluation mode.
        rows: Row of each node: its features, or their projection where the model starts row-wise, shape
            (num_nodes, width).
        token: Row of an ablated node, shape (width,).
        rowwise: Whether rows are projections.
        edge_index: All edges, on the CPU, int64 (2, num_edges).
        targets: Nodes to vote on, on the CPU, int64 (num_targets,).
        skip_logits: What the skip connection adds per target, shape (num_targets, num_classes), or None.
        num_classes: Number C of classes.
        domains: One per draw: a single one in the global scope, one per target in the local scope.
        batch_size: Most copies of a receptive field per forward pass; None to choose by size.
        name: Which evaluation this is, for people.
    """

    model: nn.Module
    rows: Tensor
    token: Tensor
    rowwise: bool
    edge_index: Tensor
    targets: Tensor
    skip_logits: Tensor | None
    num_classes: int
    domains: tuple[AblationDomain, ...]
    batch_size: int | None
    name: str

    @property
    def num_candidates(self) -> NDArray[np.int64]:
        """Number n of nodes that are drawn from, for each target."""
        return self._per_target([domain.nodes.numel() for domain in self.domains])

    @property
    def num_kept(self) -> NDArray[np.int64]:
        """Number k of nodes that keep their features, for each target."""
        return self._per_target([domain.num_kept for domain in self.domains])

    @property
    def draws_at_once(self) -> None:
        """Nothing: every domain has as many copies as fit."""
        return None

    def votes(
        self,
        seed: int,
        purpose: Purpose,
        *,
        num_samples: int,
        first_sample: int = 0,
        progress: Progress | None = None,
    ) -> IntArray:
        """Return votes per target and class, int64 (num_targets, num_classes).

        Sample numbers ``first_sample ... first_sample + num_samples - 1`` of the stream are drawn. What a row lacks to
        ``num_samples`` are votes for no class (`graycert.sampling.scores`).
        """
        check_integer("num_samples", num_samples, at_least=1)
        samples = torch.arange(first_sample, first_sample + num_samples, device=self.rows.device)
        votes = np.zeros((self.targets.numel(), self.num_classes), dtype=np.int64)
        done, reported = 0, 0
        with torch.inference_mode(), evaluation_mode(self.model):
            for domain in self.domains:
                for scores in self._batches(domain, CoinStream(seed, purpose), samples):
                    ones = torch.nn.functional.one_hot(voted_class(scores) - NO_CLASS, self.num_classes - NO_CLASS)
                    votes[domain.places] += ones.sum(dim=0)[:, -NO_CLASS:].cpu().numpy()
                    done += scores.size(0)
                    if progress is not None and done // len(self.domains) > reported:
                        progress(done // len(self.domains) - reported)
                        reported = done // len(self.domains)
        return votes

    def scores(self, domain: AblationDomain, seed: int, purpose: Purpose, samples: Tensor) -> Tensor:
        """Return class scores of a domain's targets, shape (num_samples, num_places, num_classes)."""
        with torch.inference_mode(), evaluation_mode(self.model):
            return torch.cat(list(self._batches(domain, CoinStream(seed, purpose), samples)))

    def _batches(self, domain: AblationDomain, stream: CoinStream, samples: Tensor) -> Iterator[Tensor]:
        graph, where = self._graph(domain), samples.device
        num_nodes, num_edges = graph.nodes.numel(), graph.edge_index.size(1)
        candidates = torch.searchsorted(graph.nodes, domain.nodes)
        rows, copies = self.rows[graph.nodes], self._copies(domain, graph)
        all_kept = torch.ones(min(copies, samples.numel()), num_edges, dtype=torch.bool, device=where)
        edges = disjoint_copies(graph.edge_index, all_kept, num_nodes=num_nodes)
        for part in torch.split(samples, copies):
            size = part.numel()
            ablated = torch.ones(size, num_nodes, dtype=torch.bool, device=where)
            ablated[:, candidates] = ~kept_nodes(stream, part, domain.nodes, num_kept=domain.num_kept)
            drawn = ablate(rows, self.token, ablated).flatten(0, 1)
            out = evaluate(self.model, drawn, edges[:, : size * num_edges], rowwise=self.rowwise)
            first = num_nodes * torch.arange(size, device=where)
            scores = out[first.unsqueeze(1) + graph.targets]
            yield scores if self.skip_logits is None else scores + self.skip_logits[domain.places]

    def _graph(self, domain: AblationDomain) -> FieldGraph:
        targets, num_nodes = self.targets[domain.places], self.rows.size(0)
        if domain.num_layers:
            made = field_graph(self.edge_index, targets, num_nodes=num_nodes, num_layers=domain.num_layers)
        else:
            made = whole_graph(self.edge_index, targets, num_nodes=num_nodes)
        return made.to(self.rows.device)

    def _copies(self, domain: AblationDomain, graph: FieldGraph) -> int:
        """One whole graph per pass, so that nothing is assumed of a model; copies of a field may share one."""
        if not domain.num_layers:
            return 1
        entries = graph.nodes.numel() * self.rows.size(1) + graph.edge_index.numel()
        return self.batch_size or max(1, min(_MOST_COPIES, _ENTRIES_PER_PASS // entries))

    def _per_target(self, values: list[int]) -> NDArray[np.int64]:
        result = np.empty(self.targets.numel(), dtype=np.int64)
        for domain, value in zip(self.domains, values, strict=True):
            result[domain.places] = value
        return result


def build_randomized_ablation_engine(
    model: nn.Module,
    data: Any,
    targets: NDArray[np.int64],
    *,
    smoothing: RandomizedAblation,
    num_layers: int | None = None,
    ablation_token: Tensor | None = None,
    batch_size: int | None = None,
    device: torch.device | None = None,
) -> RandomizedAblationEngine:
    """Prepare draws under randomized ablation.

    In the global scope nothing is assumed of the model but that it is a function of its arguments: one draw is one
    pass over the whole graph, and features are not shown to it outside of draws. In the local scope it must also be
    local (`audit_model`), because copies of a receptive field share a pass, and projected rows are computed once.
    Fields stand in for the whole graph where they give the same scores on two draws; a model that numbers nodes, or
    reads more of the graph, is evaluated on the whole graph.

    Args:
        model: ``forward(x, edge_index)`` -> (num_nodes, num_classes); see `graycert.models.protocol`.
        data: Graph with ``x`` and ``edge_index``.
        targets: Distinct nodes to vote on, shape (num_targets,).
        smoothing: How many nodes are kept, and where.
        num_layers: Number k of propagation steps, which define the receptive fields of the local scope.
        ablation_token: Features of an ablated node, shape (num_features,); default the model's own, else zeros.
        batch_size: Most copies of a receptive field per forward pass, >= 1. Votes do not depend on it.
        device: Where to compute; default where the model's parameters are.

    Raises:
        InvalidParameterError: If the token or the model's output has the wrong shape, or the local scope lacks
            ``num_layers``.
        UnsoundSetupError: ``skip-not-local`` if the model has ``skip`` but no ``skip_logits``; ``not-deterministic`` if
            what it computes changes with earlier calls.
    """
    if batch_size is not None:
        check_integer("batch_size", batch_size, at_least=1)
    where = device or next((p.device for p in model.parameters()), torch.device("cpu"))
    model.to(where)
    nodes, x = torch.tensor(targets), data.x.to(where)
    token = ablation_row(model, ablation_token, num_features=x.size(1)).to(where, x.dtype)
    edge_index = sort_edge_index(data.edge_index.cpu(), sort_by_row=False)  # votes do not depend on the order of edges
    domains = _domains(edge_index, targets, smoothing, num_nodes=x.size(0), num_layers=num_layers, where=where)
    with torch.inference_mode(), evaluation_mode(model):
        blank, edges = token.expand(x.size(0), -1), edge_index.to(where)
        scores = check_scores(model(blank, edges), num_nodes=x.size(0), x=x, finite=False)
        split = None if smoothing.scope == "global" else rowwise_start(model, x, edges, model(x, edges))
        engine = RandomizedAblationEngine(
            model=split or model,
            rows=x if split is None else cast("RowwiseStart", split).project(x),
            token=token if split is None else cast("RowwiseStart", split).project(token.unsqueeze(0))[0],
            rowwise=split is not None,
            edge_index=edge_index,
            targets=nodes,
            skip_logits=_skip_logits(model, x[nodes.to(where)]),
            num_classes=scores.size(1),
            domains=domains,
            batch_size=batch_size,
            name=f"torch, {smoothing.scope} ablation",
        )
        _refuse_memory(engine)
        if smoothing.scope == "local":
            domains = tuple(_on_the_field(engine, domain, cast("int", num_layers)) for domain in domains)
    return replace(engine, domains=domains)


def _refuse_memory(engine: RandomizedAblationEngine) -> None:
    """Evaluate a draw, another one, and the first again: on the CPU its scores must be the same bit for bit."""
    first, second = (torch.tensor([number], device=engine.rows.device) for number in (0, 1))
    before, _, after = (engine.scores(engine.domains[0], 0, Purpose.AUDIT, draw) for draw in (first, second, first))
    rounding = 0.0 if before.device.type == "cpu" else 1e-5 * float(before.nan_to_num(0.0, 0.0, 0.0).abs().max())
    if not equal_scores(before, after, tolerance=rounding):
        raise UnsoundSetupError(
            "not-deterministic",
            "`model` must be a function of x and edge_index in evaluation mode, but the same input gave two outputs. "
            "Look for dropout that ignores self.training, and for features kept from earlier calls.",
        )


def _domains(
    edge_index: Tensor,
    targets: NDArray[np.int64],
    smoothing: RandomizedAblation,
    *,
    num_nodes: int,
    num_layers: int | None,
    where: torch.device,
) -> tuple[AblationDomain, ...]:
    """Return what each draw chooses from; every draw is evaluated on the whole graph at first."""
    if smoothing.scope == "global":
        everyone = torch.arange(num_nodes, device=where)
        return (AblationDomain(everyone, smoothing.num_kept_among(num_nodes), np.arange(targets.size), 0),)
    if num_layers is None:
        raise InvalidParameterError(
            "`num_layers` must be given in the local scope, got None. It is the number of propagation steps that the "
            "receptive fields are made with."
        )
    fields = receptive_fields(simple_adjacency(edge_index, num_nodes=num_nodes), targets, num_layers=num_layers)
    parts = [np.sort(part) for part in np.split(fields.nodes, fields.indptr[1:-1])]
    return tuple(
        AblationDomain(torch.from_numpy(part).to(where), smoothing.num_kept_among(part.size), np.array([place]), 0)
        for place, part in enumerate(parts)
    )


def _skip_logits(model: nn.Module, x: Tensor) -> Tensor | None:
    """Return the skip connection's part, one row at a time: mixed rows would show a target the others' features."""
    parts = [skip_logits_of(model, x[row : row + 1]) for row in range(x.size(0))]
    found = [part for part in parts if part is not None]
    return torch.cat(found) if found else None


def _on_the_field(engine: RandomizedAblationEngine, domain: AblationDomain, num_layers: int) -> AblationDomain:
    """Return the domain evaluated on receptive fields if that gives the scores of the whole graph, alone and together.

    Two draws are compared with the whole graph, and some that share a pass with the same draws one by one.
    """
    if reads_padding(engine.model):
        return domain
    samples = torch.arange(2, device=engine.rows.device)
    expected = engine.scores(domain, 0, Purpose.AUDIT, samples)
    smaller = replace(domain, num_layers=num_layers)
    try:
        found = engine.scores(smaller, 0, Purpose.AUDIT, samples)
        more = torch.arange(_COMPANY, device=engine.rows.device)
        together = engine.scores(smaller, 0, Purpose.AUDIT, more)
        alone = torch.cat([engine.scores(smaller, 0, Purpose.AUDIT, each) for each in torch.split(more, 1)])
    except Exception:  # e.g. one learned row per node: whatever it raises, it needs a larger graph
        return domain
    pairs = ((found, expected), (together, alone))
    for ours, theirs in pairs:
        finite = theirs.nan_to_num(0.0, 0.0, 0.0).abs()
        if not equal_scores(ours, theirs, tolerance=1e-4 * finite + 1e-5 * finite.amax()):
            return domain
    return smaller
