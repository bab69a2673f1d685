"""What the guarantee costs is said first: CASES A6."""

import dataclasses
import json

import numpy as np
import pytest
import torch

import graycert
from graycert.models import build_model, save_model
from graycert.runs.cost import cost, warnings_of
from graycert.runs.words import summary_record
from support.certificates import small_certificates
from support.certified_groups import certify_groups, three_groups, trained_model
from support.every_smoothing import any_case, made, model_of, small_graph
from support.few_frauds import NUM_ACCOUNTS, NUM_FRAUDS, FindsFraud, few_frauds

OTHERS = graycert.NodeFeatureThreat(min_distance=1)
FEW = graycert.Draws(num_selection=50, num_estimation=300)


def certified(p_ablate, **changes):
    smoothing = graycert.InterceptionSmoothing(p_delete=changes.pop("p_delete", 0.31), p_ablate=p_ablate)
    data = few_frauds()
    for name in changes.pop("without", ()):
        del data[name]
    return graycert.certify(FindsFraud(), data, smoothing=smoothing, threat=OTHERS, draws=FEW, **changes)


@pytest.fixture(scope="module")
def everything_is_ok():
    return certified(0.794)


def test_what_the_model_never_knew_is_not_laid_to_smoothing(everything_is_ok):
    trained = everything_is_ok.prediction_as_trained.copy()
    trained[:] = 0
    never, *_ = warnings_of(everything_is_ok.replace(prediction_as_trained=trained))
    assert "of which the model as trained finds 0. " in never
    assert 'rare classes count (graycert.train(..., class_weight="balanced", stop_on="balanced accuracy")' in never
    assert never.endswith('--class-weight balanced --stop-on "balanced accuracy").')


def test_a_class_that_is_never_predicted_is_warned_of_before_any_praise(everything_is_ok, tmp_path):
    c = everything_is_ok
    found = cost(c)
    assert found.total.as_trained == NUM_ACCOUNTS
    assert found.total.smoothed == NUM_ACCOUNTS - NUM_FRAUDS
    assert (c.radius >= 1).mean() > 0.9  # so much would be praised
    never, nearly = warnings_of(c)
    assert never.startswith(
        "The smoothed classifier never predicts class 'fraud': it is the class of 12 targets, of which the model as "
        "trained finds 12."
    )
    assert never.endswith("or smooth less (lower p_delete, p_ablate).")
    assert nearly.startswith(
        "Of the predictions of the smoothed classifier 100.0 % are 'ok', though the model as trained"
    )
    text = c.summary()
    assert text.startswith(f"WARNING: {never}\n\nWARNING: {nearly}\n\nWhat it costs: of the 400 targets")
    assert "the model as trained predicts 100.0 % correctly, the smoothed classifier 97.0 %" in text
    assert "(balanced accuracy): 100.0 % as trained, 50.0 % smoothed" in text
    assert "clean" not in text
    run = c.save(tmp_path / "run")
    page = (run / "report.html").read_text()
    assert page.index("never predicts class") < page.index('class="glance"') < page.index("What it costs")
    record = json.loads((run / "summary.json").read_text())
    assert record["warnings"] == [never, nearly]
    assert [each["class"] for each in record["cost"]["classes"]] == ["ok", "fraud"]
    fraud = record["cost"]["classes"][1]
    assert (fraud["targets"], fraud["as_trained"], fraud["smoothed"], fraud["certified"]) == (12, 12, 0, [0, 0])
    assert record["cost"]["balanced_accuracy"]["as_trained"] == 1.0
    assert record["smoothed_accuracy"] == 388 / 400
    assert graycert.verify(run, data=few_frauds()).passed


def test_a_classifier_that_still_finds_them_is_not_warned_of():
    c = certified(0.3, p_delete=0.5)
    assert warnings_of(c) == ()
    assert c.summary().startswith("What it costs")
    assert cost(c).classes[1].smoothed == NUM_FRAUDS


@pytest.mark.parametrize(
    ("right", "right_as_trained", "who"),
    [
        ((4, 2), (6, 6), "The smoothed classifier is"),
        ((4, 3), (6, 6), None),
        ((4, 2), (3, 3), "The smoothed classifier and the model as trained are"),
        ((4, 3), (6, 0), "The model as trained is"),
        ((4, 2), None, "The smoothed classifier is"),
    ],
)
def test_what_is_no_better_than_guessing_is_warned_of(right, right_as_trained, who, tmp_path):
    labels = np.repeat([0, 1], 6)

    def predicted(counts):
        return np.concatenate([np.where(np.arange(6) < count, k, 1 - k) for k, count in enumerate(counts)])

    c = small_certificates(
        num_targets=12,
        radius=np.zeros(12, dtype=np.int64),
        status=np.full(12, "predicted"),
        prediction=predicted(right),
        labels=labels,
        prediction_as_trained=None if right_as_trained is None else predicted(right_as_trained),
    )
    found = warnings_of(c)
    if who is None:
        assert found == ()
        return
    (warning,) = found
    assert warning.startswith(f"{who} no better than guessing: of a class with at least 5 targets the smoothed ")
    assert f"classifier finds {'58.3' if right[1] == 3 else '50.0'} %" in warning
    assert "guessing among these 2 classes finds 50.0 %" in warning
    assert ("Train the model again, or check" in warning) == (right_as_trained in ((3, 3), (6, 0)))
    assert c.summary().startswith(f"WARNING: {warning}")
    page = (c.save(tmp_path / "run") / "report.html").read_text()
    assert page.index("no better than guessing") < page.index("What it costs")
    few = c.replace(labels=np.where(np.arange(12) < 2, -1, labels))  # four targets of a class tell nothing
    assert warnings_of(few) == ()


def test_without_labels_the_model_as_trained_is_the_measure():
    c = certified(0.794, without=("y",))
    found = cost(c)
    assert not found.labelled
    assert found.same_as_trained == NUM_ACCOUNTS - NUM_FRAUDS
    assert [each.targets for each in found.classes] == [NUM_ACCOUNTS - NUM_FRAUDS, NUM_FRAUDS]
    assert "never predicts class 'fraud': the model as trained predicts it for 12 targets" in warnings_of(c)[0]
    text = c.summary()
    assert "What it costs: For 97.0 % of the 400 targets the smoothed classifier predicts what" in text
    assert "correctly" not in text
    record = summary_record(c)
    assert record["cost"]["correct_means"] == "class as trained"
    assert "smoothed_accuracy" not in record


def test_shares_are_of_targets_whose_class_is_known(everything_is_ok):
    labels = everything_is_ok.labels.copy()
    labels[everything_is_ok.labels == 0] = np.where(np.arange(NUM_ACCOUNTS - NUM_FRAUDS) < 300, -1, 0)
    c = everything_is_ok.replace(labels=labels)
    assert cost(c).total.targets == 100
    assert "of the 100 targets whose class is known, the model as trained predicts 100.0 % correctly" in c.summary()
    assert "the smoothed classifier 88.0 %" in c.summary()


def test_where_nothing_of_the_features_is_left():
    c = certified(0.99)
    assert "more than half of the draws show no node's features at all" in warnings_of(c)[-1]
    assert c.summary().startswith("WARNING")
    shown = graycert.InterceptionSmoothing(p_delete=0, p_ablate=0.5).nothing_shown(np.array([1, 2, 10]))
    assert shown.tolist() == [0.5, 0.25, 0.5**10]
    shown = graycert.InterceptionSmoothing(p_delete=0, p_ablate=[0.9, 0.5]).nothing_shown(np.array([2]))
    assert shown.tolist() == [0.25]  # of 0.45: a lower bound
    assert graycert.FeaturesOnly().nothing_shown(np.array([1])) is None


@pytest.mark.few(3)
@any_case
def test_every_smoothing_is_compared_with_the_model_as_trained(case):
    c, data, model = made(case), small_graph(), model_of(case).eval()
    with torch.no_grad():
        plain = model(data.x, data.edge_index).argmax(dim=1).numpy()
        alone = model(data.x, data.edge_index[:, :0]).argmax(dim=1).numpy()
    assert c.prediction_as_trained.tolist() == plain[c.targets].tolist()
    if c.setup.threat.includes_target:
        assert c.prediction_without_messages is None
    else:
        assert c.prediction_without_messages.tolist() == alone[c.targets].tolist()
        assert "the same model without messages" in c.summary()
    pairs = data.edge_index[:, data.edge_index[0] != data.edge_index[1]].numpy()
    assert c.in_degree.tolist() == [int((pairs[1] == target).sum()) for target in c.targets]
    assert c.seconds["cost"] > 0
    assert c.again(data).prediction_as_trained.tolist() == plain[c.targets].tolist()
    assert (c.radius <= c.num_eligible).all()


def test_hostile_targets_are_not_compared_with_their_own_features():
    c = certify_groups(threat=graycert.NodeFeatureThreat(min_distance=0))
    assert c.prediction_without_messages is None
    assert "without messages" not in c.summary()


def test_verify_asks_the_model_beside_a_run(tmp_path):
    c = certify_groups()
    changed = c.prediction_as_trained.copy()
    changed[4] = (changed[4] + 1) % 3
    folder = c.replace(prediction_as_trained=changed).save(tmp_path / "run")
    save_model(trained_model(), folder / "model")
    found = {check.name: check for check in graycert.verify(folder, data=three_groups()).checks}
    assert not found["model: as trained"].passed
    assert f"node {c.targets[4]}: stored {changed[4]}" in found["model: as trained"].detail
    assert found["model: without messages"].passed


def test_a_run_that_holds_no_pass_without_smoothing_says_what_it_can():
    text = small_certificates(num_targets=40).summary()
    assert "\n\nSmoothed accuracy: " in text
    assert "as trained" not in text
    assert "What it costs" not in small_certificates(named=False).summary()


@pytest.mark.deep
def test_a_real_graph(data_root):
    data = graycert.load_graph("cora_ml", data_root=data_root)
    model = build_model("gcn", data, seed=1)
    targets = np.arange(0, data.num_nodes, 40)
    smoothing = graycert.InterceptionSmoothing(p_delete=0.5, p_ablate=0.6)
    c = graycert.certify(model, data, targets=targets, smoothing=smoothing, threat=OTHERS, draws=FEW)
    with torch.no_grad():
        plain = model.eval()(data.x, data.edge_index).argmax(dim=1)
    found, true = cost(c), data.y[targets]
    assert found.total.as_trained == int((plain[targets] == true).sum())
    recalls = [float((plain[targets] == true)[true == number].float().mean()) for number in true.unique()]
    assert found.balanced([each.as_trained for each in found.classes]) == pytest.approx(np.mean(recalls))
    assert found.same_as_trained == int(((plain[targets].numpy() == c.prediction) & (c.radius >= 0)).sum())


def test_with_a_skip_connection_the_model_as_trained_is_what_forward_returns():
    data = three_groups()
    model = build_model("gcn", data, skip=True, hidden_channels=8, seed=2).eval()
    smoothing = graycert.InterceptionSmoothing(p_delete=0.5, p_ablate=0.6)
    c = graycert.certify(model, data, smoothing=smoothing, threat=OTHERS, draws=FEW)
    with torch.no_grad():
        plain, alone = model(data.x, data.edge_index), model(data.x, data.edge_index[:, :0]) + model.skip_logits(data.x)
    assert c.prediction_as_trained.tolist() == plain.argmax(dim=1).tolist()
    assert c.prediction_without_messages.tolist() == alone.argmax(dim=1).tolist()
    floor = graycert.certify(model, data, smoothing=graycert.FeaturesOnly(), threat=OTHERS)
    assert c.prediction_without_messages.tolist() == floor.prediction.tolist()


@pytest.mark.few(1)
@pytest.mark.parametrize("case", ["interception", "until-decided", "arrays-and-trusted-nodes", "ablation-local"])
def test_radii_by_distance_are_those_of_again(case):
    c, data = made(case), small_graph()
    farther = c.again(data, threat=dataclasses.replace(c.setup.threat, min_distance=2))
    assert np.minimum(c.radius_by_distance[:, 0], farther.num_eligible).tolist() == farther.radius.tolist()
    assert (c.radius_by_distance[:, 0] >= np.minimum(c.radius, c.num_eligible)).all()  # farther is never worse
    assert farther.radius_by_distance is None
    correct = (c.prediction == c.labels) & (c.radius >= 0)
    expected = [
        [int((correct & (each.radius >= np.minimum(rho, each.num_eligible))).sum()) for rho in (1, 3)]
        for each in (c, farther)
    ]
    assert [each["certified"] for each in summary_record(c)["cost"]["distances"]] == expected
    assert "By distance of hostile nodes" in c.summary()


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "case", ["event-aware", "ablation-global", "retention", "node-deletion", "sparse", "subgraphs"]
)
def test_where_farther_nodes_are_another_question(case):
    assert made(case).radius_by_distance is None
    assert "By distance" not in made(case).summary()
