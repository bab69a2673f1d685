"""Modules whose presence alone breaks Lemma 1."""

from collections.abc import Callable, Iterator

import torch_geometric.nn as pyg
from torch import nn

from graycert.audit.report import AuditCheck

_GRAPH_WIDE_NORMS = (
    pyg.GraphNorm,
    pyg.PairNorm,
    pyg.MeanSubtractionNorm,
)
_GLOBAL_ATTENTION = (pyg.GPSConv, nn.MultiheadAttention, nn.TransformerEncoder, nn.TransformerEncoderLayer)
_POOLING = (pyg.TopKPooling, pyg.SAGPooling, pyg.EdgePooling, pyg.ASAPooling, pyg.PANPooling, pyg.MemPooling)
_FEATURE_DEPENDENT = (pyg.DynamicEdgeConv, pyg.GravNetConv, pyg.XConv)


def check_structure(model: nn.Module) -> list[AuditCheck]:
    """Return one failed check per forbidden module, or a single passed one."""
    failures = list(_failures(model))
    if failures:
        return failures
    count = sum(1 for _ in model.modules())
    return [AuditCheck(name="structure", passed=True, detail=f"none of {count} modules mixes nodes without edges")]


def _failures(model: nn.Module) -> Iterator[AuditCheck]:
    inside_convolutions = _aggregations_of_convolutions(model)
    for path, module in model.named_modules():
        if id(module) in inside_convolutions:
            continue
        where = f"`{path or 'model'}` ({type(module).__name__})"
        for slug, applies, reason in _RULES:
            if applies(module):
                detail = f"{where} {reason}"
                yield AuditCheck(name="structure", passed=False, detail=detail, slug=slug)


def _aggregations_of_convolutions(model: nn.Module) -> set[int]:
    """Return the aggregators inside convolutions: they reduce over the in-neighbours of each receiver alone."""
    inside: set[int] = set()
    for module in model.modules():
        if isinstance(module, pyg.MessagePassing) and isinstance(module.aggr_module, nn.Module):
            inside.update(id(child) for child in module.aggr_module.modules())
    return inside


def _is_batch_normalised(module: nn.Module) -> bool:
    return isinstance(module, nn.modules.batchnorm._BatchNorm) and module.running_mean is None


def _is_instance_normalised(module: nn.Module) -> bool:
    """Running statistics are constants in evaluation mode; without them the graph at hand is normalised by itself."""
    if not isinstance(module, nn.modules.instancenorm._InstanceNorm):  # PyTorch Geometric's is one, too
        return False
    return not module.track_running_stats or module.running_mean is None


def _is_graph_layer_norm(module: nn.Module) -> bool:
    return isinstance(module, pyg.LayerNorm) and module.mode == "graph"


def _is_pooling(module: nn.Module) -> bool:
    return isinstance(module, (*_POOLING, pyg.Aggregation))


_RULES: tuple[tuple[str, Callable[[nn.Module], bool], str], ...] = (
    (
        "cached-propagation",
        lambda module: bool(getattr(module, "cached", False)),
        "keeps the edges of its first call, so that later deletions have no effect. Build it with cached=False.",
    ),
    (
        "batch-statistics",
        _is_batch_normalised,
        "normalises by statistics of the nodes at hand, which every hostile node shifts. Use running statistics "
        "(track_running_stats=True).",
    ),
    (
        "graph-wide-normalization",
        lambda module: (
            isinstance(module, _GRAPH_WIDE_NORMS) or _is_graph_layer_norm(module) or _is_instance_normalised(module)
        ),
        "normalises over all nodes, so that a hostile node reaches every other without an edge. Use "
        "LayerNorm(mode='node'), or BatchNorm or InstanceNorm with running statistics (track_running_stats=True).",
    ),
    (
        "global-attention",
        lambda module: isinstance(module, _GLOBAL_ATTENTION),
        "attends to nodes without an edge between them, so that deleting edges does not intercept messages. Use "
        "attention over edges, e.g. GATv2Conv.",
    ),
    (
        "global-pooling",
        _is_pooling,
        "pools over nodes without regard to edges. A node classifier that can be certified uses edges only.",
    ),
    (
        "feature-dependent-structure",
        lambda module: isinstance(module, _FEATURE_DEPENDENT),
        "chooses neighbours by their features, which the adversary controls. Use the edges of the graph.",
    ),
)
