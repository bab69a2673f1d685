"""Votes of the engine: equal to the textbook loop, whatever the batch, the threads, the targets and the model."""

import numpy as np
import pytest
import torch
import torch_geometric.nn as pyg

from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.models import build_model
from graycert.sampling import Purpose, build_engine
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from support import foreign_models as foreign
from support.attributed_graphs import ARCHITECTURE_NAMES, random_graph
from support.plain_models import plain_forward, plain_skip
from support.textbook_loop import textbook_votes

SMOOTHING = InterceptionSmoothing(p_delete=0.3, p_ablate=0.5)


def engine_of(model, data, targets, *, num_layers=2, smoothing=SMOOTHING, **options):
    return build_engine(model, data, np.asarray(targets), smoothing=smoothing, num_layers=num_layers, **options)


@pytest.mark.few(3)
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
def test_equals_the_textbook_loop(architecture, skip, directed):
    """float64, so that no near-tie is decided by rounding."""
    data = random_graph(directed=directed, dtype=torch.float64)
    model = build_model(architecture, data, skip=skip, num_neighbors=3).double()
    targets = [2, 0, 13, 7]
    engine = engine_of(model, data, targets, batch_size=6)
    assert "first layer once, disjoint copies" in engine.name
    expected = textbook_votes(
        lambda x, edges: plain_forward(model, x, edges),
        data.x,
        data.edge_index,
        targets,
        model.ablation_token.detach(),
        SMOOTHING,
        seed=4,
        purpose="estimation",
        num_samples=12,
        first_sample=3,
        skip=plain_skip(model, data.x) if skip else None,
    )
    votes = engine.votes(4, Purpose.ESTIMATION, num_samples=12, first_sample=3)
    np.testing.assert_array_equal(votes, expected)
    assert votes.dtype == np.int64


def test_the_comparison_with_the_loop_would_see_a_wrong_mask():
    data = random_graph(dtype=torch.float64)
    model = build_model("gat", data).double()
    engine = engine_of(model, data, np.arange(14))
    votes = engine.votes(4, Purpose.ESTIMATION, num_samples=20)
    assert (votes != engine.votes(4, Purpose.SELECTION, num_samples=20)).any()
    assert (votes != engine.votes(5, Purpose.ESTIMATION, num_samples=20)).any()
    assert (votes != engine.votes(4, Purpose.ESTIMATION, num_samples=20, first_sample=1)).any()


@pytest.mark.deep
@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
def test_votes_do_not_depend_on_batches_threads_shards_or_other_targets(architecture):
    data = random_graph(num_nodes=30, num_pairs=60)
    model = build_model(architecture, data)
    targets = np.array([3, 17, 29, 8, 0])
    reference = engine_of(model, data, targets, batch_size=1).votes(0, Purpose.SELECTION, num_samples=80)
    assert (reference.sum(axis=1) == 80).all()
    assert (np.count_nonzero(reference, axis=1) > 1).any()
    for batch_size in (7, 64, None):
        engine = engine_of(model, data, targets, batch_size=batch_size)
        np.testing.assert_array_equal(engine.votes(0, Purpose.SELECTION, num_samples=80), reference)
    shards = [engine.votes(0, Purpose.SELECTION, num_samples=40, first_sample=first) for first in (0, 40)]
    np.testing.assert_array_equal(sum(shards), reference)
    fewer = engine_of(model, data, targets[[3, 1]]).votes(0, Purpose.SELECTION, num_samples=80)
    np.testing.assert_array_equal(fewer, reference[[3, 1]])
    threads = torch.get_num_threads()
    try:
        for number in (1, 2):
            torch.set_num_threads(number)
            again = engine_of(model, data, targets).votes(0, Purpose.SELECTION, num_samples=80)
            np.testing.assert_array_equal(again, reference)
    finally:
        torch.set_num_threads(threads)


FOREIGN = {
    "GCN": lambda: pyg.GCN(5, 8, 2, 3),
    "GraphSAGE": lambda: pyg.GraphSAGE(5, 8, 2, 3),
    "GIN": lambda: pyg.GIN(5, 8, 2, 3),
    "GAT": lambda: pyg.GAT(5, 8, 2, 3, heads=2),
    "two-liner": foreign.TwoLiner,
    "convolution": lambda: pyg.GCNConv(5, 3),
    "sparse sum": lambda: foreign.SparseProduct(foreign.sparse_sum),
    "sparse matrix": lambda: foreign.SparseProduct(foreign.sparse_matrix),
    "skip is a layer": foreign.SkipIsALayer,
    "propagate is one step": foreign.StepNamedPropagate,
}

ROWWISE = {"GCN", "GAT", "two-liner", "convolution", "skip is a layer", "propagate is one step"}


def foreign_votes(model, data, targets, *, token=None, num_layers=3, num_samples=12, **options):
    """Votes of the engine, compared with the textbook loop over full graphs."""
    engine = engine_of(model, data, targets, num_layers=num_layers, ablation_token=token, **options)
    votes = engine.votes(9, Purpose.SELECTION, num_samples=num_samples)
    expected = textbook_votes(
        model.eval(),
        data.x,
        data.edge_index,
        targets,
        torch.zeros(5, dtype=data.x.dtype) if token is None else token,
        SMOOTHING,
        seed=9,
        purpose="selection",
        num_samples=num_samples,
    )
    np.testing.assert_array_equal(votes, expected)
    return engine


@pytest.mark.few(7)
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("name", list(FOREIGN))
def test_foreign_models_equal_the_textbook_loop(name, directed):
    data = random_graph(num_nodes=20, num_pairs=24, directed=directed, dtype=torch.float64)
    torch.manual_seed(0)
    engine = foreign_votes(FOREIGN[name]().double(), data, [1, 19, 6])
    start = "first layer once" if name in ROWWISE else "any model"
    assert engine.name == f"torch, {start}, disjoint copies with equal subtrees merged"
    assert engine.field.nodes.numel() < 20


@pytest.mark.parametrize("kind", [foreign.NumbersNodes, foreign.AssertsNodes])
def test_a_model_that_numbers_nodes_gets_one_full_graph_per_pass(kind):
    data = random_graph(num_nodes=20, num_pairs=24, dtype=torch.float64)
    torch.manual_seed(0)
    engine = foreign_votes(kind(20).double(), data, [1, 19, 6], num_layers=1)
    assert engine.name == "torch, any model, one full graph per pass"


def test_a_model_that_reads_further_than_told_gets_the_full_graph():
    """Four steps on a field for one layer: the copies disagree with the full graph, and that is noticed."""
    data = random_graph(num_nodes=20, num_pairs=60, dtype=torch.float64)
    torch.manual_seed(0)
    engine = foreign_votes(pyg.GCN(5, 8, 4, 3).double(), data, [1, 6], num_layers=1)
    assert "full graph" in engine.name


@pytest.mark.deep
def test_isolated_targets_and_empty_edge_sets():
    data = random_graph(dtype=torch.float64)
    torch.manual_seed(0)
    foreign_votes(foreign.TwoLiner().double(), data, [13])
    data.edge_index = torch.empty(2, 0, dtype=torch.long)
    foreign_votes(foreign.TwoLiner().double(), data, [0, 13])
    for architecture in ARCHITECTURE_NAMES:
        model = build_model(architecture, data, skip=True).double()
        votes = engine_of(model, data, [0, 13]).votes(0, Purpose.SELECTION, num_samples=10)
        assert votes.sum() == 20


def test_own_token_given_token_and_zeros():
    data = random_graph(dtype=torch.float64)
    model = foreign.TwoLiner().double()
    foreign_votes(model, data, [1, 6], token=torch.linspace(3, -9, 5, dtype=torch.float64))
    model.ablation_token = torch.linspace(3, -9, 5, dtype=torch.float64)
    own = engine_of(model, data, [1, 6])
    assert torch.equal(own.rows[-1], model.conv.lin(model.ablation_token))
    for wrong in (torch.zeros(4), torch.zeros(1, 5), torch.full((5,), float("nan")), [0.0] * 5):
        with pytest.raises(InvalidParameterError, match="ablation_token"):
            engine_of(model, data, [1, 6], ablation_token=wrong)
    model.ablation_token = [3.0, 0.0, -3.0, -6.0, -9.0]  # never replaced by zeros in silence
    with pytest.raises(InvalidParameterError, match="`ablation_token` must be a tensor of 5 finite numbers"):
        engine_of(model, data, [1, 6])


@pytest.mark.parametrize("scores", [[0.0, 0.0, 0.0], [0.0, 1.0, 1.0], [2.0, 1.0, 2.0]])
def test_ties_go_to_no_class(scores):
    model = foreign.Returns(lambda x: torch.tensor(scores, dtype=x.dtype).expand(x.size(0), 3))
    votes = engine_of(model, random_graph(), [0, 5]).votes(0, Purpose.SELECTION, num_samples=9)
    assert not votes.any()


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_extreme_probabilities(p):
    """Nothing intercepted: the clean prediction. Everything: the token's, the same at every node."""
    data = random_graph()
    model = build_model("gcn", data).eval()
    engine = engine_of(model, data, np.arange(14), smoothing=InterceptionSmoothing(p_delete=p, p_ablate=p))
    votes = engine.votes(0, Purpose.SELECTION, num_samples=5)
    with torch.no_grad():
        clean = model(data.x, data.edge_index).argmax(dim=1).numpy()
        token = model(model.ablation_token.expand(14, -1), data.edge_index[:, :0]).argmax(dim=1).numpy()
    np.testing.assert_array_equal(votes.argmax(axis=1), clean if p == 0 else token)
    assert (votes.max(axis=1) == 5).all()


class CountsRows(foreign.TwoLiner):
    most = calls = 0

    def forward(self, x, edge_index):
        CountsRows.most = max(CountsRows.most, x.size(0))
        CountsRows.calls += 1
        return super().forward(x, edge_index)


def test_memory_is_bounded_by_the_batch_and_not_by_the_samples():
    data = random_graph(num_nodes=30, num_pairs=60)
    engine = engine_of(CountsRows(), data, [3, 4], num_layers=1, batch_size=8)
    CountsRows.most = CountsRows.calls = 0
    engine.votes(0, Purpose.SELECTION, num_samples=100)
    assert 0 < CountsRows.most <= 8 * engine.field.nodes.numel()
    assert CountsRows.calls == 13


def test_votes_do_not_depend_on_the_memory_budget(monkeypatch):
    """Down to one sample per pass, never less: targets of one sample share what they depend on."""
    data = random_graph(num_nodes=30, num_pairs=60, dtype=torch.float64)
    torch.manual_seed(0)
    model, votes, calls = CountsRows().double(), [], []
    for budget in (32 * 2**20, 20_000, 1):
        monkeypatch.setattr("graycert.sampling.voting._MEMORY_BUDGET", budget)
        engine, seen = engine_of(model, data, [3, 4, 20]), []
        CountsRows.calls = 0
        votes.append(engine.votes(0, Purpose.SELECTION, num_samples=40, progress=seen.append))
        calls.append(CountsRows.calls)
        assert sum(seen) == 40
        assert engine.logits(0, Purpose.SELECTION, torch.arange(5)).shape == (5, 3, 3)
    assert calls[0] == 1 < calls[1] <= calls[2] <= 40
    np.testing.assert_array_equal(votes[1], votes[0])
    np.testing.assert_array_equal(votes[2], votes[0])


def test_modes_are_restored_even_after_an_error():
    data = random_graph()
    model = foreign.Sandwich(torch.nn.Sequential(torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.9)))
    model.train()
    model.middle[0].eval()
    before = [module.training for module in model.modules()]
    statistics = model.middle[0].running_mean.clone()
    engine = engine_of(model, data, [1, 2])
    first = engine.votes(0, Purpose.SELECTION, num_samples=30)
    np.testing.assert_array_equal(engine.votes(0, Purpose.SELECTION, num_samples=30), first)
    assert [module.training for module in model.modules()] == before
    assert torch.equal(model.middle[0].running_mean, statistics)

    def fail(amount):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.votes(0, Purpose.SELECTION, num_samples=30, progress=fail)
    assert [module.training for module in model.modules()] == before


def test_progress_adds_up():
    engine, seen = engine_of(foreign.TwoLiner(), random_graph(), [1], batch_size=8), []
    engine.votes(0, Purpose.SELECTION, num_samples=30, progress=seen.append)
    assert seen == [8, 8, 8, 6]


def test_global_generator_is_left_alone():
    model, before = foreign.TwoLiner(), torch.get_rng_state()
    engine_of(model, random_graph(), [1]).votes(0, Purpose.SELECTION, num_samples=30)
    assert torch.equal(torch.get_rng_state(), before)


def test_read_only_targets():
    targets = np.array([1, 2])
    targets.flags.writeable = False
    assert engine_of(foreign.TwoLiner(), random_graph(), targets).votes(0, Purpose.AUDIT, num_samples=2).shape == (2, 3)


def test_refuses_a_skip_connection_that_it_cannot_evaluate():
    with pytest.raises(UnsoundSetupError) as caught:
        engine_of(foreign.SkipWithoutLogits(), random_graph(), [1])
    assert caught.value.slug == "skip-not-local"


@pytest.mark.parametrize("argument", [{"num_samples": 0}, {"num_samples": 1.5}])
def test_refuses_no_samples(argument):
    with pytest.raises(InvalidParameterError, match="num_samples"):
        engine_of(foreign.TwoLiner(), random_graph(), [1]).votes(0, Purpose.AUDIT, **argument)


@pytest.mark.parametrize(("times_as_long", "is_kept"), [(1.05, True), (1.2, False)])
def test_an_engine_slower_than_a_full_forward_pass_is_not_taken(times_as_long, is_kept, monkeypatch):
    """Each engine is timed against one full forward pass per draw, whatever it promises."""

    def seconds(run):
        before = CountsRows.calls
        run()
        passes = CountsRows.calls - before
        assert passes >= 1
        runs.append(run)
        return 1.0 if len(runs) % 4 in (1, 2) else times_as_long * 8

    runs = []
    monkeypatch.setattr("graycert.sampling.voting._seconds", seconds)
    engine = engine_of(CountsRows(), random_graph(num_nodes=30, num_pairs=60), [3, 4, 20], num_layers=1)
    assert ("one full graph per pass" in engine.name) is not is_kept
    assert runs
