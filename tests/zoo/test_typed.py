"""Models of graphs with node types: the right verdict and depth, attacks that work on leaky ones alone."""

import pytest
import torch

from graycert.audit import audit_model
from graycert.zoo import TYPED, attack_works, with_types, zoo_graph
from graycert.zoo.exhibit import TYPED_RELATIONS

LOCAL = [name for name, exhibit in TYPED.items() if exhibit.local]
LEAKY = [name for name in TYPED if name not in LOCAL]


def audited(name, data):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return audit_model(TYPED[name].make(data), TYPED[name].graph(data))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", LOCAL)
def test_no_local_model_is_refused_and_every_depth_is_right(name):
    report = audited(name, zoo_graph(num_nodes=45, seed=1, directed=name in LOCAL[::2]))
    assert report.passed, str(report)
    assert report.num_layers == report.farthest_influence == TYPED[name].depth


@pytest.mark.few(1)
@pytest.mark.parametrize("name", LEAKY)
def test_no_leaky_model_is_accepted(name):
    failed = {check.name for check in audited(name, zoo_graph()).checks if not check.passed}
    assert "leak test" in failed
    assert attack_works(TYPED[name], zoo_graph()) is (name != "semantic attention (HAN)")


def test_semantic_attention_leaks_where_an_edge_is_left():
    """Without any edge there is nothing to attend to: the attack on it needs one, which leads elsewhere."""
    torch.manual_seed(0)
    data, model = with_types(zoo_graph()), TYPED["semantic attention (HAN)"].make(None).eval()
    edges = {relation: data[relation].edge_index[:, :0] for relation in TYPED_RELATIONS}
    for relation in TYPED_RELATIONS[:2]:
        edges[relation] = data[relation].edge_index[:, :1]
    edges["paper", "cites", "paper"] = data["paper", "cites", "paper"].edge_index  # HAN has one step
    source = int(edges[TYPED_RELATIONS[0]][0, 0])
    attacked = data["author"].x.clone()
    attacked[source] = 1e4
    with torch.no_grad():
        before = model(data.x_dict, edges)
        after = model({**data.x_dict, "author": attacked}, edges)
    direct = torch.isin(torch.arange(before.size(0)), torch.cat([edges[r][1] for r in TYPED_RELATIONS[:2]]))
    assert bool((before != after)[~direct].any())


@pytest.mark.parametrize("name", LOCAL)
def test_the_attack_fails_on_local_models(name):
    assert not attack_works(TYPED[name], zoo_graph())


def test_the_graph_has_all_edges_but_those_among_authors():
    plain = zoo_graph()
    typed = with_types(plain)
    counts = {relation[1]: typed[relation].num_edges for relation in TYPED_RELATIONS}
    papers = torch.arange(60) // 3 % 2 == 0
    among_authors = int((~papers[plain.edge_index]).all(dim=0).sum())
    assert counts["writes"] + counts["written_by"] + counts["cites"] == plain.num_edges - among_authors
    assert counts["reviews"] == -(-counts["writes"] // 3)
    assert typed["paper"].num_nodes + typed["author"].num_nodes == 60
