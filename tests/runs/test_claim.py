"""The claim in sentences: counted by brute force, and never more than is proved."""

import re

import numpy as np
import pytest

import graycert
from graycert._called import Called
from graycert.runs.called import told
from graycert.runs.claim import NOT_PROVED, claim, confidence
from graycert.runs.words import shown_rows
from support.certificates import small_certificates
from support.every_smoothing import any_case, made

THREATS = {
    "node": (graycert.NodeFeatureThreat(), "whatever the features of any one node are"),
    "other": (graycert.NodeFeatureThreat(min_distance=1), "whatever the features of any one other node are"),
    "far": (graycert.NodeFeatureThreat(min_distance=3), "any one node at least 3 hops away"),
    "typed": (graycert.NodeFeatureThreat(min_distance=1, eligible_types=("author",)), "other node of type author"),
    "trusted": (graycert.NodeFeatureThreat(min_distance=1, trusted=np.arange(3) == 1), "that nobody said to trust"),
    "values": (
        graycert.NodeFeatureThreat(min_distance=1, hostile_edge_inputs=True),
        "the features of any one other node, and the values of all its edges, are",
    ),
    "deletion": (graycert.NodeDeletionThreat(), "if any one other node is deleted with its edges"),
    "insertion": (graycert.NodeInsertionThreat(min_distance=2), "at least 2 hops away had not been inserted"),
    "edges": (graycert.EdgeDeletionThreat(), "if any one directed edge is deleted"),
    "out-edges": (graycert.FeaturesAndOutEdgesThreat(), "the edges that start at it are"),
    "takeover": (graycert.NodeTakeoverThreat(), "the features of any one other node"),
    "attributes": (graycert.AttributeFlipThreat(), "if any one attribute that is set is deleted"),
}


@any_case
def test_as_many_hold_as_it_says(case):
    certificates = made(case)
    for rho in range(len(shown_rows(certificates))):
        first, second, *_ = claim(certificates, rho)
        holds = sum(
            radius >= min(rho, eligible)
            for radius, eligible in zip(certificates.radius.tolist(), certificates.num_eligible.tolist(), strict=True)
        )
        assert first.removeprefix(NOT_PROVED).startswith(f"{holds} of {len(certificates)} targets ")
        assert first.startswith(NOT_PROVED) == (case == "paper" and rho > 0)
        assert "not of the model as trained" in second


@any_case
def test_confidence_is_said_as_it_is(case):
    certificates = made(case)
    text = " ".join(claim(certificates, 1))
    if certificates.setup.draws is None:
        assert "with certainty" in text
        assert "%" not in text
    elif case == "paper":
        assert "NOT guaranteed" in text
    elif case == "difference":
        assert "95 % confidence this is true of all of them at once" in text
    elif case != "retention":
        assert "each of them with 95 % confidence, not of all of them at once" in text


def test_what_is_taken_from_the_user_is_said():
    assumed = small_certificates(num_layers_assumed=True)
    assert "the number is the user's" in " ".join(claim(assumed, 1))
    valued = small_certificates(edge_inputs=("edge_weight",))
    assert "By the word of the user" in " ".join(claim(valued, 1))


@pytest.mark.parametrize("name", THREATS)
def test_threats_say_what_a_budget_may_do(name):
    threat, words = THREATS[name]
    assert words in threat.against(1)
    assert "taken as given" in threat.against(1)
    assert "ρ" not in threat.against(1) + threat.against(1_200)
    assert "any 1,200 " in threat.against(1_200)
    assert not re.search(r"\bany one \w+s (is|are)\b|any 1,200 \w+ is ", threat.against(1) + threat.against(1_200))


def test_the_claim_is_said_in_the_words_of_readers():
    certificates, called = made("interception"), Called.of("account,accounts")

    def said(rho):
        return told(certificates, lambda c: claim(c, rho), called)

    plain = claim(certificates, 1)
    assert said(1)[0] == plain[0].replace("targets", "accounts").replace("node", "account")
    assert "any one other account are" in said(1)[0]
    assert said(1)[1:] == plain[1:]
    assert "any 2 other accounts are" in said(2)[0]
    assert said(0)[0].startswith("12 of 12 accounts have")


def test_a_threat_without_words_of_its_own_says_its_statement():
    threat = graycert.NodeFeatureThreat(min_distance=1)
    assert super(graycert.NodeFeatureThreat, threat).against(3) == threat.statement.replace("ρ", "3").rstrip(".")


@pytest.mark.parametrize(
    ("alpha", "said"), [(0.1, "90 %"), (0.05, "95 %"), (0.015, "98.5 %"), (1 / 3, "66.66666666666667 %")]
)
def test_confidence_is_never_more_than_one_minus_alpha(alpha, said):
    assert confidence(alpha) == said
