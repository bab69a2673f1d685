"""What a result rests on, as far as nobody can see it in the files."""

from graycert.runs.checklist import assumptions
from support.certificates import small_certificates


def of_preparation(*remarks):
    made = small_certificates(provenance={"graph": {"name": "toy", "preparation": list(remarks)}})
    return " ".join(assumptions(made))


def test_medians_over_all_nodes_are_an_assumption():
    assert "medians over all nodes" in of_preparation("features: 2", "filled gaps (median): 3 in `age` by 38")
    assert "medians" not in of_preparation("filled gaps (zero): 3 in `age` by 0")
    assert "medians" not in of_preparation()
