"""Batches of samples as one graph in which equal computations are done once.

A model of k message-passing steps that obeys Lemma 1 computes a target's scores from the target's row and, step by
step, from the rows that arrive over surviving edges: from its computation tree of depth k. Two nodes whose trees are
equal, in one sample or in two, have equal outputs. With p_a = 0.8 most trees are small or the same (the token with
nothing but tokens around), so a batch holds one node per distinct tree instead of one copy of the graph per sample.

In the merged graph every node has the row and the ordered messages of the nodes that it stands for, with the values of
the edges that they came over, where edges carry values: trees are equal only if these are, too. What it does not
have: edges out of the tree (nobody needs them, nobody should count them), in-edges k steps from the target, and as
many nodes. A model that reads one of these, as GCN reads the in-degree of the last senders, is not computed by these
trees; trees that are one step deeper show in-degrees too. Which trees a model needs is never assumed: see
`graycert.sampling.voting.build_engine`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from graycert._compilation import kernel
from graycert._types import IntArray
from graycert.sampling.drawn_batch import DrawnBatch
from graycert.sampling.field_graph import FieldGraph
from graycert.sampling.kernels.coins import CoinKeys, is_intercepted, mix, sample_key
from graycert.sampling.placed_smoothing import AnySmoothing
from graycert.sampling.streams import CoinStream

_ROW, _END, _HASH, _CLONE, _LAST_CLONE, _USED_IN = range(6)  # columns of the table of nodes
_SELF = -1


@dataclass(frozen=True)
class MergedCopies:
    """Draws batches of merged computation trees; on the CPU, in compiled code.

    Args:
        field: Part of the graph that the targets depend on.
        num_layers: Depth k of the trees.
        in_degrees: Whether nodes k steps from the target show their in-degree too, as edges from ablated nodes: what
            is written further away than k steps does not arrive, only that there is an edge may be seen.
        samples_per_pass: Most samples per batch.
        largest: Nodes plus edges at which a batch is closed, even within a sample.
    """

    field: FieldGraph
    num_layers: int
    in_degrees: bool
    samples_per_pass: int
    largest: int

    def batches(self, smoothing: AnySmoothing, stream: CoinStream, samples: Tensor) -> Iterator[DrawnBatch]:
        """Yield batches that hold the given samples, in order."""
        sources, receivers, *values = self.field.edge_index.numpy()  # sorted by receiver
        carried = np.ascontiguousarray(values[0] if values else sources[:0])
        num_nodes = self.field.nodes.numel()
        indptr = np.searchsorted(receivers, np.arange(num_nodes + 1))
        nodes = CoinKeys.of(stream, "node", self.field.nodes.numpy(), smoothing.p_ablate)
        edges = CoinKeys.of(stream, "edge", self.field.edge_ids.numpy(), smoothing.p_delete)
        num_targets = self.field.targets.numel()
        numbers, done = samples.numpy(), 0
        while done < numbers.size * num_targets:
            first, within = divmod(done, num_targets)
            rows, edge_index, outputs = _merge(
                numbers[first : first + self.samples_per_pass],
                within,
                (nodes.sample_key, nodes.id_keys, nodes.thresholds),
                (edges.sample_key, edges.id_keys, edges.thresholds),
                indptr,
                np.ascontiguousarray(sources),
                carried,
                self.field.targets.numpy(),
                self.num_layers + self.in_degrees,
                self.in_degrees,
                self.largest,
                max(1, min(num_targets, num_targets * self.largest // (num_nodes + sources.size))),
            )
            done += outputs.size
            yield DrawnBatch(torch.from_numpy(rows), torch.from_numpy(edge_index), torch.from_numpy(outputs))


@kernel
def _merge(
    samples: IntArray,
    first_target: int,
    node_coins: tuple[int, IntArray, IntArray],
    edge_coins: tuple[int, IntArray, IntArray],
    indptr: IntArray,
    sources: IntArray,
    carried: IntArray,
    targets: IntArray,
    depth: int,
    leaves_are_tokens: bool,
    largest: int,
    step: int,
) -> tuple[IntArray, IntArray, IntArray]:
    """Return rows, edges and the node of each target, from ``first_target`` of the first sample as far as fits.

    ``carried`` holds which values each edge carries, or nothing. ``step`` targets are taken at a time. Row ``n`` is the
    token. ``tree[l, u]`` is the merged node that stands for u where its output of layer l is needed.
    """
    n = indptr.size - 1
    shown, survives = np.empty(n, dtype=np.bool_), np.empty(sources.size, dtype=np.bool_)
    needed_in, members = np.zeros((depth + 1, n), dtype=np.int64), np.empty((depth + 1, n), dtype=np.int64)
    tree, size = np.empty((depth + 1, n), dtype=np.int64), np.empty(depth + 1, dtype=np.int64)
    outputs = np.empty(samples.size * targets.size - first_target, dtype=np.int64)
    messages, brought = np.empty(sources.size, dtype=np.int64), np.empty(carried.size, dtype=np.int64)
    leaf = np.full(n + 1, -1, dtype=np.int64)
    nodes, count = np.empty((1024, 6), dtype=np.int64), 0
    has_values = carried.size > 0
    senders, end = np.empty(4096, dtype=np.int64), 0
    values = np.empty(4096 if has_values else 0, dtype=np.int64)
    known, filled = np.full(4096, -1, dtype=np.int64), 0
    lists, done, drawn, part = 0, 0, -1, 0

    while done < outputs.size and (done == 0 or count + end < largest):
        sample, low_target = divmod(first_target + done, targets.size)
        if sample != drawn:
            drawn = sample
            key = sample_key(samples[sample], node_coins[0])
            for u in range(n):
                shown[u] = not is_intercepted(key, node_coins[1][u], node_coins[2][u])
            key = sample_key(samples[sample], edge_coins[0])
            for e in range(sources.size):
                survives[e] = not is_intercepted(key, edge_coins[1][e], edge_coins[2][e])

        # from the targets down: who is needed at which level
        part += 1
        size[:] = 0
        for u in targets[low_target : low_target + step]:
            if needed_in[depth, u] < part:
                needed_in[depth, u] = part
                members[depth, size[depth]] = u
                size[depth] += 1
        for level in range(depth, 1, -1):
            for u in members[level, : size[level]]:
                for e in range(indptr[u], indptr[u + 1]):
                    v = sources[e]
                    if survives[e] and v != u and needed_in[level - 1, v] < part:
                        needed_in[level - 1, v] = part
                        members[level - 1, size[level - 1]] = v
                        size[level - 1] += 1

        # from the leaves up: find each tree among the known ones, or add it
        for level in range(1, depth + 1):
            for u in members[level, : size[level]]:
                row = u if shown[u] else n
                length, previous, code = 0, -1, mix(row)
                lists += 1
                for e in range(indptr[u], indptr[u + 1]):
                    if not survives[e]:
                        continue
                    v = sources[e]
                    if v == u:
                        sender = _SELF  # a self-loop stays one: convolutions treat it differently
                    elif v == previous:
                        sender = messages[length - 1]  # a parallel edge stays one
                    else:
                        if level > 1:
                            sender = tree[level - 1, v]
                        else:
                            bottom = v if shown[v] and not leaves_are_tokens else n
                            if leaf[bottom] < 0:
                                leaf[bottom] = count
                                nodes, count = _add(nodes, count, bottom, end, 0), count + 1
                            sender = leaf[bottom]
                        if nodes[sender, _USED_IN] == lists:
                            # two senders with equal trees are two nodes, so that the graph stays simple
                            head, last = sender, nodes[sender, _LAST_CLONE]
                            if nodes[last, _CLONE] < 0:
                                low, high = nodes[last - 1, _END] if last else 0, nodes[last, _END]
                                senders = _with_room(senders, end + high - low)
                                if has_values:
                                    values = _with_room(values, end + high - low)
                                for i in range(low, high):
                                    senders[end] = count if senders[i] == last else senders[i]
                                    if has_values:
                                        values[end] = values[i]
                                    end += 1
                                nodes[last, _CLONE] = count
                                nodes, count = _add(nodes, count, nodes[last, _ROW], end, 0), count + 1
                            sender = nodes[last, _CLONE]
                            nodes[head, _LAST_CLONE] = sender
                        else:
                            nodes[sender, _USED_IN] = lists
                            nodes[sender, _LAST_CLONE] = sender
                    previous = v
                    messages[length] = sender
                    code = mix(code ^ sender)
                    if has_values:
                        brought[length] = carried[e]
                        code = mix(code ^ carried[e])
                    length += 1
                if length == 0:
                    if leaf[row] < 0:
                        leaf[row] = count
                        nodes, count = _add(nodes, count, row, end, 0), count + 1
                    tree[level, u] = leaf[row]
                    continue
                slot = code & (known.size - 1)
                while known[slot] >= 0 and not _same(
                    nodes, senders, values, known[slot], row, code, messages, brought, length
                ):
                    slot = (slot + 1) & (known.size - 1)
                if known[slot] < 0:
                    known[slot] = count
                    filled += 1
                    senders = _with_room(senders, end + length)
                    if has_values:
                        values = _with_room(values, end + length)
                        values[end : end + length] = brought[:length]
                    for i in range(length):
                        senders[end] = count if messages[i] == _SELF else messages[i]
                        end += 1
                    nodes, count = _add(nodes, count, row, end, code), count + 1
                    tree[level, u] = count - 1
                    if 2 * filled > known.size:
                        known = _rehashed(known, nodes)
                else:
                    tree[level, u] = known[slot]
        for u in targets[low_target : low_target + step]:
            outputs[done] = tree[depth, u]
            done += 1

    edge_index = np.empty((3 if has_values else 2, end), dtype=np.int64)
    edge_index[0] = senders[:end]
    if has_values:
        edge_index[2] = values[:end]
    low = 0
    for node in range(count):
        edge_index[1, low : nodes[node, _END]] = node
        low = nodes[node, _END]
    return nodes[:count, _ROW].copy(), edge_index, outputs[:done]


@kernel
def _add(nodes: IntArray, count: int, row: int, end: int, code: int) -> IntArray:
    """Write node ``count``, whose messages end at ``end``; returns the table, moved if it was full."""
    if count == nodes.shape[0]:
        larger = np.empty((2 * count, 6), dtype=np.int64)
        larger[:count] = nodes
        nodes = larger
    nodes[count, _ROW], nodes[count, _END], nodes[count, _HASH] = row, end, code
    nodes[count, _CLONE], nodes[count, _LAST_CLONE], nodes[count, _USED_IN] = -1, count, 0
    return nodes


@kernel
def _with_room(values: IntArray, needed: int) -> IntArray:
    if needed <= values.size:
        return values
    larger = np.empty(2 * needed, dtype=np.int64)
    larger[: values.size] = values
    return larger


@kernel
def _same(
    nodes: IntArray,
    senders: IntArray,
    values: IntArray,
    node: int,
    row: int,
    code: int,
    messages: IntArray,
    brought: IntArray,
    length: int,
) -> bool:
    """Return whether ``node`` has this row and these messages, in this order; equal hashes prove nothing."""
    low, high = nodes[node - 1, _END] if node else 0, nodes[node, _END]
    if nodes[node, _HASH] != code or nodes[node, _ROW] != row or high - low != length:
        return False
    for i in range(length):
        sender = node if messages[i] == _SELF else messages[i]
        if senders[low + i] != sender:
            return False
    if brought.size > 0:
        for i in range(length):
            if values[low + i] != brought[i]:
                return False
    return True


@kernel
def _rehashed(known: IntArray, nodes: IntArray) -> IntArray:
    """Return the hash table at four times its size."""
    larger = np.full(4 * known.size, -1, dtype=np.int64)
    for node in known:
        if node >= 0:
            slot = nodes[node, _HASH] & (larger.size - 1)
            while larger[slot] >= 0:
                slot = (slot + 1) & (larger.size - 1)
            larger[slot] = node
    return larger
