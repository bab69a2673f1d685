"""Lemma 1, executed: hostile features whose messages are all intercepted must not change a single bit."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch_geometric.nn.aggr import QuantileAggregation

from graycert.audit.blocks import runs_on, union_of_blocks
from graycert.audit.covering import MILD, Covering
from graycert.audit.hostile_rows import KINDS, LIKE, UNLIKE, HostileRows
from graycert.audit.influence import rows_with_same_bits
from graycert.audit.report import AuditCheck
from graycert.audit.row_test import HOSTILE_FRACTIONS, beside_skip, rows_mix
from graycert.audit.witness import Attack, smallest_witness
from graycert.errors import GraycertError, InvalidParameterError
from graycert.models.private_copy import one_line, private_copy
from graycert.models.protocol import RowwiseStart, has_skip, starts_rowwise
from graycert.sampling import ablate

_SETTINGS = ((0.3, 0.5), (0.3, 0.0), (0.6, 0.8), (0.6, 0.0), (0.8, 0.2), (0.0, 0.8), (0.0, 0.5))
_FINITE = ("1e4", "unequal entries", "-1e4", "the largest finite number", "minus ones", "the smallest finite number")
_LOUD = ("1e4", "NaN", "unequal entries", "-1e4", "infinity")
_SMALL = 400_000  # features of a graph on which whole passes cost next to nothing
_FEW_DRAWS, _FEWEST_DRAWS = 5, 1  # on large graphs: where the model runs on nothing else, and where it does


@dataclass(frozen=True)
class _Stage:
    """A graph to attack on.

    Args:
        x: Features.
        edge_index: Sorted edges.
        original: Node of the graph per row.
        num_draws: Draws of edges and ablated nodes.
        kinds: Per draw, the kinds of hostile rows of each attack.
    """

    x: Tensor
    edge_index: Tensor
    original: Tensor
    num_draws: int
    kinds: Sequence[tuple[tuple[str, ...], ...]]


class LeakTest:
    """Draws from φ, lets random nodes be hostile, and compares the outputs of all nodes that no message reaches.

    Args:
        model: A private copy in evaluation mode, on the CPU; it is copied, not called.
        token: Features of an ablated node.
        num_layers: Hops k within which messages count.
        seed: Seeds draws and hostile sets.
    """

    def __init__(self, model: nn.Module, x: Tensor, token: Tensor, *, num_layers: int, seed: int) -> None:
        self._pristine, self._model = model, private_copy(model)
        self._token, self._num_layers = token, num_layers
        self._generator = torch.Generator().manual_seed(seed)
        self._rows = HostileRows.of(x, self._generator)
        self._skip = has_skip(model)
        self.checked = self.intercepted = 0

    def outputs(self, x: Tensor, edges: Tensor, *, shown: Tensor | None = None) -> Tensor:
        """Return a row per node; the skip branch sees ``shown``, by default ``x``."""
        return beside_skip(self._model, self._model(x, edges), x if shown is None else shown)

    def run(self, stage: _Stage) -> AuditCheck | None:
        """Return a failed check, or None if nothing leaked."""
        self._model = private_copy(self._pristine)  # what it remembers of one graph must not meet another
        num_nodes = stage.x.size(0)
        nobody = torch.zeros(num_nodes, dtype=torch.bool)
        self._attempt(stage.x, stage.edge_index, nobody)  # a cache, if there is one, now holds the undeleted edges
        for index in range(stage.num_draws):
            kept, ablated = self._draw(stage, index)
            before = self._attempt(stage.x, kept, ablated)
            for number, kinds in enumerate(stage.kinds[index]):
                hostile = torch.rand(num_nodes, generator=self._generator) < HOSTILE_FRACTIONS[(index + number) % 3]
                hostile[torch.randint(num_nodes, (1,), generator=self._generator)] = True
                unreached = ~reached(hostile & ~ablated, kept, self._num_layers)
                if self._skip:
                    unreached &= ~hostile
                attacked = stage.x.clone()
                attacked[hostile] = self._rows.mixed(kinds, stage.x[hostile], offset=index)
                after = self._attempt(attacked, kept, ablated)
                broken = (unreached & ~rows_with_same_bits(before, after)).nonzero()
                if broken.numel():
                    seen = Attack(stage.x, attacked, hostile, kept, unreached, stage.original)
                    return self._leak(seen, ablated, int(broken[0]))
                self.checked += int(unreached.sum())
                self.intercepted += int((unreached & reached(hostile, stage.edge_index, self._num_layers)).sum())
        return None

    def cover(self, x: Tensor, edge_index: Tensor) -> AuditCheck | None:
        """Change every node while every other one stays, on the graph without any edge: `covering_words` says when.

        Whatever else brings a message, such as an edge of the model's own, brings it from one node to another.
        """
        edges = self._without_messages(x, edge_index)
        self._model = private_copy(self._pristine)
        nobody = torch.zeros(x.size(0), dtype=torch.bool)
        covering = Covering(x, self._rows, self._generator)
        first: dict[
            int, tuple[Tensor, Tensor]
        ] = {}  # of each mild row: in which pass it was shown first, and its output
        for number, shown in enumerate(covering.passes()):
            after = self._attempt(shown, edges, nobody)
            for symbol in range(MILD):
                same = covering.words[:, number] == symbol
                since, before = first.setdefault(symbol, (torch.full_like(same, -1, dtype=torch.int64), after.clone()))
                new = same & (since < 0)
                since[new], before[new] = number, after[new]
                broken = (same & ~rows_with_same_bits(before, after)).nonzero()
                if broken.numel():
                    earlier = covering.features(int(since[broken[0]]))
                    still = rows_with_same_bits(earlier, shown)
                    seen = Attack(earlier, shown, ~still, edges, still, torch.arange(x.size(0)))
                    return self._leak(seen, nobody, int(broken[0]))
                self.checked += int((same & ~new).sum())
        return None

    def _without_messages(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return no edges, or where a model does not run on a node alone, one from every node to itself."""
        nothing = edge_index[:, :0]
        with contextlib.suppress(Exception):  # foreign code: an aggregation may need some edge
            private_copy(self._pristine)(x[:1], nothing)
            return nothing
        loops = edge_index.new_zeros(edge_index.size(0), x.size(0))
        loops[:2] = torch.arange(x.size(0))
        return loops

    def _draw(self, stage: _Stage, index: int) -> tuple[Tensor, Tensor]:
        """Return kept edges and ablated nodes; as many edges in two draws, so that they cannot be told by number."""
        p_delete, p_ablate = _SETTINGS[index % len(_SETTINGS)]
        num_edges = stage.edge_index.size(1)
        order = torch.randperm(num_edges, generator=self._generator)
        kept = order[: round((1 - p_delete) * num_edges)].sort().values
        ablated = torch.rand(stage.x.size(0), generator=self._generator) < p_ablate
        return stage.edge_index[:, kept], ablated

    def _attempt(self, x: Tensor, edges: Tensor, ablated: Tensor) -> Tensor:
        try:
            return self.outputs(ablate(x, self._token, ablated), edges, shown=x)
        except GraycertError:
            raise
        except Exception as error:
            raise unusable(self._model, error, edges.size(1)) from error

    def _leak(self, seen: Attack, ablated: Tensor, victim: int) -> AuditCheck:
        def outputs(x: Tensor, edges: Tensor) -> Tensor:
            return self.outputs(ablate(x, self._token, ablated), edges, shown=x)

        shown = smallest_witness(outputs, seen, victim)
        return leak(
            f"Every message was intercepted, yet {shown} ({seen.edges.size(1)} edges, {self._num_layers} hops)."
        )


def leak_test(
    model: nn.Module,
    x: Tensor,
    edge_index: Tensor,
    token: Tensor,
    scores: Tensor,
    *,
    num_layers: int,
    num_draws: int,
    seed: int,
    known: bool = False,
) -> AuditCheck:
    """Attack the model on small parts of the graph where it runs on these, and on the graph where it does not.

    Where the model starts row-wise, each node is projected once by the sampler, so `rows_mix` tests that no row of
    the projection and of the skip branch changes with other rows.

    Args:
        model: A private copy in evaluation mode, on the CPU; it is copied, not called.
        x: Features (num_nodes, num_features).
        edge_index: Sorted, int64 (2, num_edges).
        token: Features of an ablated node.
        scores: ``model(x, edge_index)``.
        num_layers: Hops k within which messages count.
        num_draws: Number of draws.
        seed: Seeds draws and hostile sets.
        known: Whether the model is a chain of well-known layers, of which fewer attacks are enough.

    Raises:
        InvalidParameterError: If the model cannot be evaluated on hostile features or on the edges of a draw.
    """
    if not known:
        model = private_copy(model)
        try:
            mixes = starts_rowwise(model, x, edge_index, scores) and rows_mix(
                model, x, cast("RowwiseStart", model).project(x.clone()), torch.Generator().manual_seed(seed)
            )
        except GraycertError:
            raise
        except Exception as error:
            raise unusable(model, error, edge_index.size(1)) from error
        if mixes:
            return leak("The projected features of a node, or its skip branch, changed with those of other nodes.")
    where = []
    small = _small_stage(model, x, edge_index, num_layers, num_draws, seed, known=known)
    stages = [small] if small is not None else []
    looked_at = small.x if small is not None and known else x
    test = LeakTest(model, looked_at, token, num_layers=num_layers, seed=seed)
    if small is not None:
        where.append(f"parts of the graph ({small.x.size(0):,} nodes)")
    if small is None or not known:
        few = _FEW_DRAWS if small is None else _FEWEST_DRAWS
        draws = num_draws if x.numel() <= _SMALL else min(num_draws, few)
        groups = (_LOUD, tuple(LIKE), _FINITE)
        kinds = [(groups[index % 3],) for index in range(draws)]
        stages.append(_Stage(x, edge_index, torch.arange(x.size(0)), draws, kinds))
        where.append("the graph")
    for stage in stages:
        failed = test.run(stage)
        if failed is not None:
            return failed
    failed = None if known else test.cover(x, edge_index)
    if failed is not None:
        return failed
    covered = "" if known else ", and blocks of hostile nodes that cover all nodes"
    return AuditCheck(
        name="leak test",
        passed=True,
        detail=f"{test.checked:,} outputs bit-equal under hostile features of {len(KINDS)} kinds on "
        f"{' and '.join(where)}{covered}; in {test.intercepted:,} of them hostile nodes lie within reach and only the "
        "draw intercepts them",
    )


def _small_stage(
    model: nn.Module, x: Tensor, edge_index: Tensor, num_layers: int, num_draws: int, seed: int, *, known: bool
) -> _Stage | None:
    """Return parts of the graph with an attack of every kind, or None if the model does not run on them."""
    blocks = union_of_blocks(x, edge_index, num_hops=num_layers, seed=seed)
    if not runs_on(private_copy(model), blocks):
        return None
    kinds = [(kind,) for kind in (*UNLIKE, *LIKE)] * (1 if known else len(HOSTILE_FRACTIONS))
    draws = max(1, min(num_draws, len(kinds) // 4)) if known else num_draws
    per_draw = [tuple(kinds[index::draws]) for index in range(draws)]
    return _Stage(blocks.x, blocks.edge_index, blocks.original, draws, per_draw)


def leak(detail: str) -> AuditCheck:
    """Return the failed check."""
    return AuditCheck(name="leak test", passed=False, slug="message-leak", detail=detail)


def unusable(model: nn.Module, error: Exception, num_edges: int) -> InvalidParameterError:
    """Return the error for a model that cannot be evaluated where hostile nodes and draws may lead."""
    if needs_in_edges(model, error):
        return InvalidParameterError(
            "`model` must accept nodes without in-edges, which every draw has, got an aggregation by median or "
            f"quantile, which does not in this version of PyTorch Geometric ({one_line(error)}). Aggregate otherwise, "
            'for example aggr="mean", or add a self-loop to every node inside forward.'
        )
    return InvalidParameterError(
        "`model` must accept any features and any edges, because hostile nodes may have features such as "
        f"10000, nan, inf, -10000 and any edge may be deleted, got {one_line(error)} with {num_edges} edges. Remove "
        "the check, or clamp the features before they are used as an index; weights stored for each edge of the graph "
        "cannot follow deleted edges: name them in `edge_inputs`."
    )


def needs_in_edges(model: nn.Module, error: Exception) -> bool:
    """Return whether an error is that of an aggregation which picks elements where there are none."""
    return isinstance(error, IndexError) and any(isinstance(each, QuantileAggregation) for each in model.modules())


def reached(start: Tensor, edges: Tensor, num_layers: int) -> Tensor:
    """Return the nodes with a path of at most ``num_layers`` edges from ``start``, itself included."""
    found = start.clone()
    for _ in range(num_layers):
        grown = found.clone()
        grown[edges[1][found[edges[0]]]] = True
        found = grown
    return found
