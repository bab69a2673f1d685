"""Bounded votes in experiments: what is certified, with which labels, and what of it is chosen."""

import numpy as np
import pytest

import graycert
from graycert.reproduction.kinds.curves import Curves
from graycert.reproduction.lab import Lab
from graycert.reproduction.methods import Distilled, Votes
from graycert.reproduction.pool import run_jobs
from graycert.reproduction.votes_job import training_labels
from support.commands import write_graph

GRID = [{"num_voters": [8, 3], "gamma": [2.0, 0.5]}]


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return str(write_graph(tmp_path_factory.mktemp("graph") / "ring.npz", num_nodes=80, extra_edges=30))


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    return Lab(tmp_path_factory.mktemp("lab"))


def votes(graph, **changes):
    return Votes.model_validate({"method": "votes", "label": "votes", "graph": graph, "per_class": 5, **changes})


@pytest.mark.few(1)
@pytest.mark.parametrize("part", ["validation", "test"])
@pytest.mark.parametrize("spread_labels", [False, True])
@pytest.mark.parametrize("distance", [0, 1])
def test_a_job_is_the_certificate_of_the_distilled_model(graph, lab, part, spread_labels, distance):
    curve = votes(graph, num_voters=8, spread_labels=spread_labels, label_weight=3.0, min_distance=distance)
    job = curve.job(1, (distance,)).model_copy(update={"part": part})
    split = lab.split(job.model)
    nodes = getattr(split, part)
    labels = training_labels(split, nodes) if spread_labels else None
    found = graycert.certify(
        lab.model(job.model),
        nodes.data,
        targets=nodes.nodes,
        smoothing=graycert.BoundedVotes(num_voters=8, label_propagation=labels, label_weight=3.0),
        threat=graycert.NodeFeatureThreat(min_distance=distance),
    )
    certified = curve.certified(lab.do(job))
    for name in ("radius", "num_eligible", "prediction"):
        assert getattr(certified, name).tolist() == getattr(found, name).tolist()


def test_labels_are_those_of_training_nodes_only(graph, lab):
    split = lab.split(votes(graph).model(1))
    for part in (split.train, split.validation, split.test):
        labels = training_labels(split, part)
        known = part.original[np.flatnonzero(labels >= 0)].tolist()
        assert known == split.train.original[split.train.nodes].tolist()
        assert labels[labels >= 0].tolist() == part.data.y[labels >= 0].tolist()


def test_the_floor_and_the_votes_are_of_one_model(graph):
    floor = Distilled(method="distilled", label="floor", graph=graph, per_class=5)
    assert floor.model(1).key == votes(graph).model(1).key != votes(graph).model(2).key


@pytest.mark.deep
def test_settings_of_votes_are_chosen_on_validation_nodes(graph, tmp_path):
    settings = {
        "graph": graph,
        "per_class": 5,
        "seeds": (1,),
        "min_distance": 1,
        "quantity": "certified accuracy",
        "denominator": "whole_field",
        "curves": [
            {"method": "votes", "label": "S", "grid": GRID},
            {"method": "votes", "label": "S or L", "grid": [{**each, "spread_labels": [False, True]} for each in GRID]},
            {"method": "distilled", "label": "distilled"},
        ],
    }
    kind = Curves.model_validate(settings)
    assert run_jobs(kind.jobs(), tmp_path) == {}
    tables = kind.tables(Lab(tmp_path).results)
    alone, either = tables["choices"]["validation"]
    assert either >= alone
    assert tables["choices"]["of"].tolist() == [4, 8]
    measures = kind.measures(tables)
    flat = {measures[f"distilled: certified accuracy at {radius}"] for radius in (1, 5, 10)}
    assert len(flat) == 1
    assert set(tables["methods"]["guarantee"]) == {
        "all features of any eligible nodes; with certainty",
        "all features and edges of any other nodes; with certainty",
    }
    kind.draw(tables)
