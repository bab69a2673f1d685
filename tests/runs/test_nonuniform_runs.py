"""Runs with a probability per edge or node: what is loaded is what was saved, and people are told of ranges."""

import contextlib
import json
import tomllib

import numpy as np
import pytest

from graycert import Certificates
from graycert.errors import InvalidFileError, InvalidParameterError
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from support.certificates import small_certificates

EDGES = np.random.default_rng(0).random(120)
NODES = np.random.default_rng(1).random(50)
SMOOTHINGS = {
    "edges": InterceptionSmoothing(p_delete=EDGES, p_ablate=0.1 + 0.2),
    "nodes": InterceptionSmoothing(p_delete=0.31, p_ablate=NODES),
    "both": InterceptionSmoothing(p_delete=EDGES, p_ablate=NODES),
}


@pytest.fixture
def run(tmp_path):
    return small_certificates(smoothing=SMOOTHINGS["both"]).save(tmp_path / "run")


@pytest.mark.parametrize("which", SMOOTHINGS)
def test_probabilities_are_loaded_bit_by_bit(tmp_path, which):
    saved = small_certificates(smoothing=SMOOTHINGS[which])
    run = saved.save(tmp_path / "run")
    loaded = Certificates.load(run)
    assert loaded.setup == saved.setup
    assert loaded.summary() == saved.summary()
    said = tomllib.loads((run / "config.toml").read_text())["smoothing"]
    assert said["p_delete"] == ("per edge" if which != "nodes" else 0.31)
    assert said["p_ablate"] == ("per node" if which != "edges" else 0.1 + 0.2)
    with np.load(run / "votes.npz", allow_pickle=False) as votes:
        assert {"smoothing.p_delete", "smoothing.p_ablate"} & set(votes.files) == {
            f"smoothing.{name}"
            for name in ("p_delete", "p_ablate")
            if not isinstance(getattr(saved.setup.smoothing, name), float)
        }


def test_numbers_are_stored_as_numbers(tmp_path):
    run = small_certificates().save(tmp_path / "run")
    assert tomllib.loads((run / "config.toml").read_text())["smoothing"] == {
        "name": "interception",
        "p_delete": 0.31,
        "p_ablate": 0.1 + 0.2,
    }
    with np.load(run / "votes.npz", allow_pickle=False) as votes:
        assert not {name for name in votes.files if name.startswith("smoothing.")}


def test_people_are_told_the_range(run):
    loaded = Certificates.load(run)
    edges = f"{EDGES.min()}..{EDGES.max()} (per edge)"
    nodes = f"{NODES.min()}..{NODES.max()} (per node)"
    for text in (loaded.summary(), (run / "report.html").read_text(), json.loads((run / "summary.json").read_text())):
        assert edges in str(text)
        assert nodes in str(text)


@pytest.mark.parametrize(
    ("smoothing", "message"),
    [
        (
            InterceptionSmoothing(p_delete=EDGES[:-1], p_ablate=0.5),
            r"`p_delete` .* entry per edge \(120\), got 119",
        ),
        (InterceptionSmoothing(p_delete=0.5, p_ablate=NODES[:-1]), r"`p_ablate` .* one entry per node \(50\), got 49"),
    ],
)
def test_arrays_of_another_graph_are_refused(smoothing, message):
    with pytest.raises(InvalidParameterError, match=message):
        small_certificates(smoothing=smoothing)


def rewrite_votes(run, **changes):
    with np.load(run / "votes.npz") as votes:
        arrays = dict(votes) | changes
    np.savez(run / "votes.npz", **{name: array for name, array in arrays.items() if array is not None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"smoothing.p_delete": None}, "`p_delete` must be stored as an array if and only if it says 'per edge'"),
        ({"smoothing.p_ablate": NODES + 0.5}, r"`p_ablate` must be in \[0, 1\]"),
        ({"smoothing.p_ablate": NODES[:-1]}, "one entry per node"),
        ({"smoothing.p_delete": np.array([{}] * 120, dtype=object)}, r"votes\.npz cannot be read"),
    ],
)
def test_edited_probabilities_are_refused(run, changes, message):
    rewrite_votes(run, **changes)
    with pytest.raises(InvalidFileError, match=message):
        Certificates.load(run)


@pytest.mark.parametrize(("before", "after"), [('"per edge"', "0.5"), ('"per node"', '"per edge"')])
def test_an_edited_configuration_is_refused(run, before, after):
    text = (run / "config.toml").read_text()
    assert before in text
    (run / "config.toml").write_text(text.replace(before, after, 1))
    with pytest.raises(InvalidFileError, match="if and only if"):
        Certificates.load(run)


def test_no_flipped_bit_changes_a_probability_unnoticed(run):
    content = bytearray((run / "votes.npz").read_bytes())
    for position in np.random.default_rng(0).choice(len(content), size=40, replace=False).tolist():
        content[position] ^= 0x10
        (run / "votes.npz").write_bytes(content)
        with contextlib.suppress(InvalidFileError):
            assert Certificates.load(run).setup.smoothing == SMOOTHINGS["both"]
        content[position] ^= 0x10
