"""Which eligible nodes' messages arrived, sample by sample: what certificates beyond the votes need."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from graycert._threads import num_threads
from graycert._types import BoolArray, IntArray, WordArray
from graycert._validation import check_integer, check_integer_array, check_targets
from graycert.errors import InvalidParameterError
from graycert.graph import Adjacency, receptive_fields, target_blocks
from graycert.sampling.kernels.arrivals import WORD, Field, record, throw
from graycert.sampling.kernels.coins import CoinKeys
from graycert.sampling.layered_field import InEdges, layered_field
from graycert.sampling.placed_smoothing import AnySmoothing, place_smoothing
from graycert.sampling.streams import CoinStream, Purpose
from graycert.smoothing.interception.parameters import InterceptionSmoothing
from graycert.threats.node_features import NodeFeatureThreat

_BATCH_WORDS = 8  # 512 samples: the coins of an edge fill one cache line
_FIELD_BYTES = 40  # per node of a receptive field: itself, its distance and where it lies


@dataclass(frozen=True, eq=False)
class ArrivalRecords:
    r"""Which messages arrived in some samples.

    Node w's message arrives at target v in a sample iff w is not ablated and a path of at most k surviving edges
    leads from w to v; v's own message (a path of no edge) arrives iff v is not ablated.

    Guarantee:
        Exact: a message from a set B of eligible nodes arrives, $\mathbb{E}(B)$, iff a bit of a node of B is set. The
        coins are those of the votes with the same seed, purpose and sample number. A node that is not listed for a
        target is not eligible, or more than k hops away: its message never arrives.

    Each eligible node has a row of bits over samples. So the samples in which nothing arrives from a hostile set are
    the complement of an OR of rows.

    Args:
        targets: Node indices, shape (num_targets,).
        indptr: The eligible nodes of ``targets[i]`` are ``sources[indptr[i]:indptr[i + 1]]``, shape (num_targets + 1,).
        sources: Eligible nodes of all receptive fields, each sorted by (distance, node).
        samples: Sample numbers, shape (num_samples,).
        wanted: Which samples are recorded for which target, bool (num_targets, num_samples).
        word_indptr: The bits of ``targets[i]`` are ``words[word_indptr[i]:word_indptr[i + 1]]``, see `packed`.
        words: Bits of all targets, uint64.
    """

    targets: IntArray
    indptr: IntArray
    sources: IntArray
    samples: IntArray
    wanted: BoolArray
    word_indptr: IntArray
    words: WordArray

    def sources_of(self, row: int) -> IntArray:
        """Return the eligible nodes of ``targets[row]``, by (distance, node), shape (num_eligible,)."""
        return self.sources[self.indptr[row] : self.indptr[row + 1]]

    def samples_of(self, row: int) -> IntArray:
        """Return the sample numbers recorded for ``targets[row]``, shape (num_recorded,)."""
        numbers: IntArray = self.samples[self.wanted[row]]
        return numbers

    def packed(self, row: int) -> WordArray:
        """Return the bits of ``targets[row]``, uint64 (num_eligible, num_words), without a copy.

        The bit of value 2^i in word j belongs to ``samples_of(row)[64 * j + i]``; bits beyond the last sample are 0.
        """
        bits = self.words[self.word_indptr[row] : self.word_indptr[row + 1]]
        num_words = -(-np.count_nonzero(self.wanted[row]) // WORD)
        return bits.reshape(self.indptr[row + 1] - self.indptr[row], num_words)

    def of(self, row: int) -> BoolArray:
        """Return the arrivals at ``targets[row]``, bool (num_recorded, num_eligible)."""
        octets = self.packed(row).astype("<u8", copy=False).view(np.uint8)
        count = int(np.count_nonzero(self.wanted[row]))
        return np.unpackbits(octets, axis=1, count=count, bitorder="little").T.astype(np.bool_)


@dataclass(frozen=True, kw_only=True, eq=False)
class ArrivalRecorder:
    """Draws samples again, to see what arrived at the targets; no model is involved.

    As many threads are used as torch uses (`torch.set_num_threads`); the result does not depend on it. Beside the
    result, memory holds about 110 bytes per edge and 310 per node of the union of the receptive fields, and 200 more
    per node for each thread.

    Args:
        adjacency: The graph that was voted on, all of it: edges are known by their end points and its number of nodes.
        smoothing: p_d and p_a of the votes; an array of p_d is in the order of ``adjacency``, see
            `graycert.graph.CanonicalGraph`.
        threat: Which nodes are eligible.
        num_layers: Number k of message-passing steps, >= 1.
        max_bytes: Most bytes that one result may take, receptive fields included.

    Example:
        >>> from graycert.graph import path_graph
        >>> recorder = ArrivalRecorder(
        ...     adjacency=path_graph(3), smoothing=InterceptionSmoothing(p_delete=0.5, p_ablate=0.0),
        ...     threat=NodeFeatureThreat(min_distance=1), num_layers=2)
        >>> records = recorder.record(0, Purpose.ESTIMATION, [0], samples=range(64))
        >>> records.sources_of(0)
        array([1, 2])
        >>> records.of(0).shape
        (64, 2)

    References:
        Scholten et al. (2022), Section 4: the event E(B).
    """

    adjacency: Adjacency
    smoothing: InterceptionSmoothing
    threat: NodeFeatureThreat
    num_layers: int
    max_bytes: int = 2**30

    def __post_init__(self) -> None:
        """Check the numbers."""
        check_integer("num_layers", self.num_layers, at_least=1)
        check_integer("max_bytes", self.max_bytes, at_least=1)
        _ = self._placed  # its lengths are checked now

    @cached_property
    def _placed(self) -> AnySmoothing:
        if self.smoothing.is_uniform:
            return self.smoothing
        edges = np.stack([self.adjacency.sources, self.adjacency.targets])
        return place_smoothing(self.smoothing, edges, num_nodes=self.adjacency.num_nodes)

    def record(
        self, seed: int, purpose: Purpose, targets: ArrayLike, *, samples: ArrayLike, wanted: ArrayLike | None = None
    ) -> ArrivalRecords:
        """Return the arrivals at the targets.

        Args:
            seed: Seed of the votes.
            purpose: Stream of the votes.
            targets: Distinct node indices, shape (num_targets,).
            samples: Sample numbers >= 0, shape (num_samples,).
            wanted: Which samples to record for which target, e.g. those that did not vote for the majority class;
                bool (num_targets, num_samples), default all.

        Raises:
            InvalidParameterError: If an argument is malformed, or the result would take more than ``max_bytes``.
        """
        request = self._request(seed, purpose, targets, samples, wanted)
        needed = int(self._num_bytes(request).sum())
        if needed > self.max_bytes:
            raise InvalidParameterError(
                f"`max_bytes` must be at least {needed:,} for these records, got {self.max_bytes:,}. Raise it, ask "
                "for fewer samples or targets, or iterate over `blocks`."
            )
        return self._record(request)

    def blocks(
        self, seed: int, purpose: Purpose, targets: ArrayLike, *, samples: ArrayLike, wanted: ArrayLike | None = None
    ) -> Iterator[ArrivalRecords]:
        """Yield the records of `record` for consecutive blocks of targets, each within ``max_bytes``.

        Every block throws the coins of its own receptive fields, so few large blocks cost less than many small ones.

        Raises:
            InvalidParameterError: As `record`; also if a single target takes more than ``max_bytes``.
        """
        request = self._request(seed, purpose, targets, samples, wanted)
        num_bytes = self._num_bytes(request)
        largest = int(num_bytes.argmax())
        if num_bytes[largest] > self.max_bytes:
            raise InvalidParameterError(
                f"`max_bytes` must be at least {num_bytes[largest]:,} for the records of node "
                f"{request.targets[largest]} alone, got {self.max_bytes:,}. Raise it or ask for fewer samples."
            )
        filled = np.cumsum(num_bytes)
        start, before = 0, 0
        while start < filled.size:
            stop = int(np.searchsorted(filled, before + self.max_bytes, side="right"))
            yield self._record(request.part(slice(start, stop)))
            start, before = stop, int(filled[stop - 1])

    def _request(
        self, seed: int, purpose: Purpose, targets: ArrayLike, samples: ArrayLike, wanted: ArrayLike | None
    ) -> "_Request":
        nodes = check_targets(targets, num_nodes=self.adjacency.num_nodes)
        numbers = check_integer_array("samples", samples, ndim=1, at_least=0, hint="They are sample numbers.")
        shape = (nodes.size, numbers.size)
        mask = np.broadcast_to(np.True_, shape) if wanted is None else np.array(wanted)
        if mask.dtype != np.bool_ or mask.shape != shape:
            raise InvalidParameterError(
                f"`wanted` must be a boolean array of shape {shape}, one row per target and one column per sample, "
                f"got dtype {mask.dtype} and shape {mask.shape}."
            )
        return _Request(CoinStream(seed, purpose), nodes, numbers, mask)

    def _num_bytes(self, request: "_Request") -> IntArray:
        """Return what each target's records and receptive field take."""
        found = []
        for block in target_blocks(self.adjacency, request.targets, num_layers=self.num_layers):
            fields = receptive_fields(self.adjacency, block, num_layers=self.num_layers)
            is_eligible = self.threat.eligible(fields.nodes, fields.distances, num_nodes=self.adjacency.num_nodes)
            num_eligible = np.bincount(fields.rows[is_eligible], minlength=block.size)
            found.append(np.stack([num_eligible, fields.sizes]))
        num_eligible, sizes = np.concatenate(found, axis=1)
        num_bytes: IntArray = 8 * request.row_words * num_eligible + _FIELD_BYTES * sizes
        return num_bytes

    def _record(self, request: "_Request") -> ArrivalRecords:
        targets, num_nodes = request.targets, self.adjacency.num_nodes
        fields = receptive_fields(self.adjacency, targets, num_layers=self.num_layers)
        is_eligible = self.threat.eligible(fields.nodes, fields.distances, num_nodes=num_nodes)
        indptr = _starts(np.bincount(fields.rows[is_eligible], minlength=targets.size))
        graph = InEdges.whole(self.adjacency.indptr, self.adjacency.sources)
        union = layered_field(graph, targets, num_layers=self.num_layers)
        receivers = union.nodes[: union.sizes[1]]
        position = np.empty(num_nodes, dtype=np.int64)
        position[union.nodes] = np.arange(union.nodes.size)
        nodes = position[fields.nodes]
        field = Field(
            indptr=union.indptr,
            sources=union.sources.astype(np.int64),
            field_indptr=fields.indptr,
            nodes=nodes,
            eligible_indptr=indptr,
            eligible=nodes[is_eligible],
        )
        coins = (
            CoinKeys.of(request.stream, "edge", graph.edge_ids(receivers), self._placed.p_delete),
            CoinKeys.of(request.stream, "node", union.nodes, self._placed.p_ablate),
        )
        word_indptr = _starts(request.row_words * np.diff(indptr))
        words = np.zeros(word_indptr[-1], dtype=np.uint64)
        _fill(request, self.num_layers, field, coins, word_indptr, words)
        return ArrivalRecords(
            targets=targets,
            indptr=indptr,
            sources=fields.nodes[is_eligible],
            samples=request.samples,
            wanted=request.wanted,
            word_indptr=word_indptr,
            words=words,
        )


@dataclass(frozen=True, eq=False)
class _Request:
    """What is to be recorded, checked."""

    stream: CoinStream
    targets: IntArray
    samples: IntArray
    wanted: BoolArray

    @property
    def row_words(self) -> IntArray:
        """Words per eligible node, (num_targets,)."""
        counts: IntArray = np.count_nonzero(self.wanted, axis=1)
        return -(-counts // WORD)

    def part(self, rows: slice) -> "_Request":
        return _Request(self.stream, self.targets[rows], self.samples, self.wanted[rows])

    def batches(self) -> Iterator[tuple[IntArray, WordArray]]:
        """Yield sample numbers, a multiple of `WORD` of them, and which targets want them, (num_targets, num_words)."""
        columns = np.flatnonzero(self.wanted.any(axis=0))
        for start in range(0, columns.size, _BATCH_WORDS * WORD):
            chosen = columns[start : start + _BATCH_WORDS * WORD]
            missing = -chosen.size % WORD
            bits = np.packbits(np.pad(self.wanted[:, chosen], ((0, 0), (0, missing))), axis=1, bitorder="little")
            wanted = np.ascontiguousarray(bits).view("<u8").astype(np.uint64, copy=False)
            yield np.pad(self.samples[chosen], (0, missing)), wanted


def _fill(
    request: _Request,
    num_layers: int,
    field: Field,
    coins: tuple[CoinKeys, CoinKeys],
    word_indptr: IntArray,
    words: WordArray,
) -> None:
    """Write the records into ``words``, batch by batch; threads share the coins and never a target."""
    number = num_threads()
    targets = _ranges(field.field_indptr, number)
    row_words, num_recorded = request.row_words, np.zeros(request.targets.size, dtype=np.int64)
    with ThreadPoolExecutor(number) as pool:
        for samples, wanted in request.batches():
            passes = [np.empty((kind.id_keys.size, wanted.shape[1]), dtype=np.uint64) for kind in coins]
            for kind, kept in zip(coins, passes, strict=True):
                ids = _ranges(np.arange(kind.id_keys.size + 1), number)
                _run(pool, throw, [(samples, *kind, *part, kept) for part in ids])
            scratch = np.empty((number, 3, *passes[1].shape), dtype=np.uint64)
            result = (num_recorded, row_words, word_indptr, words)
            calls = zip(targets, scratch, strict=True)
            _run(pool, record, [(*part, num_layers, field, *passes, wanted, *own, *result) for part, own in calls])


def _run(pool: ThreadPoolExecutor, kernel: Callable[..., None], calls: list[tuple[Any, ...]]) -> None:
    for future in [pool.submit(kernel, *arguments) for arguments in calls]:
        future.result()


def _ranges(indptr: IntArray, number: int) -> list[tuple[int, int]]:
    """Split rows, none of them empty, into ``number`` ranges of about equally many entries."""
    bounds = np.searchsorted(indptr, np.linspace(0, indptr[-1], number + 1))
    return [(int(low), int(high)) for low, high in pairwise(bounds)]


def _starts(sizes: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
