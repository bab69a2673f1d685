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
_LOUD = (1e4, float("nan"), float("inf"), -1e4, 0.0)
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
    attacked = GivenEdgeInputs(given.model, _with_hostile_rows(given.inputs))
    x = data.x.detach().cpu()
    token = ablation_row(model, ablation_token, num_features=x.size(1)).detach().cpu().to(x.dtype)
    generator = torch.Generator().manual_seed(seed)
    checked = 0
    with torch.inference_mode(), evaluation_mode(attacked):
        for features, kept, hostile, unreached in _attacks(attacked, x, edges, reach, generator):
            ablated = torch.rand(hostile.shape, generator=generator) < _ABLATED[checked % len(_ABLATED)]
            changed, theirs = features.clone(), kept.clone()
            changed[hostile] = HostileRows.of(features, generator).mixed(_KINDS, features[hostile], offset=checked)
            touched = hostile[kept[0]] | hostile[kept[1]]
            theirs[2, touched] = torch.randint(attacked.inputs.num_rows, (int(touched.sum()),), generator=generator)
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


def _with_hostile_rows(inputs: EdgeInputs) -> EdgeInputs:
    """Add rows of huge and undefined floats; integers, which index relations, stay those that there are."""
    first = {name: table[:1].expand(len(_LOUD), *table.shape[1:]) for name, table in inputs.values.items()}
    loud = {
        name: torch.stack([torch.full_like(rows[0], value) for value in _LOUD]) if rows.is_floating_point() else rows
        for name, rows in first.items()
    }
    return EdgeInputs({name: torch.cat([table, loud[name]]) for name, table in inputs.values.items()})


def _outputs(model: nn.Module, x: Tensor, edges: Tensor, shown: Tensor) -> Tensor:
    try:
        return beside_skip(model, model(x, edges), shown)
    except GraycertError:
        raise
    except Exception as error:
        raise unusable(model, error, edges.size(1)) from error
