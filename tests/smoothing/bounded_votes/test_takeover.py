"""Votes of in-neighbours against hostile nodes that choose their edges: compared with every attack that there is."""

from dataclasses import replace

import numpy as np
import pytest

from graycert.smoothing.bounded_votes.ballots import ONE
from graycert.smoothing.bounded_votes.takeover import UNLIMITED, Ballot, takeover_radii
from support.takeover_worlds import compare, random_world


@pytest.mark.parametrize("seed", range(150))
def test_no_attack_of_one_node_succeeds_below_the_radius_and_some_attack_beyond(seed: int) -> None:
    compare(random_world(np.random.default_rng(seed)), most=1)


@pytest.mark.parametrize("seed", range(60))
def test_the_same_of_two_nodes(seed: int) -> None:
    compare(random_world(np.random.default_rng([seed, 2]), largest=3), most=2)


@pytest.mark.parametrize("seed", range(60))
def test_a_target_that_votes_and_may_be_hostile_withstands_chosen_out_edges(seed: int) -> None:
    world = random_world(np.random.default_rng([seed, 3]), largest=4, target_votes=True, undirected=False)
    nothing = np.zeros_like(world.own)
    compare(replace(world, own=nothing, per_voter=nothing), most=1, out_only=True)


@pytest.mark.slow
def test_many_graphs() -> None:
    """More than two thousand graphs, every edge and vote choice."""
    counts = dict.fromkeys(
        ("graphs", "targets", "certified", "fell", "undirected", "one-hot", "injected", "trusted"), 0
    )
    for seed in range(1_600):
        world = random_world(np.random.default_rng([seed, 9]))
        results = [(world, compare(world, most=1))]
        if seed < 400:
            small = random_world(np.random.default_rng([seed, 10]), largest=3)
            results.append((small, compare(small, most=2)))
            out = random_world(np.random.default_rng([seed, 11]), largest=4, target_votes=True, undirected=False)
            out = replace(out, own=np.zeros_like(out.own), per_voter=np.zeros_like(out.own))
            results.append((out, compare(out, most=1, out_only=True)))
        for each, (certified, fell) in results:
            hit = (1, each.num_nodes, certified, fell, each.undirected, each.one_hot, each.injected > 0)
            for name, number in zip(counts, (*hit, bool(each.trusted.any())), strict=True):
                counts[name] += int(number)
    assert counts["graphs"] >= 2_000, counts
    assert min(counts.values()) > 100, counts


def ballot(**changes: object) -> Ballot:
    nothing = np.zeros(2, dtype=np.int64)
    values = {
        "own": nothing,
        "per_voter": nothing,
        "votes": np.array([[ONE, 0]] * 4),
        "eligible": np.ones(4, dtype=bool),
        "newcomers": UNLIMITED,
    }
    return Ballot(**{**values, **changes})  # type: ignore[arg-type]


def test_any_number_of_new_nodes_overcomes_any_lead_unless_a_voter_brings_more_than_its_vote() -> None:
    trusted = np.zeros(4, dtype=bool)
    assert takeover_radii(ballot(eligible=trusted)).tolist() == [UNLIMITED, 4]
    scaled = np.array([ONE - 1, 0])  # every newcomer takes a single unit
    assert takeover_radii(ballot(eligible=trusted, per_voter=scaled))[1] == 4 * ONE + 4 * (ONE - 1)
    scaled = np.array([ONE, 0])  # whoever comes raises the offset by as much as it votes against
    assert takeover_radii(ballot(eligible=trusted, per_voter=scaled))[1] == UNLIMITED
    assert takeover_radii(ballot(per_voter=scaled))[1] == UNLIMITED  # all four voters make a tie
    assert takeover_radii(ballot(per_voter=scaled, own=np.array([-1, 0])))[1] == 3


def test_nobody_to_fear_is_no_limit() -> None:
    none = np.zeros((0, 2), dtype=np.int64)
    alone = ballot(votes=none, eligible=np.zeros(0, dtype=bool), newcomers=0, own=np.array([0, 5]))
    assert (alone.prediction, takeover_radii(alone).tolist()) == (1, [UNLIMITED, UNLIMITED])


def test_a_tie_goes_to_the_smaller_class() -> None:
    nobody = ballot(votes=np.array([[0, ONE]]), eligible=np.ones(1, dtype=bool), own=np.array([0, ONE]), newcomers=0)
    assert takeover_radii(nobody)[0] == 0  # the voter's change makes a tie, which class 0 wins
    mirrored = ballot(votes=np.array([[ONE, 0]]), eligible=np.ones(1, dtype=bool), own=np.array([ONE, 0]), newcomers=0)
    assert takeover_radii(mirrored)[1] == UNLIMITED
