"""Plain sums and means over the in-neighbours: what SAGEConv (Hamilton et al. 2017) and GINConv (Xu et al. 2019) share.

Out of a node comes (sum or mean of the first columns of its in-neighbours' rows) + factor · (the last columns of its
own row): SAGEConv projects neighbours and the node itself differently, GINConv adds (1 + eps) times the node's row.
GraphConv (Morris et al. 2019) is SAGEConv whose rows may be multiplied by weights of edges; a mean still divides by
the number of messages.
"""

import numpy as np

from graycert._compilation import bare
from graycert._types import Float32Array
from graycert.sampling.kernels.draws import ONE, WEIGHTED, ZERO, Draw, Field, lanes_of
from graycert.sampling.kernels.products import AHEAD, foresee, sum_rows, sum_static
from graycert.sampling.kernels.tiles import Output, finish


@bare
def first_layer(
    field: Field, draw: Draw, table: Float32Array, width: int, mean: bool, own_factor: np.float32, output: Output
) -> None:
    """Sum projected rows, which are the same in all samples.

    Args:
        field: The graph.
        draw: The chunk.
        table: Projected rows, float32 (n + 1, total width); the last is the token's.
        width: The first ``width`` columns are sent, the last ``width`` are the node's own.
        mean: Whether to divide by the number of messages.
        own_factor: Factor of the node's own row.
        output: Where the result goes.
    """
    tile, weights, own_columns = output.tile, output.weights, table.shape[1] - width
    token, arrived, senders = table[field.token], output.lanes[0], output.senders
    for u in range(output.first, output.first + output.rows.shape[0]):
        low, degree = field.indptr[u], field.indptr[u + 1] - field.indptr[u]
        shown, own, folded = draw.shown[u], table[u], weights[degree]
        folded[:] = ZERO
        arrived[:] = ZERO
        for edge in range(degree):
            source, weight, survives = field.sources[low + edge], weights[edge], draw.survives[low + edge]
            seen, given = draw.shown[source], field.weights[low + edge] if WEIGHTED else ONE
            senders[edge] = source
            for i in range(lanes_of(weight)):
                weight[i] = np.float32(survives[i] & seen[i]) * given
                arrived[i] += survives[i]
                folded[i] += np.float32(survives[i] & (np.uint8(1) - seen[i])) * given
        senders[degree] = field.token
        foresee(field.sources, low + degree, u, senders[degree + 1 :])
        sum_static(tile[:width], 0, weights, table, senders[: degree + 1 + AHEAD], degree + 1, None)
        for i in range(lanes_of(arrived)):
            arrived[i] = ONE / max(arrived[i], ONE) if mean else ONE
        for c in range(width):
            row = tile[c]
            own_value, token_value = own_factor * own[own_columns + c], own_factor * token[own_columns + c]
            for i in range(lanes_of(row)):
                mine = own_value if shown[i] else token_value
                row[i] = row[i] * arrived[i] + mine
        finish(output, u)


@bare
def later_layer(
    field: Field, draw: Draw, table: Float32Array, width: int, mean: bool, own_factor: np.float32, output: Output
) -> None:
    """Sum rows that differ between samples: ``table`` (n, total width, LANES); otherwise as ``first_layer``."""
    tile, weights, own_columns = output.tile, output.weights, table.shape[1] - width
    arrived = output.lanes[0]
    for u in range(output.first, output.first + output.rows.shape[0]):
        low, high = field.indptr[u], field.indptr[u + 1]
        arrived[:] = ZERO
        for edge in range(low, high):
            weight, survives = weights[edge - low], draw.survives[edge]
            given = field.weights[edge] if WEIGHTED else ONE
            for i in range(lanes_of(weight)):
                weight[i] = np.float32(survives[i]) * given
                arrived[i] += survives[i]
        sum_rows(tile[:width], 0, weights, table, field.sources[low:], high - low, None)
        for i in range(lanes_of(arrived)):
            arrived[i] = ONE / max(arrived[i], ONE) if mean else ONE
        for c in range(width):
            row, own = tile[c], table[u, own_columns + c]
            for i in range(lanes_of(row)):
                row[i] = row[i] * arrived[i] + own_factor * own[i]
        finish(output, u)
