"""certify() against changes of the graph: Δ̄ of the model's convolutions, which the audit finds where it can."""

import numpy as np
import pytest
import torch

import graycert
from graycert.errors import UnsoundSetupError
from support import foreign_models as foreign
from support.attributed_graphs import random_graph
from support.flat_arguments import certify_flat
from support.known_models import known_model

SMOOTHING = graycert.InterceptionSmoothing(p_delete=0.8, p_ablate=0.5)
THREATS = (graycert.NodeDeletionThreat, graycert.NodeInsertionThreat, graycert.EdgeDeletionThreat)
FAMILIES = {"gcn": "degree-normalised", "sma": "degree-normalised", "gat": "local", "gatv2": "local"}

any_threat = pytest.mark.parametrize("threat", THREATS, ids=lambda kind: kind.name)


def certified(model, threat, **changes):
    arguments = {"smoothing": SMOOTHING, "threat": threat, "num_selection": 20, "num_estimation": 60, "max_radius": 3}
    return certify_flat(model, random_graph(directed=False), say=lambda _: None, **{**arguments, **changes})


@pytest.mark.few(1)
@any_threat
@pytest.mark.parametrize("architecture", FAMILIES)
def test_the_family_is_found(architecture, threat, tmp_path):
    data = random_graph(directed=False)
    model = graycert.build_model(architecture, data)
    found = certified(model, threat())
    assert found.setup.convolution == FAMILIES[architecture]
    assert found.setup.threat == threat()
    said = threat(convolution=FAMILIES[architecture])
    expected = graycert.delta_bounds(data, range(14), smoothing=SMOOTHING, threat=said, num_layers=2, max_radius=3)
    np.testing.assert_array_equal(found.delta_upper, expected)
    np.testing.assert_array_equal(certified(model, said).radius, found.radius)
    folder = found.save(tmp_path / "run")
    loaded = graycert.Certificates.load(folder)
    assert loaded.setup == found.setup
    assert graycert.verify(folder, data=data, model=model).passed


@pytest.mark.few(1)
@any_threat
def test_what_is_said_wrongly_is_refused(threat):
    data = random_graph(directed=False)
    for architecture, wrong in (("gcn", "local"), ("gat", "degree-normalised")):
        model = graycert.build_model(architecture, data)
        with pytest.raises(UnsoundSetupError, match=r"`convolution` must be .* whose layers are known") as caught:
            certified(model, threat(convolution=wrong))
        assert caught.value.slug == "unknown-convolution"
        before = certified(model, graycert.NodeFeatureThreat(min_distance=1))
        with pytest.raises(UnsoundSetupError) as caught:
            before.again(data, threat=threat(convolution=wrong))
        assert caught.value.slug == "unknown-convolution"


def test_layers_of_others_are_known_where_they_are_known_for_certain():
    for name, family in (("two GCNConv", "degree-normalised"), ("two GATConv", "local"), ("GraphSAGE", "local")):
        assert certified(known_model(name), graycert.NodeDeletionThreat()).setup.convolution == family


@pytest.mark.few(1)
@any_threat
def test_a_foreign_module_has_to_be_known_to_its_user(threat, tmp_path):
    torch.manual_seed(0)
    model, data = foreign.NumbersNodes(14), random_graph(directed=False)
    with pytest.raises(UnsoundSetupError, match="`convolution` must be given") as caught:
        certified(model, threat(), num_layers=1)
    assert caught.value.slug == "unknown-convolution"
    features = certified(model, graycert.NodeFeatureThreat(min_distance=1), num_layers=1)
    assert features.setup.convolution is None
    with pytest.raises(UnsoundSetupError) as caught:
        features.again(data, threat=threat())
    assert caught.value.slug == "unknown-convolution"
    said = certified(model, threat(convolution="degree-normalised"), num_layers=1)
    assert said.setup.convolution == "degree-normalised"
    again = features.again(data, threat=threat(convolution="degree-normalised"))
    assert again.setup == said.setup
    assert again.radius.tolist() == said.radius.tolist()
    assert graycert.verify(again.save(tmp_path / "run"), data=data, model=model).passed


@any_threat
def test_probabilities_per_edge_or_node_are_refused(threat):
    data = random_graph(directed=False)
    model = graycert.build_model("gcn", data)
    for smoothing in (
        graycert.InterceptionSmoothing(p_delete=np.full(data.edge_index.size(1), 0.5), p_ablate=0.5),
        graycert.InterceptionSmoothing(p_delete=0.5, p_ablate=np.full(14, 0.5)),
    ):
        with pytest.raises(UnsoundSetupError) as caught:
            certified(model, threat(), smoothing=smoothing)
        assert caught.value.slug == "structure-dependent-smoothing"


@any_threat
def test_ablation_alone_is_refused(threat):
    model = graycert.build_model("gcn", random_graph(directed=False))
    with pytest.raises(UnsoundSetupError) as caught:
        certified(model, threat(), smoothing=graycert.InterceptionSmoothing(p_delete=0.0, p_ablate=0.5))
    assert caught.value.slug == "ablation-cannot-certify-structure"
