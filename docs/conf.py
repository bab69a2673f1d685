"""Sphinx configuration."""

from graycert import __version__

project = "graycert"
author = "the graycert authors"
copyright = "2026, the graycert authors"  # noqa: A001
release = version = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
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
