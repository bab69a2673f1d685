"""GCNConv (Kipf and Welling 2017) in compiled form: weights 1/sqrt(d_w d_u) with the degrees that survive.

With weights a of edges, a/sqrt(d_w d_u), and degrees are sums of weights that survive; loops have weight 1.
"""

from graycert._compilation import bare
from graycert._types import Float32Array
from graycert.sampling.kernels.draws import ONE, WEIGHTED, ZERO, Draw, Field, lanes_of
from graycert.sampling.kernels.products import AHEAD, foresee, sum_rows, sum_static
from graycert.sampling.kernels.tiles import Output, finish


@bare
def first_layer(field: Field, draw: Draw, table: Float32Array, output: Output) -> None:
    """Sum projected rows, which are the same in all samples: ``table`` (n + 1, width), the token's last."""
    tile, weights, senders, width = output.tile, output.weights, output.senders, table.shape[1]
    for u in range(output.first, output.first + output.rows.shape[0]):
        low, degree = field.indptr[u], field.indptr[u + 1] - field.indptr[u]
        shown, scale = draw.shown[u], draw.scale[u]
        folded, mine = weights[degree], weights[degree + 1]  # what the token's row and the node's own row weigh
        for i in range(lanes_of(folded)):
            value = scale[i]
            folded[i] = ZERO if shown[i] else value
            mine[i] = value if shown[i] else ZERO
        for edge in range(degree):
            source, weight, survives = field.sources[low + edge], weights[edge], draw.survives[low + edge]
            seen, factor, given = draw.shown[source], draw.scale[source], field.weights[low + edge] if WEIGHTED else ONE
            senders[edge] = source
            for i in range(lanes_of(weight)):
                value = factor[i] * given
                value = value if survives[i] else ZERO
                weight[i] = value if seen[i] else ZERO
                folded[i] += ZERO if seen[i] else value
        senders[degree], senders[degree + 1] = field.token, u
        foresee(field.sources, low + degree, u, senders[degree + 2 :])
        sum_static(tile[:width], 0, weights, table, senders[: degree + 2 + AHEAD], degree + 2, scale)
        finish(output, u)


@bare
def later_layer(field: Field, draw: Draw, table: Float32Array, output: Output) -> None:
    """Sum rows that differ between samples: ``table`` (n, width, LANES)."""
    tile, weights, senders, width = output.tile, output.weights, output.senders, table.shape[1]
    for u in range(output.first, output.first + output.rows.shape[0]):
        low, degree = field.indptr[u], field.indptr[u + 1] - field.indptr[u]
        scale, own = draw.scale[u], weights[0]
        senders[0] = u
        for i in range(lanes_of(own)):
            own[i] = scale[i]
        for edge in range(degree):
            source, weight, survives = field.sources[low + edge], weights[1 + edge], draw.survives[low + edge]
            factor, given = draw.scale[source], field.weights[low + edge] if WEIGHTED else ONE
            senders[1 + edge] = source
            for i in range(lanes_of(weight)):
                value = factor[i] * given
                weight[i] = value if survives[i] else ZERO
        foresee(field.sources, low + degree, u, senders[degree + 1 :])
        sum_rows(tile[:width], 0, weights, table, senders[: degree + 1 + AHEAD], degree + 1, scale)
        finish(output, u)
