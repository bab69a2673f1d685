"""The journal by itself, with worker processes that are dead, reborn under another id, or elsewhere."""

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from graycert.errors import InvalidFileError
from graycert.reproduction.sweep import AdaptiveDesign, RandomDesign, journal
from graycert.reproduction.sweep.design import Design
from graycert.reproduction.sweep.journal import Journal, is_failed, is_finished, is_lost, is_running
from graycert.reproduction.sweep.owner import lives, this_process
from support.sweep_objectives import paraboloid

RANGES = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
DESIGN = RandomDesign(ranges=RANGES, seed=1)


def _open(folder: Path, design: Design | None = DESIGN) -> Journal:
    return Journal(folder, name="t", directions={"accuracy": "maximize", "robustness": "maximize"}, design=design)


@pytest.fixture(scope="module")
def dead() -> dict[str, Any]:
    """Return a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    owner = {"host": socket.gethostname(), "pid": process.pid, "started": psutil.Process(process.pid).create_time()}
    assert lives(owner)
    process.kill()
    while psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE:
        pass
    assert not lives(owner)  # although its id is still taken
    process.wait()
    process.stdin.close()
    return owner


def _claim_as(owner: dict[str, Any], opened: Journal, monkeypatch: pytest.MonkeyPatch) -> journal.Claim:
    with monkeypatch.context() as patched:
        patched.setattr(journal, "this_process", lambda: owner)
        claim = opened.claim(limit=None)
    assert claim is not None
    return claim


def test_trials_are_claimed_in_order_and_each_once(tmp_path: Path) -> None:
    first, second = _open(tmp_path), _open(tmp_path)
    claims = [opened.claim(limit=3) for opened in (first, second, first, second)]
    assert claims[3] is None
    assert [claim.index for claim in claims[:3]] == [0, 1, 2]
    assert [claim.params for claim in claims[:3]] == [DESIGN.point(index) for index in range(3)]
    assert first.finish(claims[0], paraboloid(claims[0].params), seconds=1.5)
    assert second.fail(claims[1], {"type": "E", "message": "m", "traceback": ""})
    latest = _open(tmp_path, None).latest()
    assert [is_finished(latest[0]), is_failed(latest[1]), is_running(latest[2])] == [True, True, True]
    results = paraboloid(claims[0].params)
    assert latest[0].values == [results["accuracy"], results["robustness"]]
    assert latest[0].user_attrs["numbers"] == {"sum": results["sum"], "ratio": None}  # NaN
    assert first.release_lost() == []  # this process lives
    first.retry_failed()
    assert second.claim(limit=3).index == 1
    assert second.claim(limit=3) is None


@pytest.mark.parametrize(
    "owner",
    [
        pytest.param(lambda dead: dead, id="dead"),
        pytest.param(lambda dead: {**this_process(), "started": this_process()["started"] - 60}, id="id used again"),
        pytest.param(lambda dead: {**this_process(), "host": "elsewhere"}, id="elsewhere"),
    ],
)
def test_a_trial_of_a_lost_process_is_run_again(
    tmp_path: Path, dead: dict[str, Any], owner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = _open(tmp_path)
    lost = _claim_as(owner(dead), opened, monkeypatch)
    assert opened.claim(limit=None).index == 1
    assert _open(tmp_path).release_lost() == [0]
    assert opened.release_lost() == []
    again = opened.claim(limit=None)
    assert (again.index, again.params) == (0, lost.params)
    assert again.number != lost.number
    # what the process that was taken to be lost still tells is not taken
    assert opened.finish(again, paraboloid(again.params), seconds=1)
    assert not opened.finish(lost, paraboloid(lost.params), seconds=1)
    assert not opened.fail(lost, {"type": "E", "message": "m", "traceback": ""})
    assert is_finished(opened.latest()[0])


def test_a_trial_that_is_given_up_stays_so(
    tmp_path: Path, dead: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = _open(tmp_path)
    _claim_as(dead, opened, monkeypatch)
    opened.release_lost()
    assert is_lost(opened.latest()[0])
    opened.give_up(0, {"type": "WorkerDied", "message": "", "traceback": ""})
    assert is_failed(opened.latest()[0])
    assert opened.claim(limit=None).index == 1


@pytest.mark.parametrize("sampler", ["nsga2", "tpe"])
def test_an_adaptive_sweep_goes_on(
    tmp_path: Path, dead: dict[str, Any], sampler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    design = AdaptiveDesign(ranges=RANGES, seed=3, sampler=sampler)
    points = []
    for _ in range(12):  # each time as after a restart
        opened = _open(tmp_path, design)
        claim = opened.claim(limit=None)
        points.append(tuple(claim.params.values()))
        opened.finish(claim, paraboloid(claim.params), seconds=0.1)
    assert len(set(points)) == 12  # a sampler that starts anew must not repeat itself
    lost = _claim_as(dead, opened, monkeypatch)
    attributes = opened.latest()[12].system_attrs
    later = opened.claim(limit=None)
    assert opened.finish(later, {"accuracy": 9.0, "robustness": 9.0}, seconds=0.1)  # a sampler would now ask for more
    assert opened.release_lost() == [12]
    again = opened.claim(limit=None)
    assert (again.index, again.params) == (12, lost.params)
    assert opened.latest()[12].system_attrs == attributes
    assert opened.finish(again, paraboloid(again.params), seconds=0.1)


def test_a_kill_while_a_sampler_is_asked_leaves_nothing(tmp_path: Path) -> None:
    design = AdaptiveDesign(ranges=RANGES, seed=3)
    opened = _open(tmp_path, design)
    opened._study.ask(journal._distributions(design))  # and dead, before it has an index
    assert opened.latest() == {}
    assert opened.release_lost() == []
    assert opened.claim(limit=1).index == 0
    assert [trial.state.name for trial in opened._study.trials] == ["FAIL", "RUNNING"]


@pytest.mark.parametrize("rest", ['{"op_code":4,"trial', "{", '{"op_code":8,"user_attr":{"π":"\N{SNOWMAN}"'])
def test_half_a_line_is_cut_off(tmp_path: Path, rest: str) -> None:
    opened = _open(tmp_path)
    claim = opened.claim(limit=None)
    file = tmp_path / "sweep.journal"
    whole = file.read_bytes()
    with file.open("ab") as lines:
        lines.write(rest.encode())
    assert opened.latest().keys() == {0}  # reading without the lock takes no notice
    assert _open(tmp_path, None).latest().keys() == {0}
    assert file.read_bytes() == whole
    with file.open("ab") as lines:
        lines.write(rest.encode())
    assert opened.finish(claim, paraboloid(claim.params), seconds=1)
    assert is_finished(_open(tmp_path, None).latest()[0])


def test_half_of_the_first_line_is_cut_off(tmp_path: Path) -> None:
    (tmp_path / "sweep.journal").write_bytes(b'{"op_code":0,"work')
    assert _open(tmp_path).claim(limit=None).index == 0


def test_a_lock_file_of_a_killed_process_holds_nobody_up(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path; from graycert.reproduction.sweep.lock import JournalLock; "
        "JournalLock(Path(sys.argv[1])).acquire(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", program, tmp_path / "sweep.journal"], check=False)
    assert killed.returncode == -9
    assert (tmp_path / "sweep.journal.lock").exists()
    assert _open(tmp_path).claim(limit=None).index == 0


def test_a_line_damaged_by_others_is_told(tmp_path: Path) -> None:
    _open(tmp_path).claim(limit=None)
    file = tmp_path / "sweep.journal"
    file.write_bytes(b"nonsense\n" + file.read_bytes())
    with pytest.raises(InvalidFileError, match=r"sweep\.journal is damaged"):
        _open(tmp_path)


def test_a_study_of_another_name_is_told(tmp_path: Path) -> None:
    _open(tmp_path)
    with pytest.raises(InvalidFileError, match="holds no study 'u'"):
        Journal(tmp_path, name="u", directions={"accuracy": "maximize"})
