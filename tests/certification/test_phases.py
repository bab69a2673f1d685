"""Where the time went is part of every result: the audit has a phase of its own."""

import contextlib
import time

import pytest

from graycert import Certificates, verify
from graycert._phases import PHASES, Phases, time_in_words
from graycert.errors import InvalidFileError, InvalidParameterError
from support.every_smoothing import CASES, made, small_graph


def test_no_second_is_counted_twice(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    phases = Phases()

    def wait(seconds):
        now[0] += seconds

    wait(5)
    with phases("preparation"):
        wait(1)
        with phases("audit"):
            wait(10)
        wait(2)
        with contextlib.suppress(ZeroDivisionError), phases("draws"):
            wait(100)
            raise ZeroDivisionError
        with phases("audit"):
            wait(20)
    wait(7)
    with phases("conclusion"):
        wait(1000)
    assert phases.seconds == {"preparation": 3, "audit": 30, "draws": 100, "conclusion": 1000}


@pytest.mark.few(6)
@pytest.mark.parametrize("name", CASES)
def test_every_result_says_what_its_audit_took(name):
    seconds = made(name).seconds
    chosen = made(name).setup.smoothing.name == "interception"  # the other smoothings have one engine
    assert set(seconds) == set(PHASES) - (set() if chosen else {"engine"})
    assert all(value > 0 for value in seconds.values())


def test_seconds_are_kept_verified_and_shown(tmp_path):
    made("interception").save(tmp_path / "run")
    loaded = Certificates.load(tmp_path / "run")
    assert dict(loaded.seconds) == dict(made("interception").seconds)
    assert time_in_words(loaded.seconds) in (tmp_path / "run/report.html").read_text(encoding="utf-8")
    verify(tmp_path / "run", data=small_graph()).require()
    config = tmp_path / "run/config.toml"
    config.write_text(config.read_text(encoding="utf-8").replace("audit = ", "audit = -"), encoding="utf-8")
    with pytest.raises(InvalidFileError, match="`seconds` must hold a number >= 0 per phase"):
        Certificates.load(tmp_path / "run")


def test_what_is_concluded_again_keeps_the_time_of_audit_and_draws():
    first = made("interception")
    again = first.again(small_graph(), alpha=0.1)
    assert {name: again.seconds[name] for name in ("audit", "draws")} == {
        name: first.seconds[name] for name in ("audit", "draws")
    }
    assert again.seconds["conclusion"] != first.seconds["conclusion"]


@pytest.mark.parametrize("wrong", [{"lunch": 1.0}, {"audit": float("nan")}, {"audit": "1"}, {"audit": True}])
def test_other_phases_and_times_are_refused(wrong):
    with pytest.raises(InvalidParameterError, match="`seconds` must hold"):
        made("interception").replace(seconds=wrong)
