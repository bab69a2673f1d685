"""GATConv (Veličković et al. 2018) in compiled form, and what GATv2Conv shares with it."""

import numpy as np

from graycert._compilation import kernel
from graycert._types import Float32Array
from graycert.sampling.kernels.draws import LANES, ONE, ZERO, Draw, Field
from graycert.sampling.kernels.tiles import Output, add_one, add_rows, add_static, exp, finish, in_fours

_NEVER = np.float32(-1e30)


@kernel
def first_layer(
    field: Field,
    draw: Draw,
    table: Float32Array,
    edge_weights: Float32Array,
    node_weights: Float32Array,
    heads: int,
    mean: bool,
    output: Output,
) -> None:
    """Attend over projected rows, which are the same in all samples, and so is exp(score) of each pair of rows.

    Args:
        field: The graph.
        draw: The chunk.
        table: Values of all heads, float32 (n + 1, heads * channels); the last row is the token's.
        edge_weights: exp(score), shifted, per edge, receiver ablated (0) or shown (1), and head; (num_edges, 2, heads).
        node_weights: The same of the token seen by an ablated receiver (0), of the token seen by a shown one (1),
            and of the receiver seen by itself (2); (num_receivers, 3, heads).
        heads: Number of heads.
        mean: Whether heads are averaged rather than concatenated.
        output: Where the result goes.
    """
    tile, weights, channels = output.tile, output.weights, table.shape[1] // heads
    token = table[field.token]
    totals = np.empty((heads, LANES), dtype=np.float32)
    folded = np.empty(LANES, dtype=np.float32)
    of_token = np.empty(LANES, dtype=np.float32)
    of_own = np.empty(LANES, dtype=np.float32)
    for u in range(output.first, output.first + output.rows.shape[0]):
        low, high = field.indptr[u], field.indptr[u + 1]
        stride, shown, own = in_fours(high - low), draw.shown[u], table[u]
        for i in range(LANES):
            folded[i] = np.uint8(1) - shown[i]  # an ablated receiver is one more token
        totals[:] = ZERO
        for edge in range(low, high):
            survives, seen = draw.survives[edge], draw.shown[field.sources[edge]]
            for i in range(LANES):
                folded[i] += survives[i] & (np.uint8(1) - seen[i])
            for h in range(heads):
                weight, total = weights[h * stride + edge - low], totals[h]
                if_ablated, if_shown = edge_weights[edge, 0, h], edge_weights[edge, 1, h]
                for i in range(LANES):
                    value = if_shown if shown[i] else if_ablated
                    value = value if survives[i] & seen[i] else ZERO
                    weight[i] = value
                    total[i] += value
        tile[: heads * channels] = ZERO
        for h in range(heads):
            total, of_head = totals[h], weights[h * stride : (h + 1) * stride]
            add_static(output, h * channels, channels, of_head, table, field.sources[low:high])
            if_ablated, if_shown, by_itself = node_weights[u, 0, h], node_weights[u, 1, h], node_weights[u, 2, h]
            for i in range(LANES):
                of_token[i] = folded[i] * (if_shown if shown[i] else if_ablated)
                of_own[i] = by_itself if shown[i] else ZERO
                total[i] = ONE / (total[i] + of_token[i] + of_own[i])
            for c in range(h * channels, (h + 1) * channels):
                row = tile[c]
                for i in range(LANES):
                    row[i] = (row[i] + of_token[i] * token[c] + of_own[i] * own[c]) * total[i]
        if mean:
            average_heads(tile, heads, channels)
        finish(output, u)


@kernel
def average_heads(tile: Float32Array, heads: int, channels: int) -> None:
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
def attend(field: Field, draw: Draw, u: int, table: Float32Array, head: int, channels: int, output: Output) -> None:
    """Write the softmax-weighted sum of one head's values into its columns of the tile.

    ``output.weights`` holds the score of each in-edge of receiver u, then that of u itself; it is overwritten. The
    first columns of ``table`` (n, width, LANES) are the values.
    """
    low, high = field.indptr[u], field.indptr[u + 1]
    scores, own = output.weights, output.weights[high - low]
    best = np.empty(LANES, dtype=np.float32)
    total = np.empty(LANES, dtype=np.float32)
    best[:] = own
    for edge in range(low, high):
        survives, score = draw.survives[edge], scores[edge - low]
        for i in range(LANES):
            best[i] = max(best[i], score[i] if survives[i] else _NEVER)
    for i in range(LANES):
        own[i] = exp(own[i] - best[i])
        total[i] = own[i]
    for edge in range(low, high):
        survives, score = draw.survives[edge], scores[edge - low]
        for i in range(LANES):
            value = exp(score[i] - best[i]) if survives[i] else ZERO
            score[i] = value
            total[i] += value
    first = head * channels
    output.tile[first : first + channels] = ZERO
    add_one(output, first, channels, own, table[u])
    add_rows(output, first, channels, scores, table, field.sources[low:high])
    for c in range(first, first + channels):
        row = output.tile[c]
        for i in range(LANES):
            row[i] /= total[i]


@kernel
def later_layer(
    field: Field,
    draw: Draw,
    table: Float32Array,
    heads: int,
    channels: int,
    slope: np.float32,
    mean: bool,
    output: Output,
) -> None:
    """Attend over rows that differ between samples.

    Args:
        field: The graph.
        draw: The chunk.
        table: Per node values of all heads, scores as sender, scores as receiver,
            float32 (n, heads * (channels + 2), LANES).
        heads: Number of heads.
        channels: Channels per head.
        slope: Negative slope of the LeakyReLU on scores.
        mean: Whether heads are averaged rather than concatenated.
        output: Where the result goes.
    """
    senders = heads * channels
    receivers = senders + heads
    for u in range(output.first, output.first + output.rows.shape[0]):
        low, high = field.indptr[u], field.indptr[u + 1]
        for h in range(heads):
            receiver = table[u, receivers + h]
            for position in range(high - low + 1):
                source = u if position == high - low else field.sources[low + position]
                sender, score = table[source, senders + h], output.weights[position]
                for i in range(LANES):
                    value = sender[i] + receiver[i]
                    score[i] = max(value, slope * value)
            attend(field, draw, u, table, h, channels, output)
        if mean:
            average_heads(output.tile, heads, channels)
        finish(output, u)
