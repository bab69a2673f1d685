"""Every parameter has a home in the files of a run, and comes back exactly."""

import dataclasses
import tomllib
from fractions import Fraction

import numpy as np
import pytest

import graycert
from graycert.draws import DRAWS
from graycert.errors import InvalidParameterError
from graycert.smoothing import SMOOTHINGS
from graycert.threats import THREATS
from support.certificates import small_certificates
from support.certified_groups import certify_groups, three_groups
from support.every_smoothing import certify_case, made, small_graph


def config_of(folder):
    return tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kinds", [SMOOTHINGS, THREATS, DRAWS], ids=["smoothings", "threats", "draws"])
def test_every_parameter_is_declared_for_files_and_people(kinds):
    for kind in kinds.values():
        for field in dataclasses.fields(kind):
            assert field.metadata["help"].endswith("."), (kind.name, field.name)
            assert "option" in field.metadata


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("ratio", "exact"), [("1/6", "1/6"), (0.07, "7/100"), (Fraction(2, 7), "2/7"), ("0.25", "1/4")]
)
def test_a_ratio_stays_exact(tmp_path, ratio, exact):
    smoothing = graycert.UniformRetention(keep_ratio=ratio, tau=12)
    found = certify_case("retention", smoothing=smoothing, targets=[4, 0], max_radius=2)
    folder = found.save(tmp_path / "run")
    assert config_of(folder)["smoothing"] == {"name": "retention", "keep_ratio": exact, "tau": 12}
    loaded = graycert.Certificates.load(folder).setup.smoothing
    assert loaded.keep_ratio == Fraction(exact)
    assert loaded == smoothing


@pytest.mark.parametrize(
    ("case", "section", "expected"),
    [
        ("ablation-local", "smoothing", {"name": "randomized-ablation", "scope": "local", "num_kept": 3}),
        ("ablation-global", "smoothing", {"name": "randomized-ablation", "scope": "global", "p_ablate": 0.9}),
        ("sparse", "smoothing", {"name": "sparse", "p_plus": 0.05, "p_minus": 0.6}),
        ("sparse", "threat", {"name": "attribute-flips", "max_additions": 2}),
        ("subgraphs", "smoothing", {"name": "subgraphs", "num_subgraphs": 9}),
        ("features-only", "smoothing", {"name": "features-only"}),
        (
            "until-decided",
            "draws",
            {"name": "until-decided", "num_selection": 50, "max_estimation": 300, "batch": 32, "give_up": 0.07},
        ),
        ("interception", "draws", {"name": "fixed", "num_selection": 50, "num_estimation": 300}),
        (
            "edge-deletion",
            "threat",
            {"name": "edge-deletion", "convolution": "degree-normalised", "min_distance": 1},
        ),
        ("node-insertion", "threat", {"name": "node-insertion", "min_distance": 2}),
    ],
)
def test_parameters_are_stored_by_their_names(tmp_path, case, section, expected):
    folder = made(case).save(tmp_path / "run")
    assert config_of(folder)[section] == expected
    assert getattr(graycert.Certificates.load(folder).setup, section) == getattr(made(case).setup, section)


def test_what_is_not_drawn_has_no_section(tmp_path):
    folder = made("subgraphs").save(tmp_path / "run")
    config = config_of(folder)
    assert "draws" not in config
    assert "max_radius" not in config["certificate"]  # all radii are known
    assert graycert.Certificates.load(folder).setup.draws is None


def test_without_a_largest_radius_it_is_as_far_as_a_certificate_can_go(tmp_path):
    found = made("no-largest-radius")
    radius = found.setup.max_radius
    assert isinstance(radius, int)
    assert found.delta_upper.shape == (12, radius)
    assert radius >= found.radius.max()
    wide = certify_case("no-largest-radius", max_radius=radius + 3)
    assert wide.radius.tolist() == found.radius.tolist()
    folder = found.save(tmp_path / "run")
    assert config_of(folder)["certificate"]["max_radius"] == radius
    assert graycert.verify(folder, data=small_graph()).passed


def test_groups_of_one_adversary_come_back_and_verify(tmp_path):
    run = certify_groups()
    groups, limits = np.arange(42) % 2, np.array([1, 0])
    free = run.against_one_adversary(three_groups(), [1, 5])
    held = run.against_one_adversary(three_groups(), [1, 5], groups=groups, group_budgets=limits)
    assert held.num_robust[1] > free.num_robust[1]
    folder = run.replace(collective=held).save(tmp_path / "run")
    loaded = graycert.Certificates.load(folder)
    assert loaded.collective.groups.tolist() == groups.tolist()
    assert loaded.collective.group_budgets.tolist() == [1, 0]
    assert "42 nodes in 2 groups at most 1, 0 per group" in loaded.summary()
    found = graycert.verify(folder, data=three_groups())
    assert found.passed, str(found)
    claimed = dataclasses.replace(held, groups=None, group_budgets=None)
    forged = run.replace(collective=claimed).save(tmp_path / "forged")
    assert "collective" in [
        check.name for check in graycert.verify(forged, data=three_groups()).checks if not check.passed
    ]


@pytest.mark.parametrize(
    "changes", [{"groups": None}, {"group_budgets": None}, {"groups": np.zeros(41, dtype=np.int64)}]
)
def test_groups_that_do_not_fit_are_refused(changes):
    run = certify_groups()
    held = run.against_one_adversary(three_groups(), [1], groups=np.zeros(42, dtype=np.int64), group_budgets=[1])
    with pytest.raises(InvalidParameterError, match=r"`collective.groups` must have one entry per node \(42\)"):
        run.replace(collective=dataclasses.replace(held, **changes))


def test_provenance_and_names_come_back(tmp_path):
    provenance = {"model": {"name": "toy", "depth": 2}, "notes": ["a", "b"], "share": 0.1}
    saved = small_certificates(provenance=provenance)
    loaded = graycert.Certificates.load(saved.save(tmp_path / "run"))
    assert dict(loaded.setup.provenance) == provenance
    assert loaded.setup.class_names == saved.setup.class_names
