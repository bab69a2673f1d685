"""Labels alone in experiments: what they predict, and that no feature has a say."""

import numpy as np
import pytest

from graycert.graph import as_adjacency
from graycert.reproduction.kinds.curves import Curves
from graycert.reproduction.lab import Lab
from graycert.reproduction.methods import LabelsAlone
from graycert.reproduction.pool import run_jobs
from graycert.reproduction.votes_job import training_labels
from graycert.smoothing.bounded_votes.label_propagation import propagated_labels
from support.commands import write_graph

DISTANCES = (0, 1)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return str(write_graph(tmp_path_factory.mktemp("graph") / "ring.npz", num_nodes=80, extra_edges=30))


def alone(graph, **changes):
    return LabelsAlone.model_validate(
        {"method": "labels", "label": "labels", "graph": graph, "per_class": 5, **changes}
    )


@pytest.mark.parametrize("part", ["validation", "test"])
def test_every_target_has_the_class_of_the_largest_share_at_every_radius(graph, tmp_path, part):
    lab = Lab(tmp_path)
    job = alone(graph).job(1, DISTANCES).model_copy(update={"part": part})
    split, arrays = lab.split(job.model), lab.do(job)
    nodes = getattr(split, part)
    shares = propagated_labels(as_adjacency(nodes.data), training_labels(split, nodes), num_classes=3)
    counts = []
    for distance in DISTANCES:
        found = alone(graph, min_distance=distance).certified(arrays)
        assert found.prediction.tolist() == shares[nodes.nodes.numpy()].argmax(axis=1).tolist()
        assert found.labels.tolist() == nodes.data.y[nodes.nodes].tolist()
        curve = found.curve("certified accuracy", denominator="whole_field", last_radius=30)["share"]
        assert set(curve) == {(found.prediction == found.labels).mean()}
        counts.append(found.num_eligible)
    assert (counts[0] == counts[1] + 1).all()  # the target itself
    assert not (tmp_path / "models").exists()


def test_no_feature_has_a_say(graph, tmp_path):
    lab, other = Lab(tmp_path / "lab"), Lab(tmp_path / "other")
    job = alone(graph).job(1, (0,))
    part = other.split(job.model).test
    part.data.x = part.data.x.flip(0).fill_(float("nan"))
    there, here = other.do(job), lab.do(job)
    assert all(np.array_equal(there[name], here[name]) for name in here if name != "seconds")


@pytest.mark.deep
def test_a_figure_has_it_as_a_floor_where_targets_may_be_hostile(graph, tmp_path):
    kind = Curves.model_validate(
        {
            "graph": graph,
            "per_class": 5,
            "seeds": (1, 2),
            "min_distance": 0,
            "quantity": "certified accuracy",
            "denominator": "whole_field",
            "curves": [
                {"method": "votes", "label": "votes", "num_voters": 8},
                {"method": "labels", "label": "labels alone"},
            ],
        }
    )
    assert run_jobs(kind.jobs(), tmp_path) == {}
    tables = kind.tables(Lab(tmp_path).results)
    assert tables["methods"]["guarantee"].tolist()[-1] == "all features of all nodes; with certainty"
    kind.draw(tables)
