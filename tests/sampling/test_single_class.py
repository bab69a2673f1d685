"""Which class a draw votes for: none where no class alone has the largest score, in every engine."""

import numpy as np
import pytest
import torch

from graycert._fields import Field
from graycert._types import NO_CLASS
from graycert._validation import check_integer_array
from graycert.errors import InvalidParameterError
from graycert.sampling.kernels.votes import LANES, Ballot, count_votes
from graycert.sampling.scores import prediction_type, voted_class
from graycert.sampling.tally import Tally

NAN, INF = float("nan"), float("inf")
OPEN = [
    [0.0, 0.0, 0.0],
    [0.0, 1.0, 1.0],
    [2.0, 1.0, 2.0],
    [NAN, 0.0, 1.0],
    [0.0, 1.0, NAN],
    [3.0, NAN, 1.0],
    [NAN, NAN, NAN],
    [INF, 0.0, INF],
    [-INF, -INF, -INF],
    [0.0, -0.0, -1.0],
]
CLOSED = {(0.0, 1.0, 0.0): 1, (1.0, 1.0, 1.0000001): 2, (-INF, 0.0, -INF): 1, (0.0, INF, 1.0): 1, (5.0, 4.0, 4.0): 0}


def rows():
    return torch.tensor([*OPEN, *CLOSED], dtype=torch.float32), [*[NO_CLASS] * len(OPEN), *CLOSED.values()]


def test_a_tie_and_a_number_that_is_none_are_votes_for_no_class():
    scores, expected = rows()
    assert voted_class(scores).tolist() == expected
    assert voted_class(scores.double()).tolist() == expected
    assert voted_class(scores.reshape(5, 3, 3)).flatten().tolist() == expected


@pytest.mark.few(1)
@pytest.mark.parametrize("width", [0, LANES])
def test_the_kernel_votes_as_torch_does(width):
    scores, expected = rows()
    lanes = scores.repeat(3, 1)[: 2 * LANES // 2][:LANES].numpy()  # one row of scores per lane
    wanted = np.array(expected * 3)[:LANES]
    table = np.ascontiguousarray(lanes.T[None])
    votes, near_ties = np.zeros((1, 3), dtype=np.int64), np.zeros(1, dtype=np.int64)
    predictions = np.full((1, width), 7, dtype=np.int16)
    count_votes(table, Ballot(np.zeros((1, 3), dtype=np.float32), 0, LANES, votes, near_ties, predictions))
    assert votes[0].tolist() == [np.count_nonzero(wanted == c) for c in range(3)]
    assert near_ties[0] >= np.count_nonzero(wanted == NO_CLASS)
    assert width == 0 or predictions[0].tolist() == wanted.tolist()


def test_more_classes_than_a_small_integer_holds():
    """CASES B5: 65,560 classes."""
    assert [prediction_type(n) for n in (2, 2**15, 2**15 + 1, 65_560, 2**31 + 1)] == [
        *[np.int16] * 2,
        *[np.int32] * 2,
        np.int64,
    ]
    tally, rows = Tally(np.zeros((1, 65_560), dtype=np.float32), range(1), None, keep=True), slice(0, 1)
    scores = np.zeros((1, 65_560, LANES), dtype=np.float32)
    scores[0, 65_539] = 1.0
    tally.start(1, lanes=LANES)
    for first in tally.chunks():
        count_votes(scores, tally.ballot(first, rows, tally.shared_counts(rows)))
    assert tally.predictions.tolist() == [[65_539]]


def test_casts_never_wrap():
    field = Field("a", "int", ("n",), "x", stage="drawn", at_least=-1, dtype="int16")
    assert field.checked(np.array([3, -1]), {}).dtype == np.int16
    wide = field.checked(np.array([65_539]), {})
    assert (wide.dtype, wide.tolist()) == (np.int64, [65_539])
    huge = np.array([2**63 + 5], dtype=np.uint64)
    with pytest.raises(InvalidParameterError, match=r"`a` must hold integers below 2\*\*63"):
        field.checked(huge, {})
    with pytest.raises(InvalidParameterError, match=r"`b` must be < 2\*\*63"):
        check_integer_array("b", huge, ndim=1)


def test_models_without_ties_vote_as_argmax_does():
    torch.manual_seed(0)
    scores = torch.randn(1000, 7)
    assert torch.equal(voted_class(scores), scores.argmax(dim=1))
