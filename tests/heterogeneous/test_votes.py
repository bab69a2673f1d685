"""Votes on graphs with types: those of one forward pass of the model, as it was written, per draw."""

import numpy as np
import pytest
import torch

import graycert
from graycert.zoo import TYPED, with_types, zoo_graph
from support.reference_coins import is_intercepted
from support.typed_graphs import CITES, CLASSES, REVIEWS, WRITES, WRITTEN_BY

LOCAL = [name for name, exhibit in TYPED.items() if exhibit.local]
P_DELETE = {WRITES: 0.2, WRITTEN_BY: 0.3, REVIEWS: 0.6, CITES: 0.1}
P_ABLATE = {"paper": 0.4, "author": 0.7}
SEED, DRAWS = 3, {"selection": 7, "estimation": 23}


def certified(model, data, **options):
    return graycert.certify(
        model,
        data,
        smoothing=graycert.InterceptionSmoothing(p_delete=P_DELETE, p_ablate=P_ABLATE),
        threat=graycert.NodeFeatureThreat(),
        draws=graycert.Draws(num_selection=DRAWS["selection"], num_estimation=DRAWS["estimation"]),
        seed=SEED,
        execution=graycert.Execution(say=lambda _: None, **options),
    )


def drawn(data, tokens, purpose, sample):
    """One draw, with a coin per pair of nodes, whatever relations join it; types have consecutive numbers."""
    first, total = {}, 0
    for name in data.node_types:
        first[name], total = total, total + data[name].num_nodes
    pairs = {}
    for relation, edges in data.edge_index_dict.items():
        for a, b in edges.T.tolist():
            pair = (first[relation[0]] + a) * total + first[relation[2]] + b
            pairs[pair] = max(pairs.get(pair, 0.0), P_DELETE[relation])
    x_dict, edge_index_dict = {}, {}
    for name in data.node_types:
        x_dict[name] = data[name].x.clone()
        for node in range(data[name].num_nodes):
            if is_intercepted(SEED, purpose, "node", sample, first[name] + node, P_ABLATE[name]):
                x_dict[name][node] = tokens[name]
    for relation, edges in data.edge_index_dict.items():
        ids = ((first[relation[0]] + edges[0]) * total + first[relation[2]] + edges[1]).tolist()
        kept = [not is_intercepted(SEED, purpose, "edge", sample, pair, pairs[pair]) for pair in ids]
        edge_index_dict[relation] = edges[:, torch.tensor(kept, dtype=torch.bool)]
    return x_dict, edge_index_dict


def one_by_one(model, data, purpose):
    own = getattr(model, "ablation_token", None)
    tokens = {name: torch.zeros(data[name].num_features) if own is None else own[name] for name in data.node_types}
    votes = np.zeros((data["paper"].num_nodes, CLASSES), dtype=np.int64)
    with torch.no_grad():
        for sample in range(DRAWS[purpose]):
            out = model(*drawn(data, tokens, purpose, sample))
            scores = out["paper"] if isinstance(out, dict) else out
            for node, row in enumerate(scores.tolist()):
                if row.count(max(row)) == 1:  # else the vote is for no class
                    votes[node, row.index(max(row))] += 1
    return votes


def made(name):
    torch.manual_seed(0)
    return TYPED[name].make(None).eval()


@pytest.mark.few(1)
@pytest.mark.parametrize("name", LOCAL)
def test_votes_are_those_of_one_forward_pass_of_the_model_itself_per_draw(name):
    data, model = with_types(zoo_graph(num_nodes=45)), made(name)
    found = certified(model, data)
    assert "one full graph per pass" not in found.setup.engine
    for purpose in DRAWS:
        np.testing.assert_array_equal(getattr(found, f"{purpose}_votes"), one_by_one(model, data, purpose))
    assert (np.count_nonzero(found.estimation_votes, axis=1) > 1).any()


@pytest.mark.deep
@pytest.mark.parametrize("batch_size", [1, 5])
def test_votes_do_not_depend_on_the_number_of_draws_per_pass(batch_size):
    data, model = with_types(zoo_graph(num_nodes=36, directed=True)), made("HeteroConv, a token per type")
    found = certified(model, data, batch_size=batch_size)
    np.testing.assert_array_equal(found.estimation_votes, one_by_one(model, data, "estimation"))


@pytest.mark.deep
def test_the_order_of_edges_changes_no_vote_of_a_node():
    data, model = with_types(zoo_graph(num_nodes=36)), made("to_hetero(SAGE)")
    found = certified(model, data)
    shuffled = data.clone()
    for relation in data.edge_types:
        edges = data[relation].edge_index
        shuffled[relation].edge_index = edges[
            :, torch.randperm(edges.size(1), generator=torch.Generator().manual_seed(0))
        ]
    again = certified(model, shuffled)
    np.testing.assert_array_equal(found.estimation_votes, again.estimation_votes)
    assert found.setup.graph_fingerprint == again.setup.graph_fingerprint
