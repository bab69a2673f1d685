"""Hostile values of edges, executed: an output that no surviving path reaches must not change a single bit."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from graycert.audit.blocks import runs_on, union_of_blocks
from graycert.audit.covering import separating_blocks
from graycert.audit.hostile_rows import LIKE, HostileRows
from graycert.audit.influence import rows_with_same_bits
from graycert.audit.leak_test import leak, reached, unusable
from graycert.audit.report import AuditCheck
from graycert.audit.row_test import HOSTILE_FRACTIONS, beside_skip
from graycert.errors import GraycertError
from graycert.models.edge_inputs import EdgeInputs, GivenEdgeInputs, with_edge_inputs
from graycert.models.private_copy import private_copy
from graycert.sampling import ablate, evaluation_mode
from graycert.sampling.voting import ablation_row

_DELETED = (0.3, 0.6, 0.8, 0.0)
_ABLATED = (0.5, 0.0, 0.8)
_SMALL = 400_000  # features of a graph on which whole passes cost next to nothing
_LOUD = (1e4, float("nan"), float("inf"), -1e4, 0.0, -1e-3, 1e-3, -1.0, 1.0, float("-inf"))
_MIXED = 38  # rows whose entries differ
_FROM_ADDED = 0.5  # of hostile edges take one of the rows that no edge of the graph has
_KINDS = ("1e4", "NaN", *LIKE)


def check_hostile_values(
    model: nn.Module, data: Any, names: tuple[str, ...], *, reach: int, ablation_token: Tensor | None, seed: int
) -> AuditCheck:
    """Let hostile nodes set their features and the values of their edges, and compare what is not reached.

    Not reached is a node to which no surviving path of at most ``reach`` edges leads from a hostile node, ablated or
    not. On parts of the graph, on the graph, and on the graph without edges out of blocks of hostile nodes that
    together separate every node from every other: there nothing but edges into hostile nodes touches them.

    Args:
        model: ``forward(x, edge_index, **values)``; it is copied, not called.
        data: The graph.
        names: Values per edge that the model is given.
        reach: Number of edges, >= 1.
        ablation_token: Features of an ablated node; default the model's own, else zeros.
        seed: Seeds draws and hostile sets.

    Raises:
        InvalidParameterError: If the model cannot be evaluated on hostile values.
    """
    given, edges = with_edge_inputs(private_copy(model).cpu(), data, names)
    x, generator = data.x.detach().cpu(), torch.Generator().manual_seed(seed)
    attacked = GivenEdgeInputs(given.model, _with_hostile_rows(given, x, generator))
    token = ablation_row(model, ablation_token, num_features=x.size(1)).detach().cpu().to(x.dtype)
    checked = 0
    with torch.inference_mode(), evaluation_mode(attacked):
        for features, kept, hostile, unreached in _attacks(attacked, x, edges, reach, generator):
            ablated = torch.rand(hostile.shape, generator=generator) < _ABLATED[checked % len(_ABLATED)]
            changed, theirs = features.clone(), kept.clone()
            changed[hostile] = HostileRows.of(features, generator).mixed(_KINDS, features[hostile], offset=checked)
            touched = hostile[kept[0]] | hostile[kept[1]]
            theirs[2, touched] = _hostile_rows(given.inputs, attacked.inputs, int(touched.sum()), generator)
            before = _outputs(attacked, ablate(features, token, ablated), kept, features)
            after = _outputs(attacked, ablate(changed, token, ablated), theirs, changed)
            broken = unreached & ~rows_with_same_bits(before, after)
            if bool(broken.any()):
                return leak(
                    "Hostile nodes set values of their edges, and the output of a node changed to which no path of at "
                    f"most {reach} surviving edges leads from any of them. Values that are compared over the whole "
                    "graph, or over the edges out of a node, cannot be hostile: normalise them per receiver."
                )
            checked += int(unreached.sum())
    return AuditCheck(name="hostile values of edges", passed=True, detail=f"{checked:,} outputs bit-equal")


def _attacks(
    model: nn.Module, x: Tensor, edges: Tensor, reach: int, generator: torch.Generator
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Yield features, surviving edges, hostile nodes, and which nodes these must not reach."""
    blocks = union_of_blocks(x, edges, num_hops=reach, seed=0)
    stages = [(x, edges, len(_DELETED) if x.numel() <= _SMALL else 1)]
    if runs_on(private_copy(model), blocks):
        stages.insert(0, (blocks.x, blocks.edge_index, 6 * len(_DELETED)))
    for features, all_edges, times in stages:
        for number in range(times):
            kept = all_edges[:, torch.rand(all_edges.size(1), generator=generator) >= _DELETED[number % len(_DELETED)]]
            hostile = torch.rand(features.size(0), generator=generator) < HOSTILE_FRACTIONS[number % 3]
            hostile[torch.randint(features.size(0), (1,), generator=generator)] = True
            yield features, kept, hostile, ~reached(hostile, kept, reach)
    for hostile in separating_blocks(x.size(0), generator):
        yield x, edges[:, ~hostile[edges[0]] | hostile[edges[1]]], hostile, ~hostile


def _hostile_rows(before: EdgeInputs, after: EdgeInputs, number: int, generator: torch.Generator) -> Tensor:
    """Return rows for hostile edges: those of other edges, and as often ones that no edge has."""
    others = torch.randint(before.num_rows, (number,), generator=generator)
    added = torch.randint(before.num_rows, after.num_rows, (number,), generator=generator)
    return torch.where(torch.rand(number, generator=generator) < _FROM_ADDED, added, others)


def _with_hostile_rows(given: GivenEdgeInputs, x: Tensor, generator: torch.Generator) -> EdgeInputs:
    """Add rows with the same loud value in every entry, then rows of different ones.

    Floats are huge, undefined, small, of both signs and zero. Integers may index relations: they are those that there
    are, and whatever else the model takes on a single edge.
    """
    found = {}
    for name, table in given.inputs.values.items():
        choices = torch.tensor(_LOUD, dtype=table.dtype) if table.is_floating_point() else _integers(given, name, x)
        size = (len(_LOUD) + _MIXED, *table.shape[1:])
        places = torch.randint(choices.numel(), size, generator=generator)
        constant = torch.arange(len(_LOUD)) % choices.numel()
        places[: len(_LOUD)] = constant.reshape(-1, *[1] * (table.dim() - 1))
        found[name] = torch.cat([table, choices[places]])
    return EdgeInputs(found)


def _integers(given: GivenEdgeInputs, name: str, x: Tensor) -> Tensor:
    """Return integers (or truth values) that a model takes: of the graph, and next to its least and largest."""
    table = given.inputs.values[name]
    there = torch.unique(table)
    if table.dtype == torch.bool:
        return torch.tensor([False, True])
    low, high = int(there.min()), int(there.max())
    limits = torch.iinfo(table.dtype)
    tried = {-1, 0, 1, low - 1, high + 1, 2 * high + 1, -high} - set(there.tolist())
    accepted = [
        value for value in sorted(tried) if limits.min <= value <= limits.max and _takes_value(given, name, value, x)
    ]
    return torch.cat([there, torch.tensor(accepted, dtype=table.dtype)])


def _takes_value(given: GivenEdgeInputs, name: str, value: int, x: Tensor) -> bool:
    """Try a value on a graph of one edge."""
    values = {other: table[:1] for other, table in given.inputs.values.items()}
    values[name] = torch.full_like(values[name], value)
    pair = x[:1].repeat(2, 1)
    try:
        with torch.inference_mode(), evaluation_mode(given):
            private_copy(given.model)(pair, torch.tensor([[0], [1]]), **values)
    except Exception:  # e.g. an index out of range
        return False
    return True


def _outputs(model: nn.Module, x: Tensor, edges: Tensor, shown: Tensor) -> Tensor:
    try:
        return beside_skip(model, model(x, edges), shown)
    except GraycertError:
        raise
    except Exception as error:
        raise unusable(model, error, edges.size(1)) from error
