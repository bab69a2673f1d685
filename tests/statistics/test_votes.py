import numpy as np
import pytest

from graycert.errors import InvalidParameterError
from graycert.statistics import EstimationVotes, SelectionVotes


@pytest.mark.parametrize("votes", [SelectionVotes, EstimationVotes])
def test_votes_are_copied_and_read_only(votes):
    counts = np.array([[3, 1], [0, 4]], dtype=np.int16)
    table = votes(counts, 4)
    counts[0, 0] = 9
    assert table.counts.dtype == np.int64
    assert table.counts.tolist() == [[3, 1], [0, 4]]
    assert (table.num_targets, table.num_classes, table.num_samples) == (2, 2, 4)
    with pytest.raises(ValueError, match="read-only"):
        table.counts[0, 0] = 1


@pytest.mark.parametrize(
    ("counts", "num_samples", "message"),
    [
        (
            [[3, 1], [2, 1]],
            4,
            "must sum to the same number of samples in every row, got 3 in row 1 instead of 4",
        ),
        ([[4]], 4, "at least two classes"),
        ([4, 0], 4, "must have 2 axes"),
        ([[5, -1]], 4, "must be >= 0"),
        ([[2.0, 2.0]], 4, "must hold integers"),
        ([[True, False]], 1, "must hold integers"),
        ([[0, 0]], 0, "num_samples` must be >= 1"),
    ],
)
def test_wrong_tables_are_refused(counts, num_samples, message):
    with pytest.raises(InvalidParameterError, match=f"selection_votes.*{message}|{message}"):
        SelectionVotes(counts, num_samples)


def test_the_two_kinds_are_different_types():
    assert not isinstance(SelectionVotes([[1, 0]], 1), EstimationVotes)
    assert not isinstance(EstimationVotes([[1, 0]], 1), SelectionVotes)
