import numpy as np
import pytest
import scipy.sparse as sp

from graycert import InterceptionSmoothing, NodeFeatureThreat, delta_bounds
from graycert import deltas as module
from graycert.bounds import ablation_only_delta, single_source_bound, target_bound
from graycert.deltas import evaluate_deltas
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.graph import Adjacency, bottleneck_graph, path_graph, star_graph

SMOOTHING = InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)
ANYONE, OTHERS = NodeFeatureThreat(), NodeFeatureThreat(min_distance=1)


def test_a_star_by_hand():
    result = evaluate_deltas(star_graph(3), [0], smoothing=SMOOTHING, threat=ANYONE, num_layers=2, max_radius=5)
    leaf = single_source_bound([1], p_delete=0.31, p_ablate=0.794)
    shown = 1 - 0.794
    wanted = [1 - (1 - shown) * (1 - leaf) ** n for n in (0, 1, 2, 3, 3)]
    assert result.delta_upper[0] == pytest.approx(wanted, abs=1e-14)
    assert result.num_eligible.tolist() == [4]
    assert result.receptive_field_size.tolist() == [4]
    assert result.path_counts_exact.tolist() == [True]


def test_the_target_counts_only_when_it_may_be_hostile():
    values = {
        threat.min_distance: delta_bounds(path_graph(1), [0], smoothing=SMOOTHING, threat=threat, max_radius=2)
        for threat in (ANYONE, OTHERS)
    }
    assert values[0].tolist() == [[target_bound(p_ablate=0.794)] * 2]
    assert values[1].tolist() == [[0.0, 0.0]]


def test_trusted_nodes_are_left_out():
    trusted = np.array([False, True, False, False, False])
    threat = NodeFeatureThreat(min_distance=1, trusted=trusted)
    result = evaluate_deltas(star_graph(4), [0, 2], smoothing=SMOOTHING, threat=threat, num_layers=2, max_radius=9)
    assert result.num_eligible.tolist() == [3, 3]
    assert result.receptive_field_size.tolist() == [5, 5]
    fewer = delta_bounds(star_graph(3), [0, 2], smoothing=SMOOTHING, threat=OTHERS, max_radius=9)
    np.testing.assert_array_equal(result.delta_upper, fewer)


def test_a_trusted_target_is_never_hostile():
    trusted = np.ones(3, dtype=bool)
    threat = NodeFeatureThreat(trusted=trusted)
    assert not delta_bounds(path_graph(3), [0, 1], smoothing=SMOOTHING, threat=threat).any()


def test_distance_counts_from_source_to_target():
    graph = Adjacency.from_edge_index([[2, 1], [1, 0]], num_nodes=3)  # 2 -> 1 -> 0
    result = evaluate_deltas(
        graph, [0, 1, 2], smoothing=SMOOTHING, threat=NodeFeatureThreat(min_distance=2), num_layers=2, max_radius=1
    )
    assert result.num_eligible.tolist() == [1, 0, 0]
    assert result.receptive_field_size.tolist() == [3, 2, 1]


def test_without_edge_deletion_the_bound_is_proposition_two():
    smoothing = InterceptionSmoothing(p_delete=0.0, p_ablate=0.85)
    for threat, eligible in ((ANYONE, 6), (OTHERS, 5), (NodeFeatureThreat(min_distance=2), 4)):
        bound = delta_bounds(bottleneck_graph(4), [0], smoothing=smoothing, threat=threat, max_radius=8)[0]
        exact = ablation_only_delta(p_ablate=0.85, num_eligible=eligible, max_radius=8)
        assert (bound >= exact).all()
        assert bound == pytest.approx(exact, abs=1e-14)


@pytest.mark.parametrize("method", ["multiplicative", "union"])
def test_blocks_do_not_change_the_result(monkeypatch, method):
    rng = np.random.default_rng(0)
    graph = Adjacency.from_edge_index(np.unique(rng.integers(0, 40, (2, 150)), axis=1), num_nodes=40)
    targets = rng.permutation(40)[:25]
    arguments = {"smoothing": SMOOTHING, "threat": OTHERS, "num_layers": 3, "max_radius": 6, "method": method}
    whole = evaluate_deltas(graph, targets, **arguments)
    split = module.target_blocks
    monkeypatch.setattr(module, "target_blocks", lambda *args, **kw: split(*args, **kw, max_entries=50))
    parts = evaluate_deltas(graph, targets, **arguments)
    for name in ("targets", "delta_upper", "num_eligible", "receptive_field_size", "path_counts_exact"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))
    assert whole.targets.tolist() == targets.tolist()


def test_forms_of_the_graph_agree():
    matrix = sp.csr_array(([1.0, 1.0], ([1, 2], [0, 0])), shape=(3, 3))
    graph = Adjacency.from_edge_index([[1, 2], [0, 0]], num_nodes=3)
    first, second = (delta_bounds(form, [0], smoothing=SMOOTHING, threat=OTHERS) for form in (matrix, graph))
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
        ("method", "exact-ish"),
        ("smoothing", (0.3, 0.7)),
        ("threat", None),
    ],
)
def test_arguments_are_checked(name, value):
    arguments = {"targets": [0], "smoothing": SMOOTHING, "threat": ANYONE} | {name: value}
    with pytest.raises(InvalidParameterError, match=f"`{name}` must"):
        delta_bounds(star_graph(3), arguments.pop("targets"), **arguments)


def test_evaluate_deltas_takes_an_adjacency_only():
    with pytest.raises(InvalidParameterError, match="`adjacency` must be of type Adjacency"):
        evaluate_deltas(sp.csr_array((2, 2)), [0], smoothing=SMOOTHING, threat=ANYONE)


def test_trusted_must_fit_the_graph():
    threat = NodeFeatureThreat(trusted=np.zeros(2, dtype=bool))
    with pytest.raises(InvalidParameterError, match="`trusted` must be a boolean array of shape"):
        delta_bounds(star_graph(3), [0], smoothing=SMOOTHING, threat=threat)


def test_parallel_edges_are_refused():
    class Data:
        edge_index, num_nodes = np.array([[1, 1], [0, 0]]), 2

    with pytest.raises(UnsoundSetupError, match="parallel-edges"):
        delta_bounds(Data(), [0], smoothing=SMOOTHING, threat=ANYONE)
