"""What the words of a report mean is true of the run that they are about."""

import pytest

from graycert.runs.terms import terms
from graycert.smoothing import SMOOTHINGS, Smoothing
from support.certificates import small_certificates
from support.every_smoothing import made


def meaning(certificates, word):
    return next(each.meaning for each in terms(certificates) if each.word == word)


@pytest.mark.parametrize("case", ["interception", "votes", "features-only"])
def test_nothing_is_hidden_or_drawn_where_the_smoothing_does_not(case):
    said = meaning(made(case), "smoothed classifier")
    drawn = made(case).setup.draws is not None
    assert ("majority" in said, "hidden from it" in said, "drawn at random" in said) == (drawn, drawn, drawn)


def test_every_smoothing_says_what_its_answer_is():
    own = [kind.in_plain_words for kind in SMOOTHINGS.values()]
    assert len(own) == len({*own, Smoothing.in_plain_words}) - 1


def test_targets_are_counted_among_all_nodes():
    assert meaning(small_certificates(), "targets") == "The 6 nodes whose prediction was certified, of 50 in the graph."
    everyone = small_certificates(num_targets=60)
    assert meaning(everyone, "targets") == "The 60 nodes whose prediction was certified, which are all of the graph."
