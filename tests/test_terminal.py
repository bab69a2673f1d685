import shlex

import pytest

from graycert import _terminal
from graycert._terminal import table_text, wrapped
from graycert.cli.main import main
from support.commands import write_graph
from support.every_smoothing import made

COLUMNS = ("class", "targets", "certified and correct, or the whole field")
ROWS = [("an extraordinarily long name of a class", "1,000", "99.9 %"), ("b", "20", "5.0 %")]


@pytest.fixture
def narrow(monkeypatch):
    monkeypatch.setattr(_terminal, "shown_width", lambda: 60)


def test_without_a_terminal_nothing_is_folded():
    lines = table_text(COLUMNS, ROWS, left=1).splitlines()
    assert len(lines) == 3
    assert lines[2].split() == ["b", "20", "5.0", "%"]
    assert wrapped("word " * 40) == "word " * 40


def test_a_narrow_terminal_folds_cells_and_loses_nothing(narrow):
    text = table_text(COLUMNS, ROWS, left=1)
    assert max(map(len, text.splitlines())) <= 60
    assert sorted("".join(text.split())) == sorted("".join("".join([*COLUMNS, *ROWS[0], *ROWS[1]]).split()))


def test_a_table_that_fits_is_as_elsewhere(narrow):
    text = table_text(("a", "b"), [("1", "2")])
    assert text == "a  b\n1  2"


def test_markup_in_cells_is_text(narrow):
    assert "[bold]" in table_text(("a" * 40, "b" * 40), [("[bold]x", "[/]")])


def test_lines_end_between_words_and_keep_their_indent(narrow):
    lines = wrapped("  " + "word " * 30).splitlines()
    assert len(lines) > 2
    assert all(line.startswith("  word") and len(line) <= 60 for line in lines)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("narrow")
    write_graph(folder / "ring.npz", extra_edges=7)
    made("interception").save(folder / "run")
    return folder


@pytest.mark.parametrize(
    "words",
    [
        "datasets",
        "bounds --graph ring.npz --quiet",
        "bounds --graph ring.npz --grid 0.3:0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9 --quiet",
        "inspect run",
        "inspect run --targets 'node 4'",
        "compare run run",
        "explain",
        "reproduce --list",
    ],
)
def test_commands_fit_sixty_columns(words, folder, narrow, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "60")
    main(shlex.split(words))
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines, shown.err
    assert not [line for line in lines if len(line) > 60 and " " in line.strip()]


def test_a_kernel_of_a_notebook_is_known(monkeypatch):
    import sys
    from types import SimpleNamespace

    assert not _terminal.in_notebook()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object())))
    assert _terminal.in_notebook()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert not _terminal.in_notebook()
