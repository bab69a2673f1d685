"""What was certified, run again: the same on the same graph, and new on another one; its draws are secret."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import graycert
from graycert.errors import InvalidFileError, InvalidParameterError
from support.certified_groups import TARGETS, trained_model
from support.every_smoothing import CASES, made, model_of, small_graph

ALIKE = {
    "difference",
    "paper",
    "no-largest-radius",
    "node-insertion",
    "ablation-global",
    "subgraphs-out-edges",
    "features-only-edges",
}
any_case = pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.slow] if case in ALIKE else []) for case in CASES]
)


def grown(extra=3):
    """The graph with new nodes, each with an edge from and to node 4 and 17."""
    data = small_graph().clone()
    new = torch.arange(42, 42 + extra)
    ends = torch.stack([torch.tensor([4, 17]).repeat(extra), new.repeat_interleave(2)])
    data.edge_index = torch.cat([data.edge_index, ends, ends.flip(0)], dim=1)
    data.x = torch.cat([data.x, data.x[:extra]])
    data.y = torch.cat([data.y, torch.full((extra,), -1)])
    data.node_ids = [f"node {number}" for number in range(42 + extra)]
    return data


@pytest.mark.few(1)
@any_case
def test_by_the_seed_of_the_run_it_gives_bit_for_bit_what_certify_reported(case, tmp_path):
    certificates = made(case)
    expected = np.where(certificates.radius >= 0, certificates.prediction, -1)
    kept = certificates.classifier().save(tmp_path / "classifier")
    own = model_of(case) if certificates.setup.smoothing.name == "votes" else None
    for classifier in (certificates.classifier(), graycert.SmoothedClassifier.load(kept, model=own)):
        np.testing.assert_array_equal(classifier.predict(small_graph(), TARGETS, seed="certified"), expected)
        found = classifier.predict_certified(small_graph(), TARGETS, seed="certified")
        assert found.setup.replace(provenance={}) == certificates.setup.replace(provenance={})
        arrays = found.every_array()
        for name, (_, array) in certificates.every_array().items():
            assert arrays[name][1].tobytes() == array.tobytes(), name


def test_each_call_draws_by_a_seed_of_its_own(monkeypatch):
    classifier = made("interception").classifier()
    seeds = {classifier.predict_certified(small_graph(), TARGETS[:2]).setup.seed for _ in range(3)}
    assert len(seeds) == 3
    assert classifier.setup.seed not in seeds
    assert classifier.predict_certified(small_graph(), TARGETS[:2], seed=5).setup.seed == 5
    with pytest.raises(InvalidParameterError, match="`seed`"):
        classifier.predict(small_graph(), TARGETS, seed="certfied")


def test_where_nothing_is_drawn_the_seed_is_part_of_the_classifier():
    found = made("subgraphs").classifier().predict_certified(small_graph(), TARGETS)
    assert found.setup.seed == made("subgraphs").setup.seed


def test_new_nodes_of_a_grown_graph_are_predicted_after_an_audit_of_their_own(monkeypatch):
    audited = []
    audit = graycert.audit_model
    monkeypatch.setattr("graycert.audit.audit_model", lambda *a, **k: audited.append(1) or audit(*a, **k))
    classifier = made("interception").classifier()
    far = [node for node in range(42) if not ({4, 17} & set(two_hops(node)))]
    assert far
    before = classifier.predict_certified(small_graph(), far, seed=1)
    after = classifier.predict_certified(grown(), far, seed=1)
    assert len(audited) == 2
    predicted = classifier.predict(grown(), ["node 42", "node 43", "node 44"])
    assert len(audited) == 2  # the same graph
    assert set(predicted.tolist()) <= {-1, 0, 1, 2}
    np.testing.assert_array_equal(before.delta_upper, after.delta_upper)  # of their fields, which did not grow
    np.testing.assert_array_equal(before.prediction, after.prediction)
    assert after.setup.graph_fingerprint != before.setup.graph_fingerprint


def two_hops(node):
    source, target = small_graph().edge_index.tolist()
    near = {node}
    for _ in range(2):
        near |= {a for a, b in zip(source, target, strict=True) if b in near}
    return near


def test_only_the_fields_of_the_targets_are_evaluated(monkeypatch):
    from graycert.sampling.voting import VotingEngine

    sizes = []
    votes = VotingEngine.votes
    monkeypatch.setattr(
        VotingEngine, "votes", lambda self, *a, **k: sizes.append(self.field.nodes.numel()) or votes(self, *a, **k)
    )
    alone = torch.tensor([[42, 43], [43, 42]])
    data = grown(2)
    data.edge_index = torch.cat([small_graph().edge_index, alone], dim=1)  # a pair of new nodes, joined to nothing else
    torch_only = graycert.Execution(engine="torch", say=lambda _: None)
    made("interception").classifier().predict(data, [42, 43], execution=torch_only)
    assert sizes
    assert max(sizes) == 2


def test_it_abstains_by_the_rule_of_the_certificates():
    few = graycert.Draws(num_selection=5, num_estimation=3)
    certificates = graycert.certify(
        trained_model(),
        small_graph(),
        smoothing=graycert.InterceptionSmoothing(p_delete=0.5, p_ablate=0.6),
        threat=graycert.NodeFeatureThreat(min_distance=1),
        draws=few,
        execution=graycert.Execution(say=lambda _: None),
    )
    assert (certificates.radius < 0).all()
    quiet = graycert.Execution(say=lambda _: None)
    assert (certificates.classifier().predict(small_graph(), execution=quiet) == -1).all()


def test_another_threat_is_certified_by_the_same_classifier():
    classifier = made("interception").classifier()
    near = classifier.predict_certified(small_graph(), TARGETS, seed="certified")
    far = classifier.predict_certified(
        small_graph(), TARGETS, graycert.NodeFeatureThreat(min_distance=2), seed="certified"
    )
    assert (far.radius >= near.radius).all()
    assert (far.radius > near.radius).any()


@pytest.mark.deep
def test_several_threads_get_what_one_gets():
    classifier = made("interception").classifier()
    expected = classifier.predict(small_graph(), TARGETS, seed=7)
    data = [small_graph(), grown()]

    def call(number):
        torch.manual_seed(number)
        return classifier.predict(data[number % 2], TARGETS, seed=7)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(call, range(8)))
    for each in found[::2]:
        np.testing.assert_array_equal(each, expected)
    for each in found[3::2]:
        np.testing.assert_array_equal(each, found[1])


def test_values_per_edge_belong_to_their_graph():
    classifier = made("arrays-and-trusted-nodes").classifier()
    with pytest.raises(InvalidParameterError, match="`p_ablate`, `p_delete` of the smoothing"):
        classifier.predict(grown())


def test_other_names_of_classes_are_refused_and_missing_ones_are_taken_over():
    data = small_graph().clone()
    data.class_names = ["right", "middle", "left"]
    classifier = made("interception").classifier()
    with pytest.raises(InvalidParameterError, match=r"`data.class_names` must be those of the model"):
        classifier.predict(data)
    del data.class_names
    assert classifier.predict_certified(data, [0]).setup.class_names == ("left", "middle", "right")
    assert "class_names" not in data


def test_training_on_does_not_change_what_was_certified():
    model = graycert.build_model("gcn", small_graph(), hidden_channels=4, seed=1).eval()
    certificates = graycert.certify(
        model,
        small_graph(),
        smoothing=graycert.InterceptionSmoothing(p_delete=0.5, p_ablate=0.6),
        threat=graycert.NodeFeatureThreat(min_distance=1),
        draws=graycert.Draws(num_selection=50, num_estimation=100),
        execution=graycert.Execution(say=lambda _: None),
    )
    with torch.no_grad():
        for value in model.parameters():
            value.mul_(-1)
    found = certificates.classifier().predict_certified(small_graph(), seed="certified")
    np.testing.assert_array_equal(found.estimation_votes, certificates.estimation_votes)
    with pytest.raises(InvalidParameterError, match="`model` must be the one that was certified"):
        certificates.classifier(model)


def test_certificates_that_were_loaded_ask_for_their_model(tmp_path):
    loaded = graycert.Certificates.load(made("interception").save(tmp_path / "run"))
    with pytest.raises(InvalidParameterError, match="`model` must be given"):
        loaded.classifier()
    found = loaded.classifier(trained_model()).predict_certified(small_graph(), TARGETS, seed="certified")
    np.testing.assert_array_equal(found.estimation_votes, made("interception").estimation_votes)


class Own(torch.nn.Module):
    """A model of one's own."""

    def __init__(self) -> None:
        super().__init__()
        from torch_geometric.nn import SAGEConv

        self.conv = SAGEConv(3, 3)

    def forward(self, x, edge_index):
        return self.conv(x, edge_index)


class Other(Own):
    """Another one with the same weights."""


@pytest.fixture
def own_classifier():
    torch.manual_seed(0)
    return graycert.certify(
        Own().eval(),
        small_graph(),
        targets=TARGETS,
        smoothing=graycert.InterceptionSmoothing(p_delete=0.5, p_ablate=0.6),
        threat=graycert.NodeFeatureThreat(),
        draws=graycert.Draws(num_selection=50, num_estimation=100),
        ablation_token=torch.tensor([0.5, 0.25, 0.0]),
        execution=graycert.Execution(engine="torch", say=lambda _: None),
    ).classifier()


def test_a_model_of_ones_own_is_loaded_into_its_class_with_the_token_that_was_given(own_classifier, tmp_path):
    folder = own_classifier.save(tmp_path / "own")
    assert {file.suffix for file in folder.iterdir()} == {".toml", ".safetensors", ".json"}
    torch.manual_seed(1)
    loaded = graycert.SmoothedClassifier.load(folder, model=Own())
    votes = [
        each.predict_certified(small_graph(), TARGETS, seed="certified").estimation_votes
        for each in (own_classifier, loaded)
    ]
    np.testing.assert_array_equal(*votes)
    for wrong in (None, Other()):
        with pytest.raises(InvalidParameterError, match=r"`model` must be a .*Own, made as"):
            graycert.SmoothedClassifier.load(folder, model=wrong)


class Weighted(torch.nn.Module):
    """A model that is given a value per edge."""

    def __init__(self) -> None:
        super().__init__()
        from torch_geometric.nn import GCNConv

        self.conv = GCNConv(3, 3)

    def forward(self, x, edge_index, edge_weight):
        return self.conv(x, edge_index, edge_weight)


@pytest.mark.deep
def test_values_per_edge_that_the_model_is_given_are_asked_of_every_graph(tmp_path):
    torch.manual_seed(0)
    data = small_graph().clone()
    data.edge_weight = torch.rand(data.edge_index.size(1)) + 0.5
    certificates = graycert.certify(
        Weighted().eval(),
        data,
        targets=TARGETS,
        smoothing=graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.6),
        threat=graycert.NodeFeatureThreat(),
        draws=graycert.Draws(num_selection=50, num_estimation=100),
        edge_inputs=("edge_weight",),
        execution=graycert.Execution(engine="torch", say=lambda _: None),
    )
    folder = certificates.classifier().save(tmp_path / "weighted")
    classifier = graycert.SmoothedClassifier.load(folder, model=Weighted())
    found = classifier.predict_certified(data, TARGETS, seed="certified")
    np.testing.assert_array_equal(found.estimation_votes, certificates.estimation_votes)
    with pytest.raises(InvalidParameterError, match="'edge_weight'"):
        classifier.predict(small_graph())


def test_what_it_certifies_is_verified_as_any_run(tmp_path):
    found = made("interception").classifier().predict_certified(grown(), ["node 42", "node 0"])
    run = found.save(tmp_path / "run")
    assert graycert.verify(run, data=grown(), model=trained_model()).passed


def test_damaged_and_mixed_files_are_refused(own_classifier, tmp_path):
    folder = own_classifier.save(tmp_path / "own")
    (folder / "arrays.safetensors").write_bytes(b"\x80\x04]")
    with pytest.raises(InvalidFileError, match=r"arrays\.safetensors"):
        graycert.SmoothedClassifier.load(folder, model=Own())
    one = made("interception").classifier().save(tmp_path / "one")
    (one / "config.toml").write_text((one / "config.toml").read_text().partition("[file]")[0])
    with pytest.raises(InvalidFileError, match="its end is missing"):
        graycert.SmoothedClassifier.load(one)
    made("interception").classifier().save(one, overwrite=True)
    graycert.save_model(
        graycert.build_model("gcn", small_graph(), hidden_channels=8, seed=9), one / "model.safetensors"
    )
    with pytest.raises(InvalidFileError, match="other weights"):
        graycert.SmoothedClassifier.load(one)


def test_nothing_but_a_classifier_is_replaced(tmp_path):
    classifier = made("interception").classifier()
    folder = classifier.save(tmp_path / "kept")
    with pytest.raises(InvalidFileError, match="overwrite=True"):
        classifier.save(folder)
    run = made("interception").save(tmp_path / "run")
    with pytest.raises(InvalidFileError, match="never replaced"):
        classifier.save(run, overwrite=True)
    assert graycert.Certificates.load(run).targets.tolist() == TARGETS.tolist()


@pytest.mark.parametrize(
    "killed_in", ["graycert.deployment.files.serialize_arrays", "graycert.deployment.files.config_text"]
)
def test_it_is_there_as_a_whole_or_not_at_all(own_classifier, tmp_path, monkeypatch, killed_in):
    def fail(*_):
        raise RuntimeError("killed")

    monkeypatch.setattr(killed_in, fail)
    with pytest.raises(RuntimeError, match="killed"):
        own_classifier.save(tmp_path / "own")
    assert list(tmp_path.iterdir()) == []


def test_the_statement_tells_g_from_its_estimate():
    text = made("interception").classifier().statement()
    for part in ("The classifier g is the majority vote", "A certificate of radius ρ is about g", "α = 0.05"):
        assert part in text
    assert "returns c or abstains" in text
    assert "Nothing is drawn" in made("subgraphs").classifier().statement()
    assert made("paper").classifier().statement().count("NOT PROVED") == 1
