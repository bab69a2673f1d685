import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from graycert.data import prepare_graph
from graycert.errors import InvalidParameterError
from support.graphs import edge_set, path_graph


def messy_graph() -> Data:
    """Two components {0, 1, 4} and {2, 3}; a self-loop at 1; 0 -> 1 twice."""
    return Data(
        x=torch.tensor([[0.5], [-1.0], [0.0], [7.0], [1.0]]),
        edge_index=torch.tensor([[0, 1, 0, 4, 3], [1, 1, 1, 0, 2]]),
        y=torch.tensor([0, 1, 2, 0, 1]),
        train_mask=torch.tensor([True, False, False, False, True]),
        edge_weight=torch.ones(5),
    )


def test_by_default_directed_graphs_stay_directed_and_all_nodes_stay() -> None:
    result = prepare_graph(messy_graph())
    assert result.edge_index.tolist() == [[0, 3, 4], [1, 2, 0]]
    assert torch.equal(result.x, messy_graph().x)
    assert result.preparation == [
        "left out edge_weight: edges may change here; set them anew and name them in `edge_inputs`",
        "dropped self-loops: 1",
        "merged parallel edges: 1",
    ]


def test_each_option_does_only_what_it_says() -> None:
    nothing = {"drop_self_loops": False, "coalesce": False}
    graph = messy_graph()
    assert torch.equal(prepare_graph(graph, **nothing).edge_index, graph.edge_index)
    assert prepare_graph(graph, drop_self_loops=True, coalesce=False).edge_index.tolist() == [
        [0, 0, 4, 3],
        [1, 1, 0, 2],
    ]
    assert prepare_graph(graph, drop_self_loops=False).edge_index.tolist() == [[0, 1, 3, 4], [1, 1, 2, 0]]
    assert prepare_graph(graph, **nothing, binarize=True).x.flatten().tolist() == [1.0, 0.0, 0.0, 1.0, 1.0]
    undirected = prepare_graph(graph, undirected=True)
    assert edge_set(undirected) == {(0, 1), (1, 0), (0, 4), (4, 0), (2, 3), (3, 2)}


def test_everything_follows_the_largest_component_in_the_order_of_the_nodes() -> None:
    result = prepare_graph(messy_graph(), largest_component=True)
    assert result.node_ids == ["0", "1", "4"]  # the old numbers
    assert result.y.tolist() == [0, 1, 1]
    assert result.train_mask.tolist() == [True, False, True]
    assert result.x.flatten().tolist() == [0.5, -1.0, 1.0]
    assert edge_set(result) == {(0, 1), (2, 0)}
    named = messy_graph()
    named.node_ids = list("abcde")
    assert prepare_graph(named, largest_component=True).node_ids == ["a", "b", "e"]


def test_a_tie_goes_to_the_component_of_the_first_node() -> None:
    pairs = Data(x=torch.ones(4, 1), edge_index=torch.tensor([[3, 2], [0, 1]]))
    assert prepare_graph(pairs, largest_component=True).node_ids == ["0", "3"]


def test_a_graph_without_features_keeps_its_isolated_nodes() -> None:
    bare = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=4)
    assert prepare_graph(bare).num_nodes == 4
    assert prepare_graph(bare, largest_component=True).num_nodes == 2


def test_the_input_is_left_alone() -> None:
    graph, before = messy_graph(), messy_graph()
    prepare_graph(graph, undirected=True, largest_component=True, binarize=True)
    assert sorted(graph.keys()) == sorted(before.keys())
    assert all(torch.equal(graph[name], before[name]) for name in before.keys())  # noqa: SIM118


def test_undirected_without_merging_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="`coalesce` must be True with `undirected`, got False"):
        prepare_graph(path_graph(), undirected=True, coalesce=False)


def test_binarising_needs_features() -> None:
    with pytest.raises(InvalidParameterError, match=r"`data\.x` must hold the node features, got none"):
        prepare_graph(path_graph(x=None), binarize=True)


@settings(max_examples=50, deadline=None)
@given(
    num_nodes=st.integers(1, 8),
    pairs=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20),
)
def test_the_papers_preparation_gives_a_simple_symmetric_connected_graph_and_repeats_itself(
    num_nodes: int, pairs: list[tuple[int, int]]
) -> None:
    edges = [(w % num_nodes, v % num_nodes) for w, v in pairs]
    edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t()
    options = {"undirected": True, "largest_component": True}
    result = prepare_graph(Data(edge_index=edge_index, num_nodes=num_nodes), **options)
    kept = edge_set(result)
    assert len(kept) == result.edge_index.size(1)
    assert all((v, w) in kept and v != w for w, v in kept)
    assert torch.equal(prepare_graph(result, **options).edge_index, result.edge_index)
    reached, frontier = {0}, [0]
    while frontier:
        node = frontier.pop()
        fresh = {v for w, v in kept if w == node} - reached
        reached |= fresh
        frontier.extend(fresh)
    assert len(reached) == result.num_nodes
