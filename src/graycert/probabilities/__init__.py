"""Votes, verified confidence bounds on class probabilities, and exact probabilities under node retention."""

from graycert.probabilities.confidence import (
    clopper_pearson_lower,
    clopper_pearson_upper,
    largest_possible_p_lower,
    unverified_clopper_pearson_lower,
    unverified_clopper_pearson_upper,
)
from graycert.probabilities.derandomization import LabelCounts, count_labels, retention_delta
from graycert.probabilities.derandomized_share import DerandomizedShare, derandomized_share
from graycert.probabilities.votes import EstimationVotes, SelectionVotes

__all__ = [
    "DerandomizedShare",
    "EstimationVotes",
    "LabelCounts",
    "SelectionVotes",
    "clopper_pearson_lower",
    "clopper_pearson_upper",
    "count_labels",
    "derandomized_share",
    "largest_possible_p_lower",
    "retention_delta",
    "unverified_clopper_pearson_lower",
    "unverified_clopper_pearson_upper",
]
