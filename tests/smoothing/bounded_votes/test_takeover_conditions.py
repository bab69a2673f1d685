"""Every condition of the certificate against takeover is needed: without it, certified predictions fall."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from graycert.smoothing.bounded_votes.ballots import ONE
from graycert.smoothing.bounded_votes.takeover import Ballot, takeover_radii
from support.takeover_worlds import World, random_world, wirings

Array = Any
Classify = Callable[[World, Array, Array, int], int]


def scores(world: World, edges: Array, votes: Array, target: int) -> Array:
    """What the certified classifier adds up."""
    senders = edges[:, target] & (np.arange(edges.shape[0]) != target)
    return world.own[target] + senders.sum() * world.per_voter[target] + votes[senders].sum(axis=0)


def plain(world: World, edges: Array, votes: Array, target: int) -> int:
    return int(scores(world, edges, votes, target).argmax())


def anyone_else(world: World, target: int) -> Iterable[int]:
    return [node for node in np.flatnonzero(~world.trusted).tolist() if node != target]


def falls(
    classify: Classify,
    *,
    ballot: Callable[[World, int], Ballot] = World.ballot,
    hostile: Callable[[World, int], Iterable[int]] = anyone_else,
    also: Callable[[World, Array, int], Iterable[Array]] = lambda world, edges, target: (),
    worlds: Callable[[int], World] = lambda seed: random_world(np.random.default_rng([seed, 5]), largest=4),
    seeds: int = 150,
) -> tuple[int, int]:
    """Count targets that are certified against one node, and those of them that a single node changes.

    Args:
        classify: Class of a target in a graph with these votes.
        ballot: What is handed to the certificate.
        hostile: Who attacks a target.
        also: What else is done to the edges.
        worlds: The world of each seed.
        seeds: How many worlds.
    """
    certified = fallen = 0
    for seed in range(seeds):
        world = worlds(seed)
        world = replace(world, per_voter=np.zeros_like(world.own))
        for target in range(world.num_nodes):
            clean = classify(world, world.edges, world.votes, target)
            given = ballot(world, target)
            if given.prediction != clean or takeover_radii(given).min() < 1:
                continue
            certified += 1
            fallen += any(
                classify(world, edges, votes, target) != clean
                for node in hostile(world, target)
                for wired in wirings(world, (node,), world.num_nodes, out_only=False)
                for edges in (wired, *also(world, wired, target))
                for votes in lies(world, node)
            )
    return certified, fallen


def with_a_single_suspect(seed: int) -> World:
    """Five nodes at most, of which the first alone may be hostile."""
    world = random_world(np.random.default_rng([seed, 5]), largest=5)
    return replace(world, trusted=np.arange(world.num_nodes) > 0)


def lies(world: World, node: int) -> Iterable[Array]:
    for extreme in ONE * np.eye(world.votes.shape[1], dtype=np.int64):
        votes = world.votes.copy()
        votes[node] = extreme
        yield votes


def without_an_honest_edge(world: World, edges: Array, target: int) -> Iterable[Array]:
    for sender in np.flatnonzero(edges[:, target]):
        fewer = edges.copy()
        fewer[sender, target] = False
        yield fewer


def five_parallel_edges(world: World, edges: Array, votes: Array, target: int) -> int:
    """Edges that are not there before are five."""
    count = np.where(edges[:, target] & ~world.edges[:, target], 5, edges[:, target].astype(np.int64))
    count[target] = 0
    return int((world.own[target] + count @ votes).argmax())


def offset(world: World, given: Array, target: int) -> Ballot:
    """What would be certified if an offset were no matter of edges."""
    return replace(world.ballot(target), own=given)


def of_degree(world: World, edges: Array, target: int) -> Array:
    degree = int((edges[:, target] & (np.arange(edges.shape[0]) != target)).sum())
    return ONE * np.eye(world.own.shape[1], dtype=np.int64)[degree % world.own.shape[1]]


def of_labels(world: World, edges: Array, target: int) -> Array:
    """Two steps of label propagation; the label of a node is that of its clean vote, where it is known at all."""
    labels = world.votes * (np.arange(world.num_nodes) % 2 == 0)[:, None]
    once = edges.T.astype(np.int64) @ labels
    return 2 * (labels + edges.T.astype(np.int64) @ once)[target]


def of_number_of_voters(world: World, edges: Array, target: int) -> Array:
    degree = int((edges[:, target] & (np.arange(edges.shape[0]) != target)).sum())
    return max(degree, 1) * world.own[target] // 4


def first_alone(world: World, edges: Array, votes: Array, target: int) -> int:
    senders = np.flatnonzero(edges[:, target] & (np.arange(edges.shape[0]) != target))[:1]
    return int((world.own[target] + votes[senders].sum(axis=0)).argmax())


def ballot_of_first_alone(world: World, target: int) -> Ballot:
    full = world.ballot(target)
    return replace(full, votes=full.votes[:1], eligible=full.eligible[:1])


def weighted(world: World, edges: Array, votes: Array, target: int) -> int:
    weights = 1 + 2 * (np.arange(edges.shape[0]) % 3) * (np.arange(edges.shape[0]) != target)
    return int((world.own[target] + (weights * edges[:, target]) @ votes).argmax())


def at_distance_two(world: World, target: int) -> Iterable[int]:
    return [node for node in anyone_else(world, target) if not world.edges[node, target]]


def nobody_near(world: World, target: int) -> Ballot:
    full = world.ballot(target)
    return replace(full, eligible=np.zeros_like(full.eligible), newcomers=0)


def in_largest_component(world: World, edges: Array, votes: Array, target: int) -> int:
    """The class, -1 if the target is not in the largest component, the first one on a tie."""
    _, component = connected_components(edges, directed=True, connection="weak")
    sizes = np.bincount(component)
    kept = component == component[np.flatnonzero(sizes[component] == sizes.max())[0]]
    return plain(world, edges, votes, target) if kept[target] else -1


def reads(own: Callable[[World, Array, int], Array]) -> dict[str, Any]:
    return {
        "classify": lambda w, edges, votes, t: plain(
            replace(w, own=np.tile(own(w, edges, t), (w.num_nodes, 1))), edges, votes, t
        ),
        "ballot": lambda w, t: offset(w, own(w, w.edges, t), t),
    }


CONDITIONS: dict[str, dict[str, Any]] = {
    "the target is not hostile": {"classify": plain, "hostile": lambda world, target: [target]},
    "edges between honest nodes stay": {"classify": plain, "also": without_an_honest_edge},
    "parallel edges count once": {"classify": five_parallel_edges},
    "the offset does not read the degree": reads(of_degree),
    "the offset does not read propagated labels": reads(of_labels),
    "an offset scaled by the number of voters has its share per voter": {
        **reads(of_number_of_voters),
        "worlds": with_a_single_suspect,
        "seeds": 1_500,
    },
    "voters are not capped": {"classify": first_alone, "ballot": ballot_of_first_alone, "seeds": 400},
    "every vote weighs one": {"classify": weighted},
    "the attackers may be any other nodes": {
        "classify": plain,
        "hostile": at_distance_two,
        "ballot": nobody_near,
    },
    "the graph is not reduced to its largest component": {"classify": in_largest_component},
}


def test_with_all_conditions_nothing_falls() -> None:
    certified, fallen = falls(plain)
    assert certified > 50
    assert fallen == 0


@pytest.mark.few(1)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_without_it_certified_predictions_fall(condition: str) -> None:
    certified, fallen = falls(**CONDITIONS[condition])
    assert 0 < fallen < certified, f"{fallen} of {certified} certified targets fall"
