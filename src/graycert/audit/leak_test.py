"""Lemma 1, executed: hostile features whose messages are all intercepted must not change a single bit."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from graycert.audit.influence import HOSTILE_VALUES, rows_with_same_bits
from graycert.audit.report import AuditCheck
from graycert.errors import GraycertError, InvalidParameterError
from graycert.models.protocol import RowwiseStart, evaluate, has_skip, starts_rowwise
from graycert.sampling import CoinStream, InterceptionSampler, Purpose, ablate
from graycert.smoothing import InterceptionSmoothing

_SETTINGS = ((0.3, 0.5), (0.6, 0.8), (0.8, 0.2), (0.5, 0.0), (0.0, 0.8))
_HOSTILE_FRACTION = (0.02, 0.2, 0.9)


@dataclass(frozen=True)
class _Trial:
    """One draw with one hostile set: what must not change, and what did."""

    unreached: Tensor
    changed: Tensor
    intercepted: Tensor


def leak_test(
    model: nn.Module, x: Tensor, edge_index: Tensor, token: Tensor, *, num_layers: int, num_draws: int, seed: int
) -> AuditCheck:
    """Draw from φ, let random nodes be hostile, and compare the outputs of all nodes that no message reaches.

    Args:
        model: In evaluation mode, on the CPU.
        x: Features (num_nodes, num_features).
        edge_index: int64 (2, num_edges).
        token: Features of an ablated node.
        num_layers: Hops k within which messages count.
        num_draws: Number of draws.
        seed: Seeds draws and hostile sets.

    Raises:
        InvalidParameterError: If the model cannot be evaluated on hostile features or on the edges of a draw.
    """
    checked = intercepted = 0
    for trial in _trials(model, x, edge_index, token, num_layers, num_draws, seed):
        broken = (trial.unreached & trial.changed).nonzero()
        if broken.numel():
            return AuditCheck(
                name="leak test",
                passed=False,
                slug="message-leak",
                detail=f"The output of node {int(broken[0])} changed although every message of the hostile nodes "
                f"within {num_layers} hops was intercepted. Something carries features past the deleted edges or the "
                "ablation (a statistic over nodes, a multiplied mask, weights instead of removed edges, more hops "
                "than counted).",
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
    model: nn.Module, x: Tensor, edge_index: Tensor, token: Tensor, num_layers: int, num_draws: int, seed: int
) -> Iterator[_Trial]:
    num_nodes = x.size(0)
    skip = has_skip(model)
    rowwise = starts_rowwise(model, x, edge_index, model(x, edge_index))
    generator = torch.Generator().manual_seed(seed)
    nobody = torch.zeros(num_nodes, dtype=torch.bool)
    # A cache, if there is one, now holds the undeleted edges.
    _outputs(model, x, edge_index, token, nobody, rowwise=rowwise)
    for index in range(num_draws):
        p_delete, p_ablate = _SETTINGS[index % len(_SETTINGS)]
        smoothing = InterceptionSmoothing(p_delete=p_delete, p_ablate=p_ablate)
        stream = CoinStream(seed, Purpose.AUDIT)
        draw = InterceptionSampler.of_graph(smoothing, stream, edge_index, num_nodes=num_nodes).draw(
            torch.tensor([index])
        )
        kept, ablated = edge_index[:, draw.kept[0]], draw.ablated[0]
        share = _HOSTILE_FRACTION[index % len(_HOSTILE_FRACTION)]
        hostile = torch.rand(num_nodes, generator=generator) < share
        hostile[torch.randint(num_nodes, (1,), generator=generator)] = True
        value = HOSTILE_VALUES[index % len(HOSTILE_VALUES)]
        attacked = torch.where(hostile.unsqueeze(1), torch.full_like(x, value), x)
        unreached = ~_reached(hostile & ~ablated, kept, num_layers)
        if skip:
            unreached &= ~hostile
        try:
            before = _outputs(model, x, kept, token, ablated, rowwise=rowwise)
            after = _outputs(model, attacked, kept, token, ablated, rowwise=rowwise)
        except GraycertError:
            raise
        except Exception as error:
            raise InvalidParameterError(
                f"`model` must accept any features and any edges, because hostile nodes may have features such as "
                f"{value:g} and any edge may be deleted, got {type(error).__name__}: {error} with {kept.size(1)} "
                "edges. Remove the check, or clamp the features before they are used as an index."
            ) from error
        within_reach = _reached(hostile, edge_index, num_layers)
        yield _Trial(unreached, ~rows_with_same_bits(before, after), within_reach)


def _outputs(model: nn.Module, x: Tensor, edges: Tensor, token: Tensor, ablated: Tensor, *, rowwise: bool) -> Tensor:
    """Evaluate as the voting engine does, skip branch included."""
    if rowwise:
        projected = cast("RowwiseStart", model).project(torch.cat([x, token.unsqueeze(0)]))
        out = evaluate(model, ablate(projected[:-1], projected[-1], ablated), edges, rowwise=True)
    else:
        out = evaluate(model, ablate(x, token, ablated), edges, rowwise=False)
    if has_skip(model):
        skip_logits: Tensor = model.skip_logits(x)  # type: ignore[operator]
        out = torch.cat([out, skip_logits], dim=1)  # side by side: a NaN in one must not hide a change in the other
    return out


def _reached(start: Tensor, edges: Tensor, num_layers: int) -> Tensor:
    """Return the nodes with a path of at most ``num_layers`` edges from ``start``, itself included."""
    reached = start.clone()
    for _ in range(num_layers):
        grown = reached.clone()
        grown[edges[1][reached[edges[0]]]] = True
        reached = grown
    return reached
