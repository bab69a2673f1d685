import numpy as np

from graycert.runs.claim import claim
from graycert.runs.decision import decision
from graycert.runs.page import render_document
from support.certificates import small_certificates
from support.every_smoothing import any_case, made


def said(c):
    return {section.title: " ".join([*section.paragraphs, *section.items]) for section in decision(c).sections}


@any_case
def test_every_kind_has_a_page_for_a_decision(case):
    c = made(case)
    found = said(c)
    assert found["What is safe"].startswith(" ".join(claim(c, 1)))
    open_at_one = int(((c.radius == 0) & (c.num_eligible > 0)).sum())
    assert (f"For {open_at_one} target{'' if open_at_one == 1 else 's'} (" in found["What is not"]) == (open_at_one > 0)
    abstained = int((c.radius < 0).sum())
    assert (f"{abstained} target{'' if abstained == 1 else 's'} (" in found["What is not"]) == (abstained > 0)
    wrong = sum(
        radius >= min(1, eligible) and radius >= 0 and prediction != label
        for radius, eligible, prediction, label in zip(c.radius, c.num_eligible, c.prediction, c.labels, strict=True)
    )
    assert (f", {wrong} {'is' if wrong == 1 else 'are'} wrong" in found["What is not"]) == (wrong > 0)
    assert "graycert verify" in found["What to do next"]
    assert "What it costs" not in found["What it costs"]
    assert found["What it costs"][0].isupper()
    page = render_document(decision(c))
    assert "<script" not in page
    assert page.rstrip().endswith("</html>")


def test_what_proves_nothing_is_said_first_and_in_every_number():
    c = made("paper")
    document = decision(c)
    assert document.warnings[0].startswith("NOT A SOUND CERTIFICATE")
    assert all(
        each.startswith("NOT PROVED") for each in document.sections[0].paragraphs if " hold" in each or " keep " in each
    )


def test_where_nothing_is_open_it_says_so():
    c = made("features-only")
    right = c.replace(labels=c.prediction)
    assert said(right)["What is not"] == "Nothing that was asked about is open."


def test_shares_of_what_is_open_are_rounded_up():
    c = small_certificates(num_targets=30, labels=None)
    abstained = int((c.radius < 0).sum())
    share = -(-1_000 * abstained // 30) / 10
    assert f"{abstained} target ({share} %) without a prediction" in said(c)["What is not"]


def test_names_are_text():
    names = np.array([f"<b>{row}</b>" for row in range(6)])
    c = small_certificates(node_ids=names, provenance={"graph": {"name": "<i>&"}})
    page = render_document(decision(c))
    assert "&lt;i&gt;&amp;" in page
    assert "<i>" not in page
