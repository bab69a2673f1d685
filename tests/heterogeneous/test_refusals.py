"""What cannot be certified on graphs with types, and why; each refusal names the next step."""

import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn

import graycert
from graycert.errors import InvalidParameterError, UnsoundSetupError
from support.typed_graphs import AUTHOR, CITES, CLASSES, PAPER, WRITES, WRITTEN_BY, Convs, typed_graph

UNIFORM = graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.8)


def certify(model=None, data=None, **options):
    given = {
        "smoothing": UNIFORM,
        "threat": graycert.NodeFeatureThreat(),
        "draws": graycert.Draws(num_selection=2, num_estimation=2),
        "execution": graycert.Execution(engine="torch", say=lambda _: None),
    }
    return graycert.certify(Convs() if model is None else model, data or typed_graph(), **{**given, **options})


def changed(change):
    data = typed_graph()
    change(data)
    return data


def lacks_features(data):
    del data["author"].x
    data["author"].num_nodes = 18


def as_sparse_matrix(data):
    edges = data[WRITES].edge_index
    del data[WRITES].edge_index
    data[WRITES].adj_t = torch.sparse_coo_tensor(
        edges.flip(0), torch.ones(edges.size(1)), (24, 18), check_invariants=True
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lacks_features, r"data\['author'\].x.*torch.ones\(num_nodes, 1\).*eligible_types"),
        (as_sparse_matrix, "got `adj_t`. Convert it"),
        (lambda data: setattr(data["author"], "x", data["author"].x.double()), "same type as those of every other"),
        (lambda data: data["author"].x.fill_(float("nan")), r"data\['author'\].x.*finite, got nan at node 0"),
        (lambda data: setattr(data["author"], "x", data["author"].x[0]), r"got torch.float32 of shape \(5,\)"),
        (lambda data: setattr(data[CITES], "edge_index", data[CITES].edge_index + 5), r"must lie in \[0, 23\]"),
        (lambda data: setattr(data["author"], "y", torch.zeros(18).long()), "2 types have labels"),
        (lambda data: setattr(data["paper"], "y", torch.zeros(24)), r"data\['paper'\].y.*int64"),
        (lambda data: setattr(data["paper"], "node_ids", ["a"]), "must name each of the 24 nodes"),
    ],
)
def test_a_malformed_graph(change, message):
    with pytest.raises(InvalidParameterError, match=message):
        certify(data=changed(change))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"targets": {"paper": None, "author": None}}, "must be of one node type, got paper, author"),
        ({"targets": ["paper:0", "author:0"]}, "must be of one node type, got author, paper"),
        ({"targets": {"book": None}}, "paper, author, got 'book'"),
        ({"targets": {"paper": [24]}}, "nodes of type 'paper'"),
        ({"targets": {"paper": torch.ones(18, dtype=torch.bool)}}, r"mask of shape \(24,\)"),
        ({"targets": {"author": ["A0"]}}, "author:A0"),
        (
            {"smoothing": graycert.InterceptionSmoothing(p_delete={WRITES: 0.3}, p_ablate=0.5)},
            r"`p_delete` must have a probability for each relation.*lacks \('paper', 'written_by', 'author'\)",
        ),
        (
            {"smoothing": graycert.InterceptionSmoothing(p_delete=0.3, p_ablate={"paper": 0.5, "authors": 0.5})},
            "`p_ablate` must have a probability for each node type.*lacks 'author'",
        ),
        ({"threat": graycert.NodeFeatureThreat(eligible_types=("authors",))}, "paper, author, got 'authors'"),
        ({"ablation_token": torch.zeros(3)}, "dict with a tensor per node type"),
        ({"ablation_token": {"paper": torch.zeros(3)}}, "8 numbers for the type 'paper'"),
        ({"edge_inputs": "edge_attr"}, r'Write edge_inputs=\("edge_attr",\)'),
        ({"edge_inputs": ("edge_attr",)}, "which Convs.forward does not take"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(InvalidParameterError, match=message):
        certify(**options)


@pytest.mark.parametrize(
    ("options", "slug"),
    [
        ({"smoothing": graycert.SparseSmoothing(p_plus=0.1, p_minus=0.6)}, "no-proof"),
        ({"threat": graycert.NodeFeatureThreat(min_distance=1, hostile_edge_inputs=True)}, "no-proof"),
        ({"threat": graycert.NodeDeletionThreat(convolution="local")}, "no-proof"),
    ],
)
def test_what_nothing_is_proved_of(options, slug):
    if isinstance(options.get("smoothing"), graycert.SparseSmoothing):
        options = {**options, "threat": graycert.AttributeFlipThreat(), "draws": None}
    with pytest.raises(UnsoundSetupError) as refused:
        certify(**options)
    assert refused.value.slug == slug


def test_a_graph_without_types_has_no_probabilities_per_type():
    from graycert.zoo import zoo_graph

    plain = {"draws": graycert.Draws(num_selection=2, num_estimation=2)}
    by_type = graycert.InterceptionSmoothing(p_delete=0.3, p_ablate={"paper": 0.5})
    model = pyg.GraphSAGE(8, 8, 2, 3)
    with pytest.raises(InvalidParameterError, match=r"`p_ablate` must be a number or an array.*Pass a HeteroData"):
        graycert.certify(model, zoo_graph(), smoothing=by_type, threat=graycert.NodeFeatureThreat(), **plain)
    threat = graycert.NodeFeatureThreat(eligible_types=("paper",))
    with pytest.raises(InvalidParameterError, match="`eligible_types` must be None"):
        graycert.certify(model, zoo_graph(), smoothing=UNIFORM, threat=threat, **plain)
    with pytest.raises(InvalidParameterError, match="distinct node types"):
        graycert.NodeFeatureThreat(eligible_types="paper")


def test_another_floating_type_is_named():
    data = typed_graph()
    for name in data.node_types:
        data[name].x = data[name].x.double()
    with pytest.raises(InvalidParameterError, match=r"holds float32.*model.to\(torch.float64\)"):
        certify(data=data)


def test_probabilities_by_type_are_values_like_others():
    one, two = (graycert.InterceptionSmoothing(p_delete={WRITES: 0.2}, p_ablate={"paper": p}) for p in (0.1, 0.2))
    assert one != two
    assert len({one, two, graycert.InterceptionSmoothing(p_delete={WRITES: 0.2}, p_ablate={"paper": 0.1})}) == 2
    assert repr(two) == "InterceptionSmoothing(p_delete=0.2..0.2 (per type), p_ablate=0.2..0.2 (per type))"
    with pytest.raises(TypeError):
        one.p_ablate["paper"] = 0.5


def test_a_batch_of_a_loader():
    data = typed_graph()
    data["paper"].n_id = torch.arange(24)
    with pytest.raises(UnsoundSetupError) as refused:
        certify(data=data)
    assert refused.value.slug == "batch-not-graph"


class Changed(Convs):
    """Computes something beside the convolutions."""

    def __init__(self, rule):
        super().__init__()
        self.rule = rule

    def forward(self, x_dict, edge_index_dict):
        return self.rule(super().forward(x_dict, edge_index_dict)["paper"], x_dict, edge_index_dict)


def _against_the_edges(out, x_dict, edges):
    return out.index_add(0, edges[WRITTEN_BY][0], x_dict["author"][edges[WRITTEN_BY][1]][:, :CLASSES])


class Semantic(nn.Module):
    """HAN: its attention over relations is a mean over all nodes of a type."""

    def __init__(self, metadata):
        super().__init__()
        self.conv = pyg.HANConv({"paper": PAPER, "author": AUTHOR}, 8, metadata)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x_dict, edge_index_dict):
        return self.head(self.conv(x_dict, edge_index_dict)["paper"])


class Remembering(Convs):
    """Scales authors as at the first call."""

    def forward(self, x_dict, edge_index_dict):
        if not hasattr(self, "largest"):
            self.largest = x_dict["author"].max()
        scaled = {**x_dict, "author": x_dict["author"] / self.largest}
        return super().forward(scaled, edge_index_dict)


LEAKY = {
    "mean over all authors": lambda _: Changed(lambda out, x, e: out + x["author"].mean()),
    "number of authors": lambda _: Changed(lambda out, x, e: out + x["author"].size(0) * torch.arange(CLASSES)),
    "norm of the other papers": lambda _: Changed(lambda out, x, e: out / out.norm()),
    "papers hear their own readers": lambda _: Changed(_against_the_edges),
    "semantic attention": lambda data: Semantic(data.metadata()),
    "memory": lambda _: Remembering(),
    "authors are papers": lambda _: Changed(lambda out, x, e: out + x["author"][: out.size(0), :CLASSES].sum()),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", list(LEAKY))
def test_the_audit_finds_leaky_models(name):
    data = typed_graph()
    torch.manual_seed(0)
    model = LEAKY[name](data)
    report = graycert.audit_model(model, data)
    assert not report.passed, str(report)
    others = {check.name for check in report.checks if not check.passed}
    assert others & {"leak test", "determinism", "propagation steps"} or name == "number of authors"
    if "leak test" in others:
        assert "author: nodes from 24, features from 8 on" in str(report)


def test_certify_refuses_what_reads_other_nodes_before_it_audits():
    with pytest.raises(UnsoundSetupError) as refused:
        certify(LEAKY["number of authors"](None))
    assert refused.value.slug == "reads-other-nodes"


def test_messages_that_move_without_layers_are_measured_along_relations_that_fit():
    """The depth of a model whose steps nobody can count is seen on walks from type to type."""

    class ByHand(nn.Module):
        def __init__(self):
            super().__init__()
            self.paper, self.author = nn.Linear(PAPER, CLASSES), nn.Linear(AUTHOR, CLASSES)

        def forward(self, x_dict, edge_index_dict):
            papers, authors = self.paper(x_dict["paper"]), self.author(x_dict["author"])
            source, receiver = edge_index_dict[WRITTEN_BY]
            authors = authors.index_add(0, receiver, papers[source])
            source, receiver = edge_index_dict[WRITES]
            return papers.index_add(0, receiver, authors[source].relu())

    data = typed_graph()
    assert graycert.audit_model(ByHand(), data).checks[-3].slug == "unknown-depth"
    said = graycert.audit_model(ByHand(), data, num_layers=1)
    assert not said.passed
    assert said.farthest_influence == 2
    assert graycert.audit_model(ByHand(), data, num_layers=2).assumed
