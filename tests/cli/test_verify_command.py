import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from graycert.cli.main import main
from support.commands import FAST, left_behind, run_command, write_graph


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("verified")
    write_graph(folder / "ring.npz")
    assert (
        main(["certify", "--graph", str(folder / "ring.npz"), *FAST, "--alpha", "0.3", "--out", str(folder / "run")])
        == 0
    )
    return folder


@pytest.fixture
def run(made, tmp_path) -> Path:
    shutil.copytree(made / "run", tmp_path / "run")
    return tmp_path / "run"


def test_an_untouched_run_verifies(run, capsys):
    found = run_command(capsys, "verify", run)
    assert found.status == 0, found.err
    assert "All of them agree." in found.out
    assert "what was drawn or evaluated" in found.out  # what is not redone is told
    record = run_command(capsys, "verify", run, "--json").record
    names = [check["name"] for check in record["checks"]]
    assert record["passed"]
    assert len(set(names)) == len(names)
    for name in ("graph", "targets", "label", "delta_upper", "radius", "p_lower", "summary.json", "report.html"):
        assert name in names


def test_votes_drawn_again_are_the_same_votes(run, capsys):
    found = run_command(capsys, "verify", run, "--redraw", "--json")
    assert found.status == 0
    names = [check["name"] for check in found.record["checks"]]
    assert names[-5:-4] == ["model audit"]
    assert names[-4:-2] == ["prediction_as_trained", "prediction_without_messages"]
    assert names[-2:] == ["selection_votes", "estimation_votes"]
    protect, chosen = found.record["not_redone"]
    assert protect == "which nodes to protect first: no certificate rests on them"
    assert chosen.startswith("how the targets were chosen: ")


def test_that_all_nodes_are_targets_was_no_choice(made, tmp_path, capsys):
    command = ["certify", "--graph", str(made / "ring.npz"), *FAST, "--targets", "all", "--out", str(tmp_path / "all")]
    assert main(command) == 0
    found = run_command(capsys, "verify", tmp_path / "all", "--json")
    assert found.status == 0
    assert "targets were chosen" not in " ".join(found.record["not_redone"])


def test_other_weights_do_not_pass_for_the_model_that_voted(run, capsys, made):
    other = made / "other"
    if not other.exists():
        assert main(["certify", "--graph", str(made / "ring.npz"), *FAST, "--seed", "5", "--out", str(other)]) == 0
    shutil.copy(other / "model.safetensors", run / "model.safetensors")
    found = run_command(capsys, "verify", run)
    assert found.status == 1
    assert "model.safetensors" in found.err


def test_a_missing_model_is_said_to_be_unchecked(run, capsys):
    (run / "model.safetensors").unlink()
    found = run_command(capsys, "verify", run, "--json")
    assert found.status == 0
    assert any("model.safetensors is not in the folder" in text for text in found.record["not_redone"])


def test_the_graph_may_have_moved(run, made, tmp_path, capsys):
    shutil.copy(made / "ring.npz", tmp_path / "moved.npz")
    assert run_command(capsys, "verify", run, "--graph", tmp_path / "moved.npz").status == 0


def test_a_graph_that_changed_is_told(run, tmp_path, capsys):
    write_graph(tmp_path / "changed.npz", extra_edges=1)
    found = run_command(capsys, "verify", run, "--graph", tmp_path / "changed.npz")
    assert found.status == 1
    assert "the graph is not the one that was certified" in found.err
    assert "FAIL  graph" in found.out


@pytest.mark.parametrize("column", ["p_lower", "p_upper", "delta_1", "num_eligible", "prediction", "label", "radius"])
def test_every_changed_column_is_found(run, column, capsys):
    _change(run / "certificates.parquet", column)
    found = run_command(capsys, "verify", run)
    assert found.status == 1, found.err
    expected = "delta_upper" if column == "delta_1" else column
    assert f"does not verify: {expected}: node " in found.err
    assert "stored" in found.err
    assert "recomputed" in found.err


def test_a_changed_summary_and_a_changed_page_are_found(run, capsys):
    page = (run / "report.html").read_text()
    (run / "report.html").write_text(page.replace("hostile", "friendly", 1))
    found = run_command(capsys, "verify", run)
    assert (found.status, "report.html" in found.err) == (1, True)
    (run / "report.html").unlink()
    assert run_command(capsys, "report", run).status == 0
    assert (run / "report.html").read_text() == page
    assert run_command(capsys, "verify", run).status == 0
    summary = (run / "summary.json").read_text()
    (run / "summary.json").write_text(summary.replace('"num_abstained": ', '"num_abstained": 1'))
    found = run_command(capsys, "verify", run)
    assert (found.status, "num_abstained" in found.err) == (1, True)


def test_targets_that_are_not_the_test_nodes_of_the_split_are_found(run, capsys):
    _edit(run / "config.toml", "[provenance.split]", "seed = 0", "seed = 1")
    found = run_command(capsys, "verify", run)
    assert found.status == 1
    assert "targets: the 6 targets are NOT the test nodes of the inductive split with seed 1" in found.err


def test_smoothing_that_was_not_used_is_found(run, capsys):
    _edit(run / "config.toml", "[smoothing]", "p_delete = 0.31", "p_delete = 0.3")
    found = run_command(capsys, "verify", run)
    assert found.status == 1
    assert "delta_upper: node " in found.err


def test_a_graph_section_that_is_none_is_wrong_input(run, capsys):
    _edit(run / "config.toml", "[provenance.graph.options]", "", "colour = true")
    found = run_command(capsys, "verify", run)
    assert (found.status, "provenance.graph.options" in found.err) == (2, True)


@pytest.mark.parametrize("name", ["config.toml", "certificates.parquet", "votes.npz", "summary.json", "report.html"])
def test_damaged_files_are_wrong_input_and_named(run, name, capsys):
    content = (run / name).read_bytes()
    (run / name).write_bytes(content[: len(content) // 2])
    found = run_command(capsys, "verify", run)
    assert found.status == 2
    assert name in found.err
    assert found.out == ""


def test_what_is_no_run_is_wrong_input(tmp_path, capsys):
    assert run_command(capsys, "verify", tmp_path).status == 2
    assert run_command(capsys, "verify", tmp_path / "nothing").status == 2


def test_a_page_can_be_written_elsewhere(run, tmp_path, capsys):
    assert run_command(capsys, "report", run, "--out", tmp_path / "page.html").status == 0
    assert (tmp_path / "page.html").read_text() == (run / "report.html").read_text()
    refused = run_command(capsys, "report", run, "--out", tmp_path / "page.html")
    assert refused.status == 2
    assert [name for name in left_behind(tmp_path) if "/" not in name] == ["page.html", "run"]


def _edit(path: Path, section: str, old: str, new: str) -> None:
    """Replace a line of a section; an empty ``old`` adds the line, and the section if it is missing."""
    before, heading, after = path.read_text().partition(section)
    after = after.replace(old, new, 1) if old else f"\n{new}{after}"
    path.write_text(before + (heading or f"\n{section}") + after)


def _change(path: Path, column: str) -> None:
    """Change one cell by the least that matters, everything else stays valid."""
    table = pq.read_table(path)
    frame = {name: table[name].to_pylist() for name in table.column_names}
    row = 0
    if column == "radius":  # consistently, as a forger would
        frame["radius"][row] = 4 if frame["radius"][row] != 4 else 3
        frame["status"][row] = "certified"
        frame["whole_field"][row] = frame["radius"][row] >= frame["num_eligible"][row]
    elif column in ("prediction", "label"):
        frame[column][row] = 1 - frame[column][row]
    elif column == "num_eligible":
        frame[column][row] += 1
        frame["whole_field"][row] = frame["radius"][row] >= frame[column][row]
    else:
        frame[column][row] *= 1 - 1e-9
    if column in ("radius", "num_eligible"):
        attackers = np.load(path.with_name("votes.npz"))["attackers"][row]
        limits = not frame["whole_field"][row] and frame["radius"][row] >= 0
        frame["protect_first"][row] = [str(node) for node in attackers if node >= 0] if limits else []
    import pyarrow as pa

    arrays = [pa.array(frame[name], type=table.schema.field(name).type) for name in table.column_names]
    changed = pa.table(arrays, schema=table.schema)
    pq.write_table(changed, path, compression="zstd", write_page_checksum=True)


def test_a_graph_that_is_gone_is_asked_for(run, made, tmp_path, capsys):
    hidden = tmp_path / "ring.npz"
    shutil.move(made / "ring.npz", hidden)
    try:
        found = run_command(capsys, "verify", run)
    finally:
        shutil.move(hidden, made / "ring.npz")
    assert found.status == 2
    assert "if they have moved, pass `--graph`" in found.err
