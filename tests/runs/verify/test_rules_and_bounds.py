"""Runs with what not every run has: loaded bit by bit, verified, and what was changed in them found."""

import dataclasses

import numpy as np
import pytest
import torch

from graycert import Certificates
from graycert.errors import InvalidFileError, InvalidParameterError
from graycert.rules import COUNT_RULES, CollectiveCertificate, status_of
from graycert.runs.verify import verify
from support.certified_groups import SMOOTHING, certify_groups, smoothing_with_arrays, three_groups, trained_model

ARRAYS = (
    "targets",
    "prediction",
    "status",
    "p_lower",
    "p_upper",
    "radius",
    "delta_upper",
    "delta_methods",
    "receptive_field_size",
    "num_eligible",
    "selection_votes",
    "estimation_votes",
    "estimation_predictions",
    "attackers",
    "labels",
)
COLLECTIVE = [field.name for field in dataclasses.fields(CollectiveCertificate)]


def failed(found):
    return [check.name for check in found.checks if not check.passed]


def collective_of(rule):
    return None if rule == "paper" else (1, 2, 5)


@pytest.fixture(scope="module")
def aware():
    return certify_groups(rule="event-aware", collective=(1, 2, 5), simultaneous=True)


def altered(array, place, value):
    changed = array.copy()
    changed[place] = value
    return changed


@pytest.mark.few(1)
@pytest.mark.parametrize("arrays", [False, True], ids=["uniform", "arrays"])
@pytest.mark.parametrize("bound", ["auto", "multiplicative"])
@pytest.mark.parametrize("rule", [*COUNT_RULES, "event-aware"])
def test_a_run_is_loaded_bit_by_bit_and_verifies(tmp_path, rule, bound, arrays):
    smoothing = smoothing_with_arrays() if arrays else SMOOTHING
    made = certify_groups(
        rule=rule, bound=bound, smoothing=smoothing, simultaneous=arrays, collective=collective_of(rule)
    )
    folder = made.save(tmp_path / "run")
    loaded = Certificates.load(folder)
    assert set(made.every_array()) == set(loaded.every_array())
    assert set(ARRAYS) - set(made.every_array()) == set() if rule == "event-aware" else {"estimation_predictions"}
    for name, (_, before) in made.every_array().items():
        after = getattr(loaded, name)
        assert (after.dtype.kind, after.shape, after.tobytes()) == (before.dtype.kind, before.shape, before.tobytes())
    assert loaded.setup == made.setup
    assert (loaded.collective is None) is (rule == "paper")
    for name in COLLECTIVE if loaded.collective is not None else ():
        before, after = getattr(made.collective, name), getattr(loaded.collective, name)
        assert type(before) is type(after)
        np.testing.assert_array_equal(before, after)
    assert loaded.summary() == made.summary()
    found = verify(folder, data=three_groups(), model=trained_model())
    assert found.passed, str(found)
    names = [check.name for check in found.checks]
    assert ("collective" in names) is (rule != "paper")
    assert ("estimation_predictions" in names) is (rule == "event-aware")
    assert "delta_methods" in names
    # the order of the columns of edge_index, which an array of p_d follows, is no part of the graph
    order = torch.randperm(three_groups().edge_index.size(1), generator=torch.Generator().manual_seed(1))
    shuffled = three_groups().clone()
    shuffled.edge_index = shuffled.edge_index[:, order]
    assert verify(folder, data=shuffled).passed


@pytest.mark.few(1)
@pytest.mark.parametrize("rule", ["sound", "difference", "event-aware"])
def test_a_larger_radius_is_found(tmp_path, rule):
    made = certify_groups(rule=rule)
    row = int(made.radius.argmin())
    radius = altered(made.radius, row, made.radius[row] + 1)
    folder = made.replace(radius=radius, status=status_of(radius)).save(tmp_path / "run")
    found = verify(folder, data=three_groups())
    assert "radius" in failed(found)
    (check,) = (check for check in found.checks if check.name == "radius")
    assert f"node {made.targets[row]}: stored {radius[row]}, recomputed {radius[row] - 1}" in check.detail
    assert "claims more" in check.detail


def test_the_radius_of_another_rule_is_found(tmp_path, aware):
    folder = aware.replace(setup=aware.setup.replace(rule="sound")).save(tmp_path / "run")
    assert {"radius", "summary.json"} <= set(failed(verify(folder, data=three_groups())))


def test_votes_in_another_order_are_found_by_the_model(tmp_path, aware):
    """Votes of which class is which sample's decide under the event-aware rule, though the counts stay the same."""
    row = int(np.argmax([np.unique(votes).size for votes in aware.estimation_predictions]))
    votes = aware.estimation_predictions[row]
    first, second = 0, int(np.argmax(votes != votes[0]))
    assert votes[first] != votes[second]
    exchanged = aware.estimation_predictions.copy()
    exchanged[row, [first, second]] = votes[[second, first]]
    folder = aware.replace(estimation_predictions=exchanged).save(tmp_path / "run")
    found = verify(folder, data=three_groups(), model=trained_model())
    assert "estimation_predictions" in failed(found)
    assert "estimation_votes" not in failed(found)


def test_votes_of_other_samples_do_not_give_the_same_radii(tmp_path):
    """Where hostile messages arrived is drawn again: votes in another order have nothing to do with it."""
    made = certify_groups(rule="event-aware")
    exchanged = made.estimation_predictions[:, ::-1].copy()
    folder = made.replace(estimation_predictions=exchanged).save(tmp_path / "run")
    found = verify(folder, data=three_groups())
    assert "radius" in failed(found)
    assert "claims more" in str(found)


def test_a_vote_that_the_counts_do_not_know_cannot_be_loaded(tmp_path, aware):
    entry = altered(aware.estimation_predictions, (0, 0), (aware.estimation_predictions[0, 0] + 1) % 3)
    with pytest.raises(InvalidParameterError, match="`estimation_predictions` must be the votes"):
        aware.replace(estimation_predictions=entry)
    folder = aware.save(tmp_path / "run")
    rewrite_votes(folder, estimation_predictions=entry)
    with pytest.raises(InvalidFileError, match="`estimation_predictions` must be the votes"):
        verify(folder, data=three_groups())
    rewrite_votes(folder, estimation_predictions=None)
    with pytest.raises(InvalidFileError, match="must be given for rule 'event-aware'"):
        verify(folder, data=three_groups())


def rewrite_votes(folder, **changes):
    with np.load(folder / "votes.npz", allow_pickle=False) as votes:
        arrays = {**votes, **changes}
    np.savez_compressed(folder / "votes.npz", **{name: value for name, value in arrays.items() if value is not None})


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "place"), [("num_robust", 0), ("num_robust", 2), ("num_robust_naive", 1), ("num_active", None)]
)
def test_a_collective_count_that_claims_more_is_found(tmp_path, name, place):
    made = certify_groups(collective=(1, 2, 5), alpha=1e-4)
    before = getattr(made.collective, name)
    assert made.collective.num_active < len(made)
    changes = {name: before + 1 if place is None else altered(before, place, before[place] + 1)}
    forged = dataclasses.replace(made.collective, **changes)
    folder = made.replace(collective=forged).save(tmp_path / "run")
    found = verify(folder, data=three_groups())
    assert "collective" in failed(found)
    (check,) = (check for check in found.checks if check.name == "collective")
    assert "stored" in check.detail
    assert "recomputed" in check.detail
    assert name in check.detail


def test_a_smaller_collective_count_is_no_claim(tmp_path):
    made = certify_groups(collective=(1, 2, 5))
    modest = dataclasses.replace(made.collective, num_robust=made.collective.num_robust_naive)
    folder = made.replace(collective=modest).save(tmp_path / "run")
    assert verify(folder, data=three_groups()).passed


def test_branch_and_bound_is_not_redone_and_that_is_said(tmp_path):
    made = certify_groups()
    by_milp = made.against_one_adversary(three_groups(), budgets=(1, 2, 5), method="milp")
    forged = dataclasses.replace(
        by_milp, num_robust=np.full(3, by_milp.num_active), proved_by=("milp",) * 3, solver_status=("optimal",) * 3
    )
    for collective, name in ((by_milp, "real"), (forged, "forged")):
        found = verify(made.replace(collective=collective).save(tmp_path / name), data=three_groups())
        assert found.passed
        said = any("branch and bound" in sentence for sentence in found.not_redone)
        assert said is ("milp" in collective.proved_by)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "changes",
    [
        {"num_robust": np.array([1, 1])},
        {"num_robust": np.array([99, 1, 1])},
        {"num_robust_naive": np.array([-1, 0, 0])},
        {"budgets": np.array([2, 1, 5])},
        {"budgets": np.array([0, 1, 5])},
        {"num_active": 99},
        {"proved_by": ("lp",)},
    ],
)
def test_impossible_collective_counts_are_refused(changes):
    made = certify_groups(collective=(1, 2, 5))
    with pytest.raises(InvalidParameterError, match="`collective` must have one count per rising budget"):
        made.replace(collective=dataclasses.replace(made.collective, **changes))


def test_a_collective_certificate_needs_a_sound_rule():
    made = certify_groups(collective=(1,))
    with pytest.raises(InvalidParameterError, match=r"`collective` needs a sound rule .*, got rule 'paper'"):
        made.replace(setup=made.setup.replace(rule="paper"))


def test_other_methods_than_those_taken_are_found(tmp_path):
    made = certify_groups()
    folder = made.replace(delta_methods=altered(made.delta_methods, 3, "union")).save(tmp_path / "one")
    found = verify(folder, data=three_groups())
    assert "delta_methods" in failed(found)
    assert f"node {made.targets[3]}: stored 'union', recomputed 'exact'" in str(found)
    folder = made.replace(setup=made.setup.replace(bound="multiplicative")).save(tmp_path / "all")
    assert {"delta_upper", "delta_methods"} <= set(failed(verify(folder, data=three_groups())))


@pytest.mark.parametrize("changes", [{"simultaneous": True}, {"smoothing": smoothing_with_arrays(seed=1)}])
def test_another_level_or_smoothing_is_found(tmp_path, changes):
    made = certify_groups(rule="event-aware", smoothing=smoothing_with_arrays())
    folder = made.replace(setup=made.setup.replace(**changes)).save(tmp_path / "run")
    quantity = "p_lower" if "simultaneous" in changes else "delta_upper"
    assert quantity in failed(verify(folder, data=three_groups()))


@pytest.mark.parametrize("rule", ["sound", "event-aware"])
def test_without_the_graph_it_is_said_what_is_not_redone(tmp_path, rule):
    made = certify_groups(rule=rule, collective=(1, 2))
    folder = made.save(tmp_path / "run")
    other = three_groups().clone()
    other.x = other.x + 1.0
    found = verify(folder, data=other, model=trained_model())
    assert failed(found) == ["graph"]
    names = {check.name for check in found.checks}
    assert {"prediction", "p_lower", "p_upper", "summary.json"} <= names
    assert ("radius" in names) is (rule == "sound")
    assert not names & {"delta_upper", "delta_methods", "collective", "estimation_votes"}
    said = " ".join(found.not_redone)
    for words in (
        "Δ̄ and receptive fields",
        "collective certificate",
        "nodes to protect first",
        "what was drawn or evaluated",
    ):
        assert words in said
    assert ("radii, because they follow from the graph" in said) is (rule == "event-aware")


def test_votes_are_checked_without_the_graph(tmp_path, aware):
    folder = aware.replace(p_lower=aware.p_lower * 0.999).save(tmp_path / "run")
    other = three_groups().clone()
    other.x = other.x + 1.0
    assert {"graph", "p_lower"} <= set(failed(verify(folder, data=other)))
