import pytest

from support.certificates import small_certificates
from support.commands import FAST, run_command, write_graph


@pytest.fixture
def runs(tmp_path):
    return [small_certificates().save(tmp_path / "one"), small_certificates(rule="difference").save(tmp_path / "two")]


def test_a_page_for_a_decision_stands_beside_the_run(runs, tmp_path, capsys):
    found = run_command(capsys, "report", runs[0], "--for", "decision", "--json")
    assert found.record["files"] == [str(tmp_path / "one-decision.html")]
    page = (tmp_path / "one-decision.html").read_text(encoding="utf-8")
    assert "What is safe" in page
    assert "<script" not in page
    assert run_command(capsys, "report", runs[0], "--for", "decision").status == 2
    assert run_command(capsys, "report", runs[0], "--for", "decision", "--overwrite").status == 0


def test_a_page_of_two_runs_stands_beside_the_first(runs, tmp_path, capsys):
    before = sorted(each.name for each in runs[0].iterdir())
    found = run_command(capsys, "report", *runs)
    assert found.out.strip().endswith("one-and-two.html")
    assert "From radius to radius" in (tmp_path / "one-and-two.html").read_text(encoding="utf-8")
    assert sorted(each.name for each in runs[0].iterdir()) == before
    assert run_command(capsys, "report", *runs, "--out", tmp_path / "page.html").status == 0


def test_two_runs_have_no_page_for_a_decision(runs, capsys):
    found = run_command(capsys, "report", *runs, "--for", "decision")
    assert found.status == 2
    assert "--for" in found.err
    assert run_command(capsys, "report", runs[0], "--for", "nobody").status == 2


def test_readers_are_told_in_their_words(runs, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert run_command(capsys, "report", runs[0], "--call", "account,accounts", "--out", page).status == 0
    assert "6 accounts each keep their smoothed prediction" in page.read_text(encoding="utf-8")
    said = run_command(capsys, "report", runs[0], "--for", "decision", "--call", "account,accounts")
    assert said.status == 0
    assert "6 accounts each keep" in (tmp_path / "one-decision.html").read_text(encoding="utf-8")
    for refused in (["--call", "account,accounts"], ["--call", "account", "--out", tmp_path / "other.html"]):
        found = run_command(capsys, "report", runs[0], *refused)
        assert found.status == 2
        assert "--call" in found.err
    assert not (tmp_path / "other.html").exists()


def test_runs_that_cannot_be_compared_leave_no_page(runs, tmp_path, capsys):
    other = small_certificates(named=False, edges_fingerprint="sha256:" + "2" * 64, graph_fingerprint="other")
    found = run_command(capsys, "report", runs[0], other.save(tmp_path / "other"))
    assert found.status == 2
    assert not (tmp_path / "one-and-other.html").exists()


def test_drawings_come_from_a_graph(tmp_path, capsys, monkeypatch):
    from graycert.runs import votes_file

    graph = write_graph(tmp_path / "ring.npz")
    monkeypatch.setattr(votes_file, "neighbourhoods_of", lambda _: None)
    run = tmp_path / "run"
    assert run_command(capsys, "certify", "--graph", graph, *FAST, "--out", run).status == 0
    monkeypatch.undo()
    assert run_command(capsys, "report", run).status == 0
    assert '"fields":null' in (run / "report.html").read_text(encoding="utf-8")
    page = tmp_path / "page.html"
    assert run_command(capsys, "report", run, "--graph", graph, "--out", page).status == 0
    assert '"fields":{' in page.read_text(encoding="utf-8")
    assert '"fields":null' in (run / "report.html").read_text(encoding="utf-8")
    assert run_command(capsys, "report", run, "--graph", "stored").status == 0
    assert '"fields":{' in (run / "report.html").read_text(encoding="utf-8")
    assert run_command(capsys, "verify", run).status == 0
    assert run_command(capsys, "report", run, "--graph", "karate").status == 2
    found = run_command(capsys, "report", run, "--for", "decision", "--graph", graph)
    assert found.status == 2
    assert "--graph" in found.err
