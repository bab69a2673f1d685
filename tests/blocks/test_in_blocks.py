"""Certified block by block: the same result, whatever the blocks, whatever happens on the way."""

import copy
import json
import shutil
import warnings

import numpy as np
import pytest
import torch
from filelock import FileLock

import graycert
from graycert.blocks import in_blocks, work
from graycert.blocks.folder import BlockFolder
from graycert.errors import InvalidFileError, InvalidParameterError, UnsoundSetupError, WriteError
from support.certified_groups import TARGETS, trained_model
from support.every_smoothing import CASES, made, model_of, small_graph
from support.open_scores import EndsWithRelu, three_classes

IN_BLOCKS = sorted(set(CASES) - {"no-largest-radius"})


def certified(name="interception", *, changes=None, model=None, **execution):
    arguments = {"targets": TARGETS, "alpha": 0.05, "max_radius": 6, "seed": 3, **CASES[name], **(changes or {})}
    execution = graycert.Execution(**{"say": lambda _: None, **execution})
    return graycert.certify(model or model_of(name), small_graph(), execution=execution, **arguments)


def assert_same(found, expected):
    ours, theirs = ({name: array for name, (_, array) in each.every_array().items()} for each in (found, expected))
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)
        assert array.dtype == theirs[name].dtype, name
    assert found.setup == expected.setup


@pytest.fixture
def counted(monkeypatch):
    """Positions of the first target of every block that is computed; blocks are cut in the order of the targets."""
    monkeypatch.setattr(in_blocks, "better_order", lambda problem, _: np.arange(problem.targets.size))
    begun = []
    before = work.certified

    def certify_and_count(problem):
        begun.append(int(np.flatnonzero(problem.targets[0] == TARGETS)[0]))
        return before(problem)

    monkeypatch.setattr(work, "certified", certify_and_count)
    return begun


@pytest.mark.few(1)
@pytest.mark.parametrize("name", IN_BLOCKS)
@pytest.mark.parametrize("size", [1, 5])
def test_blocks_change_nothing(name, size):
    assert_same(certified(name, block_size=size), made(name))


def test_what_is_kept_is_not_computed_again(tmp_path, counted):
    found = certified(folder=tmp_path, block_size=5)
    assert counted == [0, 5, 10]
    assert_same(certified(folder=tmp_path), found)
    assert len(counted) == 3
    assert found.seconds.keys() == made("interception").seconds.keys()


def test_blocks_of_more_targets_than_there_are_go_on(tmp_path, counted):
    found = certified(folder=tmp_path, block_size=100)
    assert_same(certified(folder=tmp_path, block_size=100), found)
    assert counted == [0]


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["interception", "event-aware", "until-decided", "retention", "difference"])
@pytest.mark.parametrize("stops", [1, 2])
def test_an_interrupted_call_goes_on(tmp_path, counted, monkeypatch, name, stops):
    with monkeypatch.context() as patched:
        before = work.certified

        def interrupted(problem):
            if len(counted) == stops:
                raise KeyboardInterrupt
            return before(problem)

        patched.setattr(work, "certified", interrupted)
        with pytest.raises(KeyboardInterrupt) as stopped:
            certified(name, folder=tmp_path, block_size=5)
    assert f"{stops} of 3 blocks are kept in {tmp_path}" in stopped.value.__notes__[0]
    assert_same(certified(name, folder=tmp_path), made(name))
    assert counted == [0, 5, 10]


def test_nothing_is_said_of_blocks_that_an_interruption_leaves(tmp_path, monkeypatch):
    def interrupted(self, number, outcome):
        raise KeyboardInterrupt

    monkeypatch.setattr(BlockFolder, "keep", interrupted)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with pytest.raises(KeyboardInterrupt):
            certified(folder=tmp_path, block_size=1, workers=2)
    assert not [warning for warning in said if "tasks" in str(warning.message)]


def test_a_block_that_was_damaged_or_swapped_is_computed_again(tmp_path, counted):
    certified(folder=tmp_path, block_size=3)
    files = sorted(tmp_path.glob("block-*.npz"))
    content = [file.read_bytes() for file in files]
    files[0].write_bytes(content[0][: len(content[0]) // 2])
    files[1].write_bytes(content[2])
    files[2].write_bytes(content[1])
    changed = bytearray(content[3])
    changed[len(changed) // 2] ^= 1
    files[3].write_bytes(bytes(changed))
    counted.clear()
    said = []
    assert_same(certified(folder=tmp_path, say=said.append), made("interception"))
    assert counted == [0, 3, 6, 9]
    assert sum("is damaged" in line and "computed again" in line for line in said) == 4


def test_a_block_of_another_run_is_computed_again(tmp_path):
    for seed in (3, 4):
        certified(folder=tmp_path / str(seed), block_size=6, changes={"seed": seed})
    shutil.copy(tmp_path / "4" / "block-00001.npz", tmp_path / "3" / "block-00001.npz")
    assert_same(certified(folder=tmp_path / "3"), made("interception"))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("changes", "execution", "named"),
    [
        ({"seed": 4}, {}, "certificate.seed (3 there, 4 here)"),
        ({"targets": TARGETS[:-1]}, {}, "array.targets ("),
        ({"alpha": 0.1, "max_radius": 5}, {}, "certificate.alpha (0.05 there, 0.1 here), certificate.max_radius ("),
        ({"draws": graycert.Draws(num_selection=51, num_estimation=300)}, {}, "draws.num_selection (50 there"),
        ({}, {"block_size": 4}, "block_size (5 there, 4 here)"),
        ({}, {"engine": "torch"}, "execution.engine (auto there, torch here)"),
    ],
)
def test_a_folder_of_another_call_is_refused_by_what_differs(tmp_path, changes, execution, named):
    certified(folder=tmp_path, block_size=5)
    with pytest.raises(InvalidParameterError, match="must be that of the same certification") as refused:
        certified(folder=tmp_path, changes=changes, **execution)
    assert f"differ: {named}" in str(refused.value)


def test_a_folder_of_another_model_or_version_is_refused(tmp_path):
    certified(folder=tmp_path, block_size=5)
    other = copy.deepcopy(trained_model())
    next(other.parameters()).data.mul_(2)
    with pytest.raises(InvalidParameterError, match=r"differ: model \("):
        certified(folder=tmp_path, model=other)
    settings = json.loads((tmp_path / "settings.json").read_text())
    (tmp_path / "settings.json").write_text(json.dumps({**settings, "version.torch": "1.0"}))
    with pytest.raises(InvalidParameterError, match=r"differ: version.torch \(1.0 there"):
        certified(folder=tmp_path)


def test_two_drivers_on_one_folder(tmp_path):
    with (
        FileLock(tmp_path / "lock"),
        pytest.raises(InvalidFileError, match=f"got {tmp_path}, in which another process"),
    ):
        certified(folder=tmp_path)


@pytest.mark.few(1)
@pytest.mark.parametrize("content", ["", "[1]", '{"block_size": 0}', "{}"])
def test_damaged_settings_are_told(tmp_path, content):
    certified(folder=tmp_path, block_size=5)
    (tmp_path / "settings.json").write_text(content)
    with pytest.raises(InvalidFileError, match=r"settings\.json is damaged"):
        certified(folder=tmp_path)


def test_a_folder_with_other_things_in_it_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InvalidFileError, match=r"which holds thesis\.tex"):
        certified(folder=tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_what_a_killed_process_was_writing_is_cleared_away(tmp_path):
    certified(folder=tmp_path, block_size=5)
    (tmp_path / ".block-00001.npz.ab12.npz").write_text("half of")
    (tmp_path / ".sent-1").mkdir()
    (tmp_path / ".sent-1" / "problem").write_text("a graph")
    certified(folder=tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_full_disk_keeps_what_is_done(tmp_path, monkeypatch, counted):
    with monkeypatch.context() as patched:
        before = np.savez

        def full(file, **members):
            if "block-00001" in file.name:
                raise OSError(28, "No space left on device")
            before(file, **members)

        patched.setattr(np, "savez", full)
        with pytest.raises(WriteError, match=r"No space left on device.*Finished blocks are kept"):
            certified(folder=tmp_path, block_size=5)
    assert_same(certified(folder=tmp_path), made("interception"))
    assert counted == [0, 5, 5, 10]


def test_radii_of_no_limit_are_refused(tmp_path):
    with pytest.raises(InvalidParameterError, match="`max_radius` must be a number where targets are certified in bl"):
        certified("no-largest-radius", folder=tmp_path)


def certified_with_open_scores(targets, **execution):
    """Nodes 0 to 19 show nothing, so that no draw singles out a class of theirs."""
    data = three_classes()
    data.x[:20] = 0
    return graycert.certify(
        EndsWithRelu(),
        data,
        targets=targets,
        smoothing=graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.3),
        threat=graycert.NodeFeatureThreat(min_distance=1),
        draws=graycert.Draws(num_selection=50, num_estimation=60),
        num_layers=2,
        execution=graycert.Execution(say=lambda _: None, **execution),
    )


def test_votes_for_no_class_are_judged_over_all_blocks():
    found = certified_with_open_scores(np.arange(60), block_size=20)
    assert_same(found, certified_with_open_scores(np.arange(60)))
    assert (found.radius[:20] == -1).all()
    for execution in ({}, {"block_size": 7}):
        with pytest.raises(UnsoundSetupError, match="scores-single-out-no-class"):
            certified_with_open_scores(np.arange(20), **execution)


@pytest.mark.processes
@pytest.mark.parametrize("name", ["interception", "event-aware", "retention", "arrays-and-trusted-nodes"])
def test_processes_side_by_side(name):
    assert_same(certified(name, block_size=3, backend="processes", workers=2), made(name))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["interception", "until-decided", "event-aware"])
def test_threads_side_by_side(name, counted):
    expected = made(name)
    counted.clear()
    assert_same(certified(name, block_size=2, workers=3), expected)
    assert sorted(counted) == list(range(0, TARGETS.size, 2))  # in this process


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["interception", "until-decided", "arrays-and-trusted-nodes", "retention", "sparse"])
def test_a_folder_says_how_to_go_on(tmp_path, counted, name):
    certified(name, folder=tmp_path, block_size=5)
    (tmp_path / "block-00001.npz").unlink()
    counted.clear()
    found = graycert.Certificates.resume(tmp_path, data=small_graph(), execution=graycert.Execution(say=lambda _: None))
    assert_same(found, made(name))
    assert counted == [5]


def test_a_token_and_a_model_of_ones_own(tmp_path):
    token = torch.full((small_graph().num_features,), 0.5)
    arguments = {"data": small_graph(), "execution": graycert.Execution(say=lambda _: None)}
    model = EndsWithRelu()
    found = graycert.certify(
        model,
        small_graph(),
        smoothing=graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.3),
        threat=graycert.NodeFeatureThreat(),
        draws=graycert.Draws(num_selection=20, num_estimation=20),
        num_layers=2,
        ablation_token=token,
        execution=graycert.Execution(folder=tmp_path, engine="torch", say=lambda _: None),
    )
    with pytest.raises(InvalidParameterError, match="`model` must be given"):
        graycert.Certificates.resume(tmp_path, **arguments)
    assert_same(graycert.Certificates.resume(tmp_path, model=model, **arguments), found)


def test_a_floor_is_asked_for_and_an_unfinished_run_is_called_so(tmp_path):
    floor = graycert.build_model("gcn", small_graph(), skip=True, seed=5)
    others = graycert.NodeFeatureThreat(min_distance=1)
    arguments = {
        "smoothing": graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.3),
        "threat": others,
        "draws": graycert.Draws(num_selection=20, num_estimation=20),
        "floor": floor,
    }
    model, quiet = graycert.build_model("gcn", small_graph(), skip=True, seed=0), graycert.Execution(say=lambda _: None)
    execution = graycert.Execution(folder=tmp_path, say=lambda _: None)
    found = graycert.certify(model, small_graph(), execution=execution, **arguments)
    with pytest.raises(InvalidParameterError, match="`floor` must be given"):
        graycert.Certificates.resume(tmp_path, data=small_graph(), execution=quiet)
    again = graycert.Certificates.resume(tmp_path, data=small_graph(), floor=floor, execution=quiet)
    assert_same(again, found)
    assert (again.prediction_of_floor == found.prediction_of_floor).all()
    with pytest.raises(InvalidFileError, match="is an unfinished run"):
        graycert.Certificates.load(tmp_path)


def test_nothing_to_go_on_with(tmp_path):
    with pytest.raises(InvalidFileError, match="is no folder of an unfinished certification"):
        graycert.Certificates.resume(tmp_path)
