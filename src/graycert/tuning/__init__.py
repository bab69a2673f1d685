"""Choosing what to smooth by, from validation nodes: trials of a sweep, a table, a front and a recommendation.

Names are imported on first use.
"""

from typing import TYPE_CHECKING

from graycert._lazy import attach

if TYPE_CHECKING:
    from graycert.tuning.choosing import tune as tune
    from graycert.tuning.result import Tuning as Tuning
    from graycert.tuning.votes import VotesTuning as VotesTuning
    from graycert.tuning.votes import tune_votes as tune_votes

_HOME = {
    "Tuning": "graycert.tuning.result",
    "VotesTuning": "graycert.tuning.votes",
    "tune": "graycert.tuning.choosing",
    "tune_votes": "graycert.tuning.votes",
}

__getattr__, __dir__, __all__ = attach(__name__, _HOME)
