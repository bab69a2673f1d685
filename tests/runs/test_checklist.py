"""What a result rests on, as far as nobody can see it in the files."""

import pytest

from graycert.runs.checklist import assumptions, files_in_words, redone
from support.certificates import small_certificates
from support.every_smoothing import made


def of_preparation(*remarks):
    made = small_certificates(provenance={"graph": {"name": "toy", "preparation": list(remarks)}})
    return " ".join(assumptions(made))


def test_medians_over_all_nodes_are_an_assumption():
    assert "medians over all nodes" in of_preparation("features: 2", "filled gaps (median): 3 in `age` by 38")
    assert "medians" not in of_preparation("filled gaps (zero): 3 in `age` by 0")
    assert "medians" not in of_preparation()


@pytest.mark.parametrize("case", ["interception", "votes", "features-only"])
def test_clean_training_and_a_structure_without_features_are_assumed(case):
    said = assumptions(made(case))
    assert any(each.startswith("The model was trained on clean data") for each in said)
    assert any("not made from features" in each for each in said) == (case != "features-only")


@pytest.mark.parametrize("case", ["interception", "votes", "features-only", "subgraphs"])
def test_checking_redoes_what_the_run_has(case):
    c = made(case)
    said = " ".join([*redone(c), *(meaning for _, meaning in files_in_words(c))])
    assert ("Δ̄" in said) == (c.delta_upper is not None)
    assert ("draws every vote again" in said) == (c.setup.draws is not None)
    assert ("Nothing was drawn" in said) == (c.setup.draws is None)
    assert ("is audited and evaluated again" in said) == c.setup.smoothing.evaluates_quickly
