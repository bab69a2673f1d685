import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from graycert.runs.arrow_columns import from_arrow, to_arrow

COLUMNS = [
    np.array([3, -1, 2**62]),
    np.array([], dtype=np.int64),
    np.array([0.1, np.nextafter(1.0, 2.0), -0.0]),
    np.array([1.5], dtype=np.float32),
    np.arange(20) % 3 == 0,
    np.array([], dtype=np.bool_),
    np.array(["", "ä", "two words"]),
    np.array([], dtype=np.str_),
]


@pytest.mark.parametrize("values", COLUMNS, ids=lambda values: f"{values.dtype}-{values.size}")
def test_a_column_is_what_arrow_makes_of_it_and_comes_back_as_it_was(values):
    made = to_arrow(values)
    expected = pa.array(values.tolist(), type=made.type)
    assert made.equals(expected)
    assert made.type == (pa.string() if values.dtype.kind == "U" else pa.from_numpy_dtype(values.dtype))
    made.validate(full=True)
    back = from_arrow(pa.chunked_array([made]))
    assert back.dtype.kind == values.dtype.kind
    np.testing.assert_array_equal(back, values)


def test_lists_of_texts_come_back_as_they_were():
    rows = [["a", ""], [], ["ä"]]
    made = to_arrow(rows, of_lists=True)
    assert made.equals(pa.array(rows, type=pa.list_(pa.string())))
    assert from_arrow(pa.chunked_array([made, made])) == rows + rows


@pytest.mark.parametrize("values", COLUMNS[:6], ids=lambda values: f"{values.dtype}-{values.size}")
def test_parts_of_a_column_are_read_from_where_they_begin(values):
    whole = pa.array(np.tile(values, 3).tolist(), type=pa.from_numpy_dtype(values.dtype))
    parts = pa.chunked_array([whole.slice(1, 2), whole.slice(2)], type=whole.type)
    np.testing.assert_array_equal(from_arrow(parts), np.array(parts.to_pylist(), dtype=values.dtype))


@pytest.mark.parametrize("kind", [pa.date32(), pa.list_(pa.int64()), pa.decimal128(5), pa.binary()])
def test_other_types_are_refused(kind):
    with pytest.raises(ValueError, match="a column of type"):
        from_arrow(pa.chunked_array([pa.nulls(0, type=kind)]))


def test_pandas_is_not_loaded():
    code = (
        "import sys, numpy as np, pyarrow as pa; from graycert.runs.arrow_columns import from_arrow, to_arrow;"
        "[from_arrow(pa.chunked_array([to_arrow(v)])) for v in (np.arange(3), np.ones(2) > 0, np.array(['a']))];"
        "from_arrow(pa.chunked_array([to_arrow([['a']], of_lists=True)])); print('pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
