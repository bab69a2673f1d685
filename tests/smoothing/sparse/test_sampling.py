"""Votes under sparse smoothing against the model on the whole graph, one dense draw at a time."""

import numpy as np
import pytest
import torch
from torch import nn

from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.models import build_model
from graycert.sampling import CoinStream, Purpose
from graycert.smoothing.sparse.draws import AttributeDraws
from graycert.smoothing.sparse.sampling import build_sparse_smoothing_engine
from support import foreign_models as foreign
from support.attributed_graphs import ARCHITECTURE_NAMES
from support.binary_graphs import binary_graph
from support.known_models import with_biases

TARGETS = np.array([9, 2, 13, 4])


def plain_scores(model, data, samples, *, p_plus, p_minus, seed=5, purpose=Purpose.ESTIMATION):
    everyone = torch.arange(data.num_nodes)
    stream = CoinStream(seed, purpose)
    draws = AttributeDraws.of(data.x, everyone, p_plus=p_plus, p_minus=p_minus, stream=stream)
    with torch.inference_mode():
        return [model(draws.draw(s).to_dense(), data.edge_index)[torch.from_numpy(TARGETS)] for s in samples]


@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
@pytest.mark.parametrize(("p_plus", "num_layers", "directed"), [(0.0, 2, True), (0.2, 2, False), (0.2, 3, True)])
def test_fields_give_the_scores_of_the_whole_graph(architecture, p_plus, num_layers, directed):
    data = binary_graph(directed=directed, dtype=torch.float64)
    model = with_biases(build_model(architecture, data, num_layers=num_layers)).double().eval()
    engine = build_sparse_smoothing_engine(model, data, TARGETS, p_plus=p_plus, p_minus=0.6)
    expected = plain_scores(model, data, range(20), p_plus=p_plus, p_minus=0.6)
    for ours, theirs in zip(engine.scores(5, Purpose.ESTIMATION, range(20)), expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
    classes = torch.stack(expected).argmax(dim=2)
    counted = torch.nn.functional.one_hot(classes, 3).sum(dim=0).numpy()
    np.testing.assert_array_equal(engine.votes(5, Purpose.ESTIMATION, num_samples=20), counted)


def test_votes_add_up_over_ranges_of_samples():
    data = binary_graph()
    model = with_biases(build_model("gat", data))
    engine = build_sparse_smoothing_engine(model, data, TARGETS, p_plus=0.0, p_minus=0.6)
    whole = engine.votes(1, Purpose.SELECTION, num_samples=30)
    parts = [engine.votes(1, Purpose.SELECTION, num_samples=n, first_sample=f) for f, n in ((0, 12), (12, 18))]
    np.testing.assert_array_equal(whole, sum(parts))
    assert whole.dtype == np.int64
    assert whole.sum(axis=1).tolist() == [30] * 4


def test_any_other_model_is_evaluated_on_the_whole_graph():
    data = binary_graph()
    torch.manual_seed(0)
    model = foreign.GlobalMean().eval()
    engine = build_sparse_smoothing_engine(model, data, TARGETS, p_plus=0.1, p_minus=0.6)
    expected = plain_scores(model, data, range(10), p_plus=0.1, p_minus=0.6)
    for ours, theirs in zip(engine.scores(5, Purpose.ESTIMATION, range(10)), expected, strict=True):
        torch.testing.assert_close(ours, theirs)


class SeenFeatures(nn.Module):
    """Remembers whether it was ever shown the clean attributes."""

    def __init__(self, clean):
        super().__init__()
        self.clean, self.seen = clean, False

    def forward(self, x, edge_index):
        self.seen = self.seen or torch.equal(x, self.clean)
        return x[:, :3]


def test_clean_attributes_are_never_shown():
    data = binary_graph()
    model = SeenFeatures(data.x)
    build_sparse_smoothing_engine(model, data, TARGETS, p_plus=0, p_minus=0.6).votes(0, Purpose.AUDIT, num_samples=9)
    assert not model.seen
    build_sparse_smoothing_engine(model, data, TARGETS, p_plus=0, p_minus=0).votes(0, Purpose.AUDIT, num_samples=1)
    assert model.seen  # the detector works: without flips a draw is the clean input


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x, edge_index):
        self.calls += 1
        return x[:, :3] + self.calls


def test_refuses_a_model_with_memory_and_one_with_wrong_scores():
    data = binary_graph()
    with pytest.raises(UnsoundSetupError) as caught:
        build_sparse_smoothing_engine(Counter(), data, TARGETS, p_plus=0, p_minus=0.6)
    assert caught.value.slug == "not-deterministic"
    with pytest.raises(InvalidParameterError, match="must return scores"):
        build_sparse_smoothing_engine(OneColumn(), data, TARGETS, p_plus=0, p_minus=0.6)


class OneColumn(nn.Module):
    def forward(self, x, edge_index):
        return x[:, :1]
