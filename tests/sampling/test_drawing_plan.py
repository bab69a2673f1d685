"""What grows with hubs, classes and targets, in counts: evaluations per tile, and bytes planned and taken."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from graycert.models import build_model
from graycert.sampling import Purpose, choose_engine, engines
from graycert.sampling.layered_field import layered_field
from graycert.sampling.workspace import Tile
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from support.known_models import shaken

SMOOTHING = InterceptionSmoothing(p_delete=0.31, p_ablate=0.794)
MIB = 2**20


def graph_with_hubs(num_nodes, *, hubs, num_classes=4):
    """A ring, and hubs that everyone is linked with."""
    ring = np.arange(num_nodes)
    edges = [np.stack([ring, (ring + 1) % num_nodes])]
    edges += [np.stack([np.full(num_nodes - 1, hub), np.delete(ring, hub)]) for hub in range(hubs)]
    low, high = np.concatenate(edges, axis=1)
    low, high = np.unique(np.stack([np.minimum(low, high), np.maximum(low, high)]), axis=1)
    edge_index = torch.from_numpy(np.stack([np.r_[low, high], np.r_[high, low]]))
    torch.manual_seed(0)
    return Data(x=torch.randn(num_nodes, 8), edge_index=edge_index, y=torch.arange(num_nodes) % num_classes)


def engine_for(data, targets=None, *, architecture="gcn", memory=None, **options):
    model = shaken(build_model(architecture, data, **options))
    nodes = np.arange(data.num_nodes) if targets is None else np.asarray(targets)
    return choose_engine(
        model, data, nodes, smoothing=SMOOTHING, num_layers=model.num_layers, engine="compiled", memory=memory
    )


def evaluations(engine, monkeypatch, *, num_samples=32):
    """How many hidden rows and targets are computed for so many draws."""
    counted = {"hidden": 0, "targets": 0, "chunks": 0}
    compute, count, run = Tile._compute, Tile._count, Tile.count

    def computing(self, index, nodes):
        counted["hidden"] += self.lanes * (nodes.stop - nodes.start)
        compute(self, index, nodes)

    def counting(self, ballot, targets):
        counted["targets"] += self.lanes * (targets.stop - targets.start)
        count(self, ballot, targets)

    def running(self, *arguments, **options):
        counted["chunks"] += 1
        run(self, *arguments, **options)

    monkeypatch.setattr(Tile, "_compute", computing)
    monkeypatch.setattr(Tile, "_count", counting)
    monkeypatch.setattr(Tile, "count", running)
    engine.votes(0, Purpose.ESTIMATION, num_samples=num_samples)
    return counted


@pytest.mark.few(1)
@pytest.mark.parametrize("hubs", [0, 1, 3])
@pytest.mark.parametrize("num_classes", [3, 40])
@pytest.mark.parametrize("num_targets", [1, 50, 400])
def test_each_hidden_row_is_computed_once_per_draw(hubs, num_classes, num_targets, monkeypatch):
    data = graph_with_hubs(400, hubs=hubs, num_classes=num_classes)
    engine = engine_for(data, np.arange(num_targets) * (400 // num_targets), memory=1)  # as little as can be
    counted = evaluations(engine, monkeypatch)
    cuts = engine.plan.cuts
    hidden = sum(int(engine._part(cut).field.sizes[1]) for cut in cuts)
    assert counted == {"hidden": 32 * hidden, "targets": 32 * num_targets, "chunks": 8 * len(cuts)}
    assert engine.plan.evaluations == 8 * len(cuts)
    assert hidden <= 1.5 * layered_field(engine.graph, engine.targets, num_layers=2).sizes[1] + 3 * len(cuts)
    if hubs and num_targets == 400:
        assert len(cuts) == 1


def test_planned_bytes_grow_with_classes_targets_and_hubs_and_no_faster():
    def planned(*, num_nodes=300, hubs=1, num_classes=4, num_targets=300):
        data = graph_with_hubs(num_nodes, hubs=hubs, num_classes=num_classes)
        return engine_for(data, np.arange(num_targets)).plan.num_bytes

    assert planned(num_classes=40) < 6 * planned(num_classes=4)
    assert planned(num_targets=300) < 2 * planned(num_targets=30)  # the hub makes the field the graph
    assert planned(num_nodes=3_000, num_targets=3_000) < 10.5 * planned()
    more_edges = graph_with_hubs(300, hubs=8).num_edges - graph_with_hubs(300, hubs=1).num_edges
    assert planned(hubs=8) - planned(hubs=1) < more_edges * 100 + 7 * 300 * 32 * 4


def test_targets_are_cut_where_fields_are_apart_and_only_there():
    lonely = graph_with_hubs(2_000, hubs=0)
    engine = engine_for(lonely)
    whole = engine.plan
    apart = replace(engine, memory=whole.fixed_bytes + whole.cuts[0].num_bytes // 3).plan
    assert len(apart.cuts) >= 3
    assert {cut.lanes for cut in apart.cuts} == {32}  # nothing is repeated, so nothing need be narrower
    assert [cut.rows.start for cut in apart.cuts[1:]] == [cut.rows.stop for cut in apart.cuts[:-1]]
    with_hub = engine_for(graph_with_hubs(2_000, hubs=1))
    plan = with_hub.plan
    narrow = replace(with_hub, memory=plan.fixed_bytes + plan.cuts[0].num_bytes // 2).plan
    assert [cut.lanes for cut in narrow.cuts] == [8]  # planned only: nothing is drawn
    assert narrow.num_bytes <= narrow.budget


@pytest.mark.deep
@pytest.mark.parametrize("architecture", ["gcn", "gat"])
def test_votes_do_not_depend_on_the_budget(architecture):
    """Tiles of 32, 16 and 4 draws round alike, bit by bit; `test_compiled` has the other architectures."""
    data = graph_with_hubs(60, hubs=1, num_classes=5)
    engine = engine_for(data, architecture=architecture)
    whole, samples = engine.plan.cuts[0].num_bytes, torch.arange(7, 40)
    scores, votes = engine.logits(0, Purpose.AUDIT, samples), engine.votes(0, Purpose.AUDIT, num_samples=77)
    seen = set()
    for share in (0.7, 0.0):
        other = replace(engine, memory=engine.plan.fixed_bytes + int(share * whole))
        seen |= {cut.lanes for cut in other.plan.cuts}
        assert torch.equal(other.logits(0, Purpose.AUDIT, samples), scores)
        np.testing.assert_array_equal(other.votes(0, Purpose.AUDIT, num_samples=77), votes)
    assert seen >= {16, 4}


@pytest.mark.parametrize("architecture", ["gcn", "gat"])
@pytest.mark.parametrize("budget", [4 * MIB, 64 * MIB])
def test_the_plan_is_what_is_taken(architecture, budget):
    data = graph_with_hubs(4_000, hubs=2, num_classes=10)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        engine = engine_for(data, architecture=architecture, memory=budget)
        engine.votes(0, Purpose.ESTIMATION, num_samples=32)
        plan, fresh = engine.plan, engine.restricted(np.ones(4_000, dtype=np.bool_))
        fixed = plan.fixed_bytes - 8 * engine.skip_logits.size  # made before, but for the votes of one purpose
        tracemalloc.start()
        fresh.votes(0, Purpose.ESTIMATION, num_samples=32)
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    finally:
        torch.set_num_threads(threads)
    planned = plan.num_bytes - fixed + 8 * engine.skip_logits.size
    assert 0.8 * planned < taken < 1.2 * planned
    assert plan.num_bytes <= budget or plan.cuts[0].lanes == 4


def rows_of_calls(data, monkeypatch):
    """How many rows the model is called with while its engine is chosen, call by call."""
    model, calls = shaken(build_model("gcn", data)), []
    forward = type(model).forward

    def counting(self, x, edge_index):
        calls.append(x.size(0))
        return forward(self, x, edge_index)

    with monkeypatch.context() as patch:
        patch.setattr(type(model), "forward", counting)
        choose_engine(model, data, np.arange(data.num_nodes), smoothing=SMOOTHING, num_layers=2, engine="compiled")
    return calls


def test_of_a_large_graph_a_bounded_part_is_compared(monkeypatch):
    """Nodes, edges and targets that the choice of the engine calls the model on do not grow with the graph."""
    seen = []
    for num_nodes in (2_000, 8_000):
        data = graph_with_hubs(num_nodes, hubs=2)
        monkeypatch.setattr(engines, "_COMPARED_UNITS", 1_000)
        monkeypatch.setattr(engines, "_COMPARED_NODES", 500)
        monkeypatch.setattr(engines, "_COMPARED_TARGETS", 16)
        part = engines.compared_part(data.x, data.edge_index, np.arange(num_nodes), num_layers=2)
        assert part.nodes.numel() <= 500
        assert part.edge_index.size(1) <= 1_000
        assert part.targets.numel() == 16
        assert torch.equal(part.nodes[part.targets], torch.arange(16) * (num_nodes // 16))
        kept = set(map(tuple, data.edge_index.T.tolist()))
        assert set(map(tuple, part.nodes[part.edge_index].T.tolist())) <= kept
        calls = rows_of_calls(data, monkeypatch)
        seen.append((len(calls), max(calls)))
    assert seen[0] == seen[1]
    assert seen[0][1] <= 500


def test_a_graph_of_many_nodes_is_compared_on_a_part_however_few_its_edges(monkeypatch):
    monkeypatch.setattr(engines, "_COMPARED_NODES", 500)
    no_edges = torch.empty(2, 0, dtype=torch.int64)
    for num_nodes, compared in ((500, 500), (501, 251)):
        x = torch.zeros(num_nodes, 3)
        part = engines.compared_part(x, no_edges, np.arange(num_nodes), num_layers=2)
        assert part.nodes.numel() == compared


def test_a_graph_of_many_features_is_compared_on_a_part(monkeypatch):
    monkeypatch.setattr(engines, "_COMPARED_FEATURES", 3_000)
    monkeypatch.setattr(engines, "_COMPARED_TARGETS", 16)
    data = graph_with_hubs(500, hubs=2)
    for width, most in ((1, 500), (30, 100), (3_000, 16)):
        part = engines.compared_part(torch.zeros(500, width), data.edge_index, np.arange(500), num_layers=2)
        assert part.targets.numel() <= part.nodes.numel() <= most


@pytest.mark.parametrize("architecture", ["gcn", "gat"])
@pytest.mark.parametrize("targets", [np.arange(60), np.arange(59, -1, -1), np.array([41, 7, 0])])
def test_neither_rows_nor_edges_lie_there_twice_and_none_that_no_target_sees(architecture, targets):
    data = graph_with_hubs(60, hubs=0)
    all_targets, engine = (engine_for(data, some, architecture=architecture) for some in (None, targets))
    (cut,) = engine.plan.cuts
    part = engine._part(cut)
    assert part.table is engine.table
    assert np.shares_memory(part.field.sources, engine.graph.sources)
    assert engine.table.shape[0] == part.field.nodes.size + 1
    assert engine.plan.num_bytes <= all_targets.plan.num_bytes
    if targets.size < 60:
        assert part.field.nodes.size == 3 * 5  # of the ring: a target and two on both sides
        assert engine.graph.names.size == 3 * 7
    votes = [each.votes(0, Purpose.ESTIMATION, num_samples=64) for each in (all_targets, engine)]
    np.testing.assert_array_equal(votes[0][targets], votes[1])
