"""Values computed by the authors' implementation on the paper's Cora-ML graph (golden/README.md)."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

from graycert import InterceptionSmoothing, NodeFeatureThreat, delta_bounds
from graycert.bounds import largest_certifiable_radius
from graycert.bounds.evaluation import evaluate_deltas
from graycert.graph import Adjacency, as_adjacency, count_simple_paths, receptive_fields
from support.exact_bounds import exact_single_source

SETTINGS = ["pd0.31_pa0.794", "pd0.31_pa0.71", "pd0.3_pa0.85", "pd0.0_pa0.85", "pd0.5_pa0.0", "pd0.361449_pa0.794"]
MIN_DISTANCE = {"all": 0, "ge1": 1, "eq2": 2}  # two layers: distance 2 is the largest, so "= 2" is ">= 2"


@pytest.fixture(scope="module")
def golden(golden_root):
    with np.load(golden_root / "deltas_cora_ml.npz", allow_pickle=False) as file:
        return dict(file)


@pytest.fixture(scope="module")
def graph(golden):
    num_nodes = golden["original_id_of_test_graph_node"].size
    return Adjacency.from_edge_index(golden["test_graph_edge_index"], num_nodes=num_nodes)


def smoothing_of(setting):
    p_delete, p_ablate = (float(part[2:]) for part in setting.split("_"))
    return InterceptionSmoothing(p_delete=p_delete, p_ablate=p_ablate)


@pytest.mark.few(1)
@pytest.mark.parametrize("where", MIN_DISTANCE)
@pytest.mark.parametrize("setting", SETTINGS)
def test_every_bound_of_the_authors(golden, graph, setting, where):
    threat = NodeFeatureThreat(min_distance=MIN_DISTANCE[where])
    bounds = delta_bounds(
        graph,
        golden["target_test_graph_id"],
        smoothing=smoothing_of(setting),
        threat=threat,
        num_layers=2,
        max_radius=20,
        bound="multiplicative",
    )
    ours = np.asarray(bounds)
    theirs = golden[f"delta_{setting}_{where}"]
    assert ours.shape == theirs.shape == (253, 20)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)
    assert (ours >= theirs - 2.0**-52).all()  # their own rounding may lie above the exact value


def test_all_files_settings_are_tested(golden):
    assert {name for name in golden if name.startswith("delta_")} == {
        f"delta_{setting}_{where}" for setting in SETTINGS for where in MIN_DISTANCE
    }


@pytest.mark.parametrize("setting", ["pd0.31_pa0.794", "pd0.5_pa0.0"])
def test_no_bound_is_below_its_exact_value(golden, graph, setting):
    smoothing = smoothing_of(setting)
    single = cache(lambda counts: exact_single_source(counts, smoothing.p_delete, smoothing.p_ablate))
    targets = golden["target_test_graph_id"]
    paths = count_simple_paths(graph, targets, num_layers=2)
    threat = NodeFeatureThreat(min_distance=1)
    bounds = np.asarray(
        delta_bounds(
            graph,
            targets,
            smoothing=smoothing,
            threat=threat,
            num_layers=2,
            max_radius=12,
            bound="multiplicative",
        )
    )
    for row in range(0, targets.size, 3):
        counts = paths.counts[paths.indptr[row] + 1 : paths.indptr[row + 1]].astype(int).tolist()
        none_arrives = Fraction(1)
        worst = sorted((single(tuple(pair)) for pair in counts), reverse=True)
        for radius in range(12):
            if radius < len(worst):
                none_arrives *= 1 - worst[radius]
            exact = 1 - none_arrives
            assert exact <= Fraction(float(bounds[row, radius])) <= exact + Fraction(1, 10**13)


def test_pairs_distances_and_path_counts(golden, graph):
    targets = golden["target_test_graph_id"]
    paths = count_simple_paths(graph, targets, num_layers=2)
    ours = np.column_stack([paths.targets[paths.rows], paths.sources, paths.distances, paths.counts])
    names = ["pair_target", "pair_source", "pair_dist", "pair_npaths_len1", "pair_npaths_len2"]
    theirs = np.column_stack([golden[name] for name in names])
    np.testing.assert_array_equal(_sorted_rows(ours[ours[:, 2] > 0]), _sorted_rows(theirs[theirs[:, 2] > 0]))
    assert paths.counts.sum() == 20_897


def test_field_sizes_by_distance(golden, graph):
    fields = receptive_fields(graph, golden["target_test_graph_id"], num_layers=2)
    sizes = np.zeros((253, 3), dtype=np.int64)
    np.add.at(sizes, (fields.rows, fields.distances), 1)
    np.testing.assert_array_equal(sizes, golden["sizes_dist012"])


@pytest.mark.parametrize(
    ("setting", "min_distance", "theorem_3", "exact"),
    [  # golden/README.md; the last two exact values: theory/THEORY.md B2
        ("pd0.31_pa0.794", 1, 3.680, 3.897),
        ("pd0.31_pa0.794", 2, 4.111, 4.379),
        ("pd0.361449_pa0.794", 1, 4.020, 4.387),
        ("pd0.361449_pa0.794", 2, 4.581, 5.071),
        ("pd0.6_pa0.6", 1, 3.419, 5.482),
        ("pd0.6_pa0.6", 2, 5.395, 7.759),
        ("pd0.8_pa0.0", 1, 3.534, 9.644),
        ("pd0.7_pa0.3", 1, 2.617, 5.866),
        ("pd0.7_pa0.3", 2, 5.158, 8.988),
    ],
)
def test_mean_largest_certifiable_radius(golden, graph, setting, min_distance, theorem_3, exact):
    for bound, mean in [("multiplicative", theorem_3), ("auto", exact)]:
        result = evaluate_deltas(
            graph,
            golden["target_test_graph_id"],
            smoothing=smoothing_of(setting),
            threat=NodeFeatureThreat(min_distance=min_distance),
            num_layers=2,
            max_radius=40,
            bound=bound,
        )
        radius = np.minimum(largest_certifiable_radius(result.delta_upper), result.num_eligible)
        assert radius[result.num_eligible > 0].mean() == pytest.approx(mean, abs=5e-4)
        if bound == "auto":  # proved optima up to the first radius that cannot be certified
            decided = np.arange(40) <= radius[:, None]
            assert result.proved[decided].all()
            assert set(result.methods) == {"exact"}


@pytest.mark.parametrize(
    ("setting", "theorem_3", "surrogate"),  # theory/THEORY.md B2
    [("pd0.31_pa0.794", 3.41, 4.00), ("pd0.6_pa0.6", 3.26, 7.77), ("pd0.7_pa0.3", 2.85, 9.00)],
)
def test_three_layers(golden, graph, setting, theorem_3, surrogate):
    """The first 40 targets but one, which has more than 6,000 paths; radii are capped at 25."""
    targets = golden["target_test_graph_id"][:40]
    two_hop = graph.to_csr().T @ (graph.to_csr().T @ np.diff(graph.indptr))
    targets = targets[two_hop[targets] <= 6000]
    assert targets.size == 39
    for bound, mean in [("multiplicative", theorem_3), ("surrogate", surrogate)]:
        result = evaluate_deltas(
            graph,
            targets,
            smoothing=smoothing_of(setting),
            threat=NodeFeatureThreat(min_distance=1),
            num_layers=3,
            max_radius=25,
            bound=bound,
        )
        radius = np.minimum(largest_certifiable_radius(result.delta_upper), result.num_eligible)
        assert radius.mean() >= mean - 5e-3
        if bound == "multiplicative":
            assert radius.mean() == pytest.approx(mean, abs=5e-3)


@pytest.mark.parametrize(
    ("name", "num_nodes", "num_layers", "median", "ninetieth", "largest"),
    [
        ("cora_ml", 2810, 2, 42, 247, 647),
        ("cora_ml", 2810, 3, 252, 680, 1606),
        ("citeseer", 2110, 2, 11, 52, 262),
        ("citeseer", 2110, 3, 34, 181, 468),
    ],
)
def test_receptive_field_sizes_of_whole_graphs(data_root, name, num_nodes, num_layers, median, ninetieth, largest):
    graph = _prepared(data_root / f"{name}.npz")
    assert graph.num_nodes == num_nodes
    sizes = receptive_fields(graph, np.arange(num_nodes), num_layers=num_layers).sizes
    assert np.median(sizes) == pytest.approx(median, abs=0.5)
    assert np.quantile(sizes, 0.9) == pytest.approx(ninetieth, abs=1)
    assert sizes.max() == largest


@pytest.mark.parametrize(("name", "count", "share"), [("cora_ml", 709, 0.252), ("citeseer", None, 0.466)])
def test_share_of_targets_with_one_path_per_node(data_root, name, count, share):
    graph = _prepared(data_root / f"{name}.npz")
    paths = count_simple_paths(graph, np.arange(graph.num_nodes), num_layers=2)
    most = np.zeros(graph.num_nodes)
    np.maximum.at(most, paths.rows, paths.counts.sum(axis=1))
    is_tree = most <= 1
    assert count is None or is_tree.sum() == count
    assert is_tree.mean() == pytest.approx(share, abs=5e-4)


def _prepared(path):
    """Prepare a stored graph as the paper does: undirected, no self-loops, largest component, node order kept."""
    with np.load(path, allow_pickle=False) as file:
        matrix = sp.csr_array((file["adj_data"], file["adj_indices"], file["adj_indptr"]), shape=file["adj_shape"])
    undirected = sp.csr_array(matrix + matrix.T)
    _, component = sp.csgraph.connected_components(undirected, directed=False)
    kept = np.flatnonzero(component == np.bincount(component).argmax())
    return as_adjacency(undirected[kept][:, kept])


def _sorted_rows(rows):
    return rows[np.lexsort(rows.T[::-1])].astype(np.int64)


def test_a_spent_budget_is_recorded_and_what_was_proved_still_holds(golden, graph):
    arguments = {
        "smoothing": InterceptionSmoothing(p_delete=0.8, p_ablate=0.0),
        "threat": NodeFeatureThreat(min_distance=2),
        "num_layers": 2,
        "max_radius": 40,
    }
    targets = golden["target_test_graph_id"]
    exact = evaluate_deltas(graph, targets, **arguments)
    hurried = evaluate_deltas(graph, targets, budget=2**14, **arguments)
    paper = evaluate_deltas(graph, targets, bound="multiplicative", **arguments)
    assert set(exact.methods) == {"exact"}
    assert {"exact", "prefix"} <= set(hurried.methods) <= {"exact", "prefix", "multiplicative"}
    assert (hurried.delta_upper >= exact.delta_upper - 1e-9).all()
    assert (hurried.delta_upper <= paper.delta_upper + 1e-9).all()
    up_to_one_half = np.arange(40) <= np.count_nonzero(hurried.delta_upper < 0.5, axis=1)[:, None]
    proved = (hurried.proved | ~up_to_one_half).all(axis=1)
    assert ((hurried.methods == "exact") == proved).all()
