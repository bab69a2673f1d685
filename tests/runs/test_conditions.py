"""Conditions: what they count, by a loop over the targets; what is malformed; what JUnit shows."""

from fractions import Fraction
from xml.etree import ElementTree

import numpy as np
import pytest

from graycert.errors import InvalidParameterError
from graycert.runs.conditions import Condition
from graycert.runs.junit import write_junit
from support.certificates import small_certificates

CERTIFICATES = small_certificates(num_targets=30)


def counted(c, quantity, radius, class_number=None):
    """Count one target after the other, as the words of `QUANTITIES` say."""
    count = total = 0
    for prediction, label, reached, eligible in zip(c.prediction, c.labels, c.radius, c.num_eligible, strict=True):
        if class_number is not None and label != class_number:
            continue
        if quantity in ("correct", "accuracy") and label < 0:
            continue  # nobody knows
        total += 1
        right = reached >= 0 and prediction == label
        holds = reached >= min(radius, eligible) and reached >= 0
        certified = reached >= radius and eligible >= radius
        count += {
            "certified": certified,
            "holds": holds,
            "correct": certified and right,
            "accuracy": right,
            "abstained": reached < 0,
        }[quantity]
    return int(count), total


@pytest.mark.parametrize("quantity", ["certified@1", "certified@3", "holds@3", "correct@2", "accuracy", "abstained"])
@pytest.mark.parametrize("number", [None, 0, 1])
def test_shares_are_those_of_the_targets(quantity, number):
    name, _, radius = quantity.partition("@")
    named = "" if number is None else f"[{CERTIFICATES.setup.class_names[number]}]"
    (verdict,) = CERTIFICATES.judge(f"{quantity}{named}=0.25")
    count, total = counted(CERTIFICATES, name, int(radius or 0), number)
    assert (verdict.count, verdict.total) == (count, total)
    assert total == (10 if number is not None else 20 if name in ("correct", "accuracy") else 30)
    reached = Fraction(count, total)
    assert verdict.passed == (reached <= Fraction(1, 4) if name == "abstained" else reached >= Fraction(1, 4))


def test_limits_are_compared_exactly():
    """30 targets of which 29 have a prediction: 0.1 + 0.2 in binary is above 0.3, and rounding decides nothing."""
    count, total = counted(CERTIFICATES, "holds", 1)
    share = Fraction(count, total)
    just_above = f"{float(share) + 1e-11:.12f}"
    below = f"{float(share) - 1e-11:.12f}"
    assert Fraction(below) < share < Fraction(just_above)
    assert [each.passed for each in CERTIFICATES.judge(f"holds@1={below}", f"holds@1={just_above}")] == [True, False]
    tenth = small_certificates(num_targets=10)  # one of ten abstains
    assert [each.passed for each in tenth.judge("abstained=0.1", "abstained=0.09")] == [True, False]


def test_of_no_target_nothing_is_met():
    labels = np.zeros(6, dtype=int)
    (good, bad) = small_certificates(labels=labels).judge("abstained[two]=1", "correct@1[two]=0")
    assert (good.total, good.passed, bad.passed, good.value) == (0, False, False, None)
    (unknown,) = small_certificates(labels=labels - 1).judge("accuracy=0")
    assert (unknown.total, unknown.passed) == (0, False)
    assert "of no target" in str(good)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("correct@2", "must be such as correct@2=0.6"),
        ("correct@2=", "must be such as"),
        ("=0.5", "must be such as"),
        ("correct@2>=0.5", "must be such as"),
        ("correct@2[]=0.5", "must be such as"),
        ("correct@-1=0.5", "must be such as"),
        ("correct@2=0.5=0.6", "must be such as"),
        ("right@2=0.5", "must be about certified, holds, correct, accuracy, abstained"),
        ("correct=0.5", "must have a radius: correct@1=0.5"),
        ("correct@0=0.5", "must have a radius of at least 1"),
        ("accuracy@2=0.5", "must be without a radius: accuracy=0.5"),
        ("accuracy=60", "must end in a share from 0 to 1, such as 0.6 for 60 %"),
        ("accuracy=1.1", "must end in a share"),
        ("accuracy=-0.1", "must end in a share"),
        ("accuracy=nan", "must end in a share"),
        ("accuracy=1e-2", "must end in a share"),
        ("accuracy=60%", "must end in a share"),
    ],
)
def test_malformed_conditions(text, message):
    with pytest.raises(InvalidParameterError, match=message):
        Condition.parse(text)


@pytest.mark.parametrize(
    ("certificates", "text", "message"),
    [
        (CERTIFICATES, "correct@9=0.5", "must have a radius of at most 8"),
        (CERTIFICATES, "correct@2[three]=0.5", "must name a class of zero & co, one, two"),
        (small_certificates(named=False), "correct@2=0.5", "needs labels"),
        (small_certificates(named=False), "certified@2[0]=0.5", "needs labels"),
        (small_certificates(class_names=None), "certified@2[one]=0.5", "must give the class as a number"),
        (small_certificates(rule="paper"), "certified@1=0.5", "needs a sound rule, because 'paper' certifies nothing"),
    ],
)
def test_conditions_that_do_not_fit(certificates, text, message):
    with pytest.raises(InvalidParameterError, match=message):
        certificates.judge(text)


def test_forms_that_mean_the_same():
    plain = Condition.parse("correct@2[zero & co]=0.5")
    assert (plain.class_named, plain.limit) == ("zero & co", Fraction(1, 2))
    for text in ("correct@2[zero & co]=.5", " correct@2[zero & co] = 0.50 "):
        again = Condition.parse(text)
        assert (again.quantity, again.radius, again.class_named, again.limit) == (
            plain.quantity,
            plain.radius,
            plain.class_named,
            plain.limit,
        )
    odd = Condition.parse("accuracy[a=[b]]=1")  # a name may hold what separates
    assert (odd.class_named, odd.limit) == ("a=[b]", 1)
    assert Condition.parse("accuracy[7]=1").class_named == "7"


def test_junit_shows_every_verdict(tmp_path):
    verdicts = CERTIFICATES.judge("abstained=0.5", "correct@2[zero & co]=1")
    write_junit(tmp_path / "verdicts.xml", verdicts, suite="a <run>")
    root = ElementTree.parse(tmp_path / "verdicts.xml").getroot()
    suite = root.find("testsuite")
    assert (root.tag, suite.get("name"), suite.get("tests"), suite.get("failures")) == (
        "testsuites",
        "a <run>",
        "2",
        "1",
    )
    first, second = suite.findall("testcase")
    assert (first.get("name"), first.find("failure")) == ("abstained=0.5", None)
    assert second.get("name") == "correct@2[zero & co]=1"
    assert second.find("failure").get("message") == str(verdicts[1])
