"""What is drawn of receptive fields, beside the graph itself."""

import networkx as nx
import numpy as np
import pytest

import graycert
from graycert.bounds.single_source import single_source_bound
from graycert.errors import InvalidFileError
from graycert.runs import neighbourhoods
from graycert.runs.neighbourhoods import FIXED, HOSTILE, TRUSTED, neighbourhoods_of
from support.every_smoothing import CASES, SMOOTHING, certify_case, made, small_graph

NOT_DRAWN = ("ablation-global", "sparse")  # nothing is assumed of where messages go
VOTES = [case for case in CASES if CASES[case]["smoothing"].name == "votes"]
DRAWN = [case for case in CASES if case not in (*NOT_DRAWN, *VOTES)]


@pytest.fixture(scope="module")
def graph():
    found = nx.DiGraph()
    found.add_nodes_from(range(42))
    found.add_edges_from(small_graph().edge_index.t().tolist())
    return found


def fields(found):
    """Per target: row, nodes, hops, roles."""
    for place, row in enumerate(found.rows.tolist()):
        span = slice(found.indptr[place], found.indptr[place + 1])
        yield row, found.nodes[found.places[span]].tolist(), found.hops[span].tolist(), found.roles[span].tolist()


@pytest.mark.few(6)
@pytest.mark.parametrize("case", DRAWN)
def test_fields_are_those_of_the_graph(case, graph):
    certificates = made(case)
    found = neighbourhoods_of(certificates)
    setup = certificates.setup
    depth = setup.threat.reach(setup.num_layers) if case == "edge-deletion" else setup.num_layers
    depth += case in ("node-deletion", "node-insertion")  # convolutions of this model are degree-normalised
    assert sorted(found.rows.tolist()) == list(range(len(certificates)))
    for row, nodes, hops, _ in fields(found):
        expected = nx.single_source_shortest_path_length(graph.reverse(), int(certificates.targets[row]), cutoff=depth)
        assert dict(zip(nodes, hops, strict=True)) == expected
    edges = {(int(found.nodes[s]), int(found.nodes[t])) for s, t in found.edges.T.tolist()}
    known = set(found.nodes.tolist())
    assert edges == {(s, t) for s, t in graph.edges if s != t and {s, t} <= known}
    assert found.names.tolist() == [f"node {number}" for number in found.nodes.tolist()]
    assert not found.left_out.any()


@pytest.mark.parametrize("case", DRAWN)
def test_roles_are_those_of_the_threat(case):
    certificates = made(case)
    threat = certificates.setup.threat
    trusted = getattr(threat, "trusted", None)
    for row, nodes, hops, roles in fields(neighbourhoods_of(certificates)):
        for node, away, role in zip(nodes, hops, roles, strict=True):
            if trusted is not None and trusted[node]:
                assert role == TRUSTED
            elif threat.unit != "nodes" or away < getattr(threat, "min_distance", 1):
                assert role == FIXED
            else:
                assert role == HOSTILE
        if threat.within_field and threat.unit == "nodes":
            assert roles.count(HOSTILE) == certificates.num_eligible[row]


def test_influence_is_the_bound_of_a_single_node(graph):
    certificates = made("interception")
    found = neighbourhoods_of(certificates)
    values = iter(found.influence.tolist())
    for row, nodes, _, roles in fields(found):
        target = int(certificates.targets[row])
        for node, role in zip(nodes, roles, strict=True):
            shown = next(values)
            if role != HOSTILE:
                assert shown == 0
                continue
            lengths = [len(path) - 1 for path in nx.all_simple_paths(graph, node, target, cutoff=2)]
            p = {"p_delete": SMOOTHING.p_delete, "p_ablate": SMOOTHING.p_ablate}
            assert shown == pytest.approx(single_source_bound(lengths, **p), abs=1e-12)


def test_smoothings_without_bounds_of_single_nodes_have_no_influence():
    assert neighbourhoods_of(made("retention")).influence is None
    assert neighbourhoods_of(made("sparse")) is None


@pytest.mark.parametrize("case", VOTES)
def test_of_votes_the_voters_are_drawn_with_what_they_could_take(case, graph):
    certificates = made(case)
    found = neighbourhoods_of(certificates)
    values = iter(found.influence.tolist())
    threat, ballots = certificates.setup.threat, certificates.ballots
    for row, nodes, hops, roles in fields(found):
        target = int(certificates.targets[row])
        voters = certificates.voters[row][certificates.voters[row] >= 0].tolist()
        assert sorted(nodes) == sorted([target, *voters])
        away = nx.single_source_shortest_path_length(graph.reverse(), target)
        scores = certificates.scores[row].astype(float)
        scores[certificates.prediction[row]] = -np.inf
        first, rival = int(certificates.prediction[row]), int(scores.argmax())
        for node, distance, role in zip(nodes, hops, roles, strict=True):
            assert distance == min(away.get(node, 99), 7)
            trusted = threat.trusted is not None and threat.trusted[node]
            assert role == (TRUSTED if trusted else HOSTILE if distance >= threat.min_distance else FIXED)
            share = (int(ballots[node, first]) - int(ballots[node, rival]) + 2**20) / 2**21
            counts = role == HOSTILE and node != target and certificates.num_eligible[row] > 0
            assert next(values) == (share if counts else 0)


def test_large_fields_are_cut_to_the_worst_set_and_the_most_influential(monkeypatch):
    certificates = made("interception")
    whole = neighbourhoods_of(certificates)
    monkeypatch.setattr(neighbourhoods, "MOST_NODES", 6)
    cut = neighbourhoods_of(certificates.replace())
    assert (np.diff(cut.indptr) <= 6).all()
    assert (np.diff(cut.indptr) + cut.left_out == np.diff(whole.indptr)).all()
    start = 0
    for place, (row, nodes, hops, _) in enumerate(fields(cut)):
        assert nodes[0] == certificates.targets[row]
        assert hops == sorted(hops)
        assert set(certificates.attackers[row][certificates.attackers[row] >= 0].tolist()) <= set(nodes)
        start += len(nodes)
        assert cut.indptr[place + 1] == start


def test_of_too_many_the_weakest_targets_are_drawn(monkeypatch):
    certificates = made("interception")
    monkeypatch.setattr(neighbourhoods, "MOST_ENTRIES", 60)
    found = neighbourhoods_of(certificates.replace())
    assert 0 < found.rows.size < len(certificates)
    others = np.setdiff1d(np.arange(len(certificates)), found.rows)
    assert certificates.radius[found.rows].max() <= certificates.radius[others].min()
    monkeypatch.setattr(neighbourhoods, "MOST_EDGES", found.edges.shape[1] - 1)
    assert neighbourhoods_of(certificates.replace()).rows.size == found.rows.size // 2
    monkeypatch.setattr(neighbourhoods, "MOST_EDGES", -1)
    assert neighbourhoods_of(certificates.replace()) is None


@pytest.mark.few(4)
@pytest.mark.parametrize("case", DRAWN)
def test_they_are_kept_with_the_run(case, tmp_path):
    loaded = graycert.Certificates.load(made(case).save(tmp_path / "run"))
    assert loaded.graph is None
    assert loaded.neighbourhoods.differs_from(neighbourhoods_of(made(case)), tolerance=0) == ""
    concluded = loaded.again(small_graph())
    assert neighbourhoods_of(concluded).differs_from(loaded.neighbourhoods, tolerance=0) == ""


def changed(folder, name, change):
    with np.load(folder / "votes.npz") as votes:
        arrays = dict(votes)
    arrays[f"neighbourhood_{name}"] = change(arrays[f"neighbourhood_{name}"].copy())
    np.savez_compressed(folder / "votes.npz", **arrays)


def set_last(array, value):
    array[..., -1] = value
    return array


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("hops", lambda a: set_last(a, 1)),
        ("roles", lambda a: set_last(a, 1)),
        ("influence", lambda a: set_last(a, a[-1] + 1e-9)),
        ("left_out", lambda a: set_last(a, 1)),
        ("names", lambda a: np.array([*a[:-1], "somebody else"])),
        ("edges", lambda a: a[:, :-1]),
        ("rows", lambda a: a[::-1]),
    ],
)
def test_a_changed_drawing_is_a_difference(name, change, tmp_path):
    folder = made("interception").save(tmp_path / "run")
    assert graycert.verify(folder, data=small_graph()).passed
    changed(folder, name, change)
    graycert.Certificates.load(folder).save(folder, overwrite=True)
    failed = [check.name for check in graycert.verify(folder, data=small_graph()).checks if not check.passed]
    assert failed[0] == "neighbourhoods"


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("rows", lambda a: set_last(a, 12)),
        ("indptr", lambda a: set_last(a, a[-1] + 1)),
        ("indptr", lambda a: a[:-1]),
        ("places", lambda a: set_last(a, 10_000)),
        ("hops", lambda a: set_last(a, -1)),
        ("roles", lambda a: set_last(a, 3)),
        ("influence", lambda a: set_last(a, np.nan)),
        ("influence", lambda a: a[1:]),
        ("edges", lambda a: a.ravel()),
        ("names", lambda a: a[1:]),
        ("hops", lambda a: a.astype(float)),
    ],
)
def test_an_impossible_drawing_is_refused(name, change, tmp_path):
    folder = made("interception").save(tmp_path / "run")
    changed(folder, name, change)
    with pytest.raises(InvalidFileError, match=rf"neighbourhood_{name}` does not fit"):
        graycert.Certificates.load(folder)


def test_half_a_drawing_is_refused(tmp_path):
    folder = made("interception").save(tmp_path / "run")
    with np.load(folder / "votes.npz") as votes:
        arrays = {name: array for name, array in votes.items() if name != "neighbourhood_places"}
    np.savez_compressed(folder / "votes.npz", **arrays)
    with pytest.raises(InvalidFileError, match="must hold"):
        graycert.Certificates.load(folder)


def test_without_steps_of_the_model_nothing_is_drawn():
    assert neighbourhoods_of(certify_case("ablation-global")) is None
