import re
import shlex
from pathlib import Path

import pytest

import graycert
from graycert.cli.commands import every_command
from graycert.cli.explain import reasons
from graycert.cli.main import build_app
from graycert.errors import UnsoundSetupError
from support.commands import run_command

SOURCES = sorted(Path(graycert.__file__).parent.rglob("*.py"))


def refusals() -> set[str]:
    """Slugs as the source writes them: the first argument of the error, or a keyword."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
    return set(re.findall(r'(?:UnsoundSetupError\(\s*|\bslug=)"([a-z-]+)"', text))


def test_every_reason_that_the_source_gives_is_explained():
    assert len(refusals()) > 20
    assert refusals() <= set(reasons())


@pytest.mark.few(10)
@pytest.mark.parametrize("slug", sorted(reasons()))
def test_each_reason_is_shown_and_fits_a_narrow_terminal(slug, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    found = run_command(capsys, "explain", slug)
    assert found.status == 0
    lines = found.out.splitlines()
    assert lines[0] == slug
    assert max(map(len, lines)) <= 60
    first_words = reasons()[slug].replace("`", "").replace("_", " ").split()[:3]
    assert " ".join(first_words) in " ".join(lines[1:]).replace("_", " ").replace("  ", " ")


def test_an_error_says_how_to_have_its_reason_explained(capsys):
    command = re.search(r"`graycert (explain [\w-]+)`", str(UnsoundSetupError("message-leak", "No.")))
    assert command is not None
    assert run_command(capsys, *command[1].split()).status == 0


def test_without_a_reason_all_are_listed_with_their_first_sentence(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "2000")
    lines = run_command(capsys, "explain").out.splitlines()
    assert [line.split()[1].rstrip(":") for line in lines if line.strip()] == list(reasons())
    assert any(line.endswith("edge_index has the same column twice.") for line in lines)


def test_a_slip_of_the_pen_is_answered_with_the_nearest_reason(capsys):
    found = run_command(capsys, "explain", "mesage-leak")
    assert found.status == 2
    assert "Did you mean message-leak?" in found.err
    assert "Did you mean" not in run_command(capsys, "explain", "qqq").err


def test_the_record_holds_the_text(capsys):
    found = run_command(capsys, "explain", "no-proof", "--json").record
    assert found == {"command": "explain", "slug": "no-proof", "text": reasons()["no-proof"]}


@pytest.mark.few(4)
@pytest.mark.parametrize("command", every_command(), ids=lambda command: command.name)
def test_the_help_of_a_command_shows_examples_that_are_accepted(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = run_command(capsys, command.name, "--help").out
    assert "Examples:" in shown
    for line in command.examples:
        assert line in shown
        _, bound, _ = build_app().parse_args(shlex.split(line)[1:], exit_on_error=False, print_error=False)
        assert bound is not None


def test_the_help_groups_commands_and_options(capsys):
    headings = re.findall(r"╭─ (.+?) ─", run_command(capsys, "--help").out)
    assert headings == ["Commands", "Certify your model", "Read a run", "Check a run", "Plan", "Study"]
    headings = re.findall(r"╭─ (.+?) ─", run_command(capsys, "certify", "--help").out)
    assert headings[:5] == ["Parameters", "Graph", "Tables", "Model", "Training"]


@pytest.mark.few(1)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_names_every_command_and_its_options(shell, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))  # where the shell is told of the script
    script = tmp_path / "completion"
    assert run_command(capsys, "--install-completion", "--shell", shell, "--output", script).status == 0
    text = script.read_text(encoding="utf-8")
    assert all(command.name in text for command in every_command())
    assert "p-ablate" in text
