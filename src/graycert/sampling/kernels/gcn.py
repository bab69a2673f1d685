"""GCNConv (Kipf and Welling 2017) in compiled form: weights 1/sqrt(d_w d_u) with the degrees that survive."""

import numpy as np

from graycert._compilation import kernel
from graycert.sampling.kernels.draws import LANES, ZERO, Draw, Field, FloatArray
from graycert.sampling.kernels.tiles import Steps, add_rows, add_static, apply_steps


@kernel
def first_layer(
    field: Field, draw: Draw, table: FloatArray, steps: Steps, out: FloatArray, tile: FloatArray, spare: FloatArray
) -> None:
    """Sum projected rows, which are the same in all samples.

    Args:
        field: Receivers are nodes ``0 ... out.shape[0] - 1``.
        draw: The chunk, with ``scale``.
        table: Projected rows, float32 (n + 1, width); the last is the token's.
        steps: What follows.
        out: Result (num_receivers, width, LANES).
        tile: Scratch (width, LANES).
        spare: Scratch (width, LANES).
    """
    width = table.shape[1]
    weights = np.empty((4, LANES), dtype=np.float32)
    folded = np.empty(LANES, dtype=np.float32)
    rows = np.empty(4, dtype=np.int64)
    for u in range(out.shape[0]):
        shown, scale = draw.shown[u], draw.scale[u]
        for i in range(LANES):
            folded[i] = ZERO if shown[i] else scale[i]
        tile[:width] = ZERO
        for start in range(field.indptr[u], field.indptr[u + 1], 4):
            for j in range(4):
                edge, weight = start + j, weights[j]
                if edge >= field.indptr[u + 1]:
                    rows[j] = field.token
                    weight[:] = ZERO
                    continue
                source = field.sources[edge]
                rows[j] = source
                survives, seen, factor = draw.survives[edge], draw.shown[source], draw.scale[source]
                for i in range(LANES):
                    value = factor[i] if survives[i] else ZERO
                    weight[i] = value if seen[i] else ZERO
                    folded[i] += ZERO if seen[i] else value
            add_static(tile, 0, weights, table, rows, width)
        own, token = table[u], table[field.token]
        for c in range(width):
            row = tile[c]
            for i in range(LANES):
                mine = scale[i] * own[c] if shown[i] else ZERO
                row[i] = scale[i] * (row[i] + folded[i] * token[c] + mine)
        apply_steps(steps, tile, spare, out[u])


@kernel
def later_layer(
    field: Field, draw: Draw, table: FloatArray, steps: Steps, out: FloatArray, tile: FloatArray, spare: FloatArray
) -> None:
    """Sum rows that differ between samples, float32 (n, width, LANES); otherwise as ``first_layer``."""
    width = table.shape[1]
    weights = np.empty((4, LANES), dtype=np.float32)
    rows = np.empty(4, dtype=np.int64)
    for u in range(out.shape[0]):
        scale = draw.scale[u]
        for c in range(width):
            row, own = tile[c], table[u, c]
            for i in range(LANES):
                row[i] = scale[i] * own[i]
        for start in range(field.indptr[u], field.indptr[u + 1], 4):
            for j in range(4):
                edge, weight = start + j, weights[j]
                if edge >= field.indptr[u + 1]:
                    rows[j] = u
                    weight[:] = ZERO
                    continue
                rows[j] = field.sources[edge]
                survives, factor = draw.survives[edge], draw.scale[field.sources[edge]]
                for i in range(LANES):
                    weight[i] = factor[i] if survives[i] else ZERO
            add_rows(tile, 0, weights, table, rows, width)
        for c in range(width):
            row = tile[c]
            for i in range(LANES):
                row[i] *= scale[i]
        apply_steps(steps, tile, spare, out[u])
