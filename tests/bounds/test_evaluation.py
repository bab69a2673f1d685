import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from graycert import InterceptionSmoothing, NodeFeatureThreat, delta_bounds
from graycert.bounds import ablation_only_delta, evaluation, single_source_bound, target_bound
from graycert.bounds.evaluation import BOUNDS, evaluate_deltas
from graycert.bounds.hop_limited import arrival_probability
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.graph import Adjacency, bottleneck_graph, path_graph, simple_paths, star_graph

SMOOTHING = InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)
ANYONE, OTHERS = NodeFeatureThreat(), NodeFeatureThreat(min_distance=1)
ROUNDING = {"multiplicative": 1e-14, "auto": 1e-12, "exact": 1e-12, "surrogate": 1e-12, "tree": 1e-12}

tight_bounds = pytest.mark.parametrize("bound", ROUNDING)
all_bounds = pytest.mark.parametrize("bound", BOUNDS)


@tight_bounds
def test_a_star_by_hand(bound):
    result = evaluate_deltas(
        star_graph(3), [0], smoothing=SMOOTHING, threat=ANYONE, num_layers=2, max_radius=5, bound=bound
    )
    leaf = single_source_bound([1], p_delete=0.31, p_ablate=0.794)
    shown = 1 - 0.794
    wanted = [1 - (1 - shown) * (1 - leaf) ** n for n in (0, 1, 2, 3, 3)]
    assert result.delta_upper[0] == pytest.approx(wanted, abs=ROUNDING[bound])
    assert result.num_eligible.tolist() == [4]
    assert result.receptive_field_size.tolist() == [4]
    assert result.path_counts_exact.tolist() == [True]


@all_bounds
def test_the_target_counts_only_when_it_may_be_hostile(bound):
    values = {
        threat.min_distance: np.asarray(
            delta_bounds(
                path_graph(1), [0], smoothing=SMOOTHING, threat=threat, num_layers=2, max_radius=2, bound=bound
            )
        )
        for threat in (ANYONE, OTHERS)
    }
    shown = target_bound(p_ablate=0.794)
    assert (values[0] >= 1 - 0.794).all()
    assert values[0] == pytest.approx(np.array([[shown, shown]]), abs=ROUNDING.get(bound, 1e-14))
    assert values[1].tolist() == [[0.0, 0.0]]


@all_bounds
def test_trusted_nodes_are_left_out(bound):
    trusted = np.array([False, True, False, False, False])
    threat = NodeFeatureThreat(min_distance=1, trusted=trusted)
    arguments = {"smoothing": SMOOTHING, "num_layers": 2, "max_radius": 9, "bound": bound}
    result = evaluate_deltas(star_graph(4), [0, 2], threat=threat, **arguments)
    assert result.num_eligible.tolist() == [3, 3]
    assert result.receptive_field_size.tolist() == [5, 5]
    fewer = delta_bounds(star_graph(3), [0, 2], threat=OTHERS, **arguments)
    np.testing.assert_allclose(result.delta_upper, fewer, rtol=0, atol=1e-14)
    assert not np.isin(result.worst_set(0, 9), [0, 1]).any()


@all_bounds
def test_a_trusted_target_is_never_hostile(bound):
    trusted = np.ones(3, dtype=bool)
    threat = NodeFeatureThreat(trusted=trusted)
    found = delta_bounds(path_graph(3), [0, 1], smoothing=SMOOTHING, threat=threat, num_layers=2, bound=bound)
    assert not found.delta_upper.any()


@all_bounds
def test_distance_counts_from_source_to_target(bound):
    graph = Adjacency.from_edge_index([[2, 1], [1, 0]], num_nodes=3)  # 2 -> 1 -> 0
    result = evaluate_deltas(
        graph,
        [0, 1, 2],
        smoothing=SMOOTHING,
        threat=NodeFeatureThreat(min_distance=2),
        num_layers=2,
        max_radius=1,
        bound=bound,
    )
    assert result.num_eligible.tolist() == [1, 0, 0]
    assert result.receptive_field_size.tolist() == [3, 2, 1]
    assert (result.delta_upper > 0).ravel().tolist() == [True, False, False]


@pytest.mark.parametrize("bound", ["multiplicative", "exact", "auto"])
def test_without_edge_deletion_the_bound_is_proposition_two(bound):
    smoothing = InterceptionSmoothing(p_delete=0.0, p_ablate=0.85)
    for threat, eligible in ((ANYONE, 6), (OTHERS, 5), (NodeFeatureThreat(min_distance=2), 4)):
        bounds = delta_bounds(
            bottleneck_graph(4), [0], smoothing=smoothing, threat=threat, num_layers=2, max_radius=8, bound=bound
        )
        found = bounds.delta_upper[0]
        exact = ablation_only_delta(p_ablate=0.85, num_eligible=eligible, max_radius=8)
        assert (found >= exact).all()
        assert found == pytest.approx(exact, abs=ROUNDING[bound])


@pytest.fixture
def many_blocks(monkeypatch):
    """Let a block hold at most 120 nodes of receptive fields, and 50 while paths are counted."""
    split = simple_paths.target_blocks
    sizes = []

    def limit(max_entries):
        def small(*args, **kw):
            for block in split(*args, **{**kw, "max_entries": max_entries}):
                sizes.append(block.size)
                yield block

        return small

    monkeypatch.setattr(evaluation, "target_blocks", limit(120))
    monkeypatch.setattr(simple_paths, "target_blocks", limit(50))
    return sizes


def random_graph(num_nodes=40, num_edges=150):
    pairs = np.random.default_rng(0).integers(0, num_nodes, (2, num_edges))
    return Adjacency.from_edge_index(np.unique(pairs, axis=1), num_nodes=num_nodes)


FIELDS = (
    "targets",
    "delta_upper",
    "proved",
    "methods",
    "num_eligible",
    "receptive_field_size",
    "path_counts_exact",
)


@pytest.mark.parametrize("max_radius", [6, 100, None])
@pytest.mark.parametrize("bound", ["multiplicative", "union", "auto", "surrogate"])
def test_blocks_do_not_change_the_result(request, bound, max_radius):
    graph, targets = random_graph(), np.random.default_rng(1).permutation(40)[:25]
    arguments = {"smoothing": SMOOTHING, "threat": OTHERS, "num_layers": 3, "max_radius": max_radius, "bound": bound}
    whole = evaluate_deltas(graph, targets, **arguments)
    sizes = request.getfixturevalue("many_blocks")
    parts = evaluate_deltas(graph, targets, **arguments)
    assert len(sizes) > 5
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))
    for ours, theirs in zip(whole.attackers, parts.attackers, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert whole.targets.tolist() == targets.tolist()


@pytest.mark.parametrize("threat", [ANYONE, OTHERS, NodeFeatureThreat(min_distance=2)])
@pytest.mark.parametrize(("p_delete", "p_ablate"), [(0.31, 0.794), (0.9, 0.9), (0.0, 0.4), (1.0, 0.9)])
@pytest.mark.parametrize("bound", ["multiplicative", "union", "exact", "auto"])
def test_without_a_limit_the_table_ends_where_certificates_do(many_blocks, threat, p_delete, p_ablate, bound):
    smoothing = InterceptionSmoothing(p_delete=p_delete, p_ablate=p_ablate)
    arguments = {"smoothing": smoothing, "threat": threat, "num_layers": 2, "bound": bound}
    free = evaluate_deltas(random_graph(), np.arange(40), max_radius=None, **arguments)
    radius = free.delta_upper.shape[1]
    given = evaluate_deltas(random_graph(), np.arange(40), max_radius=radius, **arguments)
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(free, name), getattr(given, name))
    decided = (free.delta_upper >= 0.5) | (np.arange(1, radius + 1) >= free.num_eligible[:, np.newaxis])
    assert decided.all(axis=0).tolist() == [False] * (radius - 1) + [True]


@pytest.mark.parametrize("bound", ["multiplicative", "exact", "auto", "tree"])
def test_without_a_limit_a_far_target_sets_the_last_radius(many_blocks, bound):
    # 300 leaves, each hardly ever heard: the centre comes last, after blocks of pairs that are decided at once
    pairs = np.arange(301, 401)
    edges = np.stack([np.concatenate([np.arange(1, 301), pairs]), np.concatenate([np.zeros(300, int), pairs + 100])])
    graph = Adjacency.from_edge_index(edges, num_nodes=501)
    targets = np.append(pairs + 100, 0)
    arguments = {"smoothing": InterceptionSmoothing(p_delete=0.9, p_ablate=0.9), "threat": OTHERS, "num_layers": 1}
    arguments["bound"] = bound
    free = np.asarray(delta_bounds(graph, targets, max_radius=None, **arguments))
    leaf = single_source_bound([1], p_delete=0.9, p_ablate=0.9)
    assert free.shape[1] == int(np.ceil(np.log(0.5) / np.log1p(-leaf))) == 69
    assert (free[:-1] == free[:1, :1]).all()
    assert len(many_blocks) > 2
    np.testing.assert_array_equal(free, delta_bounds(graph, targets, max_radius=69, **arguments))


def test_without_hostile_nodes_one_radius_is_enough():
    found = delta_bounds(path_graph(1), [0], smoothing=SMOOTHING, threat=OTHERS, num_layers=2, max_radius=None)
    assert found.delta_upper.tolist() == [[0.0]]


HUB_PROGRAM = """
import sys
from pathlib import Path
import numpy as np
from graycert import InterceptionSmoothing, NodeFeatureThreat
from graycert.bounds.evaluation import evaluate_deltas
from graycert.graph import Adjacency

def peak_kib():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])

num_leaves, num_layers, bound = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
leaves = np.arange(1, num_leaves + 1)
some = np.random.default_rng(0).integers(1, num_leaves + 1, (2, 2 * num_leaves))
there = np.unique(np.concatenate([np.stack([leaves, 0 * leaves]), some], axis=1), axis=1)
both = np.unique(np.concatenate([there, there[::-1]], axis=1), axis=1)
graph = Adjacency.from_edge_index(both, num_nodes=num_leaves + 1)
smoothing = InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)
arguments = {"smoothing": smoothing, "threat": NodeFeatureThreat(), "bound": bound}
evaluate_deltas(graph, [1], num_layers=num_layers, **arguments)
before = peak_kib()
found = evaluate_deltas(graph, leaves, num_layers=num_layers, **arguments)
assert (found.receptive_field_size == num_leaves + 1).all()
print(peak_kib() - before)
"""


@pytest.mark.deep
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak of memory from /proc")
@pytest.mark.parametrize(("num_layers", "bound"), [(2, "multiplicative"), (4, "multiplicative"), (2, "auto")])
def test_a_hub_in_every_field_costs_time_not_memory(num_layers, bound):
    # 9 million pairs of target and source, of which one block holds half a million: all at once they take 1 GiB
    program = [sys.executable, "-c", HUB_PROGRAM, "3000", str(num_layers), bound]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert 0 < int(done.stdout) < 160 * 1024  # KiB


@all_bounds
def test_worst_sets_are_eligible_grow_with_the_radius_and_stop_where_certificates_do(bound):
    graph, threat = path_graph(9), NodeFeatureThreat(min_distance=1, trusted=np.arange(9) == 2)
    found = evaluate_deltas(graph, [0, 4], smoothing=SMOOTHING, threat=threat, num_layers=2, max_radius=12, bound=bound)
    for row in range(2):
        assert found.worst_set(row, 0).tolist() == []
        kept = min(12, int((found.delta_upper[row] < 0.5).sum()) + 1)
        assert len(found.attackers[row]) <= min(kept, found.num_eligible[row])  # a set that repeats is not kept again
        for radius in range(1, 15):
            nodes = found.worst_set(row, radius)
            assert nodes.dtype == np.int64
            assert len(set(nodes.tolist())) == nodes.size == min(radius, kept, found.num_eligible[row])
            assert not np.isin(nodes, [2, found.targets[row]]).any()
    assert set(found.worst_set(0, 5).tolist()) == {1}
    assert set(found.worst_set(1, 5).tolist()) <= {3, 5, 6}


@pytest.mark.parametrize("num_layers", [1, 2])
def test_two_layers_attain_their_bound_with_the_worst_set(num_layers):
    graph = random_graph()
    found = evaluate_deltas(
        graph, np.arange(40), smoothing=SMOOTHING, threat=OTHERS, num_layers=num_layers, max_radius=8, bound="exact"
    )
    compared = 0
    for row in range(40):
        for radius in range(1, 9):
            if radius > len(found.attackers[row]) or not found.proved[row, radius - 1]:
                continue
            probability = arrival_probability(
                graph, row, found.worst_set(row, radius), num_layers=num_layers, p_delete=0.31, p_ablate=0.794
            )
            assert probability.exact
            assert 0 <= found.delta_upper[row, radius - 1] - probability.p_lower < 1e-11
            compared += 1
    assert compared > 100


def test_each_target_has_the_tightest_bound_that_applies():
    graph = random_graph()
    arguments = {"smoothing": SMOOTHING, "threat": OTHERS, "num_layers": 3, "max_radius": 3}
    assert set(evaluate_deltas(graph, np.arange(40), **arguments).methods) <= {"tree", "surrogate"}
    assert set(evaluate_deltas(path_graph(9), np.arange(9), **arguments).methods) == {"tree"}
    given_up = evaluate_deltas(graph, np.arange(40), **arguments, budget=1)
    assert "multiplicative" in given_up.methods
    by_paths = delta_bounds(graph, np.arange(40), **arguments, bound="multiplicative")
    rows = given_up.methods == "multiplicative"
    np.testing.assert_array_equal(given_up.delta_upper[rows], by_paths.delta_upper[rows])
    assert not given_up.proved[rows][given_up.num_eligible[rows] > 0].any()


def test_exact_needs_two_layers_and_tree_needs_trees():
    triangle = Adjacency.from_edge_index([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]], num_nodes=3)
    arguments = {"smoothing": SMOOTHING, "threat": OTHERS}
    with pytest.raises(InvalidParameterError, match="`bound` 'exact' needs at most two layers, got num_layers = 3"):
        delta_bounds(triangle, [0], num_layers=3, bound="exact", **arguments)
    with pytest.raises(InvalidParameterError, match=r"exactly one simple path .* 3 of 3 targets, such as node 1"):
        delta_bounds(triangle, [1, 0, 2], num_layers=2, bound="tree", **arguments)


def test_forms_of_the_graph_agree():
    matrix = sp.csr_array(([1.0, 1.0], ([1, 2], [0, 0])), shape=(3, 3))
    graph = Adjacency.from_edge_index([[1, 2], [0, 0]], num_nodes=3)
    first, second = (
        np.asarray(delta_bounds(form, [0], smoothing=SMOOTHING, threat=OTHERS, num_layers=2))
        for form in (matrix, graph)
    )
    np.testing.assert_array_equal(first, second)
    assert first.shape == (1, 20)
    assert first.dtype == np.float64


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("targets", [7]),
        ("targets", [0, 0]),
        ("targets", []),
        ("num_layers", 0),
        ("max_radius", 0),
        ("bound", "exact-ish"),
        ("smoothing", (0.3, 0.7)),
        ("threat", None),
    ],
)
def test_arguments_are_checked(name, value):
    arguments = {"targets": [0], "smoothing": SMOOTHING, "threat": ANYONE, "num_layers": 2} | {name: value}
    with pytest.raises(InvalidParameterError, match=f"`{name}` must"):
        delta_bounds(star_graph(3), arguments.pop("targets"), **arguments)


def test_evaluate_deltas_takes_an_adjacency_only():
    with pytest.raises(InvalidParameterError, match="`adjacency` must be of type Adjacency"):
        evaluate_deltas(sp.csr_array((2, 2)), [0], smoothing=SMOOTHING, threat=ANYONE, num_layers=2)


def test_trusted_must_fit_the_graph():
    threat = NodeFeatureThreat(trusted=np.zeros(2, dtype=bool))
    with pytest.raises(InvalidParameterError, match="`trusted` must be a boolean array of shape"):
        delta_bounds(star_graph(3), [0], smoothing=SMOOTHING, threat=threat, num_layers=2)


def test_parallel_edges_are_refused():
    class Data:
        edge_index, num_nodes = np.array([[1, 1], [0, 0]]), 2

    with pytest.raises(UnsoundSetupError, match="parallel-edges"):
        delta_bounds(Data(), [0], smoothing=SMOOTHING, threat=ANYONE, num_layers=2)


@pytest.mark.parametrize("max_radius", [5, None])
@pytest.mark.parametrize("bound", ["multiplicative", "auto"])
def test_threads_change_nothing(bound, max_radius, monkeypatch):
    monkeypatch.setattr("graycert.graph.receptive_field.target_blocks.__kwdefaults__", {"max_entries": 25})
    arguments = {"smoothing": SMOOTHING, "threat": ANYONE, "num_layers": 2, "max_radius": max_radius, "bound": bound}
    one, three = (evaluate_deltas(random_graph(), np.arange(40), **arguments, num_threads=n) for n in (1, 3))
    np.testing.assert_array_equal(three.delta_upper, one.delta_upper)
    np.testing.assert_array_equal(three.receptive_field_size, one.receptive_field_size)
    np.testing.assert_array_equal(three.methods, one.methods)


def test_a_hub_whose_first_hops_do_not_fit_gets_theorem_3(monkeypatch):
    """Few first hops fit: the hub of a star is left to Theorem 3, its leaves are not."""
    monkeypatch.setattr("graycert.bounds.two_level._MOST_MEMORY", 300)
    arguments = {"smoothing": SMOOTHING, "threat": ANYONE, "num_layers": 2, "max_radius": 3}
    found = evaluate_deltas(star_graph(20), [0, 1], **arguments)
    assert found.methods.tolist() == ["multiplicative", "exact"]
    paper = evaluate_deltas(star_graph(20), [0], **arguments, bound="multiplicative")
    np.testing.assert_array_equal(found.delta_upper[:1], paper.delta_upper)
