"""What an audit says of a model of a graph with types, beside what it says of any other."""

import dataclasses
from typing import Any

from graycert.audit.report import AuditCheck, AuditReport
from graycert.graph.typed_nodes import TypedNodes
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


def with_numbering(report: AuditReport, data: Any) -> AuditReport:
    """Return a report whose failed checks say which numbers nodes and features of each type have.

    Args:
        report: The report.
        data: The graph that was looked at.
    """
    types = getattr(data, "types", None)
    if not isinstance(types, TypedNodes) or report.passed:
        return report
    ranges = [(types.nodes_of(name), types.columns_of(name)) for name in types.node_types]
    words = "; ".join(
        f"{name}: nodes from {nodes.start}, features from {columns.start} on"
        for name, (nodes, columns) in zip(types.node_types, ranges, strict=True)
    )
    checks = [
        each
        if each.passed
        else dataclasses.replace(each, detail=f"{each.detail} Types are numbered one by one ({words}).")
        for each in report.checks
    ]
    return dataclasses.replace(report, checks=tuple(checks))
