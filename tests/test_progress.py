import itertools
import sys

import pytest

from graycert import Execution
from graycert._compilation import announced
from graycert._progress import progress_bar


@pytest.mark.parametrize("shown", [True, False])
def test_nothing_is_written_without_a_terminal(shown: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("drawing", total=3, unit="draws", shown=shown) as advance:
        advance(2)
        advance(1, "nearly there")
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_work_note_count_and_rate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "120"}.items():
        monkeypatch.setenv(name, value)
    with progress_bar("drawing", total=4, unit="draws", shown=True) as advance:
        advance(1)
        advance(3, "nearly there")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "drawing, nearly there" in shown.err
    assert "4/4" in shown.err


def test_reports_minutes_apart_have_a_rate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "120"}.items():
        monkeypatch.setenv(name, value)
    now = itertools.count(0, 0.001)
    passed = [0.0]
    monkeypatch.setattr("rich.console.monotonic", lambda: passed[0] + next(now))
    with progress_bar("certifying", total=40_000, unit="targets", shown=True) as advance:
        for _ in range(3):
            passed[0] += 100
            advance(1_000)
    assert "10 targets/s" in capsys.readouterr().err


def test_that_kernels_are_compiled_first_is_said_where_progress_is_seen(monkeypatch, capsys):
    def never_compiled():
        pass

    never_compiled.py_func, never_compiled.signatures = never_compiled, ()

    def said(execution):
        with announced(execution.announce, "nothing", never_compiled):
            pass
        return capsys.readouterr()

    assert said(Execution()) == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    found = said(Execution())
    assert found.out == ""
    assert found.err.startswith("Compiling nothing ...\n... compiled in 0 s; ")
    assert said(Execution(progress=False)) == ("", "")
    lines = []
    assert said(Execution(say=lines.append)) == ("", "")
    assert len(lines) == 2
