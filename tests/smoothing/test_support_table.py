"""The table smoothing x threat x rule x what follows: every cell is proved, compared or refused, and acts so."""

import itertools
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import graycert
from graycert.errors import GraycertError, InvalidParameterError, UnsoundSetupError
from graycert.rules import RULES
from graycert.smoothing import FOLLOWS, SMOOTHINGS
from graycert.threats import THREATS
from support.binary_graphs import binary_graph
from support.certified_groups import RowClassifier
from support.known_models import shaken

DOCS = Path(__file__).parents[2] / "docs"
SLUGS = set(re.findall(r"^## (\S+)$", (DOCS / "messages.md").read_text(encoding="utf-8"), flags=re.MULTILINE))
EXAMPLES = {
    "interception": {"p_delete": 0.5, "p_ablate": 0.6},
    "retention": {"keep_ratio": "1/3"},
    "randomized-ablation": {"scope": "local", "num_kept": 2},
    "sparse": {"p_plus": 0.01, "p_minus": 0.6},
    "subgraphs": {"num_subgraphs": 5},
    "features-only": {},
    "votes": {"gate": 0.9},
}
THREAT_EXAMPLES = {"node-features": {"min_distance": 1}, "node-takeover": {"max_injected": 3}}
WITH_VALUES = graycert.NodeFeatureThreat(min_distance=1, hostile_edge_inputs=True)
ADVERSARIES = {each.claimed_as: each for each in (*(kind() for kind in THREATS.values()), WITH_VALUES)}
PLAIN = list(itertools.product(SMOOTHINGS, THREATS, RULES))
CERTIFIED = [cell for cell in PLAIN if SMOOTHINGS[cell[0]].cell(*cell[1:]).status != "refused"]


@cache
def graph():
    return binary_graph(num_nodes=14, num_pairs=24, directed=False)


@cache
def model():
    return shaken(graycert.build_model("gcn", graph(), hidden_channels=4))


@cache
def row_classifier():
    return shaken(RowClassifier(graph().num_features, 4, int(graph().y.max()) + 1))


def certify(smoothing, threat, rule, **changes):
    """Certify two nodes with few draws, whatever it takes."""
    kind = SMOOTHINGS[smoothing]
    arguments = {}
    if kind.draws_allowed:
        arguments["draws"] = graycert.Draws(num_selection=20, num_estimation=60)
    if rule == "sequential" and graycert.UntilDecided in kind.draws_allowed:
        arguments["draws"] = graycert.UntilDecided(num_selection=20, max_estimation=60, batch=30)
    return graycert.certify(
        row_classifier() if smoothing == "votes" else model(),
        graph(),
        smoothing=kind(**EXAMPLES[smoothing]),
        threat=THREATS[threat](**THREAT_EXAMPLES.get(threat, {})),
        rule=rule,
        targets=[3, 0],
        max_radius=3,
        execution=graycert.Execution(say=lambda _: None),
        **{**arguments, **changes},
    )


made = cache(certify)


def test_every_smoothing_has_an_example():
    assert set(EXAMPLES) == set(SMOOTHINGS)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_every_cell_has_a_proof_compares_or_has_a_reason(smoothing):
    for threat, rule, follows in itertools.product(ADVERSARIES, RULES, (None, *FOLLOWS)):
        cell = SMOOTHINGS[smoothing].cell(threat, rule, follows)
        if cell.status == "proved":
            assert (DOCS / "proofs" / f"{cell.proof}.md").is_file(), cell
            assert RULES[rule].is_sound
        elif cell.status == "compared":
            assert (rule, cell.proof) == ("paper", "")
            assert follows in (None, "again")
        else:
            assert cell.status == "refused"
            assert cell.slug in SLUGS
            assert cell.reason.endswith(".")
        if follows is not None and SMOOTHINGS[smoothing].cell(threat, rule).status == "refused":
            assert cell.status == "refused"  # nothing follows from what is no certificate


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_the_first_claim_is_the_default(smoothing):
    kind = SMOOTHINGS[smoothing]
    for claim in kind.claims:
        threat = ADVERSARIES[claim.threat]
        rule = kind.default_rule(threat, kind(**EXAMPLES[smoothing]).default_draws())
        assert kind.cell(claim.threat, rule).status == "proved"
        if graycert.UntilDecided in kind.draws_allowed:
            assert kind.default_rule(threat, graycert.UntilDecided()) == "sequential"


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_values_per_edge_have_a_proof_or_a_reason(smoothing):
    kind = SMOOTHINGS[smoothing]
    for name, adversary in ADVERSARIES.items():
        cell = kind.edge_inputs_cell(adversary)
        if cell.status == "proved":
            assert (DOCS / "proofs" / f"{cell.proof}.md").is_file(), cell
            assert name in {claim.threat for claim in kind.claims}
        else:
            assert (cell.status, cell.slug) == ("refused", "no-proof")
            assert cell.reason.endswith(".")


@pytest.mark.few(4)
@pytest.mark.parametrize("cell", CERTIFIED, ids="-".join)
def test_what_is_certified_is_certified(cell):
    found = made(*cell)
    assert (found.setup.smoothing.name, found.setup.threat.name, found.setup.rule) == cell
    assert len(found) == 2
    assert found.radius.max() <= (found.setup.max_radius or graph().num_edges)
    again = found.again(graph())
    for name, (_, array) in found.every_array().items():
        np.testing.assert_array_equal(again.every_array()[name][1], array, err_msg=name)


@pytest.mark.parametrize("cell", sorted(set(PLAIN) - set(CERTIFIED)), ids="-".join)
def test_what_has_no_proof_is_refused_by_its_name(cell):
    expected = SMOOTHINGS[cell[0]].cell(*cell[1:])
    with pytest.raises(UnsoundSetupError) as caught:
        certify(*cell)
    assert caught.value.slug == expected.slug
    assert expected.reason in str(caught.value)


@pytest.mark.parametrize("cell", CERTIFIED, ids="-".join)
def test_what_follows_follows_and_the_rest_is_refused(cell):
    found = made(*cell)
    budgets = (1, 2)
    for follows, conclude in (
        ("possible labels", lambda: found.possible_labels(1)),
        ("one adversary", lambda: found.against_one_adversary(graph(), budgets)),
    ):
        expected = SMOOTHINGS[cell[0]].cell(*cell[1:], follows)
        if expected.status == "proved":
            assert conclude() is not None
            continue
        with pytest.raises(UnsoundSetupError) as caught:
            conclude()
        assert caught.value.slug == expected.slug


@pytest.mark.parametrize("cell", CERTIFIED, ids="-".join)
def test_early_stopping_is_what_the_table_says(cell):
    draws = graycert.UntilDecided(num_selection=20, max_estimation=60, batch=30)
    said = SMOOTHINGS[cell[0]].cell(*cell[1:], "early stopping")
    if said.status == "proved":
        assert made(*cell).setup.draws == draws
    else:
        with pytest.raises(UnsoundSetupError) as caught:
            certify(*cell, draws=draws)
        assert caught.value.slug == said.slug


def test_bets_need_draws_that_stop():
    with pytest.raises(InvalidParameterError, match=r"`draws` must be graycert\.UntilDecided for the rule"):
        certify("interception", "node-features", "sequential", draws=graycert.Draws())


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_again_concludes_by_the_table(smoothing):
    """From the votes of the first claim: other threats and rules are concluded, or refused by their name."""
    kind = SMOOTHINGS[smoothing]
    first = kind.claims[0].threat
    found = made(smoothing, first, next(iter(kind.claims[0].proofs)))
    for threat, rule in itertools.product(THREATS, RULES):
        wanted = THREATS[threat](**THREAT_EXAMPLES.get(threat, {}))
        if not wanted.is_no_wider_than(found.setup.threat):
            with pytest.raises(InvalidParameterError, match="no wider"):
                found.again(graph(), threat=wanted, rule=rule)
            continue
        expected = kind.cell(threat, rule, "again")
        if expected.status == "refused":
            with pytest.raises(UnsoundSetupError) as caught:
                found.again(graph(), threat=wanted, rule=rule)
            assert caught.value.slug == expected.slug
        elif RULES[rule].needs == "batches" or (
            RULES[rule].needs == "predictions" and "estimation_predictions" not in found.adds
        ):
            with pytest.raises(GraycertError, match="`rule`"):
                found.again(graph(), threat=wanted, rule=rule)
        else:
            assert found.again(graph(), threat=wanted, rule=rule).setup.threat == wanted
