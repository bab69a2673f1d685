"""Δ̄ for each target and radius: the graph, the smoothing and the threat brought together."""

from graycert.deltas.evaluation import METHODS, PATH_METHODS, DeltaBounds, check_method, delta_bounds, evaluate_deltas

__all__ = ["METHODS", "PATH_METHODS", "DeltaBounds", "check_method", "delta_bounds", "evaluate_deltas"]
