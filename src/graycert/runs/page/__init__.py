"""Pages of runs: plain view data in, one self-contained HTML document out."""

from graycert.runs.page.document import Curves, Document, Grid, Section
from graycert.runs.page.html import render_document, render_report
from graycert.runs.page.view_data import ReportView, Table

__all__ = ["Curves", "Document", "Grid", "ReportView", "Section", "Table", "render_document", "render_report"]
