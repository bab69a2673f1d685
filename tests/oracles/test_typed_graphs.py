"""Node types and relations: every outcome of every coin, for a real model and for one that forgets nothing."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch_geometric.data import HeteroData

import graycert
from support.typed_graphs import AUTHOR, CITES, CLASSES, PAPER, REVIEWS, WRITES, WRITTEN_BY, Convs

TIGHT = Fraction(1, 10**12)
RELATIONS = (WRITES, WRITTEN_BY, REVIEWS, CITES)
P_DELETE = {WRITES: 0.31, WRITTEN_BY: 0.5, REVIEWS: 0.75, CITES: 0.125}
P_ABLATE = {"paper": 0.25, "author": 0.6}


def tiny_graph(rng):
    """Two papers and two authors, up to six pairs, one of them with two relations."""
    data = HeteroData()
    data["paper"].x = torch.randn(2, PAPER, generator=torch.Generator().manual_seed(int(rng.integers(1000))))
    data["author"].x = torch.randn(2, AUTHOR, generator=torch.Generator().manual_seed(int(rng.integers(1000))))
    data["paper"].y = torch.tensor([0, 1])
    writes = [[0, 0], [1, 0], [1, 1]][: int(rng.integers(2, 4))]
    data[WRITES].edge_index = torch.tensor(writes).T
    data[WRITTEN_BY].edge_index = torch.tensor([[int(rng.integers(2))], [int(rng.integers(2))]])
    data[REVIEWS].edge_index = torch.tensor([[0, int(rng.integers(2))], [0, 1]])  # author 0 reviews what it wrote
    data[CITES].edge_index = torch.tensor([[1], [0]])
    return data


def pairs_of(data):
    """Probability of deletion of each ordered pair of nodes, the largest of its relations'."""
    found = {}
    for relation in RELATIONS:
        for a, b in data[relation].edge_index.T.tolist():
            pair = ((relation[0], a), (relation[2], b))
            found[pair] = max(found.get(pair, 0.0), P_DELETE[relation])
    return found


def outcomes(data):
    """Yield the probability of each outcome, the pairs that survive, and the nodes that are ablated."""
    pairs = pairs_of(data)
    nodes = {(name, node): P_ABLATE[name] for name in ("paper", "author") for node in range(2)}
    for kept in itertools.product((True, False), repeat=len(pairs)):
        for hidden in itertools.product((True, False), repeat=len(nodes)):
            chance = Fraction(1)
            for survives, p in zip(kept, pairs.values(), strict=True):
                chance *= 1 - Fraction(p) if survives else Fraction(p)
            for ablated, p in zip(hidden, nodes.values(), strict=True):
                chance *= Fraction(p) if ablated else 1 - Fraction(p)
            yield chance, set(itertools.compress(pairs, kept)), set(itertools.compress(nodes, hidden))


def smoothed(model, data, x_dict, listed):
    """Exact probability of each class for each paper: all outcomes side by side in one pass."""
    size = len(listed)
    rows, edges = {}, {}
    for name in ("paper", "author"):
        many = x_dict[name].repeat(size, 1)
        for number, (_, _, hidden) in enumerate(listed):
            for node in range(2):
                if (name, node) in hidden:
                    many[2 * number + node] = 0
        rows[name] = many
    for relation in RELATIONS:
        columns = [
            (2 * number + a, 2 * number + b)
            for number, (_, survives, _) in enumerate(listed)
            for a, b in data[relation].edge_index.T.tolist()
            if ((relation[0], a), (relation[2], b)) in survives
        ]
        edges[relation] = torch.tensor(columns).reshape(-1, 2).T.contiguous()
    with torch.no_grad():
        winners = model(rows, edges)["paper"].nan_to_num(0.0).argmax(dim=1).reshape(size, 2)
    table = np.zeros((2, CLASSES), dtype=object)
    for (chance, _, _), (first, second) in zip(listed, winners.tolist(), strict=True):
        table[0, first] += chance
        table[1, second] += chance
    return table


def certified(model, data, threat, **options):
    return graycert.certify(
        model,
        data,
        smoothing=graycert.InterceptionSmoothing(p_delete=P_DELETE, p_ablate=P_ABLATE),
        threat=threat,
        draws=graycert.Draws(num_selection=20, num_estimation=40),
        max_radius=2,
        execution=graycert.Execution(engine="torch", say=lambda _: None),
        **options,
    )


@pytest.mark.deep
def test_no_features_of_hostile_nodes_move_a_smoothed_class_by_more_than_delta():
    """The model is called as it was written; classes that hold by exact probabilities hold against every attack."""
    rng, held = np.random.default_rng(0), 0
    threat = graycert.NodeFeatureThreat(eligible_types=("author",))
    for number in range(2):
        data = tiny_graph(rng)
        torch.manual_seed(number)
        model = Convs().eval()
        delta = certified(model, data, threat).delta_upper
        listed = list(outcomes(data))
        before = smoothed(model, data, data.x_dict, listed)
        assert sum(before[0]) == 1
        for hostile in ((0,), (1,), (0, 1)):
            for value in (1e4, -1e4, float("nan"), "random", "other"):
                x_dict = {name: rows.clone() for name, rows in data.x_dict.items()}
                if value == "random":
                    x_dict["author"][list(hostile)] = torch.from_numpy(
                        rng.normal(0, 50, (len(hostile), AUTHOR))
                    ).float()
                elif value == "other":
                    x_dict["author"][list(hostile)] = data["author"].x.flip(0)[list(hostile)]
                else:
                    x_dict["author"][list(hostile)] = value
                after = smoothed(model, data, x_dict, listed)
                for paper in range(2):
                    bound = Fraction(float(delta[paper, len(hostile) - 1]))
                    assert max(abs(after[paper] - before[paper])) <= bound
                    ranked = sorted(before[paper])
                    if ranked[-1] - ranked[-2] > 2 * bound:
                        held += 1
                        assert after[paper].argmax() == before[paper].argmax()
    assert held > 10


def state(data, survives, features, target, num_layers):
    """All that a model can know of a paper: its own state, and what arrives over which relation."""
    edges = [
        ((relation[0], a), (relation[2], b), relation[1])
        for relation in RELATIONS
        for a, b in data[relation].edge_index.T.tolist()
        if ((relation[0], a), (relation[2], b)) in survives
    ]
    states = {node: repr(row) for node, row in features.items()}
    for _ in range(num_layers):
        states = {
            node: repr((mine, sorted((name, states[a]) for a, b, name in edges if b == node)))
            for node, mine in states.items()
        }
    return states[target]


def test_delta_is_the_chance_that_a_message_of_hostile_nodes_arrives():
    """Of two steps it is exact: p_d per relation, p_a per type, hostile nodes of the eligible types."""
    rng = np.random.default_rng(1)
    nodes = [(name, node) for name in ("paper", "author") for node in range(2)]
    for types in (("author",), ("paper", "author")):
        data = tiny_graph(rng)
        threat = graycert.NodeFeatureThreat(min_distance=1, eligible_types=types)
        delta = certified(Convs().eval(), data, threat).delta_upper
        listed = list(outcomes(data))
        for paper, radius in ((0, 1), (0, 2), (1, 1)):
            target, worst = ("paper", paper), Fraction(0)
            others = [node for node in nodes if node[0] in types and node != target]
            for hostile in itertools.combinations(others, min(radius, len(others))):
                changed = Fraction(0)
                for chance, survives, hidden in listed:
                    clean = {node: "token" if node in hidden else node for node in nodes}
                    attacked = {node: "hostile" if node in hostile else row for node, row in clean.items()}
                    attacked |= dict.fromkeys(hidden, "token")
                    if state(data, survives, clean, target, 2) != state(data, survives, attacked, target, 2):
                        changed += chance
                worst = max(worst, changed)
            bound = Fraction(float(delta[paper, radius - 1]))
            assert bound >= worst
            if bound <= Fraction(1, 2):  # beyond, nothing can be certified, and no worst set is looked for
                assert bound - worst <= TIGHT
