import pytest

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
