"""The same results, bit for bit, whoever computes: this process, processes of this machine, a Dask cluster."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import graycert
from graycert.errors import GraycertError, InvalidParameterError
from graycert.reproduction.certify_job import CertifyJob
from graycert.reproduction.lab import Lab
from graycert.reproduction.pool import refuse_blind_workers, run_jobs, workers_for_jobs
from graycert.reproduction.results import Results
from graycert.reproduction.settings import DrawSettings, SmoothingSettings, TrainingSettings
from support.certified_groups import trained_model
from support.commands import run_command, write_graph
from support.every_smoothing import small_graph
from support.sweep_jobs import Paraboloid
from support.sweep_processes import TWO, wait_until
from support.tuned_models import Trained

distributed = pytest.importorskip("distributed")
SETTINGS = [(0.5, 0.6), (0.0, 0.3), (0.5, 0.9)]


@contextmanager
def cluster(*, processes: bool = False) -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=processes, dashboard_address=":0"
    ) as made:
        yield made


@contextmanager
def once(condition: Callable[[], bool], act: Callable[[], object]) -> Iterator[None]:
    """Do something as soon as something is so, beside what is done in the block."""

    def run() -> None:
        wait_until(condition)
        act()

    beside = threading.Thread(target=run)
    beside.start()
    yield
    beside.join()


@pytest.fixture
def on_dask():
    with cluster() as made:
        yield graycert.Execution(backend="dask", scheduler=made.scheduler_address)


def jobs_of(folder):
    graph = str(write_graph(folder / "ring.npz"))
    model = TrainingSettings(graph=graph, architecture="gat", per_class=3, max_epochs=5, p_ablate=0.3)
    return [
        CertifyJob(
            model=model.model_copy(update={"seed": seed}),
            smoothing=SmoothingSettings.of("interception", p_delete=0.3, p_ablate=p_ablate),
            draws=DrawSettings.of(num_selection=20, num_estimation=60),
            max_radius=5,
        )
        for seed in (0, 1)
        for p_ablate in (0.6, 0.7)
    ]


def assert_same_results(jobs, folder, other):
    for each in jobs:
        one, two = Results(folder / "results")[each], Results(other / "results")[each]
        assert one.keys() == two.keys()
        for name in one.keys() - {"seconds"}:
            np.testing.assert_array_equal(one[name], two[name], err_msg=name)
    weights = {file.name: file.read_bytes() for file in (folder / "models").glob("*.safetensors")}
    assert len(weights) == 2
    assert weights == {file.name: file.read_bytes() for file in (other / "models").glob("*.safetensors")}


@pytest.mark.deep
def test_dask_gives_what_this_process_gives(tmp_path, on_dask):
    jobs = jobs_of(tmp_path)
    assert run_jobs(jobs, tmp_path / "here") == {}
    assert run_jobs(jobs, tmp_path / "there", execution=on_dask) == {}
    assert_same_results(jobs, tmp_path / "here", tmp_path / "there")


@pytest.mark.processes
@pytest.mark.parametrize("backend", ["processes", "dask"])
def test_other_processes_give_what_this_one_gives(tmp_path, backend):
    jobs = jobs_of(tmp_path)
    assert run_jobs(jobs, tmp_path / "here") == {}
    assert run_jobs(jobs, tmp_path / "there", execution=replace(TWO, backend=backend)) == {}
    assert_same_results(jobs, tmp_path / "here", tmp_path / "there")


def test_a_job_that_fails_on_dask_does_not_stop_the_others(tmp_path, on_dask):
    jobs = [Paraboloid(x=x, y=0.5, fails_above=0.8) for x in (0.1, 0.2, 0.9, 0.3)]
    assert run_jobs(jobs, tmp_path, execution=on_dask) == {jobs[2]: "ArithmeticError: 0.900 is too large"}
    assert [job in Lab(tmp_path).results for job in jobs] == [True, True, False, True]


@pytest.mark.processes
def test_workers_of_a_cluster_that_are_killed_lose_nothing(tmp_path):
    jobs = [Paraboloid(x=number / 20, y=0.5, wait=0.1, log=str(tmp_path / "log")) for number in range(20)]
    with cluster(processes=True) as made:
        pids = [worker.process.pid for worker in made.workers.values()]
        execution = graycert.Execution(backend="dask", scheduler=made.scheduler_address)
        with once((tmp_path / "log").exists, lambda: os.kill(pids[0], signal.SIGKILL)):
            assert run_jobs(jobs, tmp_path / "lab", execution=execution) == {}
    runs = (tmp_path / "log").read_text().split()
    assert {float(each) for each in runs} == {job.x for job in jobs}
    assert len(runs) <= len(jobs) + 1  # no more than what was under way


def test_a_lost_scheduler_ends_the_call_and_what_was_done_is_kept(tmp_path):
    jobs = [Paraboloid(x=number / 400, y=0.5, wait=0.05) for number in range(400)]
    with cluster() as made:
        execution = graycert.Execution(backend="dask", scheduler=made.scheduler_address)
        with (
            once(lambda: any(job in Lab(tmp_path).results for job in jobs), made.close),
            pytest.raises(GraycertError, match=r"connection to the scheduler is lost\. What was done is kept"),
        ):
            run_jobs(jobs, tmp_path, execution=execution)
    kept = [job for job in jobs if job in Lab(tmp_path).results]
    assert 0 < len(kept) < 400
    few = jobs[: len(kept) + 2]
    assert run_jobs(few, tmp_path) == {}
    assert all(job in Lab(tmp_path).results for job in few)


def test_workers_that_do_not_see_the_results_are_refused(tmp_path, on_dask, monkeypatch):
    refuse_blind_workers({"tcp://a": True})
    with pytest.raises(InvalidParameterError, match=r"`scheduler` must have workers that see .* got tcp://b, which"):
        refuse_blind_workers({"tcp://a": True, "tcp://b": False})
    with workers_for_jobs(on_dask, Lab(tmp_path)) as workers:
        assert workers.number == 2
    monkeypatch.setattr("graycert.reproduction.pool._sees", lambda file: False)
    with (
        pytest.raises(InvalidParameterError, match="must have workers that see"),
        workers_for_jobs(on_dask, Lab(tmp_path)),
    ):
        pass


def tuned(execution=None, **changes):
    arguments = {
        "validation": np.arange(0, 42, 2),
        "threat": graycert.NodeFeatureThreat(min_distance=1),
        "draws": graycert.Draws(num_selection=20, num_estimation=100),
        "settings": SETTINGS,
        "progress": False,
    }
    return graycert.tune(
        changes.pop("model", None) or trained_model(), small_graph(), execution=execution, **arguments, **changes
    )


def assert_same_tuning(one, other):
    names = [name for name in one.table if "seconds" not in name]
    assert one.table[names].equals(other.table[names])
    assert one.setting == other.setting
    for mine, theirs in zip(one.model.parameters(), other.model.parameters(), strict=True):
        assert (mine == theirs).all()


@pytest.mark.deep
def test_settings_are_tried_on_a_cluster(tmp_path, on_dask):
    assert_same_tuning(tuned(), tuned(on_dask))
    options = {"training": [(0.0, 0.2), (0.0, 0.5)], "directory": tmp_path / "tuning"}
    found = tuned(on_dask, model=Trained(tmp_path / "log"), **options)
    assert sorted((tmp_path / "log").read_text().split()) == ["0.2", "0.5"]  # once each, whoever asks
    assert [path.name for path in (tmp_path / "tuning").iterdir() if path.name.startswith(".")] == []
    assert_same_tuning(tuned(model=Trained(tmp_path / "other"), training=options["training"]), found)


@pytest.mark.processes
def test_settings_are_tried_by_processes(tmp_path):
    options = {"training": [(0.0, 0.2), (0.0, 0.5)]}
    found = tuned(TWO, model=Trained(tmp_path / "log"), **options)
    assert sorted((tmp_path / "log").read_text().split()) == ["0.2", "0.5"]
    assert_same_tuning(tuned(model=Trained(tmp_path / "other"), **options), found)


def test_a_model_that_cannot_be_sent_is_told(on_dask):
    lock = threading.Lock()

    def train(smoothing):
        with lock:
            return trained_model()

    with pytest.raises(InvalidParameterError, match='`backend` must be "threads" for this model'):
        tuned(on_dask, model=train, training=[(0.0, 0.2)])


@pytest.mark.parametrize("command", ["sweep", "tune", "reproduce"])
def test_commands_take_the_same_backends(capsys, tmp_path, command):
    what = ("fig-2",) if command == "reproduce" else ("--graph", write_graph(tmp_path / "ring.npz"))
    found = run_command(capsys, command, *what, "--out", tmp_path / "out", "--scheduler", "tcp://nowhere:1")
    assert found.status == 2
    assert '`scheduler` belongs to backend="dask"' in found.err
    assert not (tmp_path / "out").exists()
