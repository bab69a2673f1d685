"""GCNConv (Kipf and Welling 2017) in compiled form: weights 1/sqrt(d_w d_u) with the degrees that survive.

With weights a of edges, a/sqrt(d_w d_u), and degrees are sums of weights that survive; loops have weight 1.
"""

import numpy as np

from graycert._compilation import kernel
from graycert._types import Float32Array
from graycert.sampling.kernels.draws import LANES, ONE, WEIGHTED, ZERO, Draw, Field
from graycert.sampling.kernels.tiles import Output, add_rows, add_static, finish


@kernel
def first_layer(field: Field, draw: Draw, table: Float32Array, output: Output) -> None:
    """Sum projected rows, which are the same in all samples: ``table`` (n + 1, width), the token's last."""
    tile, weights, width = output.tile, output.weights, table.shape[1]
    token = table[field.token]
    folded = np.empty(LANES, dtype=np.float32)
    for u in range(output.first, output.first + output.rows.shape[0]):
        low, high = field.indptr[u], field.indptr[u + 1]
        shown, scale, own = draw.shown[u], draw.scale[u], table[u]
        for i in range(LANES):
            folded[i] = ZERO if shown[i] else scale[i]
        for edge in range(low, high):
            source, weight, survives = field.sources[edge], weights[edge - low], draw.survives[edge]
            seen, factor, given = draw.shown[source], draw.scale[source], field.weights[edge] if WEIGHTED else ONE
            for i in range(LANES):
                value = factor[i] * given if survives[i] else ZERO
                weight[i] = value if seen[i] else ZERO
                folded[i] += ZERO if seen[i] else value
        tile[:width] = ZERO
        add_static(output, 0, width, weights, table, field.sources[low:high])
        for c in range(width):
            row = tile[c]
            for i in range(LANES):
                mine = scale[i] if shown[i] else ZERO
                row[i] = scale[i] * (row[i] + folded[i] * token[c] + mine * own[c])
        finish(output, u)


@kernel
def later_layer(field: Field, draw: Draw, table: Float32Array, output: Output) -> None:
    """Sum rows that differ between samples: ``table`` (n, width, LANES)."""
    tile, weights, width = output.tile, output.weights, table.shape[1]
    for u in range(output.first, output.first + output.rows.shape[0]):
        low, high = field.indptr[u], field.indptr[u + 1]
        scale = draw.scale[u]
        for edge in range(low, high):
            weight, survives, factor = weights[edge - low], draw.survives[edge], draw.scale[field.sources[edge]]
            given = field.weights[edge] if WEIGHTED else ONE
            for i in range(LANES):
                weight[i] = factor[i] * given if survives[i] else ZERO
        for c in range(width):
            row, own = tile[c], table[u, c]
            for i in range(LANES):
                row[i] = scale[i] * own[i]
        add_rows(output, 0, width, weights, table, field.sources[low:high])
        for c in range(width):
            row = tile[c]
            for i in range(LANES):
                row[i] *= scale[i]
        finish(output, u)
