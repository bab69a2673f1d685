"""GATConv (Veličković et al. 2018) in compiled form, and what GATv2Conv shares with it."""

import numpy as np

from graycert._compilation import kernel
from graycert.sampling.kernels.draws import LANES, ONE, ZERO, Draw, Field, FloatArray, IntArray
from graycert.sampling.kernels.tiles import Steps, add_rows, add_static, apply_steps, exp

_NEVER = np.float32(-1e30)


@kernel
def first_layer(
    field: Field,
    draw: Draw,
    table: FloatArray,
    edge_weights: FloatArray,
    node_weights: FloatArray,
    heads: int,
    mean: bool,
    steps: Steps,
    out: FloatArray,
    tile: FloatArray,
    spare: FloatArray,
) -> None:
    """Attend over projected rows, which are the same in all samples, and so is exp(score) of each pair of rows.

    Args:
        field: Receivers are nodes ``0 ... out.shape[0] - 1``.
        draw: The chunk.
        table: Values of all heads, float32 (n + 1, heads * channels); the last row is the token's.
        edge_weights: exp(score), shifted, per edge, receiver ablated (0) or shown (1), and head; (num_edges, 2, heads).
        node_weights: The same of the token seen by an ablated receiver (0), of the token seen by a shown one (1),
            and of the receiver seen by itself (2); (num_receivers, 3, heads).
        heads: Number of heads.
        mean: Whether heads are averaged rather than concatenated.
        steps: What follows.
        out: Result (num_receivers, width, LANES).
        tile: Scratch (width, LANES).
        spare: Scratch (width, LANES).
    """
    channels = table.shape[1] // heads
    weights = np.empty((heads, 4, LANES), dtype=np.float32)
    total = np.empty((heads, LANES), dtype=np.float32)
    folded = np.empty(LANES, dtype=np.float32)
    rows = np.empty(4, dtype=np.int64)
    for u in range(out.shape[0]):
        shown = draw.shown[u]
        for i in range(LANES):
            folded[i] = np.uint8(1) - shown[i]  # an ablated receiver is one more token
        total[:] = ZERO
        tile[: table.shape[1]] = ZERO
        for start in range(field.indptr[u], field.indptr[u + 1], 4):
            for j in range(4):
                edge = start + j
                if edge >= field.indptr[u + 1]:
                    rows[j] = field.token
                    weights[:, j] = ZERO
                    continue
                source = field.sources[edge]
                rows[j] = source
                survives, seen = draw.survives[edge], draw.shown[source]
                for i in range(LANES):
                    folded[i] += survives[i] & (np.uint8(1) - seen[i])
                for h in range(heads):
                    weight, sum_ = weights[h, j], total[h]
                    ablated_weight, shown_weight = edge_weights[edge, 0, h], edge_weights[edge, 1, h]
                    for i in range(LANES):
                        value = shown_weight if shown[i] else ablated_weight
                        value = value if survives[i] & seen[i] else ZERO
                        weight[i] = value
                        sum_[i] += value
            for h in range(heads):
                add_static(tile, h * channels, weights[h], table, rows, channels)
        own, token = table[u], table[field.token]
        for h in range(heads):
            of_token, of_own, sum_ = weights[h, 0], weights[h, 1], total[h]
            w0, w1, w2 = node_weights[u, 0, h], node_weights[u, 1, h], node_weights[u, 2, h]
            for i in range(LANES):
                x = folded[i] * (w1 if shown[i] else w0)
                y = w2 if shown[i] else ZERO
                sum_[i] = ONE / (sum_[i] + x + y)
                of_token[i] = x
                of_own[i] = y
            for c in range(h * channels, (h + 1) * channels):
                row = tile[c]
                for i in range(LANES):
                    row[i] = (row[i] + of_token[i] * token[c] + of_own[i] * own[c]) * sum_[i]
        if mean:
            average_heads(tile, heads, channels)
        apply_steps(steps, tile, spare, out[u])


@kernel
def average_heads(tile: FloatArray, heads: int, channels: int) -> None:
    """Replace the first head's columns by the mean over heads."""
    for c in range(channels):
        row = tile[c]
        for h in range(1, heads):
            other = tile[h * channels + c]
            for i in range(LANES):
                row[i] += other[i]
        for i in range(LANES):
            row[i] /= np.float32(heads)


@kernel
def attend(
    field: Field,
    draw: Draw,
    u: int,
    scores: FloatArray,
    table: FloatArray,
    head: int,
    channels: int,
    weights: FloatArray,
    total: FloatArray,
    rows: IntArray,
    tile: FloatArray,
) -> None:
    """Write the softmax-weighted sum of one head's values into its columns of ``tile``.

    Args:
        field: The graph.
        draw: The chunk.
        u: Receiver.
        scores: Score per in-edge of u, the receiver's own score last, (in-degree + 1, LANES); overwritten.
        table: Rows with lanes whose first columns are the values, (n, width, LANES).
        head: Which head.
        channels: Channels per head.
        weights: Scratch (4, LANES).
        total: Scratch (LANES,).
        rows: Scratch (4,).
        tile: Result.
    """
    low, high = field.indptr[u], field.indptr[u + 1]
    best, own = weights[0], scores[high - low]
    best[:] = own
    for edge in range(low, high):
        survives, score = draw.survives[edge], scores[edge - low]
        for i in range(LANES):
            best[i] = max(best[i], score[i] if survives[i] else _NEVER)
    total[:] = ZERO
    for edge in range(low, high):
        survives, score = draw.survives[edge], scores[edge - low]
        for i in range(LANES):
            value = exp(score[i] - best[i]) if survives[i] else ZERO
            score[i] = value
            total[i] += value
    for i in range(LANES):
        own[i] = exp(own[i] - best[i])
        total[i] += own[i]
    for c in range(head * channels, (head + 1) * channels):
        row, value = tile[c], table[u, c]
        for i in range(LANES):
            row[i] = own[i] * value[i]
    for start in range(low, high, 4):
        for j in range(4):
            edge = start + j
            if edge < high:
                rows[j] = field.sources[edge]
                weights[j] = scores[edge - low]
            else:
                rows[j] = u
                weights[j] = ZERO
        add_rows(tile, head * channels, weights, table, rows, channels)
    for c in range(head * channels, (head + 1) * channels):
        row = tile[c]
        for i in range(LANES):
            row[i] /= total[i]


@kernel
def later_layer(
    field: Field,
    draw: Draw,
    table: FloatArray,
    heads: int,
    channels: int,
    slope: np.float32,
    mean: bool,
    steps: Steps,
    out: FloatArray,
    tile: FloatArray,
    spare: FloatArray,
    scores: FloatArray,
) -> None:
    """Attend over rows that differ between samples.

    Args:
        field: Receivers are nodes ``0 ... out.shape[0] - 1``.
        draw: The chunk.
        table: Per node values of all heads, scores as sender, scores as receiver,
            float32 (n, heads * (channels + 2), LANES).
        heads: Number of heads.
        channels: Channels per head.
        slope: Negative slope of the LeakyReLU on scores.
        mean: Whether heads are averaged rather than concatenated.
        steps: What follows.
        out: Result (num_receivers, width, LANES).
        tile: Scratch (width, LANES).
        spare: Scratch (width, LANES).
        scores: Scratch (largest in-degree + 1, LANES).
    """
    weights = np.empty((4, LANES), dtype=np.float32)
    total = np.empty(LANES, dtype=np.float32)
    rows = np.empty(4, dtype=np.int64)
    senders = heads * channels
    receivers = senders + heads
    for u in range(out.shape[0]):
        low, high = field.indptr[u], field.indptr[u + 1]
        for h in range(heads):
            receiver = table[u, receivers + h]
            for position in range(high - low + 1):
                source = u if position == high - low else field.sources[low + position]
                sender, score = table[source, senders + h], scores[position]
                for i in range(LANES):
                    value = sender[i] + receiver[i]
                    score[i] = max(value, slope * value)
            attend(field, draw, u, scores, table, h, channels, weights, total, rows, tile)
        if mean:
            average_heads(tile, heads, channels)
        apply_steps(steps, tile, spare, out[u])
