"""The prepared Cora-ML graph is the one on which the authors' implementation was run (deltas_cora_ml.npz)."""

from pathlib import Path

import numpy as np

from graycert.data import load_graph
from support.graphs import edge_set


def test_nodes_and_edges_are_those_of_the_reference(data_root: Path, golden_root: Path) -> None:
    with np.load(golden_root / "deltas_cora_ml.npz", allow_pickle=False) as golden:
        original = golden["original_id_of_test_graph_node"]
        edges = original[golden["test_graph_edge_index"]]
    assert sorted(original.tolist()) == list(range(2_810))
    data = load_graph("cora_ml", data_root=data_root)
    assert edge_set(data) == set(map(tuple, edges.T.tolist()))
    assert data.edge_index.size(1) == edges.shape[1] == 15_962
