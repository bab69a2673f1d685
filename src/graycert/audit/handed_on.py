"""A report that is handed to the next `certify`, instead of a second audit."""

import dataclasses
import hmac
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from graycert._types import IntArray
from graycert.audit.dependence import check_features_matter
from graycert.audit.model_audit import DEFAULT_NUM_DRAWS, call_model
from graycert.audit.report import AuditCheck, AuditReport
from graycert.audit.seal import parts_of, seal_of
from graycert.errors import InvalidParameterError
from graycert.models.edge_inputs import with_edge_inputs
from graycert.models.outside_state import OutsideState
from graycert.models.private_copy import private_copy, undisturbed
from graycert.sampling import evaluation_mode


def accept_report(
    report: AuditReport,
    model: nn.Module,
    data: Any,
    *,
    num_layers: int | None,
    ablation_token: Tensor | None,
    edge_inputs: Sequence[str] | None,
    targets: IntArray | None,
    features_matter: bool,
    fingerprint: str,
    local: bool = True,
) -> AuditReport:
    """Take a report of this process instead of an audit; what depends on the targets is checked anew.

    Args:
        report: From `audit_model`.
        model: As for `audit_model`, and so are the others.
        data: Graph.
        num_layers: Number of propagation steps that is asked for.
        ablation_token: Features of an ablated node.
        edge_inputs: Names of values per edge.
        targets: Nodes that are asked for.
        features_matter: Whether scores must depend on features.
        fingerprint: That of the graph.
        local: Whether hostile nodes are others than the target, and reach it along edges.

    Raises:
        InvalidParameterError: If the report is about something else, was changed, or comes from another process.
    """
    if not isinstance(report, AuditReport):
        raise InvalidParameterError(
            f"`audit` must be a report of graycert.audit_model, got {type(report).__name__}. Leave it out to audit now."
        )
    if not report.seal or not hmac.compare_digest(report.seal, seal_of(report)):
        raise InvalidParameterError(
            "`audit` must be a report as audit_model returned it in this process, got one that was changed, loaded or "
            "made elsewhere. Leave it out to audit now."
        )
    now = parts_of(
        model,
        data,
        ablation_token=ablation_token,
        edge_inputs=edge_inputs,
        num_layers=num_layers,
        features_matter=features_matter,
        fingerprint=fingerprint,
    )
    if not now["model"]:
        raise InvalidParameterError(
            "`audit` must be about a model whose state can be hashed, got a model that holds something else than "
            "tensors, arrays, numbers, texts and objects of these. Leave `audit` out."
        )
    differing = [name for name, found in now.items() if report.about.get(name) != found]
    if differing or report.num_draws < DEFAULT_NUM_DRAWS:
        what = ", ".join(differing) or f"num_draws = {report.num_draws}, fewer than {DEFAULT_NUM_DRAWS}"
        raise InvalidParameterError(
            f"`audit` must be about this model, graph and token, got a report that differs in {what}. Call "
            "graycert.audit_model with what is certified, or leave `audit` out."
        )
    if not features_matter or not report.passed:
        return report
    with undisturbed():
        given, edges = with_edge_inputs(model, data, edge_inputs)
        pristine = private_copy(given).cpu()
        with torch.inference_mode(), evaluation_mode(pristine):
            outside = OutsideState(pristine)
            try:
                check = _features_matter(pristine, data.x.detach().cpu(), edges, targets, attacked_by_others=local)
            finally:
                outside.restore()
    others = tuple(each for each in report.checks if each.name != check.name)
    return dataclasses.replace(report, checks=(*others, check))


def _features_matter(
    pristine: nn.Module, x: Tensor, edge_index: Tensor, targets: IntArray | None, *, attacked_by_others: bool
) -> AuditCheck:
    scores = call_model(pristine, x, edge_index)
    chosen = torch.arange(x.size(0)) if targets is None else torch.tensor(targets)
    return check_features_matter(
        pristine, x, edge_index, scores, scores, chosen, call_model, attacked_by_others=attacked_by_others
    )
