"""Results: certificates with everything they were made from, in words, as a table, and as files."""

from graycert.results.config_file import FORMAT_VERSION
from graycert.results.node_certificates import NodeCertificates
from graycert.results.store import load_run, save_run
from graycert.results.summary import summary_record, summary_text
from graycert.results.view import report_view

__all__ = [
    "FORMAT_VERSION",
    "NodeCertificates",
    "load_run",
    "report_view",
    "save_run",
    "summary_record",
    "summary_text",
]
