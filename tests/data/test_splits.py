import hashlib
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from graycert.data import InductiveSplit, TransductiveSplit, inductive_split, load_graph, transductive_split
from graycert.data.arrays import GraphArrays
from graycert.data.split_nodes import MASKS, split_nodes
from graycert.errors import InvalidParameterError
from support.graphs import edge_set, labelled_graph, path_graph


def original_nodes(split: InductiveSplit | TransductiveSplit) -> tuple[set[int], set[int], set[int]]:
    train, validation, test = (
        set(part.original[part.nodes].tolist()) for part in (split.train, split.validation, split.test)
    )
    return train, validation, test


@pytest.mark.parametrize("seed", [0, 1, None])
def test_nodes_of_arrays_are_those_of_either_kind_of_split(seed: int | None) -> None:
    data = labelled_graph([30, 25, 60], unlabelled=10)
    for number, name in enumerate(MASKS):
        data[name] = torch.arange(data.num_nodes) % 4 == number
        data[name][data.y < 0] = False
    arrays = GraphArrays(**{name: data[name].numpy() for name in ("edge_index", "x", "y", *MASKS)})
    found = split_nodes(arrays, seed=seed, per_class=5)
    for make in (inductive_split, transductive_split):
        split = make(data, seed=seed, per_class=5)
        nodes = original_nodes(split)
        assert [set(np.flatnonzero(each)) for each in (found.train, found.validation, found.test)] == list(nodes)
    with pytest.raises(InvalidParameterError, match="`per_class` must leave enough"):
        split_nodes(arrays, seed=0, per_class=30)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_graphs_grow_by_validation_and_test_nodes(seed: int) -> None:
    data = labelled_graph([30, 25, 60], seed=seed, unlabelled=10)
    split = inductive_split(data, seed=seed, per_class=5)
    train, validation, test = original_nodes(split)
    everything = set(range(data.num_nodes))
    assert len(train) == len(validation) == 15
    assert len(test) == 11  # floor(115 / 10)
    assert len(train | validation | test) == 41  # disjoint
    assert f"validation=SplitPart(15 of {data.num_nodes - 11} nodes)" in repr(split)
    assert set(split.train.original.tolist()) == everything - validation - test
    assert set(split.validation.original.tolist()) == everything - test
    assert split.test.data is data
    assert split.test.original.tolist() == sorted(everything)
    for part in (split.train, split.validation):
        kept = set(part.original.tolist())
        edges = {(int(part.original[w]), int(part.original[v])) for w, v in edge_set(part.data)}
        assert edges == {(w, v) for w, v in edge_set(data) if w in kept and v in kept}
        assert torch.equal(part.data.x, data.x[part.original])
        assert torch.equal(part.data.y, data.y[part.original])
        assert part.data.node_ids == [str(i) for i in part.original.tolist()]


def test_every_class_gets_its_share_and_unknown_labels_are_never_drawn() -> None:
    data = labelled_graph([12, 40], unlabelled=100)
    train, validation, test = original_nodes(inductive_split(data, seed=3, per_class=6, test_fraction="0.5"))
    for part in (train, validation):
        assert torch.bincount(data.y[sorted(part)]).tolist() == [6, 6]
    assert len(test) == 26
    assert (data.y[sorted(test)] >= 0).all()


def test_the_transductive_split_has_the_same_nodes_in_the_whole_graph() -> None:
    data = labelled_graph([30, 30])
    inductive, transductive = (f(data, seed=4, per_class=4) for f in (inductive_split, transductive_split))
    assert original_nodes(inductive) == original_nodes(transductive)
    for part in (transductive.train, transductive.validation, transductive.test):
        assert part.data is data
        assert torch.equal(part.original, torch.arange(60))


def test_the_seed_decides() -> None:
    data = labelled_graph([30, 30])
    first, again, other = (original_nodes(inductive_split(data, seed=s, per_class=4)) for s in (1, 1, 2))
    assert first == again
    assert first != other


def test_the_global_generators_are_not_touched() -> None:
    state = torch.get_rng_state()
    inductive_split(labelled_graph([30, 30]), seed=1, per_class=4)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_draw_is_the_same_on_every_platform() -> None:
    split = inductive_split(load_graph("wordnet_nouns"), seed=0)
    nodes = ",".join(str(i) for part in original_nodes(split) for i in sorted(part))
    assert [len(part) for part in original_nodes(split)] == [120, 120, 966]
    assert hashlib.sha256(nodes.encode()).hexdigest()[:16] == "3520b3c7ed97b10f"


def test_every_node_is_equally_likely() -> None:
    """50 of 100 nodes of a class are drawn for training or validation, by 400 seeds.

    A node is drawn Binomial(400, 1/2) times; 200 +- 68 is 6.8 standard deviations, so that one of 100 nodes
    fails with probability < 1e-8 if the draw is uniform.
    """
    data = labelled_graph([100, 100])
    counts = torch.zeros(200)
    for seed in range(400):
        split = transductive_split(data, seed=seed, per_class=25)
        counts[split.train.nodes] += 1
        counts[split.validation.nodes] += 1
    assert (counts - 200).abs().max() < 68


def test_the_paper_split_of_cora_ml(data_root: Path) -> None:
    split = inductive_split(load_graph("cora_ml", data_root=data_root), seed=42)
    assert [len(part) for part in original_nodes(split)] == [140, 140, 281]
    assert [part.data.num_nodes for part in (split.train, split.validation, split.test)] == [2389, 2529, 2810]


@pytest.mark.parametrize("fraction", ["0.35", 0.35, Fraction(7, 20)])
def test_fractions_are_exact(fraction: str | float | Fraction) -> None:
    assert 0.35 * 20 < 7 or int(100 * 0.29) == 28  # why floats will not do
    assert len(transductive_split(labelled_graph([20]), seed=0, per_class=1, test_fraction=fraction).test.nodes) == 7
    assert len(transductive_split(labelled_graph([100]), seed=0, per_class=1, test_fraction=0.29).test.nodes) == 29


def test_a_small_class_is_named() -> None:
    data = labelled_graph([30, 9])
    message = "class 1 has 9 labelled nodes, but 10 are needed, 5 for training and 5 for validation"
    with pytest.raises(InvalidParameterError, match=re.escape(message)):
        inductive_split(data, seed=0, per_class=5)
    data.class_names = ["large", "small"]
    with pytest.raises(InvalidParameterError, match=re.escape("class 1 ('small') has 9 labelled nodes")):
        transductive_split(data, seed=0, per_class=5)
    data.y[data.y == 1] = -1
    assert len(inductive_split(data, seed=0, per_class=5).train.nodes) == 5  # as the message advises


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": -1}, "`seed` must be >= 0, got -1"),
        ({"per_class": 0}, "`per_class` must be >= 1, got 0"),
        ({"test_fraction": "1/0"}, "`test_fraction` must be a number in (0, 1), got '1/0'"),
        ({"test_fraction": 1.0}, "`test_fraction` must be a number in (0, 1), got 1.0"),
        ({"test_fraction": "ten"}, "`test_fraction` must be a number in (0, 1), got 'ten'"),
        ({"test_fraction": float("nan")}, "`test_fraction` must be a number in (0, 1), got nan"),
        ({"test_fraction": "0.9"}, "`test_fraction` must leave between 1 and 50 test nodes, got 54"),
        ({"test_fraction": "0.01"}, "`test_fraction` must leave between 1 and 50 test nodes, got 0"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], message: str) -> None:
    arguments = {"seed": 0, "per_class": 5, **options}
    with pytest.raises(InvalidParameterError, match=re.escape(message)):
        inductive_split(labelled_graph([60]), **arguments)  # type: ignore[arg-type]


def test_labels_are_needed() -> None:
    with pytest.raises(InvalidParameterError, match=r"`data\.y` must label at least one node"):
        inductive_split(path_graph(y=None), seed=0)


@pytest.mark.statistical
def test_test_nodes_are_a_uniform_draw_from_the_nodes_left() -> None:
    """Classes of 45 and 955 nodes, 20 + 20 taken from each: the 5 left of the small class are drawn as often as any.

    Over 300 seeds, 100 test nodes of 920: the small class gets 300·100·5/920 = 163 on average (hypergeometric per
    seed, variance 0.48 each, so standard deviation 12); a deviation beyond 60 has probability below 1e-6.
    """
    labels = torch.tensor([0] * 45 + [1] * 955)
    data = Data(x=torch.ones(1000, 1), edge_index=torch.empty(2, 0, dtype=torch.long), y=labels)
    drawn = sum(int((labels[inductive_split(data, seed=seed).test.nodes] == 0).sum()) for seed in range(300))
    assert abs(drawn - 163) < 60
