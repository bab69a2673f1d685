"""Graphs with types through the one call: targets, threats, stored runs, values per edge, other calling conventions."""

import numpy as np
import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn
from torch_geometric.data import HeteroData

import graycert
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.heterogeneous import one_graph
from support.typed_graphs import AUTHOR, CITES, CLASSES, PAPER, REVIEWS, WRITES, WRITTEN_BY, Convs, typed_graph

AUTHORS = graycert.NodeFeatureThreat(eligible_types=("author",))
SMOOTHING = graycert.InterceptionSmoothing(
    p_delete={WRITES: 0.3, WRITTEN_BY: 0.2, REVIEWS: 0.5, CITES: 0.1}, p_ablate={"paper": 0.2, "author": 0.8}
)


def certify(model, data, **options):
    given = {
        "smoothing": SMOOTHING,
        "threat": AUTHORS,
        "draws": graycert.Draws(num_selection=20, num_estimation=60),
        "max_radius": 3,
        "execution": graycert.Execution(engine="torch", say=lambda _: None),
    }
    return graycert.certify(model, data, **{**given, **options})


def model(seed=0, **options):
    torch.manual_seed(seed)
    return Convs(**options)


@pytest.fixture(scope="module")
def data():
    graph = typed_graph()
    graph["author"].node_ids = [f"A{number}" for number in range(18)]
    graph["paper"].class_names = ["x", "y", "z"]
    return graph


@pytest.fixture(scope="module")
def found(data):
    return certify(model(token=True), data, targets={"paper": np.arange(3, 9)})


@pytest.fixture(scope="module")
def report(data):
    return graycert.audit_model(model(), data)


@pytest.mark.deep
def test_the_result_has_the_names_and_labels_of_the_type(found, data):
    assert found.targets.tolist() == list(range(3, 9))
    assert found.node_ids.tolist() == [f"paper:{number}" for number in range(3, 9)]
    assert found.labels.tolist() == data["paper"].y[3:9].tolist()
    assert found.setup.class_names == ("x", "y", "z")
    assert found.setup.edge_inputs == ("edge_type",)
    assert found.setup.provenance["heterogeneous"]["node_types"] == ["paper: 24", "author: 18"]
    assert "of type author only" in found.summary()


@pytest.fixture(scope="module")
def report_on_authors(data):
    return graycert.audit_model(model(), data, targets={"author": None})


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "targets",
    [
        {"author": None},
        {"author": torch.arange(18) > 14},
        {"author": ["A15", "A16", "A17"]},
        ["author:A15", "author:A16", "author:A17"],
        {"author": torch.tensor([15, 16, 17])},
    ],
)
def test_targets_are_of_one_type_and_said_in_any_way(targets, data, report_on_authors):
    few = graycert.Draws(num_selection=2, num_estimation=2)
    answers = certify(model(), data, targets=targets, draws=few, audit=report_on_authors)
    assert answers.node_ids.tolist()[-3:] == ["author:A15", "author:A16", "author:A17"]
    assert len(answers) == (18 if targets == {"author": None} else 3)
    assert answers.labels is None


@pytest.mark.deep
def test_only_nodes_of_eligible_types_count(data, report):
    few = {
        "audit": report,
        "targets": {"paper": [0, 1, 2, 3]},
        "draws": graycert.Draws(num_selection=2, num_estimation=2),
    }
    every = certify(model(), data, threat=graycert.NodeFeatureThreat(), **few)
    one, other = (
        certify(model(), data, threat=graycert.NodeFeatureThreat(eligible_types=(name,)), **few)
        for name in ("author", "paper")
    )
    assert (one.num_eligible + other.num_eligible == every.num_eligible).all()
    worst = np.maximum(one.delta_upper[:, 0], other.delta_upper[:, 0])
    np.testing.assert_allclose(worst, every.delta_upper[:, 0], rtol=1e-9)
    trusted = certify(
        model(), data, threat=graycert.NodeFeatureThreat(eligible_types=("author",), trusted=["author:A0"]), **few
    )
    assert (trusted.num_eligible <= one.num_eligible).all()
    assert int(trusted.setup.threat.trusted.sum()) == 25


@pytest.mark.deep
def test_a_run_is_stored_verified_and_concluded_again(found, data, tmp_path):
    folder = found.save(tmp_path / "run")
    loaded = graycert.Certificates.load(folder)
    assert loaded.setup.threat == found.setup.threat
    assert loaded.setup.threat.eligible_types == ("author",)
    report = graycert.verify(folder, data=data, model=model(token=True))
    assert report.passed, str(report)
    assert "estimation_votes: drawn again, equal" in str(report)
    other = graycert.verify(folder, data=data, model=model(seed=5, token=True))
    assert not other.passed
    again = loaded.again(data, alpha=0.05)
    assert (again.radius >= found.radius).all()
    with pytest.raises(InvalidParameterError, match="no wider"):
        loaded.again(data, threat=graycert.NodeFeatureThreat())
    counts = loaded.against_one_adversary(data, budgets=[1, 2])
    assert counts.num_active == 6
    changed = data.clone()
    changed["author"].x = changed["author"].x + 1
    assert not graycert.verify(folder, data=changed).passed


def test_types_are_part_of_the_fingerprint(data):
    plain = one_graph(data)
    renamed = HeteroData()
    names = {"paper": "article", "author": "author"}
    for name in data.node_types:
        renamed[names[name]].x = data[name].x
    for source, relation, receiver in data.edge_types:
        edges = data[source, relation, receiver].edge_index
        renamed[names[source], relation, names[receiver]].edge_index = edges
    other = one_graph(renamed)
    assert torch.equal(plain.x, other.x)
    assert torch.equal(plain.edge_index, other.edge_index)
    assert graycert.graph.fingerprint_of(plain) != graycert.graph.fingerprint_of(other)


def test_an_audit_is_handed_on(data, report):
    assert report.passed
    assert report.num_layers == 2
    assert certify(model(), data, audit=report).setup.num_layers == 2
    with pytest.raises(InvalidParameterError, match="differs in model"):
        certify(model(seed=3), data, audit=report)


class Attributed(nn.Module):
    """Attention with attributes of writing, which citing lacks."""

    def __init__(self):
        super().__init__()
        self.writes = pyg.GATv2Conv((AUTHOR, PAPER), CLASSES, edge_dim=2, add_self_loops=False)
        self.cites = pyg.SAGEConv(PAPER, CLASSES)

    def forward(self, x_dict, edge_index_dict, edge_attr_dict):
        written = self.writes((x_dict["author"], x_dict["paper"]), edge_index_dict[WRITES], edge_attr_dict[WRITES])
        return written + self.cites(x_dict["paper"], edge_index_dict[CITES])


def with_attributes(data):
    graph = data.clone()
    generator = torch.Generator().manual_seed(0)
    graph[WRITES].edge_attr = torch.rand(graph[WRITES].num_edges, 2, generator=generator)
    graph[REVIEWS].edge_attr = torch.rand(graph[REVIEWS].num_edges, 3, generator=generator)
    return graph


def test_values_per_edge_of_relations_follow_their_edges_and_are_never_dropped(data, report):
    graph = with_attributes(data)
    torch.manual_seed(0)
    attributed = Attributed()
    with pytest.raises(UnsoundSetupError, match=r"edge_inputs=\('edge_attr',\)") as refused:
        certify(attributed, graph)
    assert refused.value.slug == "edge-inputs-unsaid"
    answers = certify(attributed, graph, edge_inputs=("edge_attr",))
    assert answers.setup.edge_inputs == ("edge_type", "edge_attr")
    other = graph.clone()
    other[WRITES].edge_attr = 1 - other[WRITES].edge_attr
    with pytest.raises(InvalidParameterError, match="must be the graph of the certificates"):
        answers.again(other)
    padded = graph.clone()
    padded[CITES].edge_attr = torch.zeros(padded[CITES].num_edges, 2)  # are values, where there were none
    with pytest.raises(InvalidParameterError, match="must be the graph of the certificates"):
        answers.again(padded)
    assert certify(model(), graph, audit=report).setup.edge_inputs == ("edge_type",)  # forward takes none
    graph[REVIEWS].edge_attr = graph[REVIEWS].edge_attr[:, 0]
    with pytest.raises(InvalidParameterError, match="in their axes or their type"):
        certify(attributed, graph, edge_inputs=("edge_attr",))


class OnData(nn.Module):
    """Is called with the graph, and gives one logit per paper."""

    def __init__(self):
        super().__init__()
        self.convs, self.head = Convs(), nn.Linear(CLASSES, 1)

    def forward(self, data):
        return self.head(self.convs(data.x_dict, data.edge_index_dict)["paper"]).squeeze(-1)


@pytest.mark.deep
def test_other_calling_conventions(data):
    graph = data.clone()
    del graph["paper"].class_names
    graph["paper"].y = graph["paper"].y % 2
    with pytest.raises(InvalidParameterError, match='as_node_classifier\\(model, call="data"\\)'):
        certify(OnData(), graph)
    line = graycert.as_node_classifier(OnData(), call="data", output="logit")
    assert certify(line, graph).setup.num_classes == 2
    torch.manual_seed(0)
    pair = graycert.as_node_classifier(
        {"body": Convs(), "head": nn.Linear(CLASSES, CLASSES)},
        call=lambda models, x_dict, edge_index_dict: models["head"](models["body"](x_dict, edge_index_dict)["paper"]),
    )
    assert certify(pair, data).setup.num_classes == CLASSES
