"""Is a model of a graph with types the same function of the one graph that it is audited on?"""

import dataclasses

from graycert.audit.report import AuditCheck, AuditReport
from graycert.heterogeneous import AskedOfTypes
from graycert.heterogeneous.same_function import SLUG, difference


def with_types(report: AuditReport, asked: AskedOfTypes) -> AuditReport:
    """Return a report with one check more: whether scores are those of the graph with its types."""
    reason = difference(asked.model, asked.data)
    detail = "scores are those of the graph with its types, however many edges and nodes without edges there are"
    check = AuditCheck(
        name="node types", passed=reason is None, detail=reason or detail, slug="" if reason is None else SLUG
    )
    return dataclasses.replace(report, checks=(*report.checks, check))
