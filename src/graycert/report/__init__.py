"""The report page: plain view data in, one self-contained HTML document out."""

from graycert.report.html import render_report
from graycert.report.plots import certified_ratio_svg
from graycert.report.view_data import Curve, ReportView, Table

__all__ = ["Curve", "ReportView", "Table", "certified_ratio_svg", "render_report"]
