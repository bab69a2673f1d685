"""GATConv (Veličković et al. 2018) in compiled form, and what GATv2Conv shares with it."""

import numpy as np

from graycert._compilation import bare
from graycert._types import Float32Array
from graycert.sampling.kernels.draws import ONE, ZERO, Draw, Field, Int32Array, lanes_of
from graycert.sampling.kernels.products import AHEAD, foresee, sum_rows, sum_static
from graycert.sampling.kernels.tiles import Output, exp, finish

_NEVER = np.float32(-1e30)


@bare
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
    totals, folded, senders = output.lanes[:heads], output.lanes[heads], output.senders
    for u in range(output.first, output.first + output.rows.shape[0]):
        low, degree = field.indptr[u], field.indptr[u + 1] - field.indptr[u]
        stride, shown = degree + 2, draw.shown[u]
        for i in range(lanes_of(folded)):
            folded[i] = np.uint8(1) - shown[i]  # an ablated receiver is one more token
        totals[:] = ZERO
        for edge in range(degree):
            source, survives = field.sources[low + edge], draw.survives[low + edge]
            seen = draw.shown[source]
            senders[edge] = source
            for i in range(lanes_of(folded)):
                folded[i] += survives[i] & (np.uint8(1) - seen[i])
            for h in range(heads):
                weight, total = weights[h * stride + edge], totals[h]
                if_ablated, if_shown = edge_weights[low + edge, 0, h], edge_weights[low + edge, 1, h]
                for i in range(lanes_of(weight)):
                    value = if_shown if shown[i] else if_ablated
                    value = value if survives[i] & seen[i] else ZERO
                    weight[i] = value
                    total[i] += value
        senders[degree], senders[degree + 1] = field.token, u
        foresee(field.sources, low + degree, u, senders[degree + 2 :])
        for h in range(heads):
            total, of_head = totals[h], weights[h * stride : (h + 1) * stride]
            of_token, of_own = of_head[degree], of_head[degree + 1]
            if_ablated, if_shown, by_itself = node_weights[u, 0, h], node_weights[u, 1, h], node_weights[u, 2, h]
            for i in range(lanes_of(of_token)):
                of_token[i] = folded[i] * (if_shown if shown[i] else if_ablated)
                of_own[i] = by_itself if shown[i] else ZERO
                total[i] = ONE / (total[i] + of_token[i] + of_own[i])
            columns = tile[h * channels : (h + 1) * channels]
            sum_static(columns, h * channels, of_head, table, senders[: stride + AHEAD], stride, total)
        if mean:
            average_heads(tile, heads, channels)
        finish(output, u)


@bare
def average_heads(tile: Float32Array, heads: int, channels: int) -> None:
    """Replace the first head's columns by the mean over heads."""
    for c in range(channels):
        row = tile[c]
        for h in range(1, heads):
            other = tile[h * channels + c]
            for i in range(lanes_of(row)):
                row[i] += other[i]
        for i in range(lanes_of(row)):
            row[i] /= np.float32(heads)


@bare
def attend(draw: Draw, low: int, num_rows: int, table: Float32Array, head: int, channels: int, output: Output) -> None:
    """Write the softmax-weighted sum of one head's values into its columns of the tile.

    ``output.weights`` holds the score of the receiver itself, then that of each in-edge from ``low``; it is
    overwritten. ``output.senders`` holds their ``num_rows`` senders, then those that are likely to be next. The first
    columns of ``table`` (n, width, LANES) are the values.
    """
    scores, best, total = output.weights, output.lanes[0], output.lanes[1]
    own = scores[0]
    for i in range(lanes_of(best)):
        best[i] = own[i]
    for place in range(1, num_rows):
        survives, score = draw.survives[low + place - 1], scores[place]
        for i in range(lanes_of(best)):
            value = score[i]
            best[i] = max(best[i], value if survives[i] else _NEVER)
    for i in range(lanes_of(own)):
        own[i] = exp(own[i] - best[i])
        total[i] = own[i]
    for place in range(1, num_rows):
        survives, score = draw.survives[low + place - 1], scores[place]
        for i in range(lanes_of(score)):
            value = exp(score[i] - best[i])
            value = value if survives[i] else ZERO
            score[i] = value
            total[i] += value
    first = head * channels
    rows = output.senders[: num_rows + AHEAD]
    sum_rows(output.tile[first : first + channels], first, scores, table, rows, num_rows, None)
    for c in range(first, first + channels):
        row = output.tile[c]
        for i in range(lanes_of(row)):
            row[i] /= total[i]


@bare
def gather_rows(field: Field, u: int, rows: Int32Array) -> int:
    """Write receiver ``u``, the sources of its in-edges and what comes next into ``rows``; return how many are its."""
    low, degree = field.indptr[u], field.indptr[u + 1] - field.indptr[u]
    rows[0] = u
    for edge in range(degree):
        rows[1 + edge] = field.sources[low + edge]
    foresee(field.sources, low + degree, u, rows[degree + 1 :])
    return int(degree) + 1


@bare
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
        rows = output.senders[: gather_rows(field, u, output.senders)]
        for h in range(heads):
            receiver = table[u, receivers + h]
            for place in range(rows.size):
                sender, score = table[rows[place], senders + h], output.weights[place]
                for i in range(lanes_of(score)):
                    value = sender[i] + receiver[i]
                    score[i] = max(value, slope * value)
            attend(draw, field.indptr[u], rows.size, table, h, channels, output)
        if mean:
            average_heads(output.tile, heads, channels)
        finish(output, u)
