"""The architectures from plain PyTorch Geometric layers or from their formula, with a graycert model's weights."""

import math

import torch
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv

PLAIN_ACTIVATION = {
    "gcn": torch.relu,
    "sma": torch.relu,
    "gat": torch.nn.functional.elu,
    "gatv2": torch.nn.functional.elu,
}


def plain_forward(model, x, edge_index, *, activation=None):
    """Class scores of every node, layer by layer; ``activation`` defaults to that of the architecture."""
    activation = activation or PLAIN_ACTIVATION[model.config.architecture]
    hidden = x
    with torch.no_grad():
        for index, layer in enumerate(model.layers):
            if index:
                hidden = activation(hidden)
            hidden = _LAYER[model.config.architecture](layer, hidden, edge_index)
    return hidden


def plain_skip(model, x):
    """The skip branch: the same weights, no edges, ReLU between layers, nothing on the output."""
    return plain_forward(model, x, torch.empty(2, 0, dtype=torch.long), activation=torch.relu)


def soft_medoid_loop(rows, edge_index, *, num_neighbors, temperature):
    """The weighted soft medoid of every node, one node and one neighbour at a time."""
    num_nodes = rows.size(0)
    senders = {node: [] for node in range(num_nodes)}
    for source, target in edge_index.t().tolist():
        if source != target:
            senders[target].append(source)
    degree = {node: len(found) + 1 for node, found in senders.items()}
    out = torch.zeros_like(rows)
    for node in range(num_nodes):
        weighted = [(1 / math.sqrt(degree[j] * degree[node]), j) for j in [*senders[node], node]]
        largest = sorted(weighted, key=lambda pair: -pair[0])[:num_neighbors]  # stable: the first edges at a tie
        cost = [
            sum(a_j * float((rows[j] - rows[i]).pow(2).sum().sqrt()) for a_j, j in largest) / temperature
            for _, i in largest
        ]
        score = [math.exp(min(cost) - c) for c in cost]
        total = sum(a for a, _ in largest)
        norm = sum(s * a for s, (a, _) in zip(score, largest, strict=True))
        for s, (a, i) in zip(score, largest, strict=True):
            out[node] += total * s * a / norm * rows[i]
    return out


def _gcn(layer, hidden, edge_index):
    conv = GCNConv(layer.linear.in_channels, layer.linear.out_channels).to(hidden.dtype)
    conv.lin.weight.copy_(layer.linear.weight)
    conv.bias.copy_(layer.conv.bias)
    return conv(hidden, edge_index)


def _gat(layer, hidden, edge_index):
    own = layer.conv
    conv = GATConv(layer.linear.in_channels, own.out_channels, heads=own.heads).to(hidden.dtype)
    conv.lin.weight.copy_(layer.linear.weight)
    for name in ("att_src", "att_dst", "bias"):
        getattr(conv, name).copy_(getattr(own, name))
    return conv(hidden, edge_index)


def _gatv2(layer, hidden, edge_index):
    own = layer.conv
    conv = GATv2Conv(layer.sender.in_channels, own.out_channels, heads=own.heads).to(hidden.dtype)
    conv.lin_l.load_state_dict(layer.sender.state_dict())
    conv.lin_r.load_state_dict(layer.receiver.state_dict())
    conv.att.copy_(own.att)
    conv.bias.copy_(own.bias)
    return conv(hidden, edge_index)


def _sma(layer, hidden, edge_index):
    rows = hidden @ layer.linear.weight.t()
    medoids = soft_medoid_loop(rows, edge_index, num_neighbors=layer.num_neighbors, temperature=layer.temperature)
    return medoids + layer.bias


_LAYER = {"gcn": _gcn, "gat": _gat, "gatv2": _gatv2, "sma": _sma}
