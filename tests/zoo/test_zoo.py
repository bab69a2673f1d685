"""The audit over the zoo: no leaky model accepted, no local one refused, every depth right."""

import subprocess
import sys

import pytest
import torch

from graycert.audit import audit_model
from graycert.zoo import GIVEN, LEAKY, LOCAL, ZOO, attack_works, zoo_graph

GRAPHS = {
    "undirected": lambda: zoo_graph(),
    "directed": lambda: zoo_graph(num_nodes=45, seed=1, directed=True),
    "self-loops": lambda: with_loops(zoo_graph(num_nodes=50, seed=2)),
}


def with_loops(data):
    loops = torch.arange(0, 50, 3).repeat(2, 1)
    edges = torch.cat([data.edge_index, loops], dim=1)
    data.edge_index = edges[:, edges[1].argsort(stable=True)]
    return data


def audited(name, data):
    torch.manual_seed(0)
    exhibit = ZOO[name]
    depth = None if exhibit.counted else exhibit.depth
    return audit_model(exhibit.make(data), exhibit.graph(data), num_layers=depth, edge_inputs=exhibit.edge_inputs)


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng(devices=[]):
        yield


@pytest.mark.few(5)
@pytest.mark.parametrize("graph", list(GRAPHS))
@pytest.mark.parametrize("name", [*LOCAL, *GIVEN])
def test_no_local_model_is_refused_and_every_depth_is_right(name, graph):
    report = audited(name, GRAPHS[graph]())
    assert report.passed, str(report)
    assert report.num_layers == ZOO[name].depth
    assert report.farthest_influence <= report.num_layers
    assert report.assumed is not ZOO[name].counted


@pytest.mark.few(4)
@pytest.mark.parametrize("graph", list(GRAPHS))
@pytest.mark.parametrize("name", list(LEAKY))
def test_no_leaky_model_is_accepted(name, graph):
    data = GRAPHS[graph]()
    report = audited(name, data)
    assert not report.passed
    said = audit_model(LEAKY[name].make(data), data, num_layers=LEAKY[name].depth + 2)
    assert not said.passed, "stating the depth must not help"


@pytest.mark.parametrize("name", [name for name in LEAKY if LEAKY[name].kind not in ("randomness", "direction")])
def test_the_attack_works(name):
    assert attack_works(LEAKY[name], zoo_graph())


def test_a_model_that_reads_edges_backwards_leaks_although_no_edge_is_left():
    """Without any edge nothing flows in either direction: the attack on such a model needs an edge."""
    exhibit = LEAKY["against the edges"]
    assert not attack_works(exhibit, zoo_graph())
    data = zoo_graph(directed=True)
    model = exhibit.make(data).eval()
    source, target = data.edge_index[:, 0].tolist()
    attacked = data.x.clone()
    attacked[target] = 1e4
    one = data.edge_index[:, :1]
    with torch.no_grad():
        assert not torch.equal(model(data.x, one)[source], model(attacked, one)[source])


@pytest.mark.parametrize("name", [*LOCAL, *GIVEN])
def test_the_attack_fails_on_local_models(name):
    try:
        works = attack_works(ZOO[name], zoo_graph())
    except RuntimeError as error:  # an LSTM refuses a graph without edges
        assert "sequence length" in str(error)  # noqa: PT017
    else:
        assert not works


@pytest.mark.deep
def test_the_table_is_printed():
    done = subprocess.run([sys.executable, "-m", "graycert.zoo"], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 1 + len(ZOO)
    assert all(("local, " in line) == ("leaky" not in line) for line in lines[1:])
