"""Sparse smoothing of binary attributes (Bojchevski et al. 2020)."""
