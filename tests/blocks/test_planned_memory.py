from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

import graycert
from graycert import certification
from graycert.blocks.planned_memory import LIBRARIES, PlannedMemory
from graycert.problem import Problem
from graycert.sampling import whole_pass
from graycert.sampling.whole_pass import widest_layer
from support.certificates import small_certificates


def problem(*, num_edges=200, num_features=8, num_targets=10, num_hidden=16, dtype=torch.float32):
    num_nodes = 50
    random = np.random.default_rng(0)
    pairs = random.permutation(num_nodes**2)[:num_edges]
    data = Data(
        x=torch.zeros(num_nodes, num_features, dtype=dtype),
        y=torch.arange(num_nodes) % 4,
        edge_index=torch.from_numpy(np.stack([pairs // num_nodes, pairs % num_nodes])),
    )
    model = nn.Sequential(nn.Linear(num_features, num_hidden), nn.Linear(num_hidden, 4))
    setup = small_certificates().setup
    return Problem.of(data, np.arange(num_targets), setup=setup, model=model)


def planned(*, drawing=0, **sizes):
    return PlannedMemory.of(problem(**sizes), drawing=drawing)


def test_what_is_handed_in_and_sorted_is_counted_exactly():
    found = planned()
    assert found.data == 50 * 8 * 4 + 2 * 200 * 8 + 50 * 8
    assert found.graph == 12 * 200 + 8 * 50
    assert found.whole_pass == 4 * (50 * 8 + 2 * 16 * 200)
    assert planned(dtype=torch.float64).whole_pass == 2 * found.whole_pass


@pytest.mark.parametrize(
    ("changed", "grows"),
    [
        ({"num_edges": 400}, {"data", "graph", "whole_pass"}),
        ({"num_features": 16}, {"data", "whole_pass"}),
        ({"num_targets": 20}, {"results"}),
        ({"num_hidden": 32}, {"whole_pass"}),
        ({"drawing": 1}, {"drawing"}),
    ],
)
def test_what_grows_with_what(changed, grows):
    before, after = vars(planned()), vars(planned(**changed))
    assert {name for name in before if after[name] != before[name]} == grows


def test_a_pass_in_parts_takes_nothing_beside_drawing(monkeypatch):
    asked = problem()
    known = replace(asked, model=graycert.build_model("gcn", asked.data, hidden_channels=16, seed=0))
    assert PlannedMemory.of(known, drawing=0).whole_pass == 4 * (50 * 8 + 2 * 16 * 200)
    monkeypatch.setattr(whole_pass, "MUCH", 4 * (50 * 8 + 2 * 16 * 200) - 1)
    assert PlannedMemory.of(known, drawing=0).whole_pass == 0
    assert PlannedMemory.of(asked, drawing=0).whole_pass == 4 * (
        50 * 8 + 2 * 16 * 200
    )  # no convolution: who knows what it does?


def test_results_grow_in_proportion_to_the_targets():
    assert planned(num_targets=40).results == pytest.approx(4 * planned(num_targets=10).results, abs=4)


def test_the_peak_has_passes_and_draws_one_after_the_other():
    few, many, most = planned(drawing=0), planned(drawing=10**9), planned(drawing=0, num_targets=50)
    beside = LIBRARIES + few.data + few.graph
    assert few.num_bytes == beside + few.results // 2 + few.whole_pass
    assert many.num_bytes == beside + few.results // 2 + 10**9
    results = replace(most, results=10**8)
    assert results.num_bytes == beside + 10**8
    assert replace(results, drawing=10**8).num_bytes == beside + 15 * 10**7
    assert "takes about 1.5 GiB" in many.in_words()
    assert "drawing 0.93" in many.in_words()


def test_single_votes_are_there_throughout():
    asked = problem()
    singly = asked.with_setup(rule="event-aware")
    plain, found = (PlannedMemory.of(each, drawing=10**9) for each in (asked, singly))
    assert found.single_votes == 16 * asked.setup.draws.num_estimation * 10
    assert found.num_bytes == plain.num_bytes + found.single_votes


def test_the_widest_layer():
    data = graycert.load_graph("wordnet_nouns")
    assert widest_layer(graycert.build_model("gcn", data, hidden_channels=48, seed=0)) == 48
    assert widest_layer(graycert.build_model("gat", data, hidden_channels=8, seed=0)) >= 64
    assert widest_layer(lambda x, edges: x) == 1


def test_it_is_said_where_it_is_much(monkeypatch):
    said = []
    execution = graycert.Execution(say=said.append, memory=2**20)
    asked = replace(problem(), execution=execution)
    certification._say_what_it_takes(asked)
    assert not said
    monkeypatch.setattr(certification, "_MUCH", 2**10)
    certification._say_what_it_takes(asked)
    certification._say_what_it_takes(problem())  # to nobody
    assert len(said) == 1
    assert said[0].startswith("At its peak this takes about 0.5 GiB of memory")
