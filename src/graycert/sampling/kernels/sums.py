"""Plain sums and means over the in-neighbours: what SAGEConv (Hamilton et al. 2017) and GINConv (Xu et al. 2019) share.

Out of a node comes (sum or mean of the first columns of its in-neighbours' rows) + factor · (the last columns of its
own row): SAGEConv projects neighbours and the node itself differently, GINConv adds (1 + eps) times the node's row.
"""

import numpy as np

from graycert._compilation import kernel
from graycert.sampling.kernels.draws import LANES, ONE, ZERO, Draw, Field, FloatArray
from graycert.sampling.kernels.tiles import Steps, add_rows, add_static, apply_steps


@kernel
def first_layer(
    field: Field,
    draw: Draw,
    table: FloatArray,
    width: int,
    mean: bool,
    own_factor: np.float32,
    steps: Steps,
    out: FloatArray,
    tile: FloatArray,
    spare: FloatArray,
) -> None:
    """Sum projected rows, which are the same in all samples.

    Args:
        field: Receivers are nodes ``0 ... out.shape[0] - 1``.
        draw: The chunk.
        table: Projected rows, float32 (n + 1, total width); the last is the token's.
        width: The first ``width`` columns are sent, the last ``width`` are the node's own.
        mean: Whether to divide by the number of messages.
        own_factor: Factor of the node's own row.
        steps: What follows.
        out: Result (num_receivers, width, LANES).
        tile: Scratch (width, LANES).
        spare: Scratch (width, LANES).
    """
    weights = np.empty((4, LANES), dtype=np.float32)
    folded = np.empty(LANES, dtype=np.float32)
    arrived = np.empty(LANES, dtype=np.float32)
    rows = np.empty(4, dtype=np.int64)
    own_columns = table.shape[1] - width
    for u in range(out.shape[0]):
        folded[:] = ZERO
        arrived[:] = ZERO
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
                survives, seen = draw.survives[edge], draw.shown[source]
                for i in range(LANES):
                    value = survives[i] & seen[i]
                    weight[i] = value
                    arrived[i] += value
                    folded[i] += survives[i] & (np.uint8(1) - seen[i])
            add_static(tile, 0, weights, table, rows, width)
        shown, own, token = draw.shown[u], table[u], table[field.token]
        for i in range(LANES):
            arrived[i] = ONE / max(arrived[i] + folded[i], ONE) if mean else ONE
        for c in range(width):
            row = tile[c]
            own_value, token_value = own_factor * own[own_columns + c], own_factor * token[own_columns + c]
            for i in range(LANES):
                mine = own_value if shown[i] else token_value
                row[i] = (row[i] + folded[i] * token[c]) * arrived[i] + mine
        apply_steps(steps, tile, spare, out[u])


@kernel
def later_layer(
    field: Field,
    draw: Draw,
    table: FloatArray,
    width: int,
    mean: bool,
    own_factor: np.float32,
    steps: Steps,
    out: FloatArray,
    tile: FloatArray,
    spare: FloatArray,
) -> None:
    """Sum rows that differ between samples, float32 (n, total width, LANES); otherwise as ``first_layer``."""
    weights = np.empty((4, LANES), dtype=np.float32)
    arrived = np.empty(LANES, dtype=np.float32)
    rows = np.empty(4, dtype=np.int64)
    own_columns = table.shape[1] - width
    for u in range(out.shape[0]):
        arrived[:] = ZERO
        tile[:width] = ZERO
        for start in range(field.indptr[u], field.indptr[u + 1], 4):
            for j in range(4):
                edge, weight = start + j, weights[j]
                if edge >= field.indptr[u + 1]:
                    rows[j] = u
                    weight[:] = ZERO
                    continue
                rows[j] = field.sources[edge]
                survives = draw.survives[edge]
                for i in range(LANES):
                    weight[i] = survives[i]
                    arrived[i] += survives[i]
            add_rows(tile, 0, weights, table, rows, width)
        for i in range(LANES):
            arrived[i] = ONE / max(arrived[i], ONE) if mean else ONE
        for c in range(width):
            row, own = tile[c], table[u, own_columns + c]
            for i in range(LANES):
                row[i] = row[i] * arrived[i] + own_factor * own[i]
        apply_steps(steps, tile, spare, out[u])
