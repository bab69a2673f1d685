"""Deterministic votes of hash-made subgraphs (AGNNCert, PGNNCert)."""
