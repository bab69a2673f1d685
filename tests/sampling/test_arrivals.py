"""Arrival records: equal to a path search on the reference coins, and to what the outputs of the engine show."""

import itertools

import numpy as np
import pytest
import torch
from scipy import stats

from graycert.errors import InvalidParameterError
from graycert.graph import as_adjacency, path_graph
from graycert.models import build_model
from graycert.sampling import Purpose, arrivals, build_engine
from graycert.sampling.arrivals import ArrivalRecorder
from graycert.sampling.kernels import arrivals as kernels
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats.node_features import NodeFeatureThreat
from support.attributed_graphs import random_graph
from support.enumeration import arrival_law, arrival_probability, exact_delta, hop_distances, nodes_that_reach
from support.random_graphs import random_edges, to_adjacency
from support.reference_coins import is_intercepted

SMOOTHING = InterceptionSmoothing(p_delete=0.4, p_ablate=0.3)
ANYONE = NodeFeatureThreat()
FAILURE = 1e-6  # chance that right code fails the statistical test


def recorder_of(adjacency, *, smoothing=SMOOTHING, threat=ANYONE, num_layers=2, **options):
    return ArrivalRecorder(adjacency=adjacency, smoothing=smoothing, threat=threat, num_layers=num_layers, **options)


def brute_force(edges, num_nodes, target, num_layers, smoothing, *, seed, purpose, sample):
    """The nodes whose message arrives in one sample."""
    kept = [
        (source, end)
        for source, end in edges
        if not is_intercepted(seed, purpose, "edge", sample, source * num_nodes + end, smoothing.p_delete)
    ]
    return {
        node
        for node in nodes_that_reach(kept, target, num_layers)
        if not is_intercepted(seed, purpose, "node", sample, node, smoothing.p_ablate)
    }


def arrived(records, row):
    """One set of nodes per recorded sample."""
    sources = records.sources_of(row)
    return [set(sources[bits].tolist()) for bits in records.of(row)]


@pytest.mark.few(2)
@pytest.mark.parametrize("num_layers", [1, 2, 3, 4])
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize(("min_distance", "trusted"), [(0, ()), (1, ()), (2, ()), (0, (0, 3)), (1, (2, 5, 6))])
def test_equals_a_path_search_on_reference_coins(num_layers, directed, min_distance, trusted):
    rng = np.random.default_rng(num_layers)
    num_nodes = 9
    edges = random_edges(rng, num_nodes, 0.25, directed=directed)
    mask = np.isin(np.arange(num_nodes), trusted)
    threat = NodeFeatureThreat(min_distance=min_distance, trusted=mask if trusted else None)
    samples = rng.permutation(np.concatenate([np.arange(60), [2**40, 2**62]]))  # any numbers, in any order
    targets = [4, 0, 8]
    wanted = rng.random((3, samples.size)) < 0.5
    recorder = recorder_of(to_adjacency(edges, num_nodes), threat=threat, num_layers=num_layers)
    records = recorder.record(7, Purpose.ESTIMATION, targets, samples=samples, wanted=wanted)
    seen = 0
    for row, target in enumerate(targets):
        distances = hop_distances(edges, target, num_layers)
        eligible = [w for w, hops in distances.items() if hops >= min_distance and w not in trusted]
        assert records.sources_of(row).tolist() == sorted(eligible, key=lambda w: (distances[w], w))
        np.testing.assert_array_equal(records.samples_of(row), samples[wanted[row]])
        expected = [
            brute_force(
                edges, num_nodes, target, num_layers, SMOOTHING, seed=7, purpose="estimation", sample=int(sample)
            )
            & set(eligible)
            for sample in samples[wanted[row]]
        ]
        assert arrived(records, row) == expected
        seen += sum(map(len, expected))
    assert seen > 0 or min_distance > 1 or len(trusted) > 2


def test_path_of_exactly_k_edges_and_no_longer():
    """Nothing is intercepted: who arrives is who lies within k hops, although shorter detours share edges."""
    nothing = InterceptionSmoothing(p_delete=0.0, p_ablate=0.0)
    for num_layers in range(1, 6):
        recorder = recorder_of(path_graph(8), smoothing=nothing, num_layers=num_layers)
        records = recorder.record(0, Purpose.AUDIT, [0, 3], samples=range(70))
        for row in (0, 1):
            assert records.of(row).all()
            assert records.packed(row)[0].tolist() == [2**64 - 1, 2**6 - 1]
        assert records.sources_of(0).tolist() == list(range(num_layers + 1))


@pytest.mark.parametrize(("p_delete", "p_ablate"), [(1.0, 0.0), (0.0, 1.0)])
def test_certain_interception(p_delete, p_ablate):
    """All edges deleted: only the target's own message. All nodes ablated: none."""
    smoothing = InterceptionSmoothing(p_delete=p_delete, p_ablate=p_ablate)
    records = recorder_of(path_graph(4), smoothing=smoothing).record(0, Purpose.AUDIT, [1], samples=range(40))
    assert arrived(records, 0) == [{1} if p_ablate == 0 else set()] * 40


def dense_case():
    rng = np.random.default_rng(3)
    adjacency = to_adjacency(random_edges(rng, 40, 0.1, directed=True), 40)
    return adjacency, rng.permutation(40)[:17], rng.integers(0, 10**6, 1500)


@pytest.mark.parametrize("share", [0.0, 0.03, 0.5, 0.97, 1.0])
def test_restriction_to_wanted_samples(share):
    """Rows that start in the middle of a word, across batches, are those of the full record."""
    adjacency, targets, samples = dense_case()
    recorder = recorder_of(adjacency, threat=NodeFeatureThreat(min_distance=1))
    full = recorder.record(1, Purpose.SELECTION, targets, samples=samples)
    wanted = np.random.default_rng(0).random((targets.size, samples.size)) < share
    wanted[3] = False
    part = recorder.record(1, Purpose.SELECTION, targets, samples=samples, wanted=wanted)
    for row in range(targets.size):
        np.testing.assert_array_equal(part.of(row), full.of(row)[wanted[row]])
        num_words = -(-int(wanted[row].sum()) // 64)
        assert part.packed(row).shape == (part.sources_of(row).size, num_words)
        ones = np.unpackbits(part.packed(row).view(np.uint8)).sum()
        assert ones == part.of(row).sum()  # nothing beyond the end


def test_stays_inside_its_arrays(monkeypatch):
    """Compiled code checks no index, plain Python does: here rows are full before the last batch."""
    adjacency, targets, samples = dense_case()
    wanted = np.zeros((3, samples.size), dtype=bool)
    wanted[0], wanted[1, 1::20], wanted[2, :64] = True, True, True
    arguments = {"samples": samples, "wanted": wanted}
    compiled = recorder_of(adjacency).record(1, Purpose.AUDIT, targets[:3], **arguments)
    monkeypatch.setattr(arrivals, "record", kernels.record.py_func)
    for name in ("_search", "_find_moves", "_without_gaps"):
        monkeypatch.setattr(kernels, name, getattr(kernels, name).py_func)
    plain = recorder_of(adjacency).record(1, Purpose.AUDIT, targets[:3], **arguments)
    np.testing.assert_array_equal(plain.words, compiled.words)


def test_does_not_depend_on_threads_batches_other_targets_or_blocks():
    adjacency, targets, samples = dense_case()
    recorder = recorder_of(adjacency, num_layers=3)
    full = recorder.record(1, Purpose.SELECTION, targets, samples=samples)
    threads = torch.get_num_threads()
    try:
        for number in (1, 2, 5, 30):
            torch.set_num_threads(number)
            again = recorder.record(1, Purpose.SELECTION, targets, samples=samples)
            np.testing.assert_array_equal(again.words, full.words)
    finally:
        torch.set_num_threads(threads)
    alone = recorder.record(1, Purpose.SELECTION, targets[[5]], samples=samples[700:705])
    np.testing.assert_array_equal(alone.of(0), full.of(5)[700:705])
    wanted = np.random.default_rng(0).random((targets.size, samples.size)) < 0.5
    part = recorder.record(1, Purpose.SELECTION, targets, samples=samples, wanted=wanted)
    small = recorder_of(adjacency, num_layers=3, max_bytes=20_000)
    blocks = list(small.blocks(1, Purpose.SELECTION, targets, samples=samples, wanted=wanted))
    assert 3 < len(blocks) < targets.size
    np.testing.assert_array_equal(np.concatenate([block.targets for block in blocks]), targets)
    np.testing.assert_array_equal(np.concatenate([block.words for block in blocks]), part.words)
    np.testing.assert_array_equal(blocks[1].samples_of(0), part.samples_of(blocks[0].targets.size))


def test_coins_differ_by_seed_purpose_and_sample():
    adjacency, targets, samples = dense_case()
    recorder = recorder_of(adjacency)
    words = [
        recorder.record(seed, purpose, targets, samples=samples + shift).words
        for seed, purpose, shift in [
            (1, Purpose.SELECTION, 0),
            (2, Purpose.SELECTION, 0),
            (1, Purpose.ESTIMATION, 0),
            (1, Purpose.SELECTION, 1),
        ]
    ]
    for one, other in itertools.combinations(words, 2):
        assert (one != other).mean() > 0.5


@pytest.mark.deep
@pytest.mark.parametrize("architecture", ["gat", "gcn"])
def test_only_arriving_features_change_the_output_of_the_engine(architecture):
    """New features for all that did not arrive: bit-identical scores. For a single node that arrived: other scores."""
    data = random_graph(num_nodes=12, num_pairs=16)
    model = build_model(architecture, data, skip=False).eval()
    targets, samples = np.array([0, 5, 9]), torch.arange(6)
    recorder = recorder_of(as_adjacency(data))
    records = recorder.record(3, Purpose.ESTIMATION, targets, samples=samples.numpy())
    noise = torch.randn(data.x.shape, generator=torch.Generator().manual_seed(1))

    def scores(changed, row):
        other = data.clone()
        other.x = torch.where(torch.from_numpy(changed).unsqueeze(1), noise, data.x)
        engine = build_engine(model, other, targets, smoothing=SMOOTHING, num_layers=2)
        return engine.logits(3, Purpose.ESTIMATION, samples)[:, row]

    nobody = np.zeros(12, dtype=bool)
    checked = set()
    for row, sample in itertools.product(range(3), range(6)):
        clean = scores(nobody, row)[sample]
        arriving = np.isin(np.arange(12), records.sources_of(row)[records.of(row)[sample]])
        assert torch.equal(scores(~arriving, row)[sample], clean)
        for node in np.flatnonzero(arriving)[:3]:
            assert not torch.equal(scores(np.arange(12) == node, row)[sample], clean)
            checked.add(int(node) == targets[row])
    assert checked == {True, False}


PAIRS = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)]


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("edges", "num_layers"),
    [
        (PAIRS + [pair[::-1] for pair in PAIRS], 3),
        ([(1, 0), (2, 1), (2, 0), (3, 2), (1, 2), (3, 1), (4, 3), (0, 4)], 2),
    ],
    ids=["undirected", "directed"],
)
def test_frequencies_against_exact_probabilities(edges, num_layers):
    """All hostile sets of at most two nodes, and the worst: p(E(B)) and Δ by listing every coin."""
    num_samples = 100_000
    recorder = recorder_of(to_adjacency(edges, 5), num_layers=num_layers)
    records = recorder.record(2, Purpose.ESTIMATION, [0], samples=range(num_samples))
    bits, sources = records.of(0), records.sources_of(0).tolist()
    assert len(sources) >= 4
    law = arrival_law(edges, 0, num_layers, SMOOTHING.p_delete)
    hostile_sets = [subset for size in (1, 2) for subset in itertools.combinations(sources, size)]
    exact = {b: arrival_probability(law, b, SMOOTHING.p_ablate) for b in hostile_sets}
    for subset, probability in exact.items():
        count = int(bits[:, [sources.index(w) for w in subset]].any(axis=1).sum())
        assert stats.binomtest(count, num_samples, probability).pvalue > FAILURE / len(hostile_sets)
        assert stats.binomtest(count, num_samples, min(1.0, probability + 0.02)).pvalue < FAILURE  # it has power
    for radius in (1, 2):
        worst = max((b for b in hostile_sets if len(b) == radius), key=exact.__getitem__)
        assert exact[worst] == pytest.approx(exact_delta(law, sources, radius, SMOOTHING.p_ablate), abs=1e-12)


def test_nothing_to_record():
    adjacency, targets, _ = dense_case()
    empty = recorder_of(adjacency).record(0, Purpose.AUDIT, targets, samples=[])
    assert empty.of(0).shape == (0, empty.sources_of(0).size)
    trusted = NodeFeatureThreat(trusted=np.ones(40, dtype=bool))
    nobody = recorder_of(adjacency, threat=trusted).record(0, Purpose.AUDIT, targets, samples=range(100))
    assert nobody.of(0).shape == (100, 0)
    no_edges = recorder_of(to_adjacency([], 3)).record(0, Purpose.AUDIT, [2], samples=range(100))
    assert no_edges.sources_of(0).tolist() == [2]


def test_refuses_more_bytes_than_allowed_and_says_how_many():
    adjacency, targets, samples = dense_case()
    with pytest.raises(InvalidParameterError, match=r"`max_bytes` must be at least ([\d,]+) .*`blocks`") as caught:
        recorder_of(adjacency, max_bytes=1000).record(0, Purpose.AUDIT, targets, samples=samples)
    needed = int(str(caught.value).split("at least ")[1].split(" ")[0].replace(",", ""))
    records = recorder_of(adjacency, max_bytes=needed).record(0, Purpose.AUDIT, targets, samples=samples)
    assert records.words.nbytes <= needed
    with pytest.raises(InvalidParameterError, match="alone"):
        next(recorder_of(adjacency, max_bytes=1000).blocks(0, Purpose.AUDIT, targets, samples=samples))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"targets": [40]}, "targets"),
        ({"targets": [1, 1]}, "targets"),
        ({"samples": [-1]}, "samples"),
        ({"samples": [0.5]}, "samples"),
        ({"wanted": np.ones((1, 2), dtype=bool)}, "wanted"),
        ({"wanted": np.ones((1, 3))}, "wanted"),
        ({"seed": -1}, "seed"),
    ],
)
def test_refuses_malformed_arguments(change, message):
    adjacency, _, _ = dense_case()
    arguments = {"seed": 0, "purpose": Purpose.AUDIT, "targets": [1], "samples": [0, 1, 2]} | change
    with pytest.raises(InvalidParameterError, match=f"`{message}`"):
        recorder_of(adjacency).record(**arguments)
    with pytest.raises(InvalidParameterError, match="`num_layers`"):
        recorder_of(adjacency, num_layers=0)
