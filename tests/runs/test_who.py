"""Who matters, by name (CASES F12), and single targets in words."""

import json

import numpy as np
import pytest

import graycert
from graycert.errors import InvalidParameterError
from support.certified_groups import TARGETS, trained_model
from support.commands import run_command
from support.every_smoothing import FEW, OTHERS, any_case, made, small_graph
from support.few_frauds import FindsFraud, few_frauds


def limited_by(c):
    """Which targets each node limits, target by target."""
    found = {}
    for row in range(len(c)):
        if c.radius[row] < 0 or c.radius[row] >= c.num_eligible[row]:
            continue
        for node in c.attackers[row]:
            if node >= 0:
                found.setdefault(int(node), []).append(row)
    return found


@pytest.mark.few(2)
@pytest.mark.parametrize("case", ["interception", "event-aware", "until-decided", "arrays-and-trusted-nodes"])
def test_nodes_are_named_with_the_targets_that_they_limit(case, tmp_path):
    c = made(case)
    expected = limited_by(c)
    found = c.protect_first(top=100)
    assert {each.node: each.targets for each in found.nodes} == {node: len(rows) for node, rows in expected.items()}
    counts = [each.targets for each in found.nodes]
    assert counts == sorted(counts, reverse=True)
    assert len({row for rows in expected.values() for row in rows}) == found.limited
    for each in found.nodes:
        assert each.name == f"node {each.node}"
        names = [c.setup.class_names[c.prediction[row]] for row in expected[each.node]]
        assert each.classes == {name: names.count(name) for name in each.classes}
        assert sum(each.classes.values()) == each.targets
    assert [each.node for each in c.protect_first(top=2).nodes] == [each.node for each in found.nodes[:2]]
    frame = c.to_dataframe()["protect_first"].tolist()
    limited = {row for rows in expected.values() for row in rows}
    named = [[f"node {node}" for node in c.attackers[row] if node >= 0] for row in range(len(c))]
    assert frame == [names if row in limited else [] for row, names in enumerate(named)]
    loaded = graycert.Certificates.load(c.save(tmp_path / "run"))
    assert loaded.to_dataframe()["protect_first"].tolist() == frame
    assert str(loaded.protect_first()) == str(c.protect_first())
    page = (tmp_path / "run" / "report.html").read_text()
    assert page.index("<h2>Protect first</h2>") < page.index(">All targets</h2>")
    assert f'<th scope="row"><bdi>{found.nodes[0].name}</bdi></th>' in page
    record = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert [each["name"] for each in record["protect_first"]] == [each.name for each in found.nodes[:10]]
    assert f"{found.nodes[0].name} ({found.nodes[0].targets} targets)" in c.summary()
    assert graycert.verify(tmp_path / "run", data=small_graph()).passed


def test_what_trusting_them_gains_is_what_the_same_votes_give():
    c, data = made("interception"), small_graph()
    found = c.protect_first(data, top=4)
    assert [each.trusted for each in found.gains] == [1, 3, 4]
    for each in found.gains:
        trusted = np.zeros(42, dtype=bool)
        trusted[[node.node for node in found.nodes[: each.trusted]]] = True
        again = c.again(data, threat=graycert.NodeFeatureThreat(min_distance=1, trusted=trusted))
        better = [
            new > old or (new >= most_new and old < most_old)
            for new, most_new, old, most_old in zip(
                again.radius, again.num_eligible, c.radius, c.num_eligible, strict=True
            )
        ]
        assert each.rising == sum(better)
        rows = [row for row in range(len(c)) if 0 <= c.radius[row] < c.num_eligible[row]]
        assert each.delta_before == np.mean([c.delta_upper[row, c.radius[row]] for row in rows])
        assert each.delta_after == np.mean([again.delta_upper[row, c.radius[row]] for row in rows])
        assert each.delta_after < each.delta_before
        assert each.held_after == tuple(int((again.radius >= np.minimum(r, again.num_eligible)).sum()) for r in (1, 3))
    assert found.gains[-1].rising > 0
    assert "from the same votes" in str(found)


def test_where_trusted_nodes_are_shown_only_the_bound_is_compared():
    trusted = np.arange(42) % 7 == 1
    smoothing = graycert.InterceptionSmoothing(p_delete=0.5, p_ablate=np.where(trusted, 0.0, 0.6))
    threat = graycert.NodeFeatureThreat(min_distance=1, trusted=trusted)
    c = graycert.certify(
        trained_model(), small_graph(), targets=TARGETS, smoothing=smoothing, threat=threat, draws=FEW, max_radius=6
    )
    found = c.protect_first(small_graph(), top=1)
    assert found.gains[0].held_after is None
    assert found.gains[0].delta_after < found.gains[0].delta_before
    assert "votes would be others" in str(found)


@pytest.mark.parametrize("case", ["sparse", "subgraphs", "features-only", "edge-deletion"])
def test_who_does_not_know_says_so(case):
    with pytest.raises(InvalidParameterError, match="must know which nodes harm a target most"):
        made(case).protect_first()
    assert "Protect first" not in made(case).summary()


@any_case
def test_every_target_of_every_smoothing_is_explained(case):
    c = made(case)
    for row, node in enumerate(c.targets.tolist()):
        text = c.explain(f"node {node}")
        assert text == c.explain(node)
        assert text.startswith(f"Target node {node} (index {node})\n")
        name = c.setup.class_names[c.prediction[row]]
        assert f"Prediction: '{name}'." in text or c.radius[row] < 0
        if c.whole_field[row]:
            assert "holds whatever all of them do together" in text
        elif c.radius[row] > 0:
            unit, radius = c.setup.threat.unit, c.radius[row]
            whom = f"one hostile {unit[:-1]}" if radius == 1 else f"{radius} hostile {unit}"
            assert f"{radius}: it holds against any {whom};" in text
        if c.estimation_votes is not None and c.estimation_votes[row].any():
            assert f"{c.estimation_votes[row].max():,} for" in text
    for wrong in ("nobody", 40, -1):
        with pytest.raises(InvalidParameterError, match="`node` must be the name"):
            c.explain(wrong)


def test_what_one_more_radius_needs_is_enough():
    data = few_frauds()
    smoothing = graycert.InterceptionSmoothing(p_delete=0.5, p_ablate=0.8)
    c = graycert.certify(FindsFraud(), data, targets=[5], smoothing=smoothing, threat=OTHERS, draws=FEW)
    found = set()
    for winning in range(160, 300, 7):
        votes = np.array([[winning, 300 - winning]])
        some = c.replace(estimation_votes=votes, selection_votes=np.array([[50, 0]]), prediction=np.array([0]))
        some = some.again(data)
        text, radius = some.explain(5), int(some.radius[0])
        if "votes would do" not in text:
            continue
        enough = int(text.split(" of 300 votes would do")[0].split()[-1])
        assert enough > winning
        for number, expected in ((enough, True), (enough - 1, False)):
            more = some.replace(estimation_votes=np.array([[number, 300 - number]])).again(data)
            assert (more.radius[0] > radius) == expected
        found.add(radius)
    assert len(found) > 2


def test_the_command_line_says_the_same(tmp_path, capsys):
    c = made("interception")
    folder = c.save(tmp_path / "run")
    found = run_command(capsys, "inspect", folder, "--targets", "node 4", "node 17", "--json")
    assert found.record["targets"] == {name: c.explain(name) for name in ("node 4", "node 17")}
    found = run_command(capsys, "inspect", folder, "--top", "3")
    assert found.out.strip() == str(c.protect_first(top=3))
    assert "not at hand" in found.err
    found = run_command(capsys, "inspect", folder, "--targets", "nobody")
    assert found.status == 2
    assert "`node` must be" in found.err


def test_numbered_classes_are_told_from_counts():
    setup = made("interception").setup
    found = made("interception").replace(setup=setup.replace(class_names=None)).protect_first()
    for each in found.nodes:
        assert each.of_classes == ", ".join(f"{count} of class {name}" for name, count in each.classes.items())
