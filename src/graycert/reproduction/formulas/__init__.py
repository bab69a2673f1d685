"""Figures that are formulas: no model, nothing to store.

A file has a function ``tables``, whose parameters are the settings of TOML files, and ``measures`` and ``draw``, which
need the tables alone.
"""
