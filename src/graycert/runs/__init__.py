"""Run directories: their files, the words of a summary, the page, and their verification.

Names are imported on first use.
"""

from typing import TYPE_CHECKING

from graycert._lazy import attach

if TYPE_CHECKING:
    from graycert.runs.store import load_run as load_run
    from graycert.runs.store import save_run as save_run
    from graycert.runs.summary import summary_text as summary_text
    from graycert.runs.view import report_view as report_view
    from graycert.runs.words import summary_record as summary_record
    from graycert.setup_file import FORMAT_VERSION as FORMAT_VERSION

_HOME = {
    "FORMAT_VERSION": "graycert.setup_file",
    "load_run": "graycert.runs.store",
    "report_view": "graycert.runs.view",
    "save_run": "graycert.runs.store",
    "summary_record": "graycert.runs.words",
    "summary_text": "graycert.runs.summary",
}

__getattr__, __dir__, __all__ = attach(__name__, _HOME)
