"""The search for a hostile set that fails, against a test of every set."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graycert.bounds.interception_state import memory_needed, start_state
from graycert.bounds.two_level import TwoLevelSearch
from graycert.rules.event_search import CERTIFIED, REFUTED, UNDECIDED, LostVotes, search
from support.lost_votes import LostVotesCase, made_critical, random_case
from support.random_graphs import to_adjacency
from support.two_level_oracles import SmallGraph

FEW_OR_MANY = [60, pytest.param(750, marks=pytest.mark.slow)]  # per number of layers: 3,000 cases
ROUNDING = 1e-9
CLEAR_OF_ROUNDING = 2**-40


def routes_of(case):
    graph = case.graph
    found = TwoLevelSearch(
        to_adjacency(graph.edges, graph.num_nodes),
        p_delete=np.array(graph.p_delete),
        p_ablate=np.array(graph.p_ablate),
        num_layers=graph.num_layers,
    )
    return found.routes(case.nodes, np.isin(case.nodes, case.eligible))


def pack(case, kinds, candidates):
    """One bit per vote, class by class, by whole numbers of Python."""
    words, valid, starts = [[] for _ in candidates], [], [0]
    for label in np.unique(case.classes):
        members = np.flatnonzero(case.classes == label)
        for part in np.split(members, range(64, members.size, 64)):
            valid.append(2**part.size - 1)
            for row, candidate in enumerate(candidates):
                words[row].append(sum(int(case.arrived[vote, candidate]) << bit for bit, vote in enumerate(part)))
        starts.append(len(valid))
    keys = [(int(kinds[candidate]), *row) for candidate, row in zip(candidates, words, strict=True)]
    order = sorted(range(len(candidates)), key=lambda row: keys[row])
    distinct = sorted(set(keys))
    votes = LostVotes(
        kinds=kinds[candidates[order]],
        twins=np.array([distinct.index(keys[row]) for row in order]),
        arrived=np.array([words[row] for row in order], dtype=np.uint64).reshape(len(candidates), len(valid)),
        valid=np.array(valid, dtype=np.uint64),
        class_starts=np.array(starts),
        upper=case.upper,
        two_classes=case.two_classes,
    )
    return votes, candidates[order]


def look(case, size, *, delta_upper=1.0, max_sets=10**6, max_work=2**40, subsets_up_to=10):
    """Return the outcome, the number of sets branched on, and the nodes that were found to fail."""
    routes = routes_of(case)
    kinds = routes.type_of[case.positions]
    assert kinds.min() >= 0
    votes, candidates = pack(case, kinds, np.arange(kinds.size))
    memory = np.empty(2**16 + memory_needed(routes, size))
    state = start_state(routes, subsets_up_to, size, max_work, memory)
    before = state.top[0]
    found = np.zeros(size, dtype=np.int64)
    outcome, num_sets = search(routes, state, votes, size, delta_upper, max_sets, found)
    assert (state.top[0], state.top[1]) == (before, 0)  # left as it was
    return outcome, num_sets, case.nodes[case.positions[candidates[found]]].tolist()


def compare(seed, num_layers, num_cases):
    rng = np.random.default_rng([seed, num_layers])
    outcomes, branched = [], 0
    for _ in range(num_cases):
        case = random_case(rng, num_layers).of_arriving_nodes()
        most = len(case.eligible)
        if most == 0:
            continue
        size = int(rng.integers(1, min(most, 4) + 1))
        case = made_critical(case, size, rng)
        worst = case.worst(size)
        if abs(worst - 1.0) < ROUNDING:
            continue
        delta = max(case.arrival_probability(b) for b in case.sets(size)) * (1 + CLEAR_OF_ROUNDING)
        outcome, num_sets, found = look(
            case, size, delta_upper=rng.choice([delta, 1.0]), subsets_up_to=int(rng.choice([10, 1]))
        )
        assert outcome == (CERTIFIED if worst < 1.0 else REFUTED)
        if outcome == REFUTED:
            assert len(set(found)) == size
            assert set(found) <= set(case.eligible)
            assert case.harm(found) > 1.0 - ROUNDING
        outcomes.append(outcome)
        branched += num_sets > 1
    return outcomes, branched


@pytest.mark.few(2)
@pytest.mark.parametrize("num_cases", FEW_OR_MANY)
@pytest.mark.parametrize("num_layers", [1, 2, 3, 4])
def test_certified_iff_every_set_passes(num_layers, num_cases):
    outcomes, branched = compare(0, num_layers, num_cases)
    assert min(outcomes.count(CERTIFIED), outcomes.count(REFUTED)) > 0.15 * num_cases  # both occur,
    assert branched > 0.2 * num_cases  # and the first bound does not decide them


@pytest.mark.few(2)
@pytest.mark.parametrize("limit", [{"max_sets": 1}, {"max_sets": 2}, {"max_work": 0}, {"max_work": 40}])
def test_a_search_that_is_given_up_certifies_nothing(limit):
    rng, outcomes = np.random.default_rng(1), []
    for _ in range(60):
        case = random_case(rng, 2).of_arriving_nodes()
        size = min(len(case.eligible), 3)
        if size < 2:
            continue
        case = made_critical(case, size, rng)
        outcome, num_sets, found = look(case, size, **limit)
        assert num_sets <= limit.get("max_sets", np.inf) + 1
        if outcome == CERTIFIED:
            assert case.worst(size) < 1.0
        if outcome == REFUTED:
            assert case.harm(found) > 1.0 - ROUNDING
        outcomes.append(outcome)
    assert outcomes.count(UNDECIDED) >= 5


def twins_case(num_leaves, *, upper, arrived):
    """0 <- 1 <- leaves 2, 3, ...: all leaves are alike."""
    edges = [(1, 0)] + [(leaf, 1) for leaf in range(2, 2 + num_leaves)]
    num_edges = len(edges)
    graph = SmallGraph(num_leaves + 2, 2, edges, range(num_edges), [0.5] * num_edges, [0.9] * (num_leaves + 2))
    return LostVotesCase(
        graph, list(range(2, 2 + num_leaves)), np.zeros(len(arrived), np.int64), arrived, np.array(upper), False
    )


def test_nodes_that_are_alike_are_tried_once():
    """12 leaves, 10 lost votes: 220 sets of three, all with the same harm."""
    case = twins_case(12, upper=np.linspace(0.05, 0.3, 11), arrived=np.tile(np.arange(10)[:, None] < 3, (1, 12)))
    worst = case.harm([2, 3, 4])
    for goal, expected in ((1.0 - 1e-9, CERTIFIED), (1.0 + 1e-9, REFUTED)):
        shift = (goal - worst) / 2
        shifted = replace(case, upper=case.upper + shift)
        outcome, num_sets, _ = look(shifted, 3)
        assert outcome == expected
        assert num_sets <= 3


def test_equal_types_with_different_arrivals_are_not_alike():
    """Three leaves of one type, ten lost votes; a set fails if four or more of these are left.

    Alone, leaf 2 leaves most votes and leaf 4 fewest. But the only pair that fails is 3 and 4, without leaf 2.
    """
    arrived = np.zeros((10, 3), dtype=bool)
    arrived[:3, 0] = arrived[5:9, 1] = arrived[4:, 2] = True
    case = twins_case(3, upper=np.where(np.arange(11) < 4, 0.1, 0.46), arrived=arrived)
    assert [case.counts([leaf])[0] for leaf in (2, 3, 4)] == [7, 6, 4]
    assert [case.counts(pair)[0] for pair in ([2, 3], [2, 4], [3, 4])] == [3, 1, 4]
    assert [case.harm(pair) < 1.0 for pair in ([2, 3], [2, 4], [3, 4])] == [True, True, False]
    outcome, _, found = look(case, 2)
    assert (outcome, sorted(found)) == (REFUTED, [3, 4])
    assert look(case, 3)[0] == CERTIFIED


def test_words_end_where_classes_end():
    """64 and 65 votes of one class, beside one of another; a full word counts 64."""
    for num_votes in (63, 64, 65, 128, 129):
        classes = np.r_[np.zeros(num_votes, np.int64), 1]
        arrived = np.zeros((num_votes + 1, 1), dtype=bool)
        case = twins_case(1, upper=np.zeros(num_votes + 2), arrived=arrived)
        for total_fails, largest_fails in ((True, False), (False, True)):
            upper = np.full(num_votes + 2, 0.2)
            upper[num_votes + 1] = 0.9 if total_fails or largest_fails else 0.2
            upper[num_votes] = 0.6 if largest_fails else 0.05
            exact = LostVotesCase(case.graph, case.eligible, classes, arrived, upper, False)
            assert exact.counts([2]) == (num_votes + 1, num_votes)
            assert look(exact, 1)[0] == (REFUTED if exact.harm([2]) >= 1.0 else CERTIFIED)


def test_a_tie_is_not_certified():
    """Bounds of 1/4 and p(E(B)) = 1/4: the sum is 1."""
    edges = [(1, 0)]
    graph = SmallGraph(2, 1, edges, [0], [0.5], [0.5, 0.5])
    case = LostVotesCase(graph, [1], np.array([0]), np.array([[False]]), np.array([0.0, 0.25]), False)
    assert case.harm([1]) == 1.0
    assert look(case, 1, delta_upper=0.25)[::2] == (REFUTED, [1])
    below = replace(case, upper=np.array([0.0, 0.25 - 1e-12]))
    assert look(below, 1)[0] == look(below, 1, delta_upper=0.25)[0] == CERTIFIED


@given(st.integers(0, 10**6), st.integers(1, 4), st.data())
def test_larger_confidence_bounds_never_help(seed, num_layers, data):
    rng = np.random.default_rng(seed)
    case = random_case(rng, num_layers).of_arriving_nodes()
    most = len(case.eligible)
    if most == 0:
        return
    size = int(rng.integers(1, min(most, 3) + 1))
    case = made_critical(case, size, rng)
    factor = data.draw(st.floats(1.0, 1.5))
    larger = replace(case, upper=case.upper * factor)
    if look(larger, size)[0] == CERTIFIED:
        assert look(case, size)[0] == CERTIFIED
