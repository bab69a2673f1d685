"""What trusting nodes gains, beside concluding again with them trusted."""

import dataclasses

import numpy as np
import pytest

import graycert
from graycert.runs import neighbourhoods
from graycert.runs import trusting as module
from graycert.runs.trusting import trusting
from support.every_smoothing import CASES, certify_case, made, small_graph

KNOWN = ("interception", "difference", "no-largest-radius")


def again_with(c, number):
    names = [each.node for each in c.protect_first(top=10).nodes][:number]
    trusted = np.zeros(42, dtype=bool)
    trusted[names] = True
    return c.again(small_graph(), threat=dataclasses.replace(c.setup.threat, trusted=trusted))


def held(c, rho):
    return int((c.radius >= np.minimum(rho, c.num_eligible)).sum())


@pytest.mark.parametrize("case", [*KNOWN, "multiplicative"])
def test_never_more_holds_than_by_concluding_again(case):
    c = certify_case("interception", bound="multiplicative") if case == "multiplicative" else made(case)
    found = trusting(c, last=4)
    assert found["holds"][0] == [held(c, rho) for rho in range(5)]
    assert found["names"] == [each.name for each in c.protect_first(top=10).nodes]
    for number in (1, 3, len(found["names"])):
        again = again_with(c, number)
        exact = [held(again, rho) for rho in range(5)]
        assert all(ours <= theirs for ours, theirs in zip(found["holds"][number], exact, strict=True))
        if case == "multiplicative":
            assert found["holds"][number] == exact


def test_something_is_gained():
    found = trusting(certify_case("interception", bound="multiplicative"), last=3)
    assert found["holds"][-1] > found["holds"][0]


def test_targets_of_which_not_all_is_drawn_keep_what_they_had(monkeypatch):
    monkeypatch.setattr(neighbourhoods, "MOST_NODES", 5)
    found = trusting(made("interception").replace(), last=3)
    assert all(holds == found["holds"][0] for holds in found["holds"])


@pytest.mark.few(5)
@pytest.mark.parametrize("case", sorted(set(CASES) - set(KNOWN)))
def test_where_other_votes_would_be_drawn_nothing_is_said(case):
    c = made(case)
    found = trusting(c, last=2)
    if case == "arrays-and-trusted-nodes":  # one p_ablate per node, none of them 0: trusting shows no features
        assert found["holds"][0] == [held(c, rho) for rho in range(3)]
    else:
        assert found is None


def test_it_is_the_same_of_a_loaded_run(tmp_path):
    loaded = graycert.Certificates.load(made("interception").save(tmp_path / "run"))
    assert trusting(loaded, last=3) == trusting(made("interception"), last=3)
    assert len(trusting(loaded, last=3)["holds"]) == module.MOST_TRUSTED + 1
