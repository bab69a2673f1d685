"""What may be a smoothing: numbers, or arrays that are checked, copied and locked."""

import numpy as np
import pytest
import torch

from graycert.errors import InvalidParameterError
from graycert.smoothing.interception.parameters import InterceptionSmoothing


def test_numbers_stay_plain_floats():
    smoothing = InterceptionSmoothing(p_delete=np.float32(0.5), p_ablate=1)
    assert (smoothing.p_delete, smoothing.p_ablate) == (0.5, 1.0)
    assert {type(smoothing.p_delete), type(smoothing.p_ablate)} == {float}
    assert smoothing.is_uniform
    assert repr(InterceptionSmoothing(p_delete=0.31, p_ablate=0.1 + 0.2)) == (
        "InterceptionSmoothing(p_delete=0.31, p_ablate=0.30000000000000004)"
    )


@pytest.mark.parametrize("make", [list, tuple, np.array, torch.tensor])
def test_arrays_are_copied_and_locked(make):
    given = np.array([0.25, 0.5, 1.0, 0.0])
    smoothing = InterceptionSmoothing(p_delete=make(given.tolist()), p_ablate=given)
    given[:] = 0.9
    for values in (smoothing.p_delete, smoothing.p_ablate):
        assert values.tolist() == [0.25, 0.5, 1.0, 0.0]
        assert values.dtype == np.float64
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 0.1
    assert not smoothing.is_uniform


def test_words_are_short():
    many = np.linspace(0.1, 0.5, 10_000)
    smoothing = InterceptionSmoothing(p_delete=many, p_ablate=0.794)
    assert repr(smoothing) == "InterceptionSmoothing(p_delete=0.1..0.5 (per edge), p_ablate=0.794)"
    assert InterceptionSmoothing(p_delete=[], p_ablate=[1]).ablate_in_words == "1.0..1.0 (per node)"
    assert InterceptionSmoothing(p_delete=[], p_ablate=[1]).delete_in_words == "none (per edge)"


def test_equality_and_hash():
    def smoothing(p_delete=(0.5, 0.1), p_ablate=0.3):
        return InterceptionSmoothing(p_delete=p_delete, p_ablate=p_ablate)

    assert smoothing() == smoothing(np.array([0.5, 0.1]))
    assert hash(smoothing()) == hash(smoothing(np.array([0.5, 0.1])))
    assert hash(smoothing([-0.0])) == hash(smoothing([0.0]))
    assert smoothing(0.5) == smoothing(0.5)
    different = [smoothing(), smoothing([0.1, 0.5]), smoothing(p_ablate=0.4), smoothing(0.5), smoothing([0.5, 0.5])]
    assert len(set(different)) == 5
    assert smoothing() != "smoothing"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5, 1.5, -1.0], r"must be in \[0, 1\], got 1.5 for \w+ 1\. It is the chance"),
        ([0.5, np.nan], r"must be in \[0, 1\], got nan for \w+ 1\."),
        ([[0.5]], r"an array of numbers, one per \w+, got dtype float64 and shape \(1, 1\)"),
        ([True, False], "got dtype bool"),
        (["0.5"], "got dtype <U3"),
        (np.array(0.5), r"shape \(\)"),
        ("0.5", "must be a number, got '0.5'"),
        (None, "must be a number, got None"),
        (1.5, r"must be in \[0, 1\], got 1.5"),
    ],
)
@pytest.mark.parametrize("name", ["p_delete", "p_ablate"])
def test_malformed_probabilities_are_refused(name, values, message):
    with pytest.raises(InvalidParameterError, match=f"`{name}` {message}|`{name}` .*{message}"):
        InterceptionSmoothing(**({"p_delete": 0.5, "p_ablate": 0.5} | {name: values}))


def test_trusted_nodes_are_never_ablated():
    trusted = np.array([False, True, False])
    assert InterceptionSmoothing(p_delete=0.3, p_ablate=0.8).with_trusted(trusted).p_ablate.tolist() == [0.8, 0.0, 0.8]
    single = InterceptionSmoothing(p_delete=[0.3, 0.1], p_ablate=[0.8, 0.7, 0.6]).with_trusted(trusted)
    assert single.p_ablate.tolist() == [0.8, 0.0, 0.6]
    assert single.p_delete.tolist() == [0.3, 0.1]
    uniform = InterceptionSmoothing(p_delete=0.3, p_ablate=0.8)
    assert uniform.with_trusted(np.zeros(3, dtype=bool)) is uniform
    for wrong in (np.array([0, 1, 0]), np.zeros(4, dtype=bool)):
        with pytest.raises(InvalidParameterError, match="`trusted` must be a boolean array"):
            single.with_trusted(wrong)
