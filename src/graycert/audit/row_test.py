"""Where a sampler projects each node once and then only gathers rows: does a projection keep its rows apart?"""

from collections.abc import Iterator
from typing import cast

import torch
from torch import Tensor, nn

from graycert.audit.influence import HOSTILE_VALUES, rows_with_same_bits
from graycert.models import InterceptionGNN
from graycert.models.protocol import RowwiseStart, has_skip

HOSTILE_FRACTIONS = (0.02, 0.2, 0.9)
_FEW = 256


def rows_mix(model: nn.Module, x: Tensor, projected: Tensor, generator: torch.Generator) -> bool:
    """Return whether a row of the projection, or of the skip branch, depends on the features of other nodes.

    A few rows must come out as they do among all of them, and bit-equal whatever the rows beside them hold: every
    hostile value in few, some and nearly all of them. Then all rows must, beside rows of every hostile value.

    Args:
        model: A `RowwiseStart`, in evaluation mode.
        x: Features (num_nodes, num_features).
        projected: ``model.project(x)``.
        generator: Draws the rows and the hostile ones.
    """
    num_nodes = x.size(0)
    whole = _beside_skip_rows(model, projected, x)
    chosen = torch.randperm(num_nodes, generator=generator)[:_FEW]
    some = x[chosen]
    few = _rows(model, some)
    scale = float(whole.abs().amax())
    if few.size(0) != chosen.numel() or not torch.allclose(few, whole[chosen], rtol=1e-4, atol=1e-5 * scale):
        return True
    if any(_changed(model, few, *attack) for attack in _attacks(some, generator)):
        return True
    hostile = torch.rand(num_nodes, generator=generator) < 0.5
    attacked = x.clone()
    for index, value in enumerate(HOSTILE_VALUES):
        attacked[hostile.nonzero()[index :: len(HOSTILE_VALUES), 0]] = value
    return _changed(model, whole, attacked, hostile)


def _attacks(x: Tensor, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield attacked features and which rows are hostile, for every hostile value and fraction."""
    for value in HOSTILE_VALUES:
        for fraction in HOSTILE_FRACTIONS:
            hostile = torch.rand(x.size(0), generator=generator) < fraction
            attacked = x.clone()
            attacked[hostile] = value
            yield attacked, hostile


def _changed(model: nn.Module, clean: Tensor, attacked: Tensor, hostile: Tensor) -> bool:
    return not bool((rows_with_same_bits(_rows(model, attacked), clean) | hostile).all())


def _rows(model: nn.Module, x: Tensor) -> Tensor:
    return _beside_skip_rows(model, cast("RowwiseStart", model).project(x.clone()), x)


def _beside_skip_rows(model: nn.Module, projected: Tensor, x: Tensor) -> Tensor:
    if isinstance(model, InterceptionGNN) and type(model).skip_logits is InterceptionGNN.skip_logits and model.skip:
        return torch.cat([projected, model.skip_from_projection(projected)], dim=1)  # projects once, not twice
    return beside_skip(model, projected, x)


def beside_skip(model: nn.Module, out: Tensor, x: Tensor) -> Tensor:
    """Return ``out`` and the skip branch side by side: a NaN in one must not hide a change in the other."""
    if not has_skip(model):
        return out
    skip_logits: Tensor = model.skip_logits(x.clone())  # type: ignore[operator]
    return torch.cat([out, skip_logits], dim=1)
