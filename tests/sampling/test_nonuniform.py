"""A probability per edge and node: the right one for each coin, in both engines, and no change where all are equal."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
import torch_geometric.nn as pyg
from scipy import stats
from torch_geometric.data import Data
from torch_geometric.utils import sort_edge_index

from graycert.errors import InvalidParameterError
from graycert.graph import CanonicalGraph, as_adjacency
from graycert.models import build_model
from graycert.sampling import CoinStream, InterceptionSampler, Purpose, build_engine, choose_engine
from graycert.sampling.arrivals import ArrivalRecorder
from graycert.sampling.disjoint_copies import DisjointCopies
from graycert.sampling.field_graph import field_graph, whole_graph
from graycert.sampling.kernels.coins import CoinKeys
from graycert.sampling.merged_copies import MergedCopies
from graycert.sampling.placed_smoothing import PlacedSmoothing, place_smoothing
from graycert.sampling.streams import edge_ids, interception_threshold, interception_thresholds
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats.node_features import NodeFeatureThreat
from support.attributed_graphs import ARCHITECTURE_NAMES, random_graph
from support.enumeration import nodes_that_reach
from support.heterogeneous_enumeration import arrival_law, arrival_probability
from support.heterogeneous_loop import votes_one_by_one
from support.known_models import shaken
from support.plain_models import plain_forward, plain_skip
from support.random_graphs import random_edges, to_adjacency
from support.reference_coins import is_intercepted

FAILURE = 1e-6  # chance that right code fails the statistical test
UNIFORM = InterceptionSmoothing(p_delete=0.31, p_ablate=0.5)
STREAM = CoinStream(3, Purpose.ESTIMATION)


def drawn_smoothing(data, seed=0):
    """General probabilities with certain outcomes among them."""
    rng = np.random.default_rng(seed)

    def draw(size):
        return np.where(rng.random(size) < 0.3, rng.choice([0.0, 1.0, 0.31], size), rng.random(size))

    return InterceptionSmoothing(p_delete=draw(data.edge_index.size(1)), p_ablate=draw(data.num_nodes))


def constant_smoothing(data, *, which=("p_delete", "p_ablate")):
    """The uniform smoothing with arrays for ``which``."""
    sizes = {"p_delete": data.edge_index.size(1), "p_ablate": data.num_nodes}
    values = {"p_delete": UNIFORM.p_delete, "p_ablate": UNIFORM.p_ablate}
    return InterceptionSmoothing(**(values | {name: np.full(sizes[name], values[name]) for name in which}))


def with_loops(data):
    loops = torch.tensor([[1, 4, 2], [1, 4, 2]])
    return Data(x=data.x, edge_index=torch.cat([data.edge_index, loops], dim=1), y=data.y)


def engine_of(model, data, targets, smoothing, *, engine="compiled", **options):
    return choose_engine(model, data, np.asarray(targets), smoothing=smoothing, num_layers=2, engine=engine, **options)


def test_thresholds_of_arrays_are_those_of_numbers():
    rng = np.random.default_rng(0)
    special = [0.0, 1.0, 0.5, 0.1, 5e-324, 1e-18, 2**-62, 2**-63, 1 - 2**-53]
    values = np.concatenate([special, rng.random(2_000), 2.0 ** -rng.uniform(0, 80, 2_000)])
    assert interception_thresholds(values).tolist() == [interception_threshold(value) for value in values.tolist()]


def test_every_coin_has_its_own_probability():
    data = random_graph()
    smoothing = drawn_smoothing(data)
    draw = InterceptionSampler.of_graph(smoothing, CoinStream(5, Purpose.SELECTION), data.edge_index, num_nodes=14)
    drawn = draw.draw(torch.arange(20))
    edges = [s * 14 + t for s, t in data.edge_index.t().tolist()]
    for sample in range(20):
        assert drawn.kept[sample].tolist() == [
            not is_intercepted(5, "selection", "edge", sample, e, p)
            for e, p in zip(edges, smoothing.p_delete.tolist(), strict=True)
        ]
        assert drawn.ablated[sample].tolist() == [
            is_intercepted(5, "selection", "node", sample, w, p) for w, p in enumerate(smoothing.p_ablate.tolist())
        ]


def test_compiled_coins_are_those_of_the_tensor_sampler():
    data = random_graph()
    placed = place_smoothing(drawn_smoothing(data), data.edge_index, num_nodes=14)
    ids = edge_ids(data.edge_index, num_nodes=14).numpy()
    order = np.random.default_rng(0).permutation(ids.size)[:10]
    keys = CoinKeys.of(STREAM, "edge", ids[order], placed.p_delete)
    assert keys.thresholds.tolist() == interception_thresholds(placed.p_delete.of(ids[order])).tolist()
    uniform = CoinKeys.of(STREAM, "edge", ids, 0.31)
    assert set(uniform.thresholds.tolist()) == {interception_threshold(0.31)}


@pytest.mark.few(2)
@pytest.mark.parametrize("engine", ["compiled", "torch"])
@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
def test_equals_the_textbook_loop(architecture, self_loops, engine):
    data = random_graph(dtype=torch.float32 if engine == "compiled" else torch.float64)
    data.edge_index = sort_edge_index(data.edge_index, sort_by_row=False)  # SMA takes equal in-neighbours in this order
    data = with_loops(data) if self_loops else data
    model = shaken(build_model(architecture, data, skip=True, num_neighbors=3)).to(data.x.dtype)
    smoothing, targets = drawn_smoothing(data), np.arange(14)
    made = engine_of(model, data, targets, smoothing, engine=engine)
    assert made.name.startswith(engine)
    assert engine == "compiled" or made.name.endswith("merged")  # wrong coins would have made it fall back
    expected = votes_one_by_one(
        lambda x, edges: plain_forward(model, x, edges),
        data.x,
        data.edge_index,
        targets,
        model.ablation_token.detach(),
        smoothing.p_delete.tolist(),
        smoothing.p_ablate.tolist(),
        seed=4,
        purpose="estimation",
        num_samples=40,
        skip=plain_skip(model, data.x).detach(),
    )
    np.testing.assert_array_equal(made.votes(4, Purpose.ESTIMATION, num_samples=40), expected)
    others = engine_of(model, data, targets, drawn_smoothing(data, seed=1), engine=engine)
    assert (others.votes(4, Purpose.ESTIMATION, num_samples=40) != expected).any()  # the comparison has power


@pytest.mark.deep
def test_a_self_loop_that_is_a_message_has_its_own_probability():
    """GraphSAGE takes self-loops as they come; here they are the only edges that are ever deleted."""
    data = with_loops(random_graph())
    torch.manual_seed(0)
    model = pyg.GraphSAGE(5, 8, 2, 3).eval()
    loops = (data.edge_index[0] == data.edge_index[1]).numpy()
    smoothing = InterceptionSmoothing(p_delete=np.where(loops, 0.5, 0.0), p_ablate=0.0)
    targets = [1, 4, 2]
    found = {
        name: engine_of(model, data, targets, smoothing, engine=name).logits(0, Purpose.AUDIT, torch.arange(30))
        for name in ("compiled", "torch")
    }
    torch.testing.assert_close(found["compiled"], found["torch"].detach(), rtol=1e-4, atol=1e-5)
    assert all(found["compiled"][:, row].std(dim=0).max() > 0 for row in range(3))


ARRAYS = [("p_delete",), ("p_ablate",), ("p_delete", "p_ablate")]


@pytest.mark.parametrize("which", ARRAYS)
@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
def test_constant_arrays_change_no_bit_of_the_compiled_engine(architecture, which):
    data = with_loops(random_graph(num_nodes=30, num_pairs=60))
    model, targets = shaken(build_model(architecture, data)), [3, 17, 29, 8, 0]
    uniform, constant = (
        engine_of(model, data, targets, smoothing) for smoothing in (UNIFORM, constant_smoothing(data, which=which))
    )
    samples = torch.arange(70)
    assert torch.equal(uniform.logits(0, Purpose.AUDIT, samples), constant.logits(0, Purpose.AUDIT, samples))
    votes = uniform.votes(0, Purpose.SELECTION, num_samples=150)
    np.testing.assert_array_equal(constant.votes(0, Purpose.SELECTION, num_samples=150), votes)


@pytest.mark.deep
@pytest.mark.parametrize("which", ARRAYS)
def test_constant_arrays_change_no_bit_of_torch_draws(which):
    data = with_loops(random_graph(num_nodes=30, num_pairs=60))
    edges = sort_edge_index(data.edge_index, sort_by_row=False)
    targets, samples = torch.tensor([3, 17, 29]), torch.arange(60)
    field = field_graph(edges, targets, num_nodes=30, num_layers=2)
    placed = place_smoothing(constant_smoothing(data, which=which), data.edge_index, num_nodes=30)
    for draws in (
        MergedCopies(field, 2, False, 64, 10**9),
        DisjointCopies(field, 7),
        DisjointCopies(whole_graph(edges, targets, num_nodes=30), 1),
    ):
        pairs = zip(draws.batches(UNIFORM, STREAM, samples), draws.batches(placed, STREAM, samples), strict=True)
        for ours, theirs in pairs:
            assert torch.equal(ours.rows, theirs.rows)
            assert torch.equal(ours.edge_index, theirs.edge_index)
            assert torch.equal(ours.outputs, theirs.outputs)
    torch.manual_seed(0)
    model = pyg.GraphSAGE(5, 8, 2, 3)
    uniform, constant = (
        build_engine(model, data, targets.numpy(), smoothing=smoothing, num_layers=2)
        for smoothing in (UNIFORM, constant_smoothing(data, which=which))
    )
    assert torch.equal(uniform.logits(0, Purpose.AUDIT, samples), constant.logits(0, Purpose.AUDIT, samples))


@pytest.mark.deep
@pytest.mark.parametrize("engine", ["compiled", "torch"])
def test_probabilities_follow_their_edges(engine):
    """Other orders of the columns, other targets, batches, threads and parts of targets: the same votes."""
    data = with_loops(random_graph(num_nodes=30, num_pairs=60))
    model, targets = shaken(build_model("gat", data)), np.array([3, 17, 29, 8, 0])
    smoothing = drawn_smoothing(data)
    votes = engine_of(model, data, targets, smoothing, engine=engine).votes(0, Purpose.SELECTION, num_samples=100)
    assert (np.count_nonzero(votes, axis=1) > 1).any()
    columns = np.random.default_rng(0).permutation(smoothing.p_delete.size)
    shuffled = Data(x=data.x, edge_index=data.edge_index[:, columns])
    moved = InterceptionSmoothing(p_delete=smoothing.p_delete[columns], p_ablate=smoothing.p_ablate)
    again = engine_of(model, shuffled, targets, moved, engine=engine)
    np.testing.assert_array_equal(again.votes(0, Purpose.SELECTION, num_samples=100), votes)
    wrong = engine_of(model, shuffled, targets, smoothing, engine=engine)
    assert (wrong.votes(0, Purpose.SELECTION, num_samples=100) != votes).any()
    fewer = engine_of(model, data, targets[[3, 1]], smoothing, engine=engine, batch_size=9)
    np.testing.assert_array_equal(fewer.votes(0, Purpose.SELECTION, num_samples=100), votes[[3, 1]])
    if engine == "compiled":
        narrow = replace(again, memory=1)
        np.testing.assert_array_equal(narrow.votes(0, Purpose.SELECTION, num_samples=100), votes)


@pytest.mark.parametrize("engine", ["compiled", "torch"])
def test_certain_outcomes_are_honoured(engine):
    """Edges and nodes at 0 or 1: every draw is the graph that is left."""
    data = random_graph()
    model = shaken(build_model("gcn", data))
    rng = np.random.default_rng(0)
    gone, hidden = rng.random(data.edge_index.size(1)) < 0.5, rng.random(14) < 0.5
    smoothing = InterceptionSmoothing(p_delete=gone.astype(float), p_ablate=hidden.astype(float))
    found = engine_of(model, data, np.arange(14), smoothing, engine=engine).logits(0, Purpose.AUDIT, torch.arange(64))
    x = torch.where(torch.from_numpy(hidden).unsqueeze(1), model.ablation_token.detach(), data.x)
    with torch.no_grad():
        expected = model(x, data.edge_index[:, ~gone])
    torch.testing.assert_close(found.detach(), expected.expand(64, -1, -1), rtol=1e-4, atol=1e-5)


def on_adjacency(data, smoothing):
    """Bring a probability per column of ``edge_index`` into the order of the adjacency."""
    graph = CanonicalGraph.of(data)
    return smoothing.with_canonical_edges(graph.sorted).with_canonical_edges(graph.proper)


def recorder_of(adjacency, smoothing, *, num_layers=2):
    return ArrivalRecorder(adjacency=adjacency, smoothing=smoothing, threat=NodeFeatureThreat(), num_layers=num_layers)


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_arrivals_equal_a_path_search_on_reference_coins(num_layers):
    data = with_loops(random_graph())
    smoothing, targets = drawn_smoothing(data), [3, 0, 7]
    recorder = recorder_of(as_adjacency(data), on_adjacency(data, smoothing), num_layers=num_layers)
    records = recorder.record(7, Purpose.ESTIMATION, targets, samples=range(70))
    chance = dict(zip(map(tuple, data.edge_index.t().tolist()), smoothing.p_delete.tolist(), strict=True))
    for sample in range(70):
        kept = [
            edge
            for edge, p in chance.items()
            if not is_intercepted(7, "estimation", "edge", sample, edge[0] * 14 + edge[1], p)
        ]
        for row, target in enumerate(targets):
            expected = {
                w
                for w in nodes_that_reach(kept, target, num_layers)
                if not is_intercepted(7, "estimation", "node", sample, w, float(smoothing.p_ablate[w]))
            }
            assert set(records.sources_of(row)[records.of(row)[sample]].tolist()) == expected


def test_constant_arrays_change_no_bit_of_the_arrivals():
    data = random_graph(num_nodes=40, num_pairs=120)
    adjacency = as_adjacency(data)
    uniform, constant = (
        recorder_of(adjacency, smoothing).record(0, Purpose.ESTIMATION, range(40), samples=range(700))
        for smoothing in (UNIFORM, on_adjacency(data, constant_smoothing(data)))
    )
    np.testing.assert_array_equal(uniform.words, constant.words)


PAIRS = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)]


@pytest.mark.statistical
def test_frequencies_against_exact_probabilities():
    """p(E(B)) of every node and pair, with a probability per edge and node: 100,000 samples."""
    adjacency = to_adjacency(PAIRS + [pair[::-1] for pair in PAIRS], 5)
    rng = np.random.default_rng(2)
    p_delete, p_ablate = rng.uniform(0.1, 0.7, adjacency.num_edges), rng.uniform(0.1, 0.7, 5)
    smoothing = InterceptionSmoothing(p_delete=p_delete, p_ablate=p_ablate)
    records = recorder_of(adjacency, smoothing, num_layers=3).record(2, Purpose.ESTIMATION, [0], samples=range(100_000))
    bits, sources = records.of(0), records.sources_of(0).tolist()
    edges = zip(adjacency.sources.tolist(), adjacency.targets.tolist(), strict=True)
    law = arrival_law(dict(zip(edges, map(Fraction, p_delete.tolist()), strict=True)), 0, 3)
    subsets = [{w} for w in sources] + [{w, u} for w in sources for u in sources if w < u]
    for subset in subsets:
        exact = float(arrival_probability(law, subset, [Fraction(p) for p in p_ablate.tolist()]))
        count = int(bits[:, [sources.index(w) for w in subset]].any(axis=1).sum())
        assert stats.binomtest(count, 100_000, exact).pvalue > FAILURE / len(subsets)
        assert stats.binomtest(count, 100_000, min(1.0, exact + 0.02)).pvalue < FAILURE  # it has power


def test_wrong_lengths_are_refused():
    data = random_graph()
    model, size = build_model("gcn", data), data.edge_index.size(1)
    too_few = InterceptionSmoothing(p_delete=np.zeros(size - 1), p_ablate=0.5)
    too_many = InterceptionSmoothing(p_delete=0.5, p_ablate=np.zeros(15))
    for engine in ("compiled", "torch"):
        with pytest.raises(InvalidParameterError, match=rf"one entry per column of `edge_index` \({size}\)"):
            engine_of(model, data, [1], too_few, engine=engine)
        with pytest.raises(InvalidParameterError, match=r"one entry per node \(14\), got 15"):
            engine_of(model, data, [1], too_many, engine=engine)
    with pytest.raises(InvalidParameterError, match="`p_delete`"):
        recorder_of(as_adjacency(data), too_few)


def test_parallel_edges_must_agree():
    edges = torch.tensor([[0, 0, 1], [1, 1, 0]])
    with pytest.raises(InvalidParameterError, match=r"same for parallel edges.* 0.1 and 0.2 for edge \(0, 1\)"):
        place_smoothing(InterceptionSmoothing(p_delete=[0.1, 0.2, 0.3], p_ablate=0.5), edges, num_nodes=2)
    placed = place_smoothing(InterceptionSmoothing(p_delete=[0.1, 0.1, 0.3], p_ablate=0.5), edges, num_nodes=2)
    assert placed.p_delete.of(np.array([2, 1])).tolist() == [0.3, 0.1]
    of_arrays = place_smoothing(
        InterceptionSmoothing(p_delete=[0.1, 0.1, 0.3], p_ablate=0.5), edges.numpy(), num_nodes=2
    )
    assert of_arrays.p_delete.of(np.array([2, 1])).tolist() == [0.3, 0.1]


def test_arrays_must_be_placed_and_known():
    data = random_graph()
    smoothing = drawn_smoothing(data)
    ids = edge_ids(data.edge_index, num_nodes=14)
    with pytest.raises(TypeError, match="must be placed"):
        InterceptionSampler(smoothing, STREAM, ids, torch.arange(14)).draw(torch.arange(2))
    with pytest.raises(TypeError, match="must be placed"):
        CoinKeys.of(STREAM, "edge", ids.numpy(), smoothing.p_delete)
    placed = place_smoothing(smoothing, data.edge_index, num_nodes=14)
    assert isinstance(placed, PlacedSmoothing)
    with pytest.raises(ValueError, match="not part of the graph"):
        placed.p_delete.of(np.array([14 * 14]))
    none = place_smoothing(InterceptionSmoothing(p_delete=[], p_ablate=0.5), data.edge_index[:, :0], num_nodes=14)
    assert none.p_delete.of(np.empty(0, dtype=np.int64)).size == 0
    with pytest.raises(ValueError, match="not part of the graph"):
        none.p_delete.of(np.array([3]))


def test_graphs_without_edges():
    data = random_graph()
    data.edge_index = data.edge_index[:, :0]
    model = shaken(build_model("gcn", data))
    smoothing = InterceptionSmoothing(p_delete=[], p_ablate=np.linspace(0, 1, 14))
    votes = [
        engine_of(model, data, [0, 13], smoothing, engine=engine).votes(0, Purpose.AUDIT, num_samples=40)
        for engine in ("compiled", "torch")
    ]
    np.testing.assert_array_equal(votes[0], votes[1])
    records = recorder_of(
        to_adjacency(random_edges(np.random.default_rng(0), 3, 0.0, directed=True), 3),
        InterceptionSmoothing(p_delete=[], p_ablate=[0.0, 1.0, 0.5]),
    ).record(0, Purpose.AUDIT, [0, 1], samples=range(50))
    assert records.of(0).all()
    assert not records.of(1).any()
