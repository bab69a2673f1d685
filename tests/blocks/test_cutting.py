"""How targets are cut into blocks."""

import numpy as np
import pytest

import graycert
from graycert.blocks.cutting import WANTED, block_size, bytes_of_results, bytes_until_done, messages_of
from graycert.graph import as_adjacency
from graycert.problem import Problem
from graycert.setup import Setup
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from support.attributed_graphs import random_graph
from support.random_graphs import random_edges, to_adjacency

PLENTY = 2**40


def problem(data, *, rule="sound", draws=None, num_layers=2, **execution):
    setup = Setup(
        smoothing=InterceptionSmoothing(p_delete=0.3, p_ablate=0.7),
        threat=graycert.NodeFeatureThreat(),
        draws=draws or graycert.Draws(num_selection=10, num_estimation=1_000),
        rule=rule,
        num_layers=num_layers,
    )
    return Problem.of(data, None, setup=setup, execution=graycert.Execution(**execution))


def apart(num_nodes=640):
    """Pairs of nodes: no two fields of other pairs have a node in common."""
    import torch
    from torch_geometric.data import Data

    left = torch.arange(0, num_nodes, 2)
    return Data(x=torch.randn(num_nodes, 2), edge_index=torch.stack([left, left + 1]))


def star(num_nodes=640):
    """All nodes hear from all others through one."""
    import torch
    from torch_geometric.data import Data

    leaves = torch.arange(1, num_nodes)
    edges = torch.cat([torch.stack([leaves, 0 * leaves]), torch.stack([0 * leaves, leaves])], dim=1)
    return Data(x=torch.randn(num_nodes, 2), edge_index=edges)


def test_fields_that_are_apart_are_cut_and_shared_ones_are_not():
    many = 1_000 * WANTED
    assert block_size(problem(apart(many)), workers=1, memory=PLENTY, elsewhere=False) == 1_000
    assert block_size(problem(star(many)), workers=1, memory=PLENTY, elsewhere=False) == many


def test_few_targets_are_one_block():
    assert block_size(problem(apart()), workers=1, memory=PLENTY, elsewhere=False) == 640


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("graph", [apart, star])
def test_every_worker_has_a_block(graph, elsewhere):
    assert block_size(problem(graph()), workers=4, memory=PLENTY, elsewhere=elsewhere) <= 160


@pytest.mark.parametrize("graph", [apart, star])
def test_results_of_a_block_fit_the_memory_of_another_process(graph):
    asked = problem(graph())
    for memory in (2**20, 2**22):
        size = block_size(asked, workers=1, memory=memory, elsewhere=True)
        assert size * bytes_of_results(asked) <= memory / 4
    assert block_size(asked, workers=1, memory=1, elsewhere=True) == 1


def test_results_that_stay_here_do_not_cut_what_shares_hubs():
    """Each block would draw the whole graph again, and all results lie in this process in the end."""
    many = 1_000 * WANTED
    assert block_size(problem(star(many)), workers=1, memory=1, elsewhere=False) == many


@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_is_dropped_when_a_block_is_done_fits_the_memory(elsewhere):
    asked = problem(star(), rule="event-aware")
    size = block_size(asked, workers=1, memory=2**22, elsewhere=elsewhere)
    assert size * bytes_until_done(asked) <= 2**20 < 640 * bytes_until_done(asked)


def test_what_is_held_of_a_target_grows_with_what_is_asked():
    assert bytes_until_done(problem(random_graph())) == 0
    assert bytes_until_done(problem(random_graph(), rule="event-aware")) >= 2 * 1_000
    assert bytes_until_done(problem(random_graph(), rule="sequential", draws=graycert.UntilDecided())) > 0
    few, more = (problem(random_graph()).with_setup(max_radius=radius) for radius in (5, 50))
    assert bytes_of_results(more) >= bytes_of_results(few) + 8 * 45


def test_the_callers_size_is_taken():
    assert block_size(problem(apart(), block_size=7), workers=2, memory=1, elsewhere=True) == 7
    assert block_size(problem(apart(), block_size=7_000), workers=2, memory=1, elsewhere=True) == 640


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_messages_are_those_of_each_layers_receivers(seed, num_layers):
    """Against walks backwards, node by node."""
    rng = np.random.default_rng(seed)
    edges = random_edges(rng, 12, 0.15, directed=True)
    graph = as_adjacency(to_adjacency(edges, 12))
    targets = rng.choice(12, 3, replace=False)
    receivers, expected = set(targets.tolist()), 0
    for _ in range(num_layers):
        expected += len(receivers) + sum(target in receivers for _, target in edges)
        receivers |= {source for source, target in edges if target in receivers}
    assert messages_of(graph, targets, num_layers) == expected
