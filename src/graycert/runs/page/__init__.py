"""The report page: plain view data in, one self-contained HTML document out."""

from graycert.runs.page.html import render_report
from graycert.runs.page.view_data import ReportView, Table

__all__ = ["ReportView", "Table", "render_report"]
