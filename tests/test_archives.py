"""Archives that are whole, or damaged in any way, are told apart."""

import hashlib
import tracemalloc

import numpy as np
import pytest

from graycert._archives import DAMAGED, digest, read_archive, write_archive

ARRAYS = {"one": np.arange(6).reshape(2, 3)}


@pytest.fixture
def file(tmp_path):
    write_archive(tmp_path / "some.npz", {"what": 1}, ARRAYS)
    return tmp_path / "some.npz"


def test_what_was_written_is_read(file):
    record, arrays = read_archive(file)
    assert record == {"what": 1}
    assert arrays.keys() == ARRAYS.keys()
    np.testing.assert_array_equal(arrays["one"], ARRAYS["one"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("bit", range(8))
def test_a_bit_that_flips_is_noticed_or_changes_nothing(file, bit):
    """One bit of a ZIP file says that a member is encrypted, others that it is packed in another way."""
    whole, noticed = file.read_bytes(), 0
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1 << bit
        file.write_bytes(changed)
        try:
            record, arrays = read_archive(file)
        except DAMAGED:
            noticed += 1
            continue
        assert record == {"what": 1}
        assert arrays.keys() == ARRAYS.keys()
        np.testing.assert_array_equal(arrays["one"], ARRAYS["one"])
    assert noticed > len(whole) / 4


def test_an_array_that_is_no_archive_is_damaged(file):
    with file.open("wb") as opened:
        np.save(opened, ARRAYS["one"])
    with pytest.raises(DAMAGED):
        read_archive(file)


SEVERAL = [np.arange(6.0).reshape(2, 3).T, np.array("text"), np.array(3), np.empty((0, 4)), np.array([True, False])]


@pytest.mark.parametrize("array", SEVERAL, ids=["transposed", "text", "one number", "nothing", "bool"])
def test_a_digest_is_of_type_shape_and_values(array):
    said = f"{array.dtype.str} {array.shape} ".encode() + array.tobytes()
    assert digest(array) == hashlib.sha256(said).hexdigest()


def test_a_digest_copies_nothing():
    array = np.ones(2**20)
    tracemalloc.start()
    digest(array)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < array.nbytes / 10
