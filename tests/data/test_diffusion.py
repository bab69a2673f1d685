"""Sparsification by diffusion: the golden numbers of Cora-ML, the formula, and what is refused."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from graycert.data import load_graph
from graycert.data.diffusion import sparsify_by_diffusion
from graycert.errors import InvalidParameterError
from support.attributed_graphs import random_graph
from support.graphs import edge_set


@pytest.mark.deep
def test_cora_ml_keeps_as_many_edges_as_the_reference(data_root: Path) -> None:
    # golden/README.md: 15,962 -> 14,606 entries, 2,810 of them self-loops, which are left out here; symmetric
    data = load_graph("cora_ml", data_root=data_root)
    assert data.edge_index.size(1) == 15_962
    sparse = sparsify_by_diffusion(data)
    assert sparse.num_nodes == 2_810
    assert sparse.edge_index.size(1) == 11_796 == 14_606 - 2_810
    edges = edge_set(sparse)
    assert len(edges) == 11_796
    assert all((v, w) in edges and v != w for w, v in edges)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("threshold", "teleport"), [(0.05, 0.15), (0.11, 0.5)])
def test_edges_are_the_large_entries_of_the_inverse(directed: bool, threshold: float, teleport: float) -> None:
    data = random_graph(directed=directed, seed=3)
    with_loops = np.eye(14)
    with_loops[tuple(data.edge_index.numpy())] = 1
    degree = with_loops.sum(axis=0)
    step = with_loops / np.sqrt(np.outer(degree, degree))
    diffused = teleport * np.linalg.inv(np.eye(14) - (1 - teleport) * step)
    assert np.abs(diffused - threshold).min() > 1e-4  # rounding decides nothing
    expected = {(w, v) for w, v in np.argwhere(diffused >= threshold).tolist() if w != v}
    result = sparsify_by_diffusion(data, threshold=threshold, teleport=teleport)
    assert edge_set(result) == expected
    assert 0 < len(expected) == result.edge_index.size(1)


def test_features_do_not_matter_and_the_input_is_left_alone() -> None:
    data = random_graph(seed=1)
    before, x = data.edge_index.clone(), data.x.clone()
    data.edge_weight = torch.rand(before.size(1))
    result = sparsify_by_diffusion(data)
    assert torch.equal(data.edge_index, before)
    assert torch.equal(result.x, x)
    assert torch.equal(result.y, data.y)
    assert sorted(result.keys()) == ["edge_index", "left_out_per_edge", "preparation", "steps_taken", "x", "y"]
    assert result.preparation[-1].startswith("sparsified by diffusion (teleport 0.15, threshold 0.022): ")
    other = random_graph(seed=1)
    other.x = 100 * other.x
    assert torch.equal(sparsify_by_diffusion(other).edge_index, result.edge_index)


def test_graphs_without_edges_or_features_work_and_a_high_threshold_leaves_no_edge() -> None:
    bare = Data(edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=3)
    assert sparsify_by_diffusion(bare).num_nodes == 3
    alone = sparsify_by_diffusion(random_graph(), threshold=2.0)
    assert alone.edge_index.shape == (2, 0)
    assert alone.num_nodes == 14


def test_graphs_of_one_or_very_many_nodes_and_bad_numbers_are_refused() -> None:
    single = Data(x=torch.ones(1, 2), edge_index=torch.empty(2, 0, dtype=torch.long))
    with pytest.raises(InvalidParameterError, match="from 2 to 20,000 nodes for diffusion, got 1"):
        sparsify_by_diffusion(single)
    large = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=169_343)
    with pytest.raises(InvalidParameterError, match=r"from 2 to 20,000 nodes .* got 169,343: a dense matrix of 115 GB"):
        sparsify_by_diffusion(large)
    for options, message in (
        ({"threshold": 0.0}, "`threshold` must be finite and > 0"),
        ({"teleport": 1.0}, r"`teleport` must be in \(0, 1\)"),
    ):
        with pytest.raises(InvalidParameterError, match=message):
            sparsify_by_diffusion(random_graph(), **options)
