"""Votes for no class: said where there are any, refused where they are most of the votes."""

from graycert.errors import UnsoundSetupError
from graycert.problem import Problem


def refuse_open_votes(problem: Problem, *, for_none: int, total: int) -> None:
    """Say which share of votes is for no class; refuse more than half of them.

    A class that is to be certified needs more than half of a target's votes in any case, because those for no class
    count for every other class. So with a larger share hardly any target could be certified, and what is smoothed is
    the model's failure.

    Args:
        problem: The problem.
        for_none: Votes for no class, of all targets.
        total: All votes.

    Raises:
        UnsoundSetupError: ``scores-single-out-no-class``.
    """
    share = f"{for_none:,} of {total:,} votes"
    if 2 * for_none > total:
        raise UnsoundSetupError(
            "scores-single-out-no-class",
            f"In {share} the scores of `model` single out no class: one is NaN (a mean over no neighbour, 0 / 0, needs "
            "`degree.clamp(min=1)`), or several classes have exactly the largest one (a ReLU after the last layer, "
            "constant scores). Such votes count for no class, and at most half of them may.",
        )
    if for_none and problem.execution.say is not None:
        problem.execution.say(
            f"in {share} the model's scores single out no class (NaN, or exactly tied): they count for none, against "
            "the reported class"
        )
