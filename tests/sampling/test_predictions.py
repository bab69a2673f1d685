"""The class of every vote: counted it gives the votes, whatever the engine, the batch, the threads and the shards."""

import numpy as np
import pytest
import torch

from graycert.models import build_model
from graycert.sampling import Purpose, choose_engine
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from support.attributed_graphs import ARCHITECTURE_NAMES, random_graph
from support.textbook_loop import textbook_votes

UNIFORM = InterceptionSmoothing(p_delete=0.3, p_ablate=0.5)
TARGETS = np.array([3, 17, 29, 8, 0])
NUM_SAMPLES = 150  # more than two chunks of the compiled engine

both_engines = pytest.mark.parametrize("engine", ["compiled", "torch"])


def graph():
    return random_graph(num_nodes=30, num_pairs=60)


def engine_of(engine, architecture="gcn", *, targets=TARGETS, smoothing=UNIFORM, skip=False, **options):
    data = graph()
    model = build_model(architecture, data, skip=skip)
    return choose_engine(model, data, targets, smoothing=smoothing, num_layers=2, engine=engine, **options)


def with_arrays():
    generator = np.random.default_rng(0)
    num_edges = graph().edge_index.size(1)
    return InterceptionSmoothing(p_delete=generator.random(num_edges), p_ablate=generator.random(30))


def counted(predictions):
    return np.stack([np.count_nonzero(predictions == number, axis=1) for number in range(3)], axis=1)


@pytest.mark.few(1)
@both_engines
@pytest.mark.parametrize("smoothing", [UNIFORM, with_arrays()], ids=["uniform", "arrays"])
@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
def test_counted_they_are_the_votes(engine, architecture, skip, smoothing):
    made = engine_of(engine, architecture, skip=skip, smoothing=smoothing)
    predictions = made.predictions(5, Purpose.ESTIMATION, num_samples=NUM_SAMPLES)
    assert (predictions.shape, predictions.dtype) == ((5, NUM_SAMPLES), np.int16)
    votes = made.votes(5, Purpose.ESTIMATION, num_samples=NUM_SAMPLES)
    np.testing.assert_array_equal(counted(predictions), votes)
    if not skip:  # an untrained skip connection may decide every vote
        assert (np.count_nonzero(votes, axis=1) > 1).any()


@both_engines
def test_each_is_the_vote_of_its_own_sample(engine):
    predictions = engine_of(engine).predictions(5, Purpose.ESTIMATION, num_samples=70, first_sample=29)
    data = graph()
    model = build_model("gcn", data).eval()
    for place in (0, 2, 34, 35, 69):
        votes = textbook_votes(
            model,
            data.x,
            data.edge_index,
            TARGETS,
            model.ablation_token.detach(),
            UNIFORM,
            seed=5,
            purpose="estimation",
            num_samples=1,
            first_sample=29 + place,
        )
        np.testing.assert_array_equal(predictions[:, place], votes.argmax(axis=1))


@pytest.mark.deep
@both_engines
@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
def test_they_do_not_depend_on_batches_threads_shards_or_other_targets(engine, architecture):
    reference = engine_of("torch", architecture, batch_size=1).predictions(
        0, Purpose.SELECTION, num_samples=NUM_SAMPLES
    )
    threads = torch.get_num_threads()
    try:
        for number, batch_size in ((1, 7), (2, 64), (2, None)):
            torch.set_num_threads(number)
            made = engine_of(engine, architecture, batch_size=batch_size)
            again = made.predictions(0, Purpose.SELECTION, num_samples=NUM_SAMPLES)
            np.testing.assert_array_equal(again, reference)
    finally:
        torch.set_num_threads(threads)
    shards = [
        made.predictions(0, Purpose.SELECTION, num_samples=size, first_sample=first)
        for first, size in ((0, 37), (37, 1), (38, 112))
    ]
    np.testing.assert_array_equal(np.concatenate(shards, axis=1), reference)
    fewer = engine_of(engine, architecture, targets=TARGETS[[3, 1]])
    np.testing.assert_array_equal(fewer.predictions(0, Purpose.SELECTION, num_samples=NUM_SAMPLES), reference[[3, 1]])


@both_engines
def test_seed_and_purpose_choose_the_samples_and_progress_is_told(engine):
    made, steps = engine_of(engine), []
    first = made.predictions(0, Purpose.SELECTION, num_samples=NUM_SAMPLES, progress=steps.append)
    assert sum(steps) == NUM_SAMPLES
    for seed, purpose in ((1, Purpose.SELECTION), (0, Purpose.ESTIMATION)):
        assert (made.predictions(seed, purpose, num_samples=NUM_SAMPLES) != first).any()
