"""Does Lemma 1 hold for this model? Structure, depth, determinism, and an executed leak test."""

import copy
from typing import Any

import torch
from torch import Tensor, nn

from graycert._validation import check_integer, check_seed
from graycert.audit.influence import Influence, count_propagation_steps, probe_model, same_bits
from graycert.audit.leak_test import leak_test
from graycert.audit.report import AuditCheck, AuditReport
from graycert.audit.structure import check_structure
from graycert.data import validate_data
from graycert.errors import GraycertError, InvalidParameterError
from graycert.sampling import evaluation_mode
from graycert.sampling.voting import ablation_row, check_scores


def audit_model(
    model: nn.Module,
    data: Any,
    *,
    num_layers: int | None = None,
    ablation_token: Tensor | None = None,
    num_draws: int = 15,
    seed: int = 0,
) -> AuditReport:
    r"""Decide whether Lemma 1 holds: intercepted messages cannot change a prediction.

    Four kinds of checks run on a copy of the model, on the CPU, in evaluation mode:

    1. structure: no cached propagation, graph-wide or batch normalisation, global attention or pooling, or
       feature-dependent neighbours;
    2. depth: propagation steps are counted while the model runs, and the distance at which a changed node is noticed
       is measured on path graphs; the larger must not exceed ``num_layers``;
    3. determinism: the same input gives the same bits, whatever the model was called with before;
    4. an executed leak test on ``data``: for draws from φ and hostile values (10⁴, -10⁴, ∞, NaN), the output of
       every node without an arriving message is equal bit for bit.

    The audit can prove that Lemma 1 fails; for a foreign module it cannot prove in general that it holds. What it
    cannot see: features that were computed from the whole graph beforehand (z-scores, column means), edges chosen by
    features, and a token taken from the features in a way other than their mean. See `docs/soundness.md`.

    Args:
        model: ``forward(x, edge_index)`` -> class scores (num_nodes, num_classes).
        data: Graph with ``x`` (num_nodes, num_features) and ``edge_index`` (2, num_edges).
        num_layers: Number k of propagation steps, if you know it; by default it is counted. Needed for a model that
            moves messages without PyTorch Geometric layers.
        ablation_token: Features of an ablated node (num_features,); default the model's own, else zeros.
        num_draws: Draws of the leak test, >= 1.
        seed: Seeds the leak test.

    Returns:
        The report; ``report.passed`` says whether a certificate can be issued, ``report.require()`` raises if not.

    Raises:
        InvalidParameterError: If the model does not return finite scores (num_nodes, num_classes), cannot be evaluated
            on hostile features or fewer edges, or an argument is out of range.

    References:
        Scholten et al. (2022), Lemma 1 and Proposition 1.
    """
    if not isinstance(model, nn.Module):
        raise InvalidParameterError(
            f"`model` must be a torch.nn.Module with forward(x, edge_index), got {type(model).__name__}."
        )
    validate_data(data)
    check_integer("num_draws", num_draws, at_least=1)
    seed = check_seed(seed)
    if num_layers is not None:
        check_integer("num_layers", num_layers, at_least=1)
    x, edge_index = data.x.detach().cpu(), data.edge_index.cpu()
    token = ablation_row(model, ablation_token, num_features=x.size(1)).detach().cpu().to(x.dtype)
    probe, untouched = _copy(model), _copy(model)
    with torch.inference_mode(), evaluation_mode(probe), evaluation_mode(untouched):
        checks = check_structure(probe)
        scores = check_scores(_call(probe, x, edge_index), num_nodes=x.size(0), x=x)
        counted, again = count_propagation_steps(probe, x, edge_index)
        checks.append(_determinism(scores, again, probe, untouched, x, edge_index))
        checks.append(_token_is_independent(token, x))
        influence = probe_model(probe, num_features=x.size(1), dtype=x.dtype, at_least=max(counted, num_layers or 0))
        checks.append(_depth(counted, influence, num_layers))
        depth = num_layers if num_layers is not None else max(counted, 1)
        checks.append(leak_test(probe, x, edge_index, token, scores, num_layers=depth, num_draws=num_draws, seed=seed))
    return AuditReport(
        num_layers=depth,
        counted_steps=counted,
        farthest_influence=influence.distance if influence is not None else -1,
        checks=tuple(checks),
    )


def _copy(model: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(model).cpu()
    except Exception as error:
        raise InvalidParameterError(
            f"`model` must allow copy.deepcopy, because the audit works on a copy, got {_one_line(error)}. Does it "
            "keep a result of an earlier call as an attribute?"
        ) from error


def _call(model: nn.Module, x: Tensor, edge_index: Tensor) -> Any:
    try:
        return model(x, edge_index)
    except GraycertError:
        raise
    except Exception as error:
        raise InvalidParameterError(
            f"`model` must accept model(x, edge_index) with x of shape {tuple(x.shape)} and {x.dtype} and any "
            f"edges, got {_one_line(error)} with {edge_index.size(1)} edges. Wrap it in a module with that signature, "
            "or convert `data.x`; weights stored for each edge of the graph cannot follow deleted edges."
        ) from error


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no message'}"


def _determinism(
    scores: Tensor, again: Tensor, model: nn.Module, untouched: nn.Module, x: Tensor, edge_index: Tensor
) -> AuditCheck:
    name, slug = "determinism", "not-deterministic"
    if not same_bits(again, scores):
        return AuditCheck(
            name=name,
            passed=False,
            slug=slug,
            detail="`model` must be deterministic in evaluation mode, but the same input gave two outputs. Look for "
            "functional dropout without training=self.training, or for sampling inside forward.",
        )
    # Features that a model keeps from an earlier call pass by every interception of a later one.
    other, fewer = x.flip(0), edge_index[:, ::2]
    if not same_bits(_call(model, other, fewer), _call(untouched, other, fewer)):
        return AuditCheck(
            name=name,
            passed=False,
            slug=slug,
            detail="`model` must not remember earlier calls, but after another input the same input gave another "
            "output. Look for attributes that forward stores and reads again, such as a cache.",
        )
    return AuditCheck(name=name, passed=True, detail="the same input gives the same bits, whatever came before")


def _token_is_independent(token: Tensor, x: Tensor) -> AuditCheck:
    name = "ablation token"
    mean = x.mean(dim=0)
    if bool(mean.any()) and torch.allclose(token, mean, rtol=1e-5, atol=1e-8):
        return AuditCheck(
            name=name,
            passed=False,
            slug="token-from-features",
            detail="`ablation_token` equals the mean of the features, which hostile nodes shift. Use a trained or a "
            "constant token.",
        )
    return AuditCheck(name=name, passed=True, detail="is not the mean of the features")


def _depth(counted: int, influence: Influence | None, num_layers: int | None) -> AuditCheck:
    name = "propagation steps"
    if influence is not None and influence.leaks:
        return AuditCheck(
            name=name,
            passed=False,
            slug="message-leak",
            detail="A node without any path to another changed its output. Something mixes nodes without edges, such "
            "as a normalisation or a readout over the whole graph, or a virtual node.",
        )
    seen = influence.distance if influence is not None else 0
    if num_layers is None and (seen > counted or influence is None):
        what = f"messages travel {seen} hops" if influence is not None else "the model runs on this graph only"
        return AuditCheck(
            name=name,
            passed=False,
            slug="unknown-depth",
            detail=f"{counted} propagation steps of PyTorch Geometric layers are visible, but {what}. Pass "
            "`num_layers`, the number of times that messages move along an edge in one forward pass.",
        )
    if num_layers is not None and num_layers < max(counted, seen):
        return AuditCheck(
            name=name,
            passed=False,
            slug="too-few-layers",
            detail=f"`num_layers` must be >= {max(counted, seen)} for this model, got {num_layers}: {counted} "
            f"propagation steps were counted, and a changed node was noticed {seen} hops away.",
        )
    return AuditCheck(name=name, passed=True, detail=f"{counted} counted; influence seen up to {seen} hops")
