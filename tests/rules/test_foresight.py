import re

import numpy as np
import pytest

from graycert.errors import InvalidParameterError
from graycert.rules import certify_votes, check_can_certify


@pytest.mark.parametrize("rule", ["sound", "paper"])
@pytest.mark.parametrize("num_classes", [2, 3, 7])
@pytest.mark.parametrize("num_estimation", [1, 5, 9, 40, 300])
def test_foresight_is_what_unanimous_votes_give(num_estimation, num_classes, rule):
    deltas = np.array([[0.05, 0.2, 0.45], [0.3, 0.49, 0.5], [0.6, 0.7, 0.8]])
    votes = np.zeros((3, num_classes), dtype=int)
    votes[:, 0] = num_estimation
    best = certify_votes(votes, votes, deltas, rule=rule, belongs_to="made-up votes and bounds")
    foresight = check_can_certify(deltas, num_estimation=num_estimation, num_classes=num_classes, rule=rule)
    assert foresight.best_radius.tolist() == best.radius.tolist()
    lead = best.p_lower[0] - best.p_upper[0]
    assert foresight.best_margin == pytest.approx(lead, abs=1e-15)
    assert foresight.certifiable.tolist() == [(best.radius >= r).sum() for r in (1, 2, 3)]
    assert foresight.can_predict == (best.radius[0] >= 0)
    assert foresight.can_certify == (best.radius.max() >= 1)


def test_no_other_votes_do_better():
    generator = np.random.default_rng(0)
    votes = generator.multinomial(40, [0.9, 0.08, 0.02], size=300)
    deltas = np.full((300, 4), [0.1, 0.2, 0.3, 0.4])
    radius = certify_votes(votes, votes, deltas, belongs_to="made-up votes and bounds").radius
    foresight = check_can_certify(deltas, num_estimation=40, num_classes=3)
    assert radius.max() <= foresight.best_radius.max()


@pytest.mark.parametrize(
    ("deltas", "num_estimation", "words"),
    [
        ([[0.1]], 2, "Nothing can be predicted"),
        ([[0.4]], 20, r"Raise n1 \(`num_estimation`\)"),
        ([[0.5], [0.7]], 3_000, "No number of samples can help"),
        ([[0.1, 0.2], [0.5, 0.6]], 3_000, "At best 1 of 2 targets .* and 1 at radius 2, the largest that is looked at"),
        ([[0.1, 0.5], [0.2, 0.6]], 3_000, "At best 2 of 2 targets .* and none beyond radius 1"),
    ],
)
def test_what_it_says(deltas, num_estimation, words):
    found = check_can_certify(deltas, num_estimation=num_estimation, num_classes=3).in_words
    assert re.search(words, found)


def test_no_radius_is_larger_than_the_number_who_could_be_hostile():
    deltas, arguments = [[0.1, 0.1, 0.1], [0.1, 0.2, 0.6]], {"num_estimation": 3_000, "num_classes": 3}
    found = check_can_certify(deltas, **arguments, num_eligible=[1, 9])
    assert (found.best_radius.tolist(), found.certifiable.tolist()) == ([1, 2], [2, 1, 0])
    assert found.in_words.endswith("and none beyond radius 2.")
    nobody = check_can_certify(deltas, **arguments, num_eligible=[0, 0])
    assert nobody.in_words.startswith("Nobody could attack")


@pytest.mark.parametrize("deltas", [[], [0.1], [[0.2, 0.1]], 0.3])
def test_wrong_deltas_are_refused(deltas):
    with pytest.raises(InvalidParameterError, match="`delta_upper`"):
        check_can_certify(deltas, num_estimation=10, num_classes=3)
