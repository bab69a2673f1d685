import numpy as np
import pytest

from graycert.errors import InvalidParameterError
from support.certificates import small_certificates
from support.every_smoothing import any_case, made


def test_each_target_with_a_known_class_is_counted_where_it_belongs():
    c = small_certificates(num_targets=40)
    for radius in (None, 0, 2, 5):
        table = c.confusion(radius=radius)
        expected = np.zeros((3, 4), dtype=int)
        for label, prediction, held, eligible in zip(c.labels, c.prediction, c.radius, c.num_eligible, strict=True):
            if label >= 0:
                holds = held >= (0 if radius is None else min(radius, eligible))
                expected[label, prediction if holds else 3] += 1
        assert (table.to_numpy() == expected).all()
        assert list(table.index) == ["zero & co", "one", "two"]
        assert table.columns[-1] == ("abstained" if radius is None else "not certified")
    assert int(c.confusion().to_numpy().sum()) == int((c.labels >= 0).sum())


def test_without_true_classes_there_is_no_confusion_table():
    with pytest.raises(InvalidParameterError, match=r"data\.y"):
        small_certificates(named=False).confusion()
    with pytest.raises(InvalidParameterError, match="`radius`"):
        small_certificates().confusion(radius=-1)


@any_case
def test_rows_per_class_are_counted_again_from_the_arrays(case):
    c = made(case)
    table = c.by_class()
    assert table.index.name == "true class"
    right = (c.prediction == c.labels) & (c.radius >= 0)
    for number, name in enumerate(c.setup.class_names):
        members = c.labels == number
        if not members.any():
            assert name not in table.index
            continue
        row = table.loc[name]
        assert row["targets"] == members.sum()
        assert row["smoothed"] == (members & right).sum()
        for rho in (1, 3):
            held = members & right & (c.radius >= rho) & (c.num_eligible >= rho)
            assert row[f"certified_{rho}"] == held.sum()
            assert row[f"holds_{rho}"] == (members & right & (c.radius >= np.minimum(rho, c.num_eligible))).sum()
