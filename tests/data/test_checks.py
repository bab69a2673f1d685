import re

import pytest
import torch
from torch_geometric.data import Data, HeteroData

from graycert.data import validate_data
from graycert.errors import InvalidParameterError
from support.graphs import path_graph


def test_a_valid_graph_passes() -> None:
    validate_data(path_graph(), need_labels=True)
    validate_data(path_graph(x=None, y=None, num_nodes=3), need_features=False)
    validate_data(path_graph(x=path_graph().x.double(), y=torch.tensor([-1, -1, 0])), need_labels=True)
    validate_data(Data(x=torch.ones(1, 1), edge_index=torch.empty(2, 0, dtype=torch.long)))


NAN = torch.tensor([[0.0, 0.0], [0.0, float("nan")], [0.0, 0.0]])
INFINITE = torch.tensor([[0.0, 0.0], [0.0, 0.0], [float("-inf"), 0.0]])


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"edge_index": torch.tensor([[0, 1], [1, 3]])}, "`data.edge_index` must lie in [0, 2] for 3 nodes, got 3"),
        ({"edge_index": torch.tensor([[0, -4], [1, 2]])}, "`data.edge_index` must lie in [0, 2] for 3 nodes, got -4"),
        ({"edge_index": torch.tensor([[0.0, 1.0], [1.0, 2.0]])}, "`data.edge_index` must be int64"),
        ({"edge_index": torch.tensor([[0, 1], [1, 2]], dtype=torch.int32)}, "got torch.int32 of shape (2, 2)"),
        ({"edge_index": torch.tensor([[0, 1], [1, 2], [2, 0]])}, "got torch.int64 of shape (3, 2)"),
        ({"edge_index": None}, "`data.edge_index` must be a tensor of shape (2, num_edges), got none"),
        ({"x": None}, "`data.x` must hold the node features, got none"),
        ({"x": NAN}, "`data.x` must be finite, got nan at node 1, column 1"),
        ({"x": INFINITE}, "`data.x` must be finite, got -inf at node 2, column 0"),
        ({"x": torch.ones(3, 2, dtype=torch.long)}, "`data.x` must hold floats, got torch.int64"),
        ({"x": torch.ones(3)}, "`data.x` must have shape (3, num_features >= 1), got (3,)"),
        ({"x": torch.ones(3, 0)}, "got (3, 0)"),
        ({"x": torch.ones(4, 2), "num_nodes": 3}, "`data.x` must have shape (3, num_features >= 1), got (4, 2)"),
        ({"x": torch.eye(3).to_sparse()}, "`data.x` must be a dense tensor, got a torch.sparse_coo tensor"),
        ({"y": torch.tensor([0.0, 1.0, 0.0])}, "`data.y` must be int64 of shape (3,), got torch.float32"),
        ({"y": torch.tensor([[0], [1], [0]])}, "got torch.int64 of shape (3, 1)"),
        ({"y": torch.tensor([0, 1])}, "got torch.int64 of shape (2,)"),
        ({"y": torch.tensor([0, -2, 0])}, "`data.y` must be >= -1, got -2"),
        ({"node_ids": ["a", "b"]}, "`data.node_ids` must name each of the 3 nodes, got 2 names"),
        ({"node_ids": ["a", "b", "a"]}, "`data.node_ids` must be distinct, got 'a' more than once"),
        ({"class_names": ["only"]}, "`data.class_names` must name every class, got 1 names for labels up to 1"),
    ],
)
def test_a_malformed_graph_is_refused_with_the_reason(overrides: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=re.escape(message)):
        validate_data(path_graph(**overrides))


@pytest.mark.parametrize("labels", [None, torch.tensor([-1, -1, -1])])
def test_labels_are_required_where_asked(labels: torch.Tensor | None) -> None:
    validate_data(path_graph(y=labels))
    with pytest.raises(InvalidParameterError, match=r"`data\.y` must label at least one node, got no labels"):
        validate_data(path_graph(y=labels), need_labels=True)


def test_empty_graphs_are_refused() -> None:
    empty = Data(x=torch.ones(0, 2), edge_index=torch.empty(2, 0, dtype=torch.long))
    with pytest.raises(InvalidParameterError, match="must have at least one node, got an empty graph"):
        validate_data(empty)


def test_the_number_of_nodes_is_never_guessed() -> None:
    with pytest.raises(InvalidParameterError, match=r"`data\.num_nodes` must be set"):
        validate_data(path_graph(x=None, y=None), need_features=False)


@pytest.mark.parametrize("other", [HeteroData(), {"x": 1}, None])
def test_other_objects_are_refused(other: object) -> None:
    with pytest.raises(InvalidParameterError, match=r"must be a torch_geometric\.data\.Data, got"):
        validate_data(other)  # type: ignore[arg-type]
