"""A toy smoothing in one file gets certify, again, files, table, report and verification for nothing."""

import numpy as np
import pytest
import torch

import graycert
from graycert.errors import InvalidFileError, InvalidParameterError, UnsoundSetupError
from graycert.smoothing import SMOOTHINGS
from graycert.threats import THREATS
from support.attributed_graphs import random_graph
from support.known_models import shaken
from support.toy_smoothing import IsolatedTargets

OTHERS = graycert.NodeFeatureThreat(min_distance=1)


@pytest.fixture
def known(monkeypatch):
    """The toy among all smoothings, as if it had its entry there."""
    monkeypatch.setitem(SMOOTHINGS, IsolatedTargets.name, IsolatedTargets)


@pytest.fixture(scope="module")
def graph():
    data = random_graph(num_nodes=14, num_pairs=12)
    data.node_ids = [f"node {number}" for number in range(14)]
    return data


@pytest.fixture(scope="module")
def model(graph):
    return shaken(graycert.build_model("gat", graph))


def certified(model, graph, **changes):
    return graycert.certify(model, graph, **{"smoothing": IsolatedTargets(), "threat": OTHERS, **changes})


def test_it_is_certified_like_every_other(model, graph):
    found = certified(model, graph, max_radius=5)
    with torch.no_grad():
        scores = model(graph.x, graph.edge_index)
    assert found.prediction.tolist() == scores.argmax(dim=1).tolist()
    heard = set(graph.edge_index[1].tolist())
    assert found.whole_field.tolist() == [node not in heard for node in range(14)]
    assert 0 < found.whole_field.sum() < 14
    assert set(found.radius.tolist()) == {0}  # nobody can attack them
    strict = certified(model, graph, smoothing=IsolatedTargets(min_lead=float(np.median(found.leads))))
    assert (strict.radius < 0).sum() == 7


def test_it_is_saved_loaded_shown_and_verified(known, model, graph, tmp_path):
    made = certified(model, graph, smoothing=IsolatedTargets(min_lead=0.25))
    folder = made.save(tmp_path / "run")
    loaded = graycert.Certificates.load(folder)
    assert loaded.setup == made.setup
    for name, (_, array) in made.every_array().items():
        np.testing.assert_array_equal(loaded.every_array()[name][1], array, strict=True)
    assert loaded.leads.tolist() == made.leads.tolist()
    assert loaded.to_dataframe()["lead"].tolist() == made.leads.tolist()
    assert "leads by 0.25" in loaded.summary()
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "isolated" in page
    assert "leads by 0.25" in page
    found = graycert.verify(folder, data=graph, model=model)
    assert found.passed, str(found)
    assert {"radius", "num_eligible", "leads", "best_classes", "report.html"} <= {check.name for check in found.checks}
    other = shaken(graycert.build_model("gat", graph, seed=5))
    assert not graycert.verify(folder, data=graph, model=other).passed


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["radius", "num_eligible", "leads", "prediction"])
def test_what_was_changed_is_found(known, model, graph, tmp_path, name):
    made = certified(model, graph)
    values = getattr(made, name).copy()
    row = int(made.radius.argmin())
    values[row] = {"radius": 1, "num_eligible": 0, "leads": 1e-12, "prediction": (values[row] + 1) % 3}[name]
    changes = {name: values} | ({"status": np.where(values > 0, "certified", "predicted")} if name == "radius" else {})
    folder = made.replace(**changes).save(tmp_path / "run")
    assert not graycert.verify(folder, data=graph, model=model).passed


def test_other_conclusions_follow(model, graph):
    made = certified(model, graph)
    far = made.again(graph, threat=graycert.NodeFeatureThreat(min_distance=2), max_radius=3)
    assert far.whole_field.sum() > made.whole_field.sum()
    assert (far.whole_field >= made.whole_field).all()
    with pytest.raises(UnsoundSetupError, match="no-proof"):
        made.against_one_adversary(graph)
    with pytest.raises(UnsoundSetupError, match="no-proof"):
        made.possible_labels(1)


def test_what_it_does_not_claim_is_refused(model, graph):
    for threat in set(THREATS) - {"node-features"}:
        with pytest.raises(UnsoundSetupError, match=r"no-proof|hostile-edges"):
            certified(model, graph, threat=THREATS[threat]())
    with pytest.raises(UnsoundSetupError, match="no-proof"):
        certified(model, graph, rule="sound")
    with pytest.raises(InvalidParameterError, match="nothing is drawn"):
        certified(model, graph, draws=graycert.Draws())
    with pytest.raises(InvalidParameterError, match="`min_lead`"):
        IsolatedTargets(min_lead=0)


def test_a_program_that_does_not_know_it_refuses_its_files(model, graph, tmp_path):
    folder = certified(model, graph).save(tmp_path / "run")
    with pytest.raises(InvalidFileError, match=r"must have a `name` of interception, .* got 'isolated'"):
        graycert.Certificates.load(folder)
