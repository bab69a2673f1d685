"""A report that is handed to the next `certify`, instead of a second audit."""

import dataclasses

import torch

from graycert.audit.dependence import check_features_matter
from graycert.audit.model_audit import DEFAULT_NUM_DRAWS, call_model, call_on_others
from graycert.audit.question import Question
from graycert.audit.report import AuditCheck, AuditReport
from graycert.audit.seal import is_sealed, parts_of
from graycert.errors import InvalidParameterError
from graycert.models.edge_inputs import with_edge_inputs
from graycert.models.outside_state import OutsideState
from graycert.models.private_copy import private_copy, undisturbed
from graycert.sampling import evaluation_mode


def accept_report(report: AuditReport, asked: Question, *, fingerprint: str) -> AuditReport:
    """Take a report of this process instead of an audit; what depends on the targets is checked anew.

    Args:
        report: From `audit_model`.
        asked: What is asked now.
        fingerprint: That of the graph.

    Raises:
        InvalidParameterError: If the report is about something else, was changed, or comes from another process.
    """
    if not isinstance(report, AuditReport):
        raise InvalidParameterError(
            f"`audit` must be a report of graycert.audit_model, got {type(report).__name__}. Leave it out to audit now."
        )
    if not is_sealed(report):
        raise InvalidParameterError(
            "`audit` must be a report as audit_model returned it in this process, got one that was changed, loaded or "
            "made elsewhere. Leave it out to audit now."
        )
    now = parts_of(asked, fingerprint=fingerprint)
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
    if not asked.features_matter or not report.passed:
        return report
    check = _features_matter(asked)
    others = tuple(each for each in report.checks if each.name != check.name)
    return dataclasses.replace(report, checks=(*others, check))


def _features_matter(asked: Question) -> AuditCheck:
    given, edges = with_edge_inputs(asked.model, asked.data, asked.edge_inputs)
    with undisturbed():
        pristine = private_copy(given).cpu()
        with torch.inference_mode(), evaluation_mode(pristine):
            outside = OutsideState(pristine)
            try:
                scores = call_model(pristine, asked.x, edges)
                return check_features_matter(
                    pristine, asked.x, edges, scores, scores, asked.rows, call_on_others, local=asked.local
                )
            finally:
                outside.restore()
