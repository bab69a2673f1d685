"""Draws that keep exactly k nodes, and votes under them, against listing every outcome."""

import hashlib
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn
from torch_geometric.data import Data

from graycert.bounds.levine import levine_delta
from graycert.errors import InvalidParameterError, UnsoundSetupError
from graycert.models import build_model
from graycert.sampling import CoinStream, Purpose
from graycert.smoothing.randomized_ablation.draws import build_randomized_ablation_engine, kept_nodes
from graycert.smoothing.randomized_ablation.parameters import RandomizedAblation
from support import foreign_models as foreign
from support.attributed_graphs import ARCHITECTURE_NAMES, random_graph
from support.enumeration import nodes_that_reach
from support.reference_coins import splitmix

FAILURE = 1e-6  # chance that right code fails a statistical test
STREAM = CoinStream(4, Purpose.ESTIMATION)


def engine_of(model, data, targets, *, num_layers=2, batch_size=None, **arguments):
    smoothing = RandomizedAblation(**arguments)
    return build_randomized_ablation_engine(
        model, data, np.array(targets), smoothing=smoothing, num_layers=num_layers, batch_size=batch_size
    )


def reference_order(seed, purpose, sample, nodes):
    """Nodes by falling claim to their features, in Python integers."""

    def scrambled(value, role):
        text = f"graycert/1 {seed} {purpose} kept {role}".encode()
        key = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
        return splitmix(splitmix((value + key) % 2**64))

    def signed_hash(node):
        value = splitmix(scrambled(sample, "sample") ^ scrambled(node, "id"))
        return value - 2**64 if value >= 2**63 else value

    return sorted(nodes, key=signed_hash)


def field_of(data, target, num_layers):
    return sorted(nodes_that_reach(data.edge_index.t().tolist(), target, num_layers))


# ------------------------------------------------------------------------------------------------------------- draws


@pytest.mark.parametrize("seed", [0, 2**70])
def test_keeps_the_smallest_hashes_computed_with_python_integers(seed):
    nodes, samples = [0, 3, 4, 17, 2_810, 2**40], [0, 1, 7, 4_000, 2**40]
    for num_kept in range(7):
        kept = kept_nodes(
            CoinStream(seed, Purpose.SELECTION), torch.tensor(samples), torch.tensor(nodes), num_kept=num_kept
        )
        for row, sample in enumerate(samples):
            wanted = reference_order(seed, "selection", sample, nodes)[:num_kept]
            assert [node for node, shown in zip(nodes, kept[row].tolist(), strict=True) if shown] == sorted(wanted)


def test_exactly_k_are_kept_and_more_never_means_others():
    samples, nodes = torch.arange(200), torch.arange(37)
    before = kept_nodes(STREAM, samples, nodes, num_kept=0)
    for num_kept in range(1, 38):
        kept = kept_nodes(STREAM, samples, nodes, num_kept=num_kept)
        assert (kept.sum(dim=1) == num_kept).all()
        assert bool((before <= kept).all())
        before = kept


def test_draws_depend_on_sample_and_node_alone():
    together = kept_nodes(STREAM, torch.arange(50), torch.arange(9), num_kept=4)
    for sample in (0, 13, 49):
        assert torch.equal(kept_nodes(STREAM, torch.tensor([sample]), torch.arange(9), num_kept=4)[0], together[sample])
    backwards = kept_nodes(STREAM, torch.arange(50), torch.arange(9).flip(0), num_kept=4)
    assert torch.equal(backwards.flip(1), together)
    other = kept_nodes(CoinStream(4, Purpose.SELECTION), torch.arange(50), torch.arange(9), num_kept=4)
    assert not torch.equal(other, together)


def subsets_pvalue(kept, num_kept):
    """p-value of the chi-square test that all sets of ``num_kept`` nodes are equally likely."""
    num_nodes = kept.size(1)
    codes = (kept.long() * (2 ** torch.arange(num_nodes))).sum(dim=1).numpy()
    sets = [sum(2**node for node in chosen) for chosen in itertools.combinations(range(num_nodes), num_kept)]
    counts = np.bincount(codes, minlength=2**num_nodes)[sets]
    assert counts.sum() == kept.size(0) > 20 * len(sets)
    return stats.chisquare(counts).pvalue


@pytest.mark.statistical
def test_all_sets_are_equally_likely_and_samples_are_independent():
    """40,000 samples; Bonferroni over all tests."""
    samples, pvalues = torch.arange(40_000), []
    for num_nodes, num_kept, first in [(6, 1, 0), (6, 3, 0), (7, 2, 10**6), (8, 4, 2_000), (5, 4, 3)]:
        nodes = first + torch.arange(num_nodes)
        kept = kept_nodes(STREAM, samples, nodes, num_kept=num_kept)
        pvalues.append(subsets_pvalue(kept, num_kept))
        number = (kept.long() * (2 ** torch.arange(num_nodes))).sum(dim=1).numpy()
        _, code = np.unique(number, return_inverse=True)
        table = np.zeros((code.max() + 1, code.max() + 1))
        np.add.at(table, (code[:-1:2], code[1::2]), 1)  # neighbouring samples
        if table.shape[0] <= 21:
            pvalues.append(stats.chisquare(table.flatten()).pvalue)
    assert min(pvalues) > FAILURE / len(pvalues)
    biased = kept_nodes(STREAM, samples, torch.arange(6), num_kept=3)
    biased[:1_500] = biased[0]  # the test has power
    assert subsets_pvalue(biased, 3) < FAILURE


# ------------------------------------------------------------------------------------------------------------- votes


@pytest.mark.few(2)
@pytest.mark.parametrize("architecture", ARCHITECTURE_NAMES)
@pytest.mark.parametrize("scope", ["global", "local"])
def test_votes_are_those_of_the_model_on_the_whole_graph_with_all_else_ablated(architecture, scope):
    data = random_graph(dtype=torch.float64)
    model = build_model(architecture, data, skip=architecture == "gat").double().eval()
    targets = [4, 13, 0, 7]
    engine = engine_of(model, data, targets, scope=scope, p_ablate=0.6)
    expected = np.zeros((4, 3), dtype=int)
    with torch.inference_mode():
        for row, target in enumerate(targets):
            nodes = list(range(14)) if scope == "global" else field_of(data, target, 2)
            num_kept = -(-len(nodes) * 2 // 5)
            assert (engine.num_candidates[row], engine.num_kept[row]) == (len(nodes), num_kept)
            for sample in range(5, 45):
                shown = reference_order(9, "estimation", sample, nodes)[:num_kept]
                x = model.ablation_token.repeat(14, 1)
                x[shown] = data.x[shown]
                scores = model(x, data.edge_index)[target]
                if architecture == "gat":
                    scores = scores + model.skip_logits(data.x[[target]])[0]
                expected[row, int(scores.argmax())] += 1
    votes = engine.votes(9, Purpose.ESTIMATION, num_samples=40, first_sample=5)
    np.testing.assert_array_equal(votes, expected)
    assert all(domain.num_layers == (2 if scope == "local" else 0) for domain in engine.domains)


@pytest.mark.parametrize("scope", ["global", "local"])
def test_votes_do_not_depend_on_batches_other_targets_or_the_order_of_edges(scope):
    data = random_graph(num_nodes=30, num_pairs=70, dtype=torch.float64)
    model = build_model("gcn", data).double()
    smoothing = RandomizedAblation(scope=scope, p_ablate=0.5)

    def votes(targets, graph=data, **options):
        engine = build_randomized_ablation_engine(
            model, graph, np.array(targets), smoothing=smoothing, num_layers=2, **options
        )
        return engine.votes(1, Purpose.SELECTION, num_samples=64)

    whole = votes([3, 9, 21])
    assert (whole.sum(axis=1) == 64).all()
    for batch_size in (1, 7, 1_000):
        np.testing.assert_array_equal(votes([3, 9, 21], batch_size=batch_size), whole)
    np.testing.assert_array_equal(votes([21, 3]), whole[[2, 0]])
    shuffled = Data(x=data.x, edge_index=data.edge_index.flip(1), y=data.y)
    np.testing.assert_array_equal(votes([3, 9, 21], graph=shuffled), whole)


def test_runs_add_up():
    data = random_graph()
    engine = engine_of(build_model("gcn", data), data, [1, 5], scope="local", num_kept=2)
    first = engine.votes(0, Purpose.ESTIMATION, num_samples=20)
    second = engine.votes(0, Purpose.ESTIMATION, num_samples=30, first_sample=20)
    np.testing.assert_array_equal(first + second, engine.votes(0, Purpose.ESTIMATION, num_samples=50))


def test_no_value_of_an_ablated_node_survives():
    """All features are NaN: with nothing kept they are never seen."""
    data = random_graph()
    model = build_model("gat", data)
    seen = engine_of(model, data, [1, 5], scope="global", num_kept=0).votes(0, Purpose.AUDIT, num_samples=4)
    data.x = torch.full_like(data.x, torch.nan)
    blind = engine_of(model, data, [1, 5], scope="global", num_kept=0).votes(0, Purpose.AUDIT, num_samples=4)
    np.testing.assert_array_equal(blind, seen)


@pytest.mark.parametrize("scope", ["global", "local"])
def test_a_model_that_reads_the_whole_graph_is_shown_one_draw_at_a_time(scope):
    """What is outside of the receptive field is ablated, and no draw sees another."""
    torch.manual_seed(0)
    data, model = random_graph(dtype=torch.float64), foreign.GlobalMean().double()
    engine = engine_of(model, data, [4, 7], scope=scope, p_ablate=0.6, batch_size=16)
    for row, target in enumerate([4, 7]):
        nodes = list(range(14)) if scope == "global" else field_of(data, target, 2)
        domain = engine.domains[0 if scope == "global" else row]
        scores = engine.scores(domain, 9, Purpose.ESTIMATION, torch.arange(10))[:, row if scope == "global" else 0]
        for sample in range(10):
            x = torch.zeros_like(data.x)
            shown = reference_order(9, "estimation", sample, nodes)[: domain.num_kept]
            x[shown] = data.x[shown]
            with torch.inference_mode():
                torch.testing.assert_close(scores[sample], model(x, data.edge_index)[target])


def test_a_model_that_numbers_nodes_is_evaluated_on_the_whole_graph():
    torch.manual_seed(0)
    data = random_graph()
    for model, depth in [(foreign.NumbersNodes(14), 0), (foreign.TwoLiner(), 1)]:
        engine = engine_of(model, data, [2, 6], scope="local", num_kept=2, num_layers=1)
        assert [domain.num_layers for domain in engine.domains] == [depth, depth]
        assert engine.votes(0, Purpose.AUDIT, num_samples=8).sum(axis=1).tolist() == [8, 8]


class RemembersLast(foreign.Sandwich):
    """Adds the mean of the features of its previous call."""

    mean = 0.0

    def forward(self, x, edge_index):
        out, self.mean = super().forward(x + self.mean, edge_index), x.mean(dim=0)
        return out


@pytest.mark.parametrize("make", [foreign.AlwaysDropout, RemembersLast])
def test_refuses_what_is_no_function_of_its_arguments(make):
    with pytest.raises(UnsoundSetupError) as caught:
        engine_of(make(), random_graph(), [1], scope="global", num_kept=12)
    assert caught.value.slug == "not-deterministic"


def test_refuses_skip_without_logits_no_depth_and_wrong_numbers():
    data = random_graph()
    with pytest.raises(UnsoundSetupError) as caught:
        engine_of(foreign.SkipWithoutLogits(), data, [1], scope="global", num_kept=3)
    assert caught.value.slug == "skip-not-local"
    with pytest.raises(InvalidParameterError, match="`num_layers` must be given"):
        engine_of(foreign.TwoLiner(), data, [1], scope="local", num_kept=3, num_layers=None)
    engine = engine_of(foreign.TwoLiner(), data, [1], scope="global", num_kept=3)
    with pytest.raises(InvalidParameterError, match="`num_samples` must be"):
        engine.votes(0, Purpose.AUDIT, num_samples=0)


# ----------------------------------------------------------------------------------------- every outcome, one by one


def class_counts(model, token, data, x, target, nodes, num_kept):
    """Among all sets of ``num_kept`` of ``nodes``: how many give each class at ``target``; one pass for all sets."""
    num_nodes, num_sets = data.num_nodes, math.comb(len(nodes), num_kept)
    shown = torch.zeros(num_sets, num_nodes, 1, dtype=torch.bool)
    for row, chosen in enumerate(itertools.combinations(nodes, num_kept)):
        shown[row, list(chosen)] = True
    copies = [data.edge_index + row * num_nodes for row in range(num_sets)]
    with torch.inference_mode():
        scores = model(torch.where(shown, x, token).flatten(0, 1), torch.cat(copies, dim=1))
    return torch.bincount(scores[target::num_nodes].argmax(dim=1), minlength=3).tolist()


def attacked(data, hostile, generator):
    x = data.x.clone()
    x[hostile] = 10 * torch.randn(len(hostile), x.size(1), generator=generator, dtype=x.dtype)
    return x


def small_graph(seed, dtype=torch.float64):
    return random_graph(num_nodes=6, num_pairs=9, directed=bool(seed % 2), seed=seed, dtype=dtype)


@pytest.mark.parametrize("num_graphs", [40, pytest.param(2_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("scope", ["global", "local"])
def test_no_class_probability_moves_by_more_than_delta(scope, num_graphs):
    """Real models, all outcomes before and after attacks by 1, 2 and 3 nodes; shares are exact rationals."""
    generator, largest, moved = torch.Generator().manual_seed(0), Fraction(0), 0
    for seed in range(num_graphs):
        data = small_graph(seed)
        model = build_model(ARCHITECTURE_NAMES[seed % 4], data, seed=seed).double().eval()
        target = seed % 5
        nodes = list(range(6)) if scope == "global" else field_of(data, target, 2)
        num_kept = min(1 + seed % 3, len(nodes))
        token = model.ablation_token.detach()
        clean = class_counts(model, token, data, data.x, target, nodes, num_kept)
        deltas = levine_delta(num_nodes=len(nodes), num_kept=num_kept, max_radius=3)
        for radius in (1, 2, 3):
            hostile = torch.randperm(6, generator=generator)[:radius].tolist()
            after = class_counts(model, token, data, attacked(data, hostile, generator), target, nodes, num_kept)
            change = max(Fraction(abs(a - b), sum(clean)) for a, b in zip(clean, after, strict=True))
            assert change <= Fraction(deltas[radius - 1])
            moved += change > 0
            largest = max(largest, change / Fraction(deltas[radius - 1]))
    assert moved > num_graphs
    assert largest == 1  # attained by real models, too


class TellsHostile(nn.Module):
    """Class 1 iff some kept feature of the ``num_nodes`` nodes of a copy exceeds 100, with or without a path."""

    def __init__(self, num_nodes):
        super().__init__()
        self.num_nodes = num_nodes

    def forward(self, x, edge_index):
        alarm = (x > 100).view(-1, self.num_nodes).any(dim=1).repeat_interleave(self.num_nodes).double()
        return torch.stack([1 - alarm, alarm, torch.full_like(alarm, -1.0)], dim=1)


def test_delta_is_attained():
    """The model that tells whether a hostile node is kept: the change equals Δ for every n, k, ρ up to n = 6."""
    checked = 0
    for num_nodes in range(1, 7):
        data = Data(x=torch.zeros(num_nodes, 1), edge_index=torch.empty(2, 0, dtype=torch.long))
        for num_kept, radius in itertools.product(range(num_nodes + 1), range(1, num_nodes + 1)):
            x = data.x.clone()
            x[:radius] = 1_000.0
            clean, after = (
                class_counts(TellsHostile(num_nodes), torch.zeros(1), data, features, 0, range(num_nodes), num_kept)
                for features in (data.x, x)
            )
            change = Fraction(after[1] - clean[1], sum(clean))
            value = levine_delta(num_nodes=num_nodes, num_kept=num_kept, max_radius=num_nodes)[radius - 1]
            assert change <= Fraction(value)
            assert value - float(change) <= 2.0**-53
            checked += 1
    assert checked == 112


@pytest.mark.deep
@pytest.mark.statistical
@pytest.mark.parametrize("scope", ["global", "local"])
def test_votes_have_the_enumerated_shares(scope):
    """500 samples, 3 graphs, 3 classes each; Bonferroni over all cells of both scopes."""
    for seed in range(3):
        data = small_graph(seed)
        model = build_model("gcn", data, seed=seed).double().eval()
        target = seed % 5
        nodes = list(range(6)) if scope == "global" else field_of(data, target, 2)
        num_kept = min(2, len(nodes))
        counts = class_counts(model, model.ablation_token.detach(), data, data.x, target, nodes, num_kept)
        engine = engine_of(model, data, [target], scope=scope, num_kept=2)
        votes = engine.votes(seed, Purpose.ESTIMATION, num_samples=500)[0]
        for count, drawn in zip(counts, votes.tolist(), strict=True):
            assert stats.binomtest(drawn, 500, count / sum(counts)).pvalue > FAILURE / 18
