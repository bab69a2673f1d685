"""Shares of certified targets, and areas under their curves."""

from graycert.metrics.aucrc import aucrc, normalized_aucrc, normalized_certified_ratio
from graycert.metrics.floor import Floor, best_floor
from graycert.metrics.pareto import dominated_area, dominated_share, dominating_points, within_accuracy
from graycert.metrics.ratios import (
    DENOMINATORS,
    RatioCurve,
    abstain_ratio,
    certified_accuracy,
    certified_ratio,
    clean_accuracy,
)

__all__ = [
    "DENOMINATORS",
    "Floor",
    "RatioCurve",
    "abstain_ratio",
    "aucrc",
    "best_floor",
    "certified_accuracy",
    "certified_ratio",
    "clean_accuracy",
    "dominated_area",
    "dominated_share",
    "dominating_points",
    "normalized_aucrc",
    "normalized_certified_ratio",
    "within_accuracy",
]
