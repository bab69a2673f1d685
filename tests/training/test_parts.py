"""Training with a probability per edge and node: parts of the graph keep those of the whole graph."""

import numpy as np
import pytest
import torch

import graycert
from graycert.errors import InvalidParameterError
from graycert.sampling import CoinStream, InterceptionSampler, Purpose
from graycert.training.drawn_field import FieldSampler
from graycert.training.parts import smoothing_on_part
from support.communities import two_communities

DATA = two_communities()
STREAM = CoinStream(3, Purpose.TRAINING)


def by_end_points(edges):
    """A probability that tells which edge it belongs to."""
    return (edges[0] * 60 + edges[1]).numpy() / 3_600


@pytest.mark.parametrize("make", [graycert.inductive_split, graycert.transductive_split])
def test_parts_keep_the_probabilities_of_the_whole_graph(make):
    split = make(DATA, seed=0, per_class=8, test_fraction="0.2")
    smoothing = graycert.InterceptionSmoothing(p_delete=by_end_points(DATA.edge_index), p_ablate=np.arange(60) / 60)
    for part in (split.train, split.validation, split.test):
        found = smoothing_on_part(smoothing, split.test, part)
        np.testing.assert_array_equal(found.p_delete, by_end_points(part.original[part.data.edge_index]))
        np.testing.assert_array_equal(found.p_ablate, part.original.numpy() / 60)
        numbers = graycert.InterceptionSmoothing(p_delete=0.3, p_ablate=0.4)
        assert smoothing_on_part(numbers, split.test, part) == numbers


@pytest.mark.deep
def test_the_walk_throws_the_coins_of_the_masks():
    rng = np.random.default_rng(0)
    loops = torch.tensor([[3, 8], [3, 8]])
    edges = torch.cat([DATA.edge_index[:, :40], loops, DATA.edge_index[:, 40:]], dim=1)
    smoothing = graycert.InterceptionSmoothing(p_delete=rng.random(edges.size(1)), p_ablate=rng.random(60))
    targets = torch.tensor([4, 11, 12, 50])
    sampler = FieldSampler(edges, targets, num_nodes=60, num_layers=2, smoothing=smoothing, stream=STREAM)
    field = sampler.draw(range(9, 10))
    draw = InterceptionSampler.of_graph(smoothing, STREAM, edges, num_nodes=60).draw(torch.tensor([9]))
    assert torch.equal(field.ablated, draw.ablated[0, field.nodes])
    kept = [(s, t) for s, t in edges[:, draw.kept[0]].T.tolist() if s != t]
    nodes = field.nodes.tolist()
    assert field.in_degree.tolist() == [sum(target == node for _, target in kept) for node in nodes]
    receivers = set(nodes[: field.copies_within[1]])
    assert sorted((nodes[s], nodes[t]) for s, t in field.edge_index.T.tolist()) == sorted(
        edge for edge in kept if edge[1] in receivers
    )


def train(split, smoothing):
    model = graycert.build_model("gcn", split, dropout=0.3, seed=1)
    return model, graycert.train(model, split, smoothing=smoothing, max_epochs=4)


def test_constant_arrays_train_the_same_weights_and_others_do_not():
    split = graycert.inductive_split(DATA, seed=0, per_class=8, test_fraction="0.2")
    size = DATA.edge_index.size(1)
    uniform, record = train(split, graycert.InterceptionSmoothing(p_delete=0.2, p_ablate=0.4))
    constant, words = train(
        split, graycert.InterceptionSmoothing(p_delete=np.full(size, 0.2), p_ablate=np.full(60, 0.4))
    )
    other, _ = train(split, graycert.InterceptionSmoothing(p_delete=by_end_points(DATA.edge_index), p_ablate=0.4))
    assert all(torch.equal(a, b) for a, b in zip(uniform.parameters(), constant.parameters(), strict=True))
    assert any(not torch.equal(a, b) for a, b in zip(uniform.parameters(), other.parameters(), strict=True))
    assert (record.p_delete, record.p_ablate) == (0.2, 0.4)
    assert (words.p_delete, words.p_ablate) == ("0.2..0.2 (per edge)", "0.4..0.4 (per node)")


def test_arrays_must_fit_the_whole_graph():
    split = graycert.inductive_split(DATA, seed=0, per_class=8, test_fraction="0.2")
    size = split.train.data.edge_index.size(1)
    with pytest.raises(InvalidParameterError, match=f"got {size} entries"):
        train(split, graycert.InterceptionSmoothing(p_delete=np.full(size, 0.2), p_ablate=0.4))
