"""The report page: plain view data in, one self-contained HTML document out."""

from graycert.runs.page.html import render_report
from graycert.runs.page.plots import certified_ratio_svg
from graycert.runs.page.view_data import Curve, ReportView, Table

__all__ = ["Curve", "ReportView", "Table", "certified_ratio_svg", "render_report"]
