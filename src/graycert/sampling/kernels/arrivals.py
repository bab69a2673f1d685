"""Which messages arrive: 64 samples per machine word, so one AND carries a message over an edge in 64 samples.

Bit i of word j stands for the (64 j + i)-th sample of a batch. Edges and nodes are those of a layered field
(`graycert.sampling.layered_field`); `Field` says where each target's own receptive field lies in it.
"""

from typing import NamedTuple

import numpy as np

from graycert._compilation import inlined, kernel
from graycert._types import IntArray, WordArray
from graycert.sampling.kernels.coins import is_intercepted, sample_key

WORD = 64
_STEPS = 6  # 2^6 bits in a word


_NONE, _ONE, _ALL = np.uint64(0), np.uint64(1), np.uint64(2**64 - 1)


class Field(NamedTuple):
    """The receptive fields of all targets, inside their union.

    Args:
        indptr: In-edges of node u are ``indptr[u]:indptr[u + 1]``, int64.
        sources: Source of each edge into a node less than k hops from a target, int64.
        field_indptr: The field of target t lies at ``field_indptr[t]:field_indptr[t + 1]``.
        nodes: Nodes of all fields, each with its target first, int64.
        eligible_indptr: The eligible nodes of target t lie at ``eligible_indptr[t]:eligible_indptr[t + 1]``.
        eligible: Eligible nodes of all fields, int64.
    """

    indptr: IntArray
    sources: IntArray
    field_indptr: IntArray
    nodes: IntArray
    eligible_indptr: IntArray
    eligible: IntArray


@kernel
def throw(
    samples: IntArray, key: int, id_keys: IntArray, thresholds: IntArray, first: int, last: int, passes: WordArray
) -> None:
    """Throw the coins of the ids ``first ... last - 1`` in a batch of samples.

    Args:
        samples: Sample numbers, as many as ``passes`` has bits per row.
        key: Key of the samples.
        id_keys: Key per edge or node.
        thresholds: A coin shows "intercepted" if its top 62 bits are below that of its edge or node.
        first: First id.
        last: Last id, plus one.
        passes: Result, uint64 (num_ids, num_words): 1 where not intercepted.
    """
    keys = np.empty(samples.size, dtype=np.int64)
    for i in range(samples.size):
        keys[i] = sample_key(samples[i], key)
    for identity in range(first, last):
        threshold = thresholds[identity]
        for j in range(passes.shape[1]):
            word = _NONE
            for i in range(WORD):
                shows = is_intercepted(keys[j * WORD + i], id_keys[identity], threshold)
                word |= np.uint64(not shows) << np.uint64(i)
            passes[identity, j] = word


@kernel
def record(
    first: int,
    last: int,
    num_layers: int,
    field: Field,
    survives: WordArray,
    shown: WordArray,
    wanted: WordArray,
    reached: WordArray,
    fresh: WordArray,
    arriving: WordArray,
    num_recorded: IntArray,
    row_words: IntArray,
    word_indptr: IntArray,
    words: WordArray,
) -> None:
    """Append the arrivals of a batch to the rows of targets ``first ... last - 1``.

    A target is reached at step 0 in all samples; at step l, the source of a surviving edge into a node reached at
    step l - 1 for the first time. After k steps exactly the nodes with a surviving path of at most k edges are reached.

    Args:
        first: First target.
        last: Last target, plus one.
        num_layers: Number k of steps.
        field: Where the edges are.
        survives: 1 where an edge is not deleted (num_edges, num_words).
        shown: 1 where a node is not ablated (num_nodes, num_words).
        wanted: 1 where a target's sample is to be recorded (num_targets, num_words).
        reached: Scratch (num_nodes, num_words).
        fresh: Scratch, same shape.
        arriving: Scratch, same shape.
        num_recorded: Samples recorded so far, int64 (num_targets,); increased.
        row_words: Words per eligible node, int64 (num_targets,).
        word_indptr: Where the words of each target start, int64 (num_targets + 1,).
        words: Result, all 0 at first.
    """
    moves = np.empty(_STEPS, dtype=np.uint64)
    for target in range(first, last):
        nodes = field.nodes[field.field_indptr[target] : field.field_indptr[target + 1]]
        _search(num_layers, field.indptr, field.sources, nodes, survives, reached, fresh, arriving)
        eligible = field.eligible[field.eligible_indptr[target] : field.eligible_indptr[target + 1]]
        for j in range(wanted.shape[1]):
            keep = wanted[target, j]
            if keep == _NONE:
                continue  # a full row has no next word: what follows may belong to another thread's target
            count = _find_moves(keep, moves)
            place = num_recorded[target]
            shift = np.uint64(place % WORD)
            at = word_indptr[target] + place // WORD
            for node in eligible:
                bits = _without_gaps(reached[node, j] & shown[node, j] & keep, moves)
                words[at] |= bits << shift
                beyond = (bits >> _ONE) >> (np.uint64(WORD - 1) - shift)  # in two: a shift by 64 is undefined
                if beyond != _NONE:
                    words[at + 1] |= beyond
                at += row_words[target]
            num_recorded[target] = place + count


@inlined
def _search(
    num_layers: int,
    indptr: IntArray,
    sources: IntArray,
    nodes: IntArray,
    survives: WordArray,
    reached: WordArray,
    fresh: WordArray,
    arriving: WordArray,
) -> None:
    """Set ``reached`` for the nodes of one field, step by step from the target against the edges."""
    num_words = reached.shape[1]
    for node in nodes:
        for j in range(num_words):
            reached[node, j] = fresh[node, j] = arriving[node, j] = _NONE
    for j in range(num_words):
        reached[nodes[0], j] = fresh[nodes[0], j] = _ALL
    for _ in range(num_layers):
        for node in nodes:
            seen = _NONE
            for j in range(num_words):
                seen |= fresh[node, j]
            if seen == _NONE:
                continue
            for edge in range(indptr[node], indptr[node + 1]):
                source = sources[edge]
                for j in range(num_words):
                    arriving[source, j] |= fresh[node, j] & survives[edge, j]
        for node in nodes:
            for j in range(num_words):
                fresh[node, j] = arriving[node, j] & ~reached[node, j]
                reached[node, j] |= arriving[node, j]


@inlined
def _find_moves(keep: np.uint64, moves: WordArray) -> int:
    """Return how many bits ``keep`` has; write, for each s, which bits move right by 2^s to close all gaps.

    A kept bit moves by the number of gaps below it, its smallest power of two first. Of two kept bits the upper one
    has at least as many gaps below, so they never meet.
    """
    moves[:] = _NONE
    count = 0
    for position in range(WORD):
        if (keep >> np.uint64(position)) & _ONE == _NONE:
            continue
        gaps, place = position - count, position
        for step in range(_STEPS):
            if (gaps >> step) & 1:
                moves[step] |= _ONE << np.uint64(place)
                place -= 1 << step
        count += 1
    return count


@inlined
def _without_gaps(bits: np.uint64, moves: WordArray) -> np.uint64:
    """Return the kept bits without the gaps between them."""
    for step in range(_STEPS):
        moved = bits & moves[step]
        bits = (bits ^ moved) | (moved >> np.uint64(1 << step))
    return bits
