import importlib.util

import pytest

from support.documentation import ROOT

_SPEC = importlib.util.spec_from_file_location("check_offline", ROOT / "scripts" / "check_offline.py")
script = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(script)


@pytest.mark.parametrize(
    ("html", "foreign"),
    [
        ('<script src="https://cdn.example/mathjax.js"></script>', ["https://cdn.example/mathjax.js"]),
        ("<link rel='stylesheet' href='//fonts.example/a.css'>", ["//fonts.example/a.css"]),
        ('<img src="http://x.example/y.png">', ["http://x.example/y.png"]),
        ('<a href="https://x.example">a page</a><link rel="canonical" href="https://x.example">', []),
        ('<script src="_static/mathjax/tex-chtml.js"></script><img src="data:image/png;base64,AA">', []),
    ],
)
def test_what_a_page_loads_from_elsewhere_is_found(html, foreign, tmp_path):
    (tmp_path / "page.html").write_text(html)
    assert script.loads(tmp_path) == [f"{tmp_path / 'page.html'}: {place}" for place in foreign]
