"""Votes that are kept while a block is drawn: what is killed goes on after them, to the same bytes."""

import errno
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import graycert
from graycert.blocks import folder
from graycert.certification import certify
from graycert.errors import WriteError
from graycert.sampling import choose_engine, voting
from graycert.sampling.compiled import CompiledEngine
from graycert.smoothing import votes_so_far
from graycert.smoothing.votes_so_far import VotesSoFar
from support.attributed_graphs import random_graph

FIXED, STOPPING = (
    graycert.Draws(num_selection=40, num_estimation=200),
    graycert.UntilDecided(num_selection=40, max_estimation=200, batch=40),
)


@pytest.fixture(scope="module")
def data():
    return random_graph(num_nodes=60, num_pairs=150)


def certified(data, draws=FIXED, *, seed=7, **execution):
    return certify(
        graycert.build_model("gcn", data, seed=1),
        data,
        smoothing=graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.7),
        threat=graycert.NodeFeatureThreat(),
        draws=draws,
        rule="sequential" if isinstance(draws, graycert.UntilDecided) else "sound",
        max_radius=6,
        seed=seed,
        execution=graycert.Execution(**{"say": lambda _: None, "progress": False, **execution}),
    )


def assert_same(found, expected):
    for name, (_, array) in expected.every_array().items():
        np.testing.assert_array_equal(found.every_array()[name][1], array, err_msg=name)


@pytest.fixture
def drawn(monkeypatch):
    """Numbers of the draws of each kind that are made."""
    made = []
    before = CompiledEngine.votes

    def noting(self, seed, purpose, *, num_samples, first_sample=0, progress=None):
        made.extend((purpose.value, number) for number in range(first_sample, first_sample + num_samples))
        return before(self, seed, purpose, num_samples=num_samples, first_sample=first_sample, progress=progress)

    monkeypatch.setattr(CompiledEngine, "votes", noting)
    return made


@pytest.fixture
def kept_always(monkeypatch):
    monkeypatch.setattr(folder, "VotesSoFar", partial(VotesSoFar, every=0.0))


def interrupted_after(times, monkeypatch, data, draws, folder, **execution):
    """Certify until votes have been kept so many times, as if killed then."""
    before, count = VotesSoFar.keep, [0]

    def keep(self, done, arrays):
        before(self, done, arrays)
        count[0] += 1
        if count[0] == times:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(VotesSoFar, "keep", keep)
        with pytest.raises(KeyboardInterrupt) as interruption:
            certified(data, draws, folder=folder, **execution)
    assert "and votes of further ones are kept" in interruption.value.__notes__[0]


@pytest.mark.parametrize("times", [1, 2, 5])
@pytest.mark.parametrize("draws", [FIXED, STOPPING], ids=["fixed", "until decided"])
def test_no_kept_draw_is_made_twice(draws, times, data, drawn, kept_always, monkeypatch, tmp_path):
    expected = certified(data, draws)
    in_all = list(drawn)
    drawn.clear()
    interrupted_after(times, monkeypatch, data, draws, tmp_path / "kept")
    before = list(drawn)
    drawn.clear()
    said = []
    assert_same(certified(data, draws, folder=tmp_path / "kept", say=said.append), expected)
    assert before
    assert sorted(before + drawn) == sorted(in_all)
    assert any("It goes on with the votes that are kept" in line for line in said)
    assert not list((tmp_path / "kept").glob("votes-*"))


@pytest.mark.parametrize("batch_size", [7, 50])
def test_pytorch_evaluates_the_same_draws_together_in_stages_as_at_once(
    batch_size, data, kept_always, monkeypatch, tmp_path
):
    """Its rounding may depend on the company that a draw is in."""
    passes, before = [], voting.evaluate

    def noting(model, rows, edges, **how):
        passes.append((rows.shape, edges.shape, float(rows.sum())))
        return before(model, rows, edges, **how)

    monkeypatch.setattr(voting, "evaluate", noting)
    expected = certified(data, engine="torch", batch_size=batch_size)
    at_once = list(passes)
    passes.clear()
    assert_same(certified(data, engine="torch", batch_size=batch_size, folder=tmp_path / "kept"), expected)
    assert passes == at_once


def test_of_targets_in_several_parts_more_is_drawn_at_a_time(data):
    model, everyone = graycert.build_model("gcn", data, seed=1).eval(), np.arange(60)
    smoothing = graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.7)
    engine = choose_engine(model, data, everyone, smoothing=smoothing, num_layers=2)
    assert engine.draws_at_once == 32
    (whole,) = engine.plan.cuts
    halves = tuple(replace(whole, rows=slice(*rows)) for rows in ((0, 30), (30, 60)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CompiledEngine, "plan", replace(engine.plan, cuts=halves))
        assert engine.draws_at_once == 1_024


def test_stages_that_take_long_are_short_and_others_grow(data, drawn, monkeypatch, tmp_path):
    clock = [0.0]
    monkeypatch.setattr(votes_so_far.time, "monotonic", lambda: clock[0])
    sizes, before = [], CompiledEngine.votes

    def taking(seconds_of_a_draw):
        def votes(self, seed, purpose, *, num_samples, first_sample=0, progress=None):
            sizes.append(num_samples)
            clock[0] += num_samples * seconds_of_a_draw
            return before(self, seed, purpose, num_samples=num_samples, first_sample=first_sample, progress=progress)

        return votes

    many = graycert.Draws(num_selection=1_000, num_estimation=1_000)
    for name, seconds in (("slow", 1.0), ("fast", 1e-6)):
        sizes.clear()
        monkeypatch.setattr(CompiledEngine, "votes", taking(seconds))
        certified(data, many, folder=tmp_path / name)
        if name == "slow":
            assert set(sizes) <= {votes_so_far.FEWEST, 1_000 % votes_so_far.FEWEST}
        else:
            assert len(sizes) < 14


def test_what_takes_long_to_keep_is_kept_seldom(data, monkeypatch, tmp_path):
    clock, kept, drawn = [0.0], [], CompiledEngine.votes
    monkeypatch.setattr(votes_so_far.time, "monotonic", lambda: clock[0])

    def votes(self, seed, purpose, *, num_samples, first_sample=0, progress=None):
        clock[0] += num_samples
        return drawn(self, seed, purpose, num_samples=num_samples, first_sample=first_sample, progress=progress)

    def keeping(seconds):
        def keep(self, done, arrays):
            kept.append(clock[0])
            clock[0] += seconds

        return keep

    monkeypatch.setattr(CompiledEngine, "votes", votes)
    for seconds in (0.0, 0.2, 3.0):
        kept.clear()
        monkeypatch.setattr(VotesSoFar, "keep", keeping(seconds))
        certified(data, graycert.Draws(num_selection=1_000, num_estimation=1_000), folder=tmp_path / str(seconds))
        assert len(kept) > 3
        assert (len(kept) - 1) * seconds <= 0.01 * clock[0]  # the first time nobody knows
        assert seconds > 1 or len(kept) > 50
        clock[0] = 0.0


def test_of_several_blocks_it_is_said_that_votes_are_kept(data, kept_always, monkeypatch, tmp_path):
    interrupted_after(2, monkeypatch, data, FIXED, tmp_path / "kept", block_size=30)
    said = []
    certified(data, folder=tmp_path / "kept", block_size=30, say=said.append)
    assert any(line.endswith("; votes of further ones are kept") for line in said)


@pytest.mark.parametrize("what", ["another run", "damaged", "another block"])
def test_votes_of_something_else_are_not_taken(what, data, kept_always, monkeypatch, tmp_path):
    interrupted_after(3, monkeypatch, data, FIXED, tmp_path / "kept")
    (file,) = (tmp_path / "kept").glob("votes-*.npz")
    if what == "another run":
        with monkeypatch.context() as patch:
            patch.setattr(VotesSoFar, "drop", lambda self: None)
            certified(data, FIXED, seed=8, folder=tmp_path / "other")
        shutil.copy(tmp_path / "other" / file.name, file)
    elif what == "damaged":
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    else:
        place = VotesSoFar(folder=tmp_path / "kept", run="x", block=1)
        place.keep({"selection": 40}, {"selection": np.full((60, 4), 10)})
        place.file.replace(file)
    assert_same(certified(data, folder=tmp_path / "kept"), certified(data))


def test_a_folder_that_a_worker_does_not_see_is_not_made(tmp_path):
    place = VotesSoFar(folder=tmp_path / "elsewhere", run="x")
    place.keep({"selection": 1}, {"selection": np.ones((1, 2), np.int64)})
    place.drop()
    assert not place.folder.exists()
    assert place.read(num_targets=1, num_classes=2) == ({}, {})


def test_votes_of_a_block_that_is_kept_go_with_the_next_call(data, kept_always, monkeypatch, tmp_path):
    """A process may be killed just after it has written a block."""
    with monkeypatch.context() as patch:
        patch.setattr(VotesSoFar, "drop", lambda self: None)
        certified(data, folder=tmp_path)
    assert list(tmp_path.glob("votes-*"))
    certified(data, folder=tmp_path)
    assert not list(tmp_path.glob("votes-*"))


@pytest.mark.parametrize("room", [0, 1])
def test_votes_make_room_for_their_block_where_the_disk_is_full(room, data, kept_always, monkeypatch, tmp_path):
    """They stay where that does not do."""

    def write_archive(file, record, arrays):
        if room == 0 or list(tmp_path.glob("votes-*")):
            raise OSError(errno.ENOSPC, "No space left on device")
        before(file, record, arrays)

    before = folder.write_archive
    with monkeypatch.context() as patch:
        patch.setattr(folder, "write_archive", write_archive)
        if room:
            assert_same(certified(data, folder=tmp_path), certified(data))
            assert not list(tmp_path.glob("votes-*"))
            return
        with pytest.raises(WriteError, match="No space left"):
            certified(data, folder=tmp_path)
    said = []
    assert_same(certified(data, folder=tmp_path, say=said.append), certified(data))
    assert "It goes on with the votes that are kept: 40 of selection, 200 of estimation." in said
