"""Two results: what became of each target, how targets are matched, and what cannot be compared."""

import numpy as np
import pytest

import graycert
from graycert.certificates import Certificates
from graycert.errors import InvalidParameterError
from graycert.rules import status_of
from graycert.runs.compare import CHANGES
from support.certificates import small_certificates

NAMES = np.array(["a", "b", "c", "d", "e", "f"])


def result(radius, prediction=(0, 0, 0, 1, 1, 2), eligible=8, **changes) -> Certificates:
    radius = np.array(radius)
    values = {
        "radius": radius,
        "status": status_of(radius),
        "prediction": np.array(prediction),
        "num_eligible": np.full(6, eligible),
        "receptive_field_size": np.full(6, 20),
        "node_ids": NAMES,
        "labels": np.array([0, 0, 1, 1, 1, -1]),
        "p_lower": np.full(6, 0.9),
        "p_upper": np.full(6, 0.1),
    }
    return small_certificates(**{**values, **changes})


def changes(found):
    return dict(zip(found.targets.tolist(), found.change.tolist(), strict=True))


def test_what_became_of_each_target():
    before = result([1, 2, -1, 3, 0, -1])
    after = result([2, 1, 0, 3, 5, -1], prediction=(0, 0, 0, 1, 2, 0))
    found = before.compare(after)
    assert changes(found) == {
        "a": "better",
        "b": "worse",
        "c": "better",  # it has gained a prediction
        "d": "same",
        "e": "another prediction",  # whatever its radius
        "f": "same",  # none before and after: what it leaned to is no prediction
    }
    assert found.counts == dict(zip(CHANGES, (2, 1, 1, 2), strict=True))
    turned = after.compare(before)
    assert turned.counts == dict(zip(CHANGES, (1, 2, 1, 2), strict=True))
    frame = found.to_dataframe()
    assert frame["target"].tolist() == list("abcdef")
    assert frame["prediction_after"].tolist() == ["zero & co", "zero & co", "zero & co", "one", "two", "none"]
    assert frame["radius_before"].tolist() == [1, 2, -1, 3, 0, -1]
    assert found.before.counts["with a prediction"] == (4, 6)
    assert found.before.counts["predicted correctly"] == (4, 5)  # a, b, d, e; the label of f is unknown
    assert found.after.counts["predicted correctly"] == (3, 5)
    assert (found.before.counts["certified at ρ = 1, or whole field"], found.settings) == ((3, 6), ())
    assert "predicted correctly: 80.0 % -> 60.0 %" in str(found)
    assert "predicted correctly" not in str(before.compare(after.replace(labels=None)))
    text = str(found)
    assert "6 targets are in both: 2 better, 1 worse, 1 another prediction, 2 same." in text
    assert "  c: no prediction -> zero & co, radius 0" in text
    assert "No setting differs." in text


def test_whole_fields_and_limits_are_no_losses():
    """With fewer eligible nodes the same prediction has a smaller radius, and holds whatever all of them do."""
    more = result([5, 8, 8, 3, 3, 3])
    fewer = result([2, 2, 2, 2, 2, 1], eligible=2)
    assert list(changes(more.compare(fewer)).values()) == ["better", "same", "same", "better", "better", "worse"]
    far, near = result([8, 5, 4, 3, 2, 1]), result([4, 4, 4, 3, 2, 1], max_radius=4, delta_upper=None)
    found = far.compare(near)
    assert set(changes(found).values()) == {"same"}
    assert found.notes == ("Radii are compared up to 4, the largest that both looked at.",)
    assert ("certificate.max_radius", 8, 4) in found.settings


def test_targets_are_matched_by_name_on_other_graphs():
    before = result([1, 1, 1, 1, 1, 1])
    grown = {"graph_fingerprint": "sha256:" + "2" * 64, "edges_fingerprint": "sha256:" + "3" * 64}
    turned = result([6, 5, 4, 3, 2, 0], prediction=(2, 1, 1, 0, 0, 0), node_ids=NAMES[::-1], **grown)
    found = before.compare(turned)
    assert changes(found) == {"a": "worse", **dict.fromkeys("bcdef", "better")}
    assert found.notes == ("The graphs differ; targets are matched by name.",)
    some = result([1] * 6, node_ids=np.array(["f", "x", "a", "y", "z", "c"]), prediction=(2, 0, 0, 0, 0, 0), **grown)
    found = before.compare(some)
    assert found.targets.tolist() == ["a", "c", "f"]
    assert found.notes[1:] == (
        "Left out: 3 targets that only the first has.",
        "Left out: 3 targets that only the second has.",
    )
    with pytest.raises(InvalidParameterError, match="must share targets with these certificates"):
        before.compare(result([1] * 6, node_ids=np.array(list("uvwxyz")), **grown))


def test_targets_without_names_are_matched_on_the_same_edges():
    before = result([1] * 6, node_ids=None)
    other = result([1, 1, 1, 1, 1, 2], node_ids=None, targets=np.array([9, 4, 3, 2, 1, 0]))
    assert changes(before.compare(other)) == {**dict.fromkeys("4321", "same"), "0": "better"}
    features = result([1] * 6, node_ids=None, graph_fingerprint="sha256:" + "2" * 64)
    assert before.compare(features).notes == (
        "The features differ on the same edges; targets are matched by node index.",
    )
    edges = {"graph_fingerprint": "sha256:" + "2" * 64, "edges_fingerprint": "sha256:" + "3" * 64}
    with pytest.raises(InvalidParameterError, match="must be about the same graph"):
        before.compare(result([1] * 6, node_ids=None, **edges))
    with pytest.raises(InvalidParameterError, match="must be about the same graph"):
        before.compare(result([1] * 6, **edges))


def test_classes_are_compared_by_their_names():
    before = result([1] * 6)
    renumbered = result([1] * 6, prediction=(1, 1, 1, 0, 0, 2), class_names=("one", "zero & co", "two"), labels=None)
    assert set(changes(before.compare(renumbered)).values()) == {"same"}
    four = {"selection_votes": np.tile([60, 30, 10, 0], (6, 1)), "estimation_votes": np.tile([3000, 0, 0, 0], (6, 1))}
    with pytest.raises(InvalidParameterError, match="must tell the same 3 classes apart, got 4"):
        before.compare(result([1] * 6, num_classes=4, class_names=None, **four))


def test_settings_that_differ_are_named():
    trusted = np.zeros(50, dtype=bool)
    trusted[[0, 7]] = True
    after = result(
        [1] * 6,
        smoothing=graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.85),
        threat=graycert.NodeFeatureThreat(min_distance=1, trusted=trusted),
        seed=4,
        seconds={"audit": 3.0},
    )
    settings = {name: (a, b) for name, a, b in result([1] * 6).compare(after).settings}
    assert settings == {
        "smoothing.p_ablate": (0.1 + 0.2, 0.85),
        "certificate.seed": (2**63 + 5, 4),
        "threat.trusted": ("3 of 50", "2 of 50"),
        "threat.trusted, which": ([0, 1, 2], [0, 7]),
    }


def test_what_only_one_run_says_of_its_origin_is_one_line():
    origin = {"graph": {"name": "toy"}, "training": {"epochs": 5, "patience": 3}}
    found = result([1] * 6).compare(result([1] * 6, provenance=origin))
    assert {name: (a, b) for name, a, b in found.settings} == {
        "provenance.graph.share": (0.1, None),  # of a section that both have, each value
        "provenance.versions": ({"provenance.versions.numpy": "2"}, None),
        "provenance.training": (None, {"provenance.training.epochs": 5, "provenance.training.patience": 3}),
    }
    assert "  provenance.training: none -> 2 values" in str(found)


def test_radii_of_other_units_are_not_compared():
    edges = result(
        [1] * 6,
        threat=graycert.EdgeDeletionThreat(convolution="local"),
        smoothing=graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.0),
    )
    with pytest.raises(InvalidParameterError, match="must have radii that count nodes, as these do, got edges"):
        result([1] * 6).compare(edges)


def test_what_is_not_sound_is_said():
    found = result([1] * 6).compare(result([1] * 6, rule="paper"))
    assert found.notes == ("NOT SOUND: the second was concluded by rule 'paper', so its radii prove nothing.",)
