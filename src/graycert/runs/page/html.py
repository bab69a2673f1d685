"""One self-contained page: no requests, a script of its own, readable on a phone, on paper, by day and by night."""

import base64
import hashlib
import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from graycert.runs.page.document import Document
from graycert.runs.page.view_data import ReportView

_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_NOT_IN_MARKUP = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def render_report(view: ReportView) -> str:
    """Return the page for ``view``.

    Args:
        view: What to show. Every text is escaped, and what could hide or turn other text is made visible, so names
            from a data set are nothing but text.

    Returns:
        A complete HTML document, the same for the same view. Its policy allows its own script and style, by their
        hashes, and nothing else.
    """
    script, style = (_part(f"report.{kind}") for kind in ("js", "css"))
    return (
        _environment()
        .get_template("report.html")
        .render(
            view=view,
            say=view.called.say,
            data=embedded(view.data),
            script=Markup(script),
            style=Markup(style),
            script_hash=_hash(script),
            style_hash=_hash(style),
        )
    )


def render_document(view: Document) -> str:
    """Return a page without a script.

    Args:
        view: What to show; texts are escaped as those of a report.

    Returns:
        A complete HTML document, the same for the same view.
    """
    style = _part("report.css")
    template = _environment().get_template("document.html")
    return template.render(view=view, style=Markup(style), style_hash=_hash(style))


def embedded(values: Any) -> Markup:
    """Return plain values as JSON that may stand in a page: no sign of it can end the element that holds it."""
    text = json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(_NOT_IN_MARKUP.sub(_escaped, text))


def visible(value: Any) -> Any:
    r"""Return a text with signs that could hide or turn others written out; anything else as it is.

    Example:
        >>> visible("a\u202eb")
        'a\\u202eb'
    """
    return _HIDDEN.sub(_escaped, value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache  # the templates are compiled once in a process, not for every page
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("graycert.runs.page"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _part(name: str) -> str:
    return files("graycert.runs.page").joinpath("templates", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"
