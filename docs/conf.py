"""Sphinx configuration."""

import os
import re
import sys
from pathlib import Path

from graycert import __version__

project = "graycert"
author = "the graycert authors"
copyright = "2026, the graycert authors"
release = version = __version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # ships what would be loaded from a CDN
]
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_in_temp = True  # notebooks write runs
nb_execution_timeout = 300
nb_output_stderr = "remove"  # progress
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # `!graycert` in notebooks
os.environ["COLUMNS"] = "100"
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "graycert"
exclude_patterns = ["_build"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_attr_annotations = False  # numpy.str_ would be read as a link
nitpicky = False
suppress_warnings = ["myst.header"]


def setup(app):
    """Let docstrings write mathematics as the pages do, $x$ and $$x$$; before napoleon (priority 500) reads them."""
    app.connect("autodoc-process-docstring", _mathematics, priority=400)


def _mathematics(app, what, name, obj, options, lines):  # the signature is Sphinx's
    def display(match: re.Match[str]) -> str:
        indent = match["indent"]
        formula = " ".join(match["formula"].split())
        return f"{indent}.. math::\n\n{indent}   {formula}\n"

    text = re.sub(
        r"^(?P<indent> *)\$\$(?P<formula>.+?)\$\$\.?$", display, "\n".join(lines), flags=re.MULTILINE | re.DOTALL
    )
    lines[:] = re.sub(r"(?<!\$)\$([^$\n]+(?:\n[^$\n]+)?)\$(?!\$)", r":math:`\1`", text).split("\n")
