"""What a page shows of exact votes: who is heard on a target, and how far each class is from winning."""

from typing import TYPE_CHECKING

import numpy as np

from graycert._types import FloatArray, IntArray
from graycert.smoothing.bounded_votes.ballots import ONE

if TYPE_CHECKING:
    from graycert.certificates import Certificates


def heard(c: "Certificates", rows: IntArray) -> tuple[IntArray, FloatArray]:
    """Return who votes on some targets, and what share of the most that one vote can cost each of them could cost.

    A voter whose vote goes from the prediction to its strongest rival costs the lead two votes; one that votes for the
    rival already costs nothing more. Where votes do not count, none costs anything.

    Args:
        c: Certificates of bounded votes.
        rows: Positions of targets.

    Returns:
        Nodes, padded with -1, and shares in [0, 1], both of shape (rows.size, num_voters).
    """
    voters = np.asarray(c.adds["voters"][rows], dtype=np.int64)
    ballots, prediction, rival = c.adds["ballots"], c.prediction[rows], _rivals(c, rows)
    known = np.maximum(voters, 0)
    kept = ballots[known, prediction[:, None]].astype(np.int64) - ballots[known, rival[:, None]]
    count = (voters >= 0) & (c.num_eligible[rows] > 0)[:, None]
    return voters, np.where(count, (kept + ONE) / (2 * ONE), 0.0)


def exact_votes(c: "Certificates", row: int) -> list[tuple[int, str, str]]:
    """Return of each class its score in votes, and how many hostile nodes cannot make it win; the largest score first.

    Args:
        c: Certificates of bounded votes.
        row: Position of a target.
    """
    scores, radius = c.adds["scores"][row], c.adds["class_radius"][row]
    eligible, prediction = int(c.num_eligible[row]), int(c.prediction[row])
    order = np.lexsort((np.arange(scores.size), -scores, np.arange(scores.size) != prediction))
    withstood = ["all that there are" if each >= eligible else f"{each:,}" for each in radius.tolist()]
    return [
        (int(each), f"{scores[each] / ONE:,.3f}", "" if each == prediction else withstood[each])
        for each in order.tolist()
    ]


def _rivals(c: "Certificates", rows: IntArray) -> IntArray:
    """Return the class with the largest score besides the prediction."""
    scores = c.adds["scores"][rows].astype(np.float64)
    scores[np.arange(rows.size), c.prediction[rows]] = -np.inf
    strongest: IntArray = scores.argmax(axis=1).astype(np.int64)
    return strongest
