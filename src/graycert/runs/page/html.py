"""One self-contained page: no scripts, no requests, readable on a phone, on paper, by day and by night."""

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from graycert.runs.page.plots import certified_ratio_svg
from graycert.runs.page.view_data import ReportView


def render_report(view: ReportView) -> str:
    """Return the page for ``view``.

    Args:
        view: What to show. Every text is escaped, so names from a data set cannot inject markup.

    Returns:
        A complete HTML document, the same for the same view.
    """
    environment = Environment(
        loader=PackageLoader("graycert.runs.page"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    figure = certified_ratio_svg(view.curves)  # drawn here, its texts are escaped
    return environment.get_template("report.html").render(
        view=view,
        figure=None if figure is None else Markup(figure),
    )
