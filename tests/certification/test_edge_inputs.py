"""Values per edge: never dropped in silence."""

import numpy as np
import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn

import graycert
from graycert import as_node_classifier
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.zoo import GIVEN, zoo_graph

QUICK = {
    "smoothing": graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.6),
    "threat": graycert.NodeFeatureThreat(min_distance=1),
    "draws": graycert.Draws(num_selection=30, num_estimation=60),
    "max_radius": 3,
    "execution": graycert.Execution(engine="torch", say=lambda text: None),
}


def called_plainly(model):
    return as_node_classifier(model, call=lambda model, x, edge_index: model(x, edge_index))


class TakesAnything(nn.Module):
    """Takes whatever it is given by name."""

    def __init__(self):
        super().__init__()
        self.conv = pyg.GCNConv(8, 3)

    def forward(self, x, edge_index, **others):
        return self.conv(x, edge_index, others.get("edge_weight"))


class Typed(nn.Module):
    """Needs a relation per edge."""

    def __init__(self):
        super().__init__()
        self.conv = pyg.RGCNConv(8, 3, 2)

    def forward(self, x, edge_index, edge_type=None):
        return self.conv(x, edge_index, torch.zeros_like(edge_index[0]) if edge_type is None else edge_type)


def weighted(**others):
    data = zoo_graph()
    generator = torch.Generator().manual_seed(0)
    data.edge_weight = torch.rand(data.num_edges, generator=generator) + 0.1
    data.edge_type = torch.randint(2, (data.num_edges,), generator=generator)
    for name, value in others.items():
        data[name] = value
    return data


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: pyg.GCN(8, 8, 2, 3), "edge_weight"),
        (TakesAnything, "edge_weight"),
        (Typed, "edge_type"),
    ],
)
def test_a_model_that_could_be_given_values_per_edge_is_refused_until_it_is_said_which(make, name):
    with pytest.raises(UnsoundSetupError, match=rf"data.{name}.*edge_inputs=\(\)") as refused:
        graycert.certify(make(), weighted(), **QUICK)
    assert refused.value.slug == "edge-inputs-unsaid"


def test_what_a_preparation_left_out_is_asked_for_too():
    data = graycert.prepare_graph(weighted())
    with pytest.raises(UnsoundSetupError, match="preparation left out: set"):
        graycert.certify(pyg.GCN(8, 8, 2, 3), data, **QUICK)
    data.edge_weight = torch.ones(data.num_edges)
    assert certified(pyg.GCN(8, 8, 2, 3), data, "edge_weight").setup.edge_inputs == ("edge_weight",)


def test_none_is_an_answer_and_is_stored(tmp_path):
    torch.manual_seed(0)
    model, data = pyg.GCN(8, 8, 2, 3), weighted()
    run = graycert.certify(model, data, edge_inputs=(), **QUICK)
    assert run.setup.edge_inputs == ()
    run.save(tmp_path / "run")
    assert graycert.Certificates.load(tmp_path / "run").setup == run.setup
    assert graycert.verify(tmp_path / "run", data=data, model=model).passed


@pytest.mark.parametrize("value", [torch.rand(7), [1.0], "text"])
def test_nobody_has_to_choose_where_nothing_is_per_edge(value):
    data = zoo_graph()
    data.edge_weight = value
    assert graycert.certify(pyg.GCN(8, 8, 2, 3), data, **QUICK).setup.edge_inputs is None


@pytest.mark.parametrize("adapted", [lambda model: model, as_node_classifier, called_plainly])
def test_nobody_has_to_choose_where_the_model_takes_nothing(adapted):
    assert graycert.certify(adapted(pyg.SAGEConv(8, 3)), weighted(), **QUICK).setup.edge_inputs is None


@pytest.mark.parametrize("adapted", [as_node_classifier, called_plainly])
def test_how_a_model_is_called_does_not_hide_what_it_takes(adapted):
    with pytest.raises(UnsoundSetupError, match="edge-inputs-unsaid"):
        graycert.certify(adapted(pyg.GCNConv(8, 3)), weighted(), **QUICK)


class FromFeatures(nn.Module):
    """Weighs edges by features before they are ablated."""

    def __init__(self, x):
        super().__init__()
        self.conv, self.all = pyg.GCNConv(8, 3), x

    def forward(self, x, edge_index, edge_weight):
        return self.conv(x, edge_index, edge_weight * x.norm())


def certified(model, data, *names, **others):
    return graycert.certify(model, data, edge_inputs=names, **{**QUICK, **others})


def test_the_votes_are_those_of_the_model_with_its_weights(tmp_path):
    torch.manual_seed(0)
    model, data = pyg.GCN(8, 8, 2, 3), weighted()
    with_weights, without = certified(model, data, "edge_weight"), certified(model, data)
    assert not np.array_equal(with_weights.estimation_votes, without.estimation_votes)
    np.testing.assert_array_equal(with_weights.delta_upper, without.delta_upper)
    assert "brings its own edge_weight" in with_weights.summary()
    assert "brings its own" not in without.summary()
    assert with_weights.setup.graph_fingerprint != without.setup.graph_fingerprint
    assert with_weights.setup.edges_fingerprint == without.setup.edges_fingerprint


@pytest.mark.few(1)
@pytest.mark.parametrize("name", list(GIVEN))
def test_runs_are_stored_loaded_concluded_again_and_verified(name, tmp_path):
    torch.manual_seed(0)
    exhibit = GIVEN[name]
    data = exhibit.graph(zoo_graph())
    model = exhibit.make(data)
    run = certified(model, data, *exhibit.edge_inputs)
    run.save(tmp_path / "run")
    loaded = graycert.Certificates.load(tmp_path / "run")
    assert loaded.setup.edge_inputs == exhibit.edge_inputs
    again = loaded.again(data, rule="difference")
    assert (again.radius >= run.radius).all()
    if name == "RGCNConv, relations":
        found = graycert.verify(tmp_path / "run", data=data, model=model)
        assert found.passed, str(found)
    else:
        assert graycert.verify(tmp_path / "run", data=data).passed


def test_other_values_are_another_graph(tmp_path):
    torch.manual_seed(0)
    model, data = pyg.GCN(8, 8, 2, 3), weighted()
    run = certified(model, data, "edge_weight")
    run.save(tmp_path / "run")
    changed = data.clone()
    changed.edge_weight[3] += 0.01
    with pytest.raises(InvalidParameterError, match="fingerprint"):
        run.again(changed, rule="difference")
    assert not graycert.verify(tmp_path / "run", data=changed).passed
    del changed.edge_weight
    with pytest.raises(InvalidParameterError, match="edge_weight"):
        graycert.verify(tmp_path / "run", data=changed)


def test_the_order_of_edges_is_none_of_the_graph():
    data = weighted()
    order = torch.randperm(data.num_edges, generator=torch.Generator().manual_seed(1))
    other = data.clone()
    for name in ("edge_weight", "edge_type"):
        other[name] = data[name][order]
    other.edge_index = data.edge_index[:, order]
    torch.manual_seed(0)
    model = pyg.GCN(8, 8, 2, 3)
    one, two = (certified(model, each, "edge_weight") for each in (data, other))
    assert one.setup.graph_fingerprint == two.setup.graph_fingerprint
    np.testing.assert_array_equal(one.estimation_votes, two.estimation_votes)


def test_values_that_depend_on_features_inside_the_model_are_found():
    data = weighted()
    with pytest.raises(UnsoundSetupError) as refused:
        certified(FromFeatures(data.x), data, "edge_weight")
    assert refused.value.slug == "message-leak"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("edge_weight", "tuple of names"),
        (("edge_weight", "edge_weight"), "distinct"),
        (("other",), "does not take"),
        (("edge_attr",), "row for each"),
        ((3,), "names"),
    ],
)
def test_names_that_cannot_be_are_refused(names, said):
    with pytest.raises(InvalidParameterError, match=said):
        graycert.certify(pyg.GCN(8, 8, 2, 3), weighted(), edge_inputs=names, **QUICK)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (torch.full((194,), torch.nan), "finite"),
        (torch.ones(194).bfloat16(), "bfloat16"),
        (torch.ones(3), "row for each"),
        (torch.ones(194, 0), "row for each"),
    ],
)
def test_values_that_cannot_be_are_refused(value, said):
    with pytest.raises(InvalidParameterError, match=said):
        certified(pyg.GCN(8, 8, 2, 3), weighted(edge_weight=value), "edge_weight")


@pytest.mark.parametrize("smoothing", [graycert.SubgraphVoting(num_subgraphs=5), graycert.FeaturesOnly()])
def test_without_a_proof_they_are_refused(smoothing):
    others = {name: value for name, value in QUICK.items() if name not in ("draws", "smoothing")}
    with pytest.raises(UnsoundSetupError) as refused:
        graycert.certify(pyg.GCN(8, 8, 2, 3), weighted(), smoothing=smoothing, edge_inputs=("edge_weight",), **others)
    assert refused.value.slug == "no-proof"


@pytest.mark.deep
def test_weights_are_drawn_by_compiled_kernels_and_other_values_by_pytorch():
    auto = graycert.Execution(say=len)
    assert (
        "weighted GCN + weighted GCN"
        in certified(pyg.GCN(8, 8, 2, 3), weighted(), "edge_weight", execution=auto).setup.engine
    )
    assert "with more than features" in certified(Typed(), weighted(), "edge_type", execution=auto).setup.engine
    with pytest.raises(InvalidParameterError, match="more than features and edges"):
        certified(Typed(), weighted(), "edge_type", execution=graycert.Execution(engine="compiled"))


def test_model_and_data_are_left_alone():
    class Overwrites(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = pyg.GCNConv(8, 3)

        def forward(self, x, edge_index, edge_weight):
            return self.conv(x.mul_(2), edge_index, edge_weight.mul_(2))

    data = weighted()
    before = data.clone()
    certified(Overwrites(), data, "edge_weight")
    assert torch.equal(data.edge_weight, before.edge_weight)
    assert torch.equal(data.x, before.x)


@pytest.mark.deep
def test_parallel_edges_share_their_probability_and_runs_with_them_are_verified(tmp_path):
    torch.manual_seed(0)
    data = weighted()
    columns = torch.cat([torch.arange(data.num_edges), torch.arange(0, 60, 7), torch.tensor([0])])
    data.edge_index = data.edge_index[:, columns]
    data.edge_type = torch.arange(columns.numel()) % 2
    p_delete = np.linspace(0.2, 0.6, 194)[columns.numpy()]
    model, smoothing = Typed(), graycert.InterceptionSmoothing(p_delete=p_delete, p_ablate=0.5)
    run = certified(model, data, "edge_type", smoothing=smoothing, rule="event-aware")
    assert run.setup.num_edges == columns.numel()
    run.save(tmp_path / "run")
    assert graycert.verify(tmp_path / "run", data=data, model=model).passed
    p_delete[-1] += 0.1
    with pytest.raises(InvalidParameterError, match="parallel edges, which share a coin"):
        certified(model, data, "edge_type", smoothing=graycert.InterceptionSmoothing(p_delete=p_delete, p_ablate=0.5))
    with pytest.raises(UnsoundSetupError) as refused:
        certified(model, data)
    assert refused.value.slug == "parallel-edges"


HOSTILE = graycert.NodeFeatureThreat(min_distance=1, hostile_edge_inputs=True)


@pytest.mark.deep
def test_hostile_values_are_certified_by_the_bound_of_deleted_nodes_one_hop_further(tmp_path):
    torch.manual_seed(0)
    model, data = pyg.GCN(8, 8, 2, 3), weighted()
    run = certified(model, data, "edge_weight", threat=HOSTILE)
    plain = certified(model, data, "edge_weight")
    np.testing.assert_array_equal(run.estimation_votes, plain.estimation_votes)
    expected = graycert.delta_bounds(
        data,
        np.arange(data.num_nodes),
        smoothing=QUICK["smoothing"],
        threat=graycert.NodeDeletionThreat(convolution="degree-normalised"),
        num_layers=2,
        max_radius=3,
    )
    np.testing.assert_array_equal(run.delta_upper, expected.delta_upper)
    assert (run.delta_upper >= plain.delta_upper).all()
    assert "and the values of all edges into and out of them" in run.summary()
    assert "hostile nodes do not change them" not in run.summary()
    run.save(tmp_path / "run")
    loaded = graycert.Certificates.load(tmp_path / "run")
    assert loaded.setup.threat == HOSTILE
    assert graycert.verify(tmp_path / "run", data=data, model=model).passed
    assert (loaded.again(data, threat=HOSTILE.features_alone()).radius >= run.radius).all()
    with pytest.raises(InvalidParameterError, match="no wider"):
        plain.again(data, threat=HOSTILE)


def test_a_model_that_notices_hostile_values_elsewhere_is_refused():
    class OverAll(nn.Module):
        """Divides weights by the mean weight of the graph."""

        def __init__(self):
            super().__init__()
            self.conv = pyg.GCNConv(8, 3)

        def forward(self, x, edge_index, edge_weight):
            return self.conv(x, edge_index, edge_weight / edge_weight.sum().clamp(min=1e-6))

    certified(OverAll(), weighted(), "edge_weight")
    for name in ("ChebConv, weighted", None):
        model = OverAll() if name is None else GIVEN[name].make(None)
        with pytest.raises(UnsoundSetupError) as refused:
            certified(model, weighted(), "edge_weight", threat=HOSTILE)
        assert refused.value.slug == "message-leak"


@pytest.mark.parametrize(
    ("changes", "slug"),
    [
        ({"rule": "event-aware"}, "no-proof"),
        ({"smoothing": graycert.InterceptionSmoothing(p_delete=0, p_ablate=0.5)}, "ablation-cannot-certify-structure"),
        (
            {"smoothing": graycert.InterceptionSmoothing(p_delete=np.full(194, 0.5), p_ablate=0.5)},
            "structure-dependent-smoothing",
        ),
        ({"smoothing": graycert.RandomizedAblation(scope="global", num_kept=2)}, "no-proof"),
        ({"smoothing": graycert.SubgraphVoting(num_subgraphs=5), "draws": None}, "no-proof"),
    ],
)
def test_what_is_not_proved_of_hostile_values_is_refused(changes, slug):
    with pytest.raises(UnsoundSetupError) as refused:
        certified(pyg.GCN(8, 8, 2, 3), weighted(), "edge_weight", threat=HOSTILE, **changes)
    assert refused.value.slug == slug


def test_neither_one_adversary_nor_possible_labels_are_claimed_of_hostile_values():
    data = weighted()
    run = certified(pyg.GCN(8, 8, 2, 3), data, "edge_weight", threat=HOSTILE)
    for conclusion in (lambda: run.against_one_adversary(data), lambda: run.possible_labels(radius=1)):
        with pytest.raises(UnsoundSetupError) as refused:
            conclusion()
        assert refused.value.slug == "no-proof"


def test_hostile_values_need_values_and_another_target():
    with pytest.raises(InvalidParameterError, match="hostile_edge_inputs"):
        certified(pyg.GCN(8, 8, 2, 3), weighted(), threat=HOSTILE)
    with pytest.raises(InvalidParameterError, match="min_distance"):
        graycert.NodeFeatureThreat(hostile_edge_inputs=True)


def test_a_model_that_is_called_in_another_way_is_given_its_values_too():
    class OnData(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, data):
            return self.inner(data.x, data.edge_index, data.edge_weight)

    torch.manual_seed(0)
    inner, data = pyg.GCN(8, 8, 2, 3), weighted()
    adapted = graycert.as_node_classifier(OnData(inner), call="data")
    with pytest.raises(UnsoundSetupError) as refused:
        graycert.certify(adapted, data, **QUICK)
    assert refused.value.slug == "edge-inputs-unsaid"
    found, expected = (certified(model, data, "edge_weight") for model in (adapted, inner))
    np.testing.assert_array_equal(found.estimation_votes, expected.estimation_votes)
