"""Jobs are known by their settings, done once, and stored whole."""

import os
import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import psutil
import pytest
from pydantic import ValidationError

import graycert
from graycert.errors import GraycertError, InvalidFileError
from graycert.reproduction.certify_job import CertifyJob
from graycert.reproduction.job import Job
from graycert.reproduction.lab import Lab
from graycert.reproduction.pool import compute, run_jobs
from graycert.reproduction.results import Results
from graycert.reproduction.settings import (
    Conclusion,
    DrawSettings,
    MLPTraining,
    SmoothingSettings,
    SparseTraining,
    TrainingSettings,
)
from graycert.reproduction.workers import Workers
from support.commands import write_graph
from support.sweep_jobs import Paraboloid
from support.sweep_processes import TWO, wait_until
from support.toy_kind import PlaceJob, SlowJob, SquareJob


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return str(write_graph(tmp_path_factory.mktemp("graph") / "ring.npz"))


def training(graph, **changes):
    values = {"graph": graph, "architecture": "gcn", "skip": True, "per_class": 3, "max_epochs": 5, "p_ablate": 0.3}
    return TrainingSettings(**{**values, **changes})


def interception(**changes):
    return SmoothingSettings.of("interception", **{"p_delete": 0.3, "p_ablate": 0.7, **changes})


def job(graph, **changes):
    values = {
        "model": training(graph),
        "smoothing": interception(),
        "draws": DrawSettings.of(num_selection=20, num_estimation=60),
        "conclusions": (Conclusion(), Conclusion(min_distance=2, bound="auto"), Conclusion(alpha=0.05)),
        "max_radius": 5,
    }
    return CertifyJob(**{**values, **changes})


class CountedJob(Job):
    """Counts how often it was run, in a file."""

    job: ClassVar[str] = "counted"
    file: str
    number: int

    @property
    def graphs(self):
        return ()

    def run(self, lab):
        with Path(self.file).open("a") as file:
            file.write(f"{self.number}\n")
        if self.number == 13:
            raise ValueError("thirteen")
        return {"square": self.number**2}


def test_a_key_names_the_settings_and_nothing_else(graph):
    assert job(graph).key == job(graph).key
    different = [
        job(graph, smoothing=interception(p_delete=0.31)),
        job(graph, smoothing=SmoothingSettings.of("features-only"), draws=None),
        job(graph, draws=None),
        job(graph, draws=DrawSettings.of("until-decided")),
        job(graph, model=training(graph, seed=1)),
        job(graph, model=SparseTraining(graph=graph, p_plus=0.0, p_minus=0.6)),
        job(graph, model=MLPTraining(graph=graph)),
        job(graph, conclusions=(Conclusion(),)),
        job(graph, num_targets=3),
        CountedJob(file="a", number=1),
    ]
    assert len({each.key for each in (job(graph), *different)}) == 1 + len(different)
    assert job(graph).model.key != training(graph, patience=3).key


def test_equal_parameters_are_equal_however_they_are_written():
    keys = {job("ring", smoothing=interception(p_delete=zero)).key for zero in (0, 0.0)}
    assert len(keys) == 1
    assert SmoothingSettings.of("retention", keep_ratio=0.1) == SmoothingSettings.of("retention", keep_ratio="1/10")
    assert hash(SmoothingSettings.of("retention", keep_ratio=0.1)) != hash(interception())
    assert interception().made() == graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.7)


def test_wrong_settings_are_refused(graph):
    for wrong, named in (
        ({"smoothing": {"name": "interception", "p_delete": 1.2, "p_ablate": 0.7}}, "p_delete"),
        ({"smoothing": {"name": "interception", "p_delete": 0.2}}, "p_ablate"),
        ({"smoothing": {"name": "interruption"}}, "interception"),
        ({"draws": {"num_estimation": 0}}, "num_estimation"),
        ({"test_graph": "denser"}, "test_graph"),
        ({"radius": 3}, "radius"),
        ({"conclusions": (Conclusion(), Conclusion(budgets=(1, 2)))}, "name of its own"),
        ({"conclusions": ({"threat": "weather"},)}, "threat"),
    ):
        with pytest.raises(ValidationError, match=named):
            job(graph, **wrong)
    with pytest.raises(ValidationError, match="skip"):
        SparseTraining(graph=graph, p_plus=0.0, p_minus=0.6, skip=True)


def test_a_job_certifies_what_certify_certifies(graph, tmp_path):
    lab = Lab(tmp_path)
    found = lab.do(job(graph))
    data = graycert.load_graph(graph)
    split = graycert.inductive_split(data, seed=0, per_class=3)
    model = graycert.build_model("gcn", split, skip=True, seed=0)
    graycert.train(
        model, split, smoothing=graycert.InterceptionSmoothing(p_delete=0.0, p_ablate=0.3), max_epochs=5, seed=0
    )
    for conclusion in job(graph).conclusions:
        expected = graycert.certify(
            model,
            split.test.data,
            smoothing=graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.7),
            targets=split.test.nodes,
            threat=graycert.NodeFeatureThreat(min_distance=conclusion.min_distance),
            bound=conclusion.bound,
            alpha=conclusion.alpha,
            draws=graycert.Draws(num_selection=20, num_estimation=60),
            max_radius=5,
        )
        for name in ("radius", "num_eligible", "prediction", "p_lower", "p_upper"):
            np.testing.assert_array_equal(found[f"{conclusion.name}/{name}"], getattr(expected, name))
    np.testing.assert_array_equal(found["labels"], data.y.numpy()[found["targets"]])


def test_fewer_targets_are_some_of_all(graph, tmp_path):
    lab = Lab(tmp_path)
    every, few = lab.do(job(graph)), lab.do(job(graph, num_targets=2))
    assert few["targets"].size == 2
    rows = np.searchsorted(every["targets"], few["targets"])
    name = f"{Conclusion().name}/radius"
    np.testing.assert_array_equal(few[name], every[name][rows])  # votes of a target do not depend on the others


@pytest.mark.deep
def test_trees_are_certified_on_the_thinner_graph(graph, tmp_path):
    lab = Lab(tmp_path)
    name = f"{Conclusion().name}/num_eligible"
    assert lab.do(job(graph, test_graph="trees"))[name].sum() <= lab.do(job(graph))[name].sum()


def test_a_model_is_trained_once(graph, tmp_path, monkeypatch):
    first = Lab(tmp_path).model(training(graph))
    monkeypatch.setattr(graycert, "train", None)
    again = Lab(tmp_path).model(training(graph))
    for one, other in zip(first.parameters(), again.parameters(), strict=True):
        assert (one == other).all()


def test_another_graph_behind_the_same_name_is_refused(tmp_path):
    file = write_graph(tmp_path / "ring.npz")
    Lab(tmp_path / "lab").graph(str(file))
    write_graph(file, extra_edges=7)
    with pytest.raises(InvalidFileError, match="another graph"):
        Lab(tmp_path / "lab").graph(str(file))


def test_every_job_is_done_once_and_a_failed_one_does_not_stop_the_others(tmp_path):
    counts = tmp_path / "counts"
    jobs = [CountedJob(file=str(counts), number=number) for number in (1, 13, 2, 1, 3)]
    told = []
    failed = run_jobs(jobs, tmp_path / "lab", say=told.append)
    assert failed == {jobs[1]: "ValueError: thirteen"}
    assert "thirteen" in told[0]
    results = Results(tmp_path / "lab" / "results")
    assert [int(results[each]["square"]) for each in (jobs[0], jobs[2], jobs[4])] == [1, 4, 9]
    run_jobs(jobs, tmp_path / "lab")
    assert sorted(counts.read_text().split()) == ["1", "13", "13", "2", "3"]


@pytest.mark.processes
def test_workers_give_what_one_process_gives(graph, tmp_path):
    jobs = [job(graph, smoothing=interception(p_ablate=p_ablate)) for p_ablate in (0.6, 0.7)]
    assert run_jobs(jobs, tmp_path / "two", execution=TWO) == {}
    run_jobs(jobs, tmp_path / "one")
    for each in jobs:
        one, two = (Results(tmp_path / name / "results")[each] for name in ("one", "two"))
        assert one.keys() == two.keys()
        for name in one.keys() - {"seconds"}:
            np.testing.assert_array_equal(one[name], two[name])


def test_objects_are_refused_and_damage_is_told(tmp_path):
    results, one = Results(tmp_path), CountedJob(file="a", number=1)
    with pytest.raises(TypeError, match="objects"):
        results.write(one, {"thing": [None, {}]})
    with pytest.raises(KeyError):
        results[one]
    results.write(one, {"value": 1.5})
    file = next(tmp_path.glob("counted/*.npz"))
    assert [entry.name for entry in file.parent.iterdir()] == [file.name]
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(InvalidFileError, match="damaged"):
        results[one]


def test_settings_load_without_torch():
    modules = "graycert.reproduction.certify_job, graycert.reproduction.catalogue"
    code = f"import sys, {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.deep
def test_a_worker_keeps_its_lab_and_is_one_thread(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    jobs = [PlaceJob(number=number) for number in range(12)]
    assert run_jobs(jobs, tmp_path, execution=TWO) == {}
    found = [Results(tmp_path / "results")[job] for job in jobs]
    processes = {int(each["process"]) for each in found}
    assert 1 <= len(processes) <= 2
    assert os.getpid() not in processes
    assert len({(int(each["process"]), int(each["lab"])) for each in found}) == len(processes)
    assert {int(each["threads"]) for each in found} == {1}


@pytest.mark.deep
def test_a_job_that_kills_its_workers_is_found_out(tmp_path):
    jobs = [Paraboloid(x=x, y=0.5, kills_above=0.8) for x in (0.1, 0.2, 0.9, 0.3)]
    failed = run_jobs(jobs, tmp_path, execution=TWO)
    assert failed == {jobs[2]: "WorkerDied: 3 workers were killed with it (out of memory?)"}
    results = Results(tmp_path / "results")
    assert [job in results for job in jobs] == [True, True, False, True]


@pytest.mark.deep
@pytest.mark.parametrize("num_workers", [2, 3])
def test_workers_that_are_killed_whatever_they_do_are_told_and_what_was_done_is_kept(tmp_path, num_workers):
    jobs = [Paraboloid(x=x, y=0.5, kills_above=0.4) for x in (0.1, 0.6, 0.7, 0.8, 0.9, 1.0)]
    with pytest.raises(GraycertError, match=r"again and again .* What was done is kept: run the command again"):
        run_jobs(jobs, tmp_path, execution=replace(TWO, workers=num_workers))
    results = Results(tmp_path / "results")
    assert [job in results for job in jobs] == [True] + [False] * 5


@pytest.mark.deep
def test_a_job_is_taken_when_a_worker_is_free_and_no_sooner(tmp_path):
    done: list[int] = []
    taken: list[tuple[int, int]] = []

    def chosen():
        for number in range(6):
            taken.append((number, len(done)))
            yield SquareJob(number=number)

    computed = compute(chosen(), Lab(tmp_path), workers=Workers(kind="processes", number=2))
    with closing(computed):
        for job, failure in computed:
            assert failure is None
            done.append(job.number)
    assert sorted(done) == list(range(6))
    assert all(number - num_done < 2 for number, num_done in taken)  # a sampler has seen all but what is under way


PROGRAM = """
import sys
from pathlib import Path
from graycert.reproduction.pool import run_jobs
from support.sweep_processes import TWO, wait_until
from support.toy_kind import SlowJob
if __name__ == "__main__":
    run_jobs([SlowJob(number=number) for number in range(40)], Path(sys.argv[1]), execution=TWO)
"""


@pytest.mark.processes
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_what_was_done_is_kept_and_no_worker_outlives_its_parent(tmp_path, ending):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    command = [sys.executable, str(program), str(tmp_path / "lab")]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as parent:
        results = Results(tmp_path / "lab" / "results")
        jobs = [SlowJob(number=number) for number in range(40)]
        wait_until(lambda: any(job in results for job in jobs))
        workers = psutil.Process(parent.pid).children(recursive=True)
        parent.send_signal(ending)
        parent.wait(300)
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert alive == []
    done = [job for job in jobs if job in results]
    assert 0 < len(done) < 40
    for job in done:
        assert int(results[job]["square"]) == job.number**2
