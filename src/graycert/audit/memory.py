"""Is the model a function of its arguments: the same input, the same bits, whatever it was called with before?"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from graycert.audit.influence import same_bits
from graycert.audit.report import AuditCheck
from graycert.models.edge_inputs import sorted_edges
from graycert.models.outside_state import OutsideState, emptied
from graycert.models.private_copy import private_copy

_NAME, _SLUG = "determinism", "not-deterministic"
Call = Callable[[nn.Module, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class OtherInput:
    """Features and edges that share no summary with those of a graph, but their shapes.

    Args:
        x: Other values in another order, with another smallest and largest value in every column.
        edge_index: Another set of edges of the same number, with other degrees; values that edges carry are exchanged
            among them.
    """

    x: Tensor
    edge_index: Tensor

    @classmethod
    def than(cls, x: Tensor, edge_index: Tensor) -> "OtherInput":
        """Return another input."""
        generator = torch.Generator().manual_seed(1)
        low, high = x.amin(dim=0), x.amax(dim=0)
        scale = x.abs().amax()
        span = torch.where(high > low, high - low, torch.where(scale > 0, scale, torch.ones_like(scale)))
        noise = torch.rand(x.shape, generator=generator, dtype=torch.float32).to(x.dtype)
        order = torch.randperm(x.size(0), generator=generator)
        other = 0.6 * x[order] + (0.11 + 0.05 * noise) * span
        numbers = torch.randperm(x.size(0), generator=generator)
        reversed_edges = numbers[edge_index[:2].flip(0)]
        exchanged = edge_index[2:, torch.randperm(edge_index.size(1), generator=generator)]
        return cls(other, sorted_edges(torch.cat([reversed_edges, exchanged])))


def nearly_the_same(x: Tensor) -> Tensor:
    """Return features in which two unlike rows changed places: nearly every key of a cache stays as it is.

    All sums, orders and counts are equal, and so is what is printed of a large tensor; the rows are no part of a
    sample of every second, third, fifth or seventh one.
    """
    size = x.size(0)
    inner = [row for row in range(size // 4, size - size // 4) if math.gcd(row, 210) == 1]
    for first, second in itertools.pairwise(inner):
        if not same_bits(x[first], x[second]):
            swapped = x.clone()
            swapped[first], swapped[second] = x[second], x[first]
            return swapped
    return x.flip(0)


def magnified(x: Tensor) -> Tensor:
    """Return features whose rows are 10 to 10^12 times as large: a limit that is no limit so far shows itself."""
    return x * (10.0 ** (1 + torch.arange(x.size(0)) % 12)).to(x.dtype).unsqueeze(1)


def check_memory(
    pristine: nn.Module,
    called: nn.Module,
    x: Tensor,
    edge_index: Tensor,
    scores: Tensor,
    outside: OutsideState,
    call: Call,
) -> tuple[AuditCheck, Tensor]:
    """Compare a copy that has seen another input with one that has not, inside the module and outside it.

    Args:
        pristine: Never called; copies are made of it.
        called: A copy of it that gave ``scores`` for ``x`` and ``edge_index`` in its first call.
        x: Features.
        edge_index: Edges.
        scores: What ``called`` gave.
        outside: What classes, globals and closures held before that call.
        call: Calls a model.

    Returns:
        The check, and the scores of ``x``'s other features with the same edges (what ``call`` gives).
    """
    other = OtherInput.than(x, edge_index)
    experienced = call(called, other.x, other.edge_index)
    again = call(called, x, edge_index)
    near = nearly_the_same(x)
    stale = call(called, near, edge_index)
    loud = magnified(other.x)
    limited = _tried(call, called, loud, edge_index)
    changed = outside.changed()
    outside.restore()
    fresh = private_copy(pristine)
    unprejudiced = call(fresh, other.x, other.edge_index)
    moved = call(fresh, other.x, edge_index)
    outside.restore()
    current = call(fresh, near, edge_index)
    outside.restore()
    unlimited = _tried(call, private_copy(pristine), loud, edge_index)
    outside.restore()
    same = same_bits(again, scores) and same_bits(experienced, unprejudiced) and same_bits(stale, current)
    if not same or not (limited is None or unlimited is None or same_bits(limited, unlimited)):
        return _remembers(changed), moved
    for by_removal in (False, True):
        refitted = private_copy(pristine)
        refilled = emptied(refitted, outside, by_removal=by_removal)
        if not refilled:
            break
        try:
            anew = call(refitted, other.x, other.edge_index)
            stores = any(each() for each in refilled)
        except Exception:  # what was emptied is a constant that the model needs
            continue
        finally:
            outside.restore()
        if stores and not same_bits(anew, unprejudiced):
            return _remembers([]), moved
    return AuditCheck(name=_NAME, passed=True, detail="the same input gives the same bits, whatever came before"), moved


def _tried(call: Call, model: nn.Module, x: Tensor, edge_index: Tensor) -> Tensor | None:
    """Return the scores of features unlike any, None where the model does not take them."""
    try:
        return call(model, x, edge_index)
    except Exception:  # such as an index that is computed from them
        return None


def _remembers(changed: list[str]) -> AuditCheck:
    where = f" Its calls changed {', '.join(sorted(changed)[:3])}, outside the module." if changed else ""
    return AuditCheck(
        name=_NAME,
        passed=False,
        slug=_SLUG,
        detail="`model` must not remember earlier calls, but after another input the same input gave another output."
        f"{where} Look for values that forward stores and reads again, such as a cache, or a scaling that is fitted "
        "at the first call: compute it once from the training nodes, and keep it as a buffer.",
    )


def unsteady() -> AuditCheck:
    """Return the failed check of a model that draws."""
    return AuditCheck(
        name=_NAME,
        passed=False,
        slug=_SLUG,
        detail="`model` must be deterministic in evaluation mode, but the same input gave two outputs. Look for "
        "functional dropout without training=self.training, or for sampling inside forward.",
    )
