import numpy as np
import pytest

from graycert.errors import InvalidParameterError
from graycert.rules import status_of
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats.node_features import NodeFeatureThreat
from support.certificates import small_certificates


def test_arrays_are_copied_and_read_only():
    radius = np.array([-1, 0, 0, 0, 0, 0])
    status = np.array(["abstained"] + ["predicted"] * 5)
    certificates = small_certificates(radius=radius, status=status)
    radius[1] = 8
    assert certificates.radius[1] == 0
    for name in (
        "targets",
        "radius",
        "status",
        "p_lower",
        "delta_upper",
        "estimation_votes",
        "node_ids",
        "labels",
    ):
        with pytest.raises(ValueError, match="read-only"):
            getattr(certificates, name)[0] = getattr(certificates, name)[1]
    with pytest.raises(TypeError):
        certificates.setup.provenance["x"] = 1


def test_counts_are_those_of_the_votes():
    certificates = small_certificates()
    selection, estimation = certificates.votes
    assert (selection.num_samples, estimation.num_samples) == (100, 3_000)
    assert (estimation.num_classes, certificates.delta_upper.shape[1], len(certificates)) == (3, 8, 6)


def test_whole_field():
    certificates = small_certificates(num_targets=40)
    expected = [r >= m for r, m in zip(certificates.radius, certificates.num_eligible, strict=True)]
    assert certificates.whole_field.tolist() == expected
    assert 0 < sum(expected) < 40
    few = small_certificates()
    exactly = np.maximum(few.radius, 0)
    all_of_them = small_certificates(num_eligible=exactly, receptive_field_size=exactly + 1)
    assert all_of_them.whole_field.tolist() == [False, True, True, True, True, True]
    capped = np.minimum(few.radius, 0)
    nobody = small_certificates(num_eligible=np.zeros(6, int), radius=capped, status=status_of(capped))
    assert nobody.whole_field.tolist() == (nobody.radius >= 0).tolist()  # not where it abstains


def test_no_radius_is_larger_than_the_number_of_nodes_that_could_attack():
    with pytest.raises(InvalidParameterError, match="`radius` must be <= `num_eligible`"):
        small_certificates(num_eligible=np.zeros(6, int))


def test_data_frame():
    certificates = small_certificates()
    frame = certificates.to_dataframe()
    assert list(frame.columns) == [
        "target",
        "node_id",
        "label",
        "prediction",
        "class_name",
        "status",
        "p_lower",
        "p_upper",
        "radius",
        "whole_field",
        "num_eligible",
        "receptive_field_size",
        *[f"delta_{radius}" for radius in range(1, 9)],
    ]
    assert frame["delta_8"].tolist() == certificates.delta_upper[:, 7].tolist()
    assert frame["class_name"].tolist() == [certificates.setup.class_names[c] for c in certificates.prediction]
    assert frame["radius"].tolist() == certificates.radius.tolist()
    plain = small_certificates(named=False).to_dataframe()
    assert {"node_id", "label", "class_name"}.isdisjoint(plain.columns)
    assert len(plain.columns) == len(frame.columns) - 3


def test_provenance_becomes_plain():
    certificates = small_certificates()
    assert certificates.setup.provenance["graph"] == {"name": "toy", "share": 0.1}
    assert type(certificates.setup.provenance["graph"]["share"]) is float


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"targets": np.arange(5)}, r"must have shape \(5 \(one per target\)"),
        ({"targets": np.array([0, 1, 2, 3, 4, 50])}, r"`targets` must be in \[0, 49\], got 50"),
        ({"targets": np.zeros(6, int)}, "`targets` must be distinct"),
        ({"prediction": np.full(6, 3)}, r"`prediction` must be in \[0, 2\], got 3"),
        (
            {"radius": np.full(6, 9), "status": np.full(6, "certified")},
            "`radius` must be <= 8, the largest that was looked at, got 9",
        ),
        ({"radius": np.full(6, 2)}, "`status` must be"),
        ({"status": np.array(["certified"] * 6)}, "`status` must be"),
        ({"p_lower": np.full(6, np.nan)}, r"`p_lower` must be in \[0.0, 1.0\], got nan"),
        ({"p_upper": np.full((6, 2), 0.1)}, "`p_upper` must have shape"),
        ({"p_upper": np.full(6, 1)}, "`p_upper` must hold float64 numbers"),
        ({"delta_upper": np.full((6, 8), 1.5)}, "`delta_upper` must be in"),
        ({"num_eligible": np.full(6, 30)}, "`num_eligible` must not exceed"),
        (
            {"receptive_field_size": np.full(6, 51)},
            "`receptive_field_size` must be <= 50, the number of nodes of the graph, got 51",
        ),
        (
            {"estimation_votes": np.ones((6, 2), int)},
            r"`estimation_votes` must have shape \(6 \(one per target\), 3 \(one per class\)\)",
        ),
        ({"labels": np.zeros(5, int)}, r"`labels` must have shape \(6 \(one per target\)\)"),
        ({"node_ids": np.arange(6)}, "`node_ids` must hold texts"),
        ({"class_names": ("a", "b")}, "`class_names` must hold one text per class"),
        ({"alpha": 1.0}, "`alpha` must be in"),
        ({"rule": "fast"}, "`rule` must be one of"),
        ({"seed": -1}, "`seed` must be >= 0"),
        ({"engine": ""}, "`engine` must be a text"),
        ({"smoothing": (0.1, 0.2)}, "`smoothing` must be a smoothing of graycert"),
        ({"threat": 1}, "`threat` must be a threat of graycert"),
        ({"threat": NodeFeatureThreat(trusted=np.zeros(3, bool))}, "one entry per node"),
        ({"provenance": {1: "a"}}, "must have text keys"),
        ({"provenance": {"a": {"b": object()}}}, "`provenance.a.b` must be a number"),
        ({"provenance": {"a": float("nan")}}, "`provenance.a` must be a number"),
    ],
)
def test_values_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        small_certificates(**changes)


def test_it_echoes_what_it_was_made_from():
    certificates = small_certificates(smoothing=InterceptionSmoothing(p_delete=0.5, p_ablate=0.5))
    assert certificates.setup.smoothing.p_delete == 0.5
    assert "6 targets" in repr(certificates)
    assert "1 abstained" in repr(certificates)
