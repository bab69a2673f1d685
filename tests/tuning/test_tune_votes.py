"""Settings of bounded votes are compared on validation nodes alone, as `certify` certifies them."""

import numpy as np
import pytest
import torch

import graycert
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.tuning.votes import SETTINGS, _training_labels
from support.communities import two_communities

OTHERS = graycert.NodeFeatureThreat(min_distance=1)
FEW = {"num_voters": (5, 20), "gamma": (1.0, 4.0), "spread_labels": (False, True)}


@pytest.fixture(scope="module")
def split():
    return graycert.inductive_split(two_communities(), seed=0, per_class=8, test_fraction="0.2")


@pytest.fixture(scope="module")
def model(split):
    return graycert.distill(split, members=1, hidden_channels=8, max_epochs=20)


@pytest.fixture(scope="module")
def tuning(model, split):
    return graycert.tune_votes(model, split, threat=OTHERS, settings=FEW)


@pytest.mark.deep
def test_every_row_is_what_certify_says_of_the_validation_nodes(tuning, model, split):
    part, table = split.validation, tuning.table
    assert len(table) == 8
    for row in table.to_dict("records"):
        labels = _training_labels(split) if row["spread_labels"] else None
        found = graycert.certify(
            model,
            part.data,
            targets=part.nodes,
            smoothing=graycert.BoundedVotes(num_voters=row["num_voters"], gamma=row["gamma"], label_propagation=labels),
            threat=OTHERS,
        )
        right = found.prediction == found.labels
        shares = [(right & (found.radius >= np.minimum(rho, found.num_eligible))).mean() for rho in (1, 5, 10)]
        assert [row["correct_1"], row["correct_5"], row["correct_10"]] == pytest.approx(shares)
        assert row["score"] == pytest.approx(np.mean(shares))
        assert row["accuracy"] == pytest.approx(right.mean())


def test_the_first_of_the_best_is_recommended_for_the_whole_graph(tuning, split):
    table = tuning.table
    assert table["recommended"].sum() == 1
    row = table[table["recommended"]].iloc[0]
    assert row.name == table.index[table["score"] == table["score"].max()][0]
    chosen = tuning.smoothing
    assert (chosen.num_voters, chosen.gamma) == (row["num_voters"], row["gamma"])
    if row["spread_labels"]:
        assert chosen.label_propagation.size == split.test.data.num_nodes
    assert "Recommended: num_voters = " in str(tuning)
    assert "Report what it reaches on other nodes." in str(tuning)


def test_the_recommended_one_stands_out_in_the_picture(tuning):
    from matplotlib import pyplot as plt

    axes = tuning.plot()
    best = tuning.table[tuning.table["recommended"]].iloc[0]
    drawn = next(line for line in axes.get_lines() if line.get_label() == "recommended")
    names = [name for name in tuning.table.columns if name.startswith("correct_")]
    assert drawn.get_ydata().tolist() == [best["accuracy"], *best[names]]
    assert len(axes.get_lines()) == len(tuning.table)
    plt.close("all")


def test_only_training_labels_are_spread(split):
    known = _training_labels(split)
    part = split.validation
    assert known.size == part.data.num_nodes
    nodes = np.flatnonzero(known >= 0)
    whole = part.original.numpy()[nodes]
    train = split.train.original[split.train.nodes].numpy()
    assert sorted(whole.tolist()) == sorted(train.tolist())
    assert known[nodes].tolist() == part.data.y[nodes].tolist()


def test_test_nodes_are_not_looked_at(tuning, model, split):
    data = split.test.data.clone()
    data.x[split.test.nodes] = 0.0
    data.y[split.test.nodes] = 0
    changed = type(split)(**{**vars(split), "test": type(split.test)(**{**vars(split.test), "data": data})})
    again = graycert.tune_votes(model, changed, threat=OTHERS, settings=FEW)
    assert again.table.equals(tuning.table)


def test_what_has_no_effect_on_hostile_targets_is_not_tried(model, split):
    found = graycert.tune_votes(model, split, threat=graycert.NodeFeatureThreat(), settings={**FEW, "gate": (0.5, 0.9)})
    assert len(found.table) == 4
    assert set(found.chosen) == {"num_voters", "spread_labels"}


def test_labels_of_a_larger_weight_are_tried_where_they_are_spread(model, split):
    settings = {"num_voters": (5,), "spread_labels": (False, True), "label_weight": (0.5, 1e6)}
    found = graycert.tune_votes(model, split, threat=graycert.NodeFeatureThreat(), settings=settings)
    tried = found.table[["spread_labels", "label_weight"]].to_numpy().tolist()
    assert tried == [[False, 0.5], [True, 0.5], [True, 1e6]]
    alone = found.table.iloc[2]
    assert alone["accuracy"] == alone["correct_1"] == alone["correct_10"]  # no feature counts
    assert found.smoothing.label_weight == found.chosen["label_weight"]


def test_trusted_nodes_are_named_in_the_whole_graph(model, split):
    trusted = np.ones(split.test.data.num_nodes, dtype=bool)
    trusted[split.validation.original[split.validation.nodes[0]]] = False
    found = graycert.tune_votes(
        model, split, threat=graycert.NodeFeatureThreat(trusted=trusted), settings={"num_voters": (5,)}
    )
    assert found.table["correct_10"][0] >= found.table["accuracy"][0] - 1 / split.validation.nodes.numel() - 1e-12


def test_every_default_setting_is_one_of_bounded_votes():
    for name, values in SETTINGS.items():
        for value in values:
            if name != "spread_labels":
                graycert.BoundedVotes(**{name: value})


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"settings": {"voters": (5,)}}, "settings"),
        ({"settings": {"num_voters": ()}}, "settings"),
        ({"threat": graycert.EdgeDeletionThreat()}, "threat"),
        ({"split": two_communities()}, "inductive_split"),
    ],
)
def test_arguments_out_of_range_are_refused(model, split, changes, match):
    arguments = {"split": split, "threat": OTHERS, **changes}
    with pytest.raises(InvalidParameterError, match=match):
        graycert.tune_votes(model, arguments.pop("split"), **arguments)


def test_a_model_that_moves_messages_is_refused(split):
    gcn = graycert.build_model("gcn", split)
    with pytest.raises(UnsoundSetupError, match="own features alone"):
        graycert.tune_votes(gcn.eval(), split, threat=OTHERS, settings={"num_voters": (5,)})
    assert isinstance(gcn, torch.nn.Module)
