"""Votes, verified confidence bounds on class probabilities, and exact probabilities under node retention."""

from graycert.statistics.confidence import (
    clopper_pearson_lower,
    clopper_pearson_upper,
    largest_possible_p_lower,
    unverified_clopper_pearson_lower,
    unverified_clopper_pearson_upper,
)
from graycert.statistics.votes import EstimationVotes, SelectionVotes

__all__ = [
    "EstimationVotes",
    "SelectionVotes",
    "clopper_pearson_lower",
    "clopper_pearson_upper",
    "largest_possible_p_lower",
    "unverified_clopper_pearson_lower",
    "unverified_clopper_pearson_upper",
]
