"""Lemma 1, executed: hostile features whose messages are all intercepted must not change a single bit."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, cast

import torch
from torch import Tensor, nn

from graycert.audit.influence import HOSTILE_VALUES, rows_with_same_bits
from graycert.audit.report import AuditCheck
from graycert.audit.row_test import HOSTILE_FRACTIONS, beside_skip, rows_mix
from graycert.errors import GraycertError, InvalidParameterError
from graycert.models.protocol import RowwiseStart, evaluate, has_skip, starts_rowwise
from graycert.sampling import CoinStream, InterceptionSampler, Purpose, ablate
from graycert.smoothing.interception.parameters import InterceptionSmoothing

_SETTINGS = ((0.3, 0.5), (0.6, 0.8), (0.8, 0.2), (0.5, 0.0), (0.0, 0.8))


class _Evaluation(Protocol):
    """Evaluates a model on the graph of a draw, as the voting engine does."""

    def outputs(self, edges: Tensor, ablated: Tensor, hostile: Tensor, value: int) -> Tensor:
        """Return a row per node, where all features of ``hostile`` nodes are the ``value``-th hostile value."""
        ...


@dataclass(frozen=True)
class _Whole:
    """The whole model, on features, with its skip branch."""

    model: nn.Module
    x: Tensor
    token: Tensor

    def outputs(self, edges: Tensor, ablated: Tensor, hostile: Tensor, value: int) -> Tensor:
        x = self.x.clone()
        x[hostile] = HOSTILE_VALUES[value]
        return beside_skip(self.model, evaluate(self.model, ablate(x, self.token, ablated), edges, rowwise=False), x)


@dataclass(frozen=True)
class _Gathered:
    """What follows the projection, on gathered rows; the skip branch is row-wise and needs no draw."""

    model: nn.Module
    clean: Tensor
    token: Tensor
    hostile_rows: list[Tensor]

    def outputs(self, edges: Tensor, ablated: Tensor, hostile: Tensor, value: int) -> Tensor:
        rows = torch.where(hostile.unsqueeze(1), self.hostile_rows[value], self.clean)
        return evaluate(self.model, ablate(rows, self.token, ablated), edges, rowwise=True)


@dataclass(frozen=True)
class _Trial:
    """One draw with one hostile set: what must not change, and what did."""

    unreached: Tensor
    changed: Tensor
    intercepted: Tensor


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
) -> AuditCheck:
    """Draw from φ, let random nodes be hostile, and compare the outputs of all nodes that no message reaches.

    Where the model starts row-wise, each node is projected once, as the sampler does, and `rows_mix` tests that no
    row of the projection and of the skip branch changes with other rows.

    Args:
        model: In evaluation mode, on the CPU.
        x: Features (num_nodes, num_features).
        edge_index: int64 (2, num_edges).
        token: Features of an ablated node.
        scores: ``model(x, edge_index)``.
        num_layers: Hops k within which messages count.
        num_draws: Number of draws.
        seed: Seeds draws and hostile sets.

    Raises:
        InvalidParameterError: If the model cannot be evaluated on hostile features or on the edges of a draw.
    """
    generator = torch.Generator().manual_seed(seed)
    evaluation: _Evaluation = _Whole(model, x, token)
    try:
        if starts_rowwise(model, x, edge_index, scores):
            project = cast("RowwiseStart", model).project
            clean = project(x)
            if rows_mix(model, x, clean, generator):
                return _leak("The projected features of a node, or its skip branch, changed with those of other nodes.")
            single_rows = torch.stack([token, *(torch.full_like(token, value) for value in HOSTILE_VALUES)])
            ablated_row, *hostile_rows = project(single_rows)
            evaluation = _Gathered(model, clean, ablated_row, hostile_rows)
    except GraycertError:
        raise
    except Exception as error:
        raise _unusable(error, edge_index.size(1)) from error
    checked = intercepted = 0
    skip, num_nodes = has_skip(model), x.size(0)
    for trial in _trials(evaluation, edge_index, num_nodes, num_layers, num_draws, seed, generator, skip=skip):
        broken = (trial.unreached & trial.changed).nonzero()
        if broken.numel():
            return _leak(
                f"The output of node {int(broken[0])} changed although every message of the hostile nodes within "
                f"{num_layers} hops was intercepted."
            )
        checked += int(trial.unreached.sum())
        intercepted += int((trial.unreached & trial.intercepted).sum())
    return AuditCheck(
        name="leak test",
        passed=True,
        detail=f"{checked:,} outputs bit-equal under hostile features in {num_draws} draws; in {intercepted:,} of them "
        "hostile nodes lie within reach and only the draw intercepts them",
    )


def _trials(
    evaluation: _Evaluation,
    edge_index: Tensor,
    num_nodes: int,
    num_layers: int,
    num_draws: int,
    seed: int,
    generator: torch.Generator,
    *,
    skip: bool,
) -> Iterator[_Trial]:
    nobody = torch.zeros(num_nodes, dtype=torch.bool)
    # A cache, if there is one, now holds the undeleted edges.
    evaluation.outputs(edge_index, nobody, nobody, 0)
    for index in range(num_draws):
        p_delete, p_ablate = _SETTINGS[index % len(_SETTINGS)]
        smoothing = InterceptionSmoothing(p_delete=p_delete, p_ablate=p_ablate)
        stream = CoinStream(seed, Purpose.AUDIT)
        draw = InterceptionSampler.of_graph(smoothing, stream, edge_index, num_nodes=num_nodes).draw(
            torch.tensor([index])
        )
        kept, ablated = edge_index[:, draw.kept[0]], draw.ablated[0]
        fraction = HOSTILE_FRACTIONS[index % len(HOSTILE_FRACTIONS)]
        hostile = torch.rand(num_nodes, generator=generator) < fraction
        hostile[torch.randint(num_nodes, (1,), generator=generator)] = True
        unreached = ~_reached(hostile & ~ablated, kept, num_layers)
        if skip:
            unreached &= ~hostile
        value = index % len(HOSTILE_VALUES)
        try:
            before = evaluation.outputs(kept, ablated, nobody, value)
            after = evaluation.outputs(kept, ablated, hostile, value)
        except GraycertError:
            raise
        except Exception as error:
            raise _unusable(error, kept.size(1)) from error
        within_reach = _reached(hostile, edge_index, num_layers)
        yield _Trial(unreached, ~rows_with_same_bits(before, after), within_reach)


def _leak(what: str) -> AuditCheck:
    return AuditCheck(
        name="leak test",
        passed=False,
        slug="message-leak",
        detail=f"{what} Something carries features past the deleted edges or the ablation (a statistic over nodes, a "
        "multiplied mask, weights instead of removed edges, more hops than counted).",
    )


def _unusable(error: Exception, num_edges: int) -> InvalidParameterError:
    return InvalidParameterError(
        "`model` must accept any features and any edges, because hostile nodes may have features such as "
        f"{', '.join(f'{value:g}' for value in HOSTILE_VALUES)} and any edge may be deleted, got "
        f"{type(error).__name__}: {error} with {num_edges} edges. Remove the check, or clamp the features before they "
        "are used as an index."
    )


def _reached(start: Tensor, edges: Tensor, num_layers: int) -> Tensor:
    """Return the nodes with a path of at most ``num_layers`` edges from ``start``, itself included."""
    reached = start.clone()
    for _ in range(num_layers):
        grown = reached.clone()
        grown[edges[1][reached[edges[0]]]] = True
        reached = grown
    return reached
