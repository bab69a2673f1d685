"""Targets certified all at once or block by block, by one worker or several; what is done is kept."""

from graycert.blocks.in_blocks import certified_in_blocks
from graycert.blocks.work import Outcome, as_far_as_looked, certified, certified_block, with_degrees, with_distances

__all__ = [
    "Outcome",
    "as_far_as_looked",
    "certified",
    "certified_block",
    "certified_in_blocks",
    "with_degrees",
    "with_distances",
]
