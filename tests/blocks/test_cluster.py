"""Blocks on a Dask cluster, whose workers are threads of this process but for one test."""

import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import graycert
from graycert._versions import versions
from graycert.blocks import crews, sending
from graycert.blocks.folder import BlockFolder
from graycert.blocks.sending import in_bytes
from graycert.errors import GraycertError, InvalidParameterError
from graycert.problem import Problem
from graycert.setup import Setup
from support.certified_groups import TARGETS
from support.every_smoothing import CASES, made, model_of, small_graph

distributed = pytest.importorskip("distributed")
NAME = "interception"


@contextmanager
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as made:
        yield made


def certified(**execution):
    arguments = {"targets": TARGETS, "alpha": 0.05, "max_radius": 6, "seed": 3, **CASES[NAME]}
    execution = {"backend": "dask", "block_size": 2, "say": lambda _: None, "progress": False, **execution}
    return graycert.certify(model_of(NAME), small_graph(), execution=graycert.Execution(**execution), **arguments)


def assert_same(found):
    expected = made(NAME)
    for name, (_, array) in expected.every_array().items():
        np.testing.assert_array_equal(found.every_array()[name][1], array, err_msg=name)
    assert found.setup == expected.setup


@pytest.fixture
def after_first_block(monkeypatch):
    """Do something once a block is kept, while the others take their time."""
    before, keep = crews.certified_block, BlockFolder.keep

    def patch(act):
        def slowly(problem, rows, number):
            time.sleep(0.1 * (rows.start > 0))
            return before(problem, rows, number)

        def keep_and_act(self, number, outcome):
            keep(self, number, outcome)
            if len(list(self.folder.glob("block-*.npz"))) == 1:
                act()

        monkeypatch.setattr(crews, "certified_block", slowly)
        monkeypatch.setattr(BlockFolder, "keep", keep_and_act)

    return patch


@pytest.mark.deep
def test_a_scheduler_and_its_workers(tmp_path, after_first_block):
    with cluster() as dask:
        assert_same(certified(scheduler=dask.scheduler_address))
        after_first_block(lambda: dask.sync(dask.workers[0].close))  # the other one does its blocks
        assert_same(certified(scheduler=dask.scheduler_address, folder=tmp_path))


def test_workers_that_do_not_come_back_are_given_up(tmp_path, after_first_block, monkeypatch):
    monkeypatch.setattr(crews, "_ANSWERS", 0.2)
    with cluster() as dask:
        after_first_block(lambda: [dask.sync(worker.close) for worker in tuple(dask.workers.values())])
        with pytest.raises(GraycertError, match=r"workers are killed again and again .* Finished blocks are kept"):
            certified(scheduler=dask.scheduler_address, folder=tmp_path)


def test_who_interrupts_does_not_wait_for_the_cluster_to_close():
    may_close, closed = threading.Event(), threading.Event()

    class Client:
        def close(self) -> None:
            may_close.wait(60)
            closed.set()

    with pytest.raises(KeyboardInterrupt), crews._closed_at_the_end(Client()):
        raise KeyboardInterrupt
    assert not closed.is_set()
    may_close.set()
    assert closed.wait(60)


def test_its_workers_do_the_work(monkeypatch):
    before, done = crews.certified_block, []

    def noted(problem, rows, number):
        done.append(rows)
        return before(problem, rows, number)

    monkeypatch.setattr(crews, "certified_block", noted)
    with cluster() as dask:
        certified(scheduler=dask.scheduler_address)
    assert sorted(rows.start for rows in done) == list(range(0, TARGETS.size, 2))


@pytest.mark.processes
def test_a_cluster_of_this_machine():
    assert_same(certified(workers=2, block_size=6))


def test_a_scheduler_that_does_not_answer(monkeypatch):
    monkeypatch.setattr(crews, "_ANSWERS", 1)
    with pytest.raises(GraycertError, match=r"the scheduler tcp://127\.0\.0\.1:9 does not answer"):
        certified(scheduler="tcp://127.0.0.1:9")


def test_without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InvalidParameterError, match=r"Install graycert\[cluster\]"):
        certified()


def test_workers_of_other_versions_are_refused():
    here = versions()
    crews.refuse_other_versions({"tcp://a": here})
    others = {**here, "torch": "1.0", "numpy": "2.0"}
    with pytest.raises(InvalidParameterError, match=r"got tcp://b with torch 1\.0 \(.* here\), numpy 2\.0 \("):
        crews.refuse_other_versions({"tcp://a": here, "tcp://b": others})


def test_so_are_workers_that_come_later(monkeypatch, tmp_path):
    """They are asked nothing before they get a block, so the problem itself says what it was sent from."""
    others = {**versions(), "torch": "1.0"}
    asked = iter([versions()])
    monkeypatch.setattr(sending, "versions", lambda: next(asked, others))
    with (
        cluster() as dask,
        pytest.raises(InvalidParameterError, match=rf"got {socket.gethostname()} with torch 1\.0 \("),
    ):
        certified(scheduler=dask.scheduler_address, folder=tmp_path)


def test_a_scheduler_belongs_to_dask():
    with pytest.raises(InvalidParameterError, match="`scheduler` belongs to"):
        graycert.Execution(scheduler="tcp://10.0.0.5:8786")


def test_a_model_that_cannot_be_sent():
    setup = Setup(draws=None, rule="sound", **{name: CASES[NAME][name] for name in ("smoothing", "threat")})
    problem = Problem.of(small_graph(), TARGETS, setup=setup, model=threading.Lock())
    with pytest.raises(InvalidParameterError, match='`backend` must be "threads" for this model'):
        in_bytes(problem)
