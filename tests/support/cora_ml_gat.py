"""The reference's test graph of Cora-ML and its pretrained GAT, from shared/golden."""

import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from graycert.models import ModelConfig, build_from_config


def golden_arrays(path):
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def golden_graph(golden_root, data_root):
    """Largest component, undirected, words present or absent, the reference's node order; and its 253 targets."""
    golden, raw = golden_arrays(golden_root / "deltas_cora_ml.npz"), golden_arrays(data_root / "cora_ml.npz")
    words = sp.csr_array((raw["attr_data"], raw["attr_indices"], raw["attr_indptr"]), shape=raw["attr_shape"])
    edges = sp.csr_array((raw["adj_data"], raw["adj_indices"], raw["adj_indptr"]), shape=raw["adj_shape"])
    _, component = sp.csgraph.connected_components(edges, directed=False)
    largest = np.flatnonzero(component == np.bincount(component).argmax())
    order = largest[golden["original_id_of_test_graph_node"]]
    features = (words[order].toarray() > 0).astype(np.float32)
    edge_index = torch.from_numpy(golden["test_graph_edge_index"].astype(np.int64))
    return Data(x=torch.from_numpy(features), edge_index=edge_index), golden["target_test_graph_id"].astype(np.int64)


def golden_gat(golden_root, *, skip):
    weights = golden_arrays(golden_root / "gat_cora_ml_weights.npz")
    config = ModelConfig(architecture="gat", num_features=2_879, num_classes=7, hidden_channels=8, heads=8, skip=skip)
    model = build_from_config(config)
    state = {"ablation_token": weights["ablate.token"]}
    for layer in (0, 1):
        state[f"layers.{layer}.linear.weight"] = weights[f"conv{layer + 1}.lin.weight"]
        for part in ("att_src", "att_dst", "bias"):
            state[f"layers.{layer}.conv.{part}"] = weights[f"conv{layer + 1}.{part}"]
    model.load_state_dict({key: torch.from_numpy(value) for key, value in state.items()})
    return model.eval()
