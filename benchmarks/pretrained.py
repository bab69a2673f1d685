"""The authors' Cora-ML test graph, targets and pretrained GAT: files that are not part of the repository."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graycert.graph import Adjacency

Arrays = dict[str, NDArray[Any]]


def data_root() -> Path:
    """Return the folder named by GRAYCERT_DATA."""
    return Path(os.environ["GRAYCERT_DATA"])


def read(file: Path) -> Arrays:
    """Return all arrays of an .npz file."""
    with np.load(file, allow_pickle=False) as stored:
        return dict(stored)


def authors_graph(folder: Path | None = None) -> tuple[Adjacency, NDArray[np.int64]]:
    """Return the test graph in the authors' node order, and their 253 test nodes."""
    stored = read((folder or data_root().parent / "golden") / "deltas_cora_ml.npz")
    order = stored["original_id_of_test_graph_node"]
    adjacency = Adjacency.from_edge_index(stored["test_graph_edge_index"], num_nodes=order.size)
    return adjacency, stored["target_test_graph_id"].astype(np.int64)


def authors_data(folder: Path | None = None) -> Any:
    """Return the same graph with features and labels, for a model."""
    import torch
    from scipy import sparse
    from torch_geometric.data import Data

    stored = read((folder or data_root().parent / "golden") / "deltas_cora_ml.npz")
    raw = read(data_root() / "cora_ml.npz")
    links, words = (
        sparse.csr_array(
            (raw[f"{part}_data"], raw[f"{part}_indices"], raw[f"{part}_indptr"]), shape=tuple(raw[f"{part}_shape"])
        )
        for part in ("adj", "attr")
    )
    component = sparse.csgraph.connected_components(links, directed=False)[1]
    nodes = np.flatnonzero(component == np.bincount(component).argmax())[stored["original_id_of_test_graph_node"]]
    return Data(
        x=torch.from_numpy((words[nodes].toarray() > 0).astype(np.float32)),
        y=torch.from_numpy(raw["labels"][nodes].astype(np.int64)),
        edge_index=torch.from_numpy(stored["test_graph_edge_index"].astype(np.int64)),
    )


def pretrained_gat(folder: Path | None = None) -> Any:
    """Return the authors' GAT with skip connection, in evaluation mode."""
    import torch

    from graycert.models import ModelConfig, build_from_config

    weights = read((folder or data_root().parent / "golden") / "gat_cora_ml_weights.npz")
    token = weights["ablate.token"]
    model = build_from_config(
        ModelConfig(architecture="gat", num_features=token.size, num_classes=7, hidden_channels=8, heads=8, skip=True)
    )
    names = {"ablation_token": "ablate.token"}
    for layer in (0, 1):
        names[f"layers.{layer}.linear.weight"] = f"conv{layer + 1}.lin.weight"
        names |= {f"layers.{layer}.conv.{part}": f"conv{layer + 1}.{part}" for part in ("att_src", "att_dst", "bias")}
    model.load_state_dict({ours: torch.from_numpy(weights[theirs]) for ours, theirs in names.items()})
    return model.eval()
