"""GATv2Conv (Brody et al. 2022) in compiled form. Its first layer is that of `gat`: only the scores differ."""

import numpy as np

from graycert._compilation import bare
from graycert._types import Float32Array
from graycert.sampling.kernels.draws import ZERO, Draw, Field, lanes_of
from graycert.sampling.kernels.gat import attend, average_heads, gather_rows
from graycert.sampling.kernels.tiles import Output, finish


@bare
def later_layer(
    field: Field,
    draw: Draw,
    table: Float32Array,
    attention: Float32Array,
    slope: np.float32,
    mean: bool,
    output: Output,
) -> None:
    """Attend over rows that differ between samples.

    Args:
        field: The graph.
        draw: The chunk.
        table: Per node values as sender, then as receiver, float32 (n, 2 * heads * channels, LANES).
        attention: Weight of each channel in the score, float32 (heads, channels).
        slope: Negative slope of the LeakyReLU on channels.
        mean: Whether heads are averaged rather than concatenated.
        output: Where the result goes.
    """
    heads, channels = attention.shape
    for u in range(output.first, output.first + output.rows.shape[0]):
        rows = output.senders[: gather_rows(field, u, output.senders)]
        for h in range(heads):
            for place in range(rows.size):
                score = output.weights[place]
                score[:] = ZERO
                for c in range(channels):
                    factor = attention[h, c]
                    sender, receiver = table[rows[place], h * channels + c], table[u, (heads + h) * channels + c]
                    for i in range(lanes_of(score)):
                        value = sender[i] + receiver[i]
                        score[i] += factor * max(value, slope * value)
            attend(draw, field.indptr[u], rows.size, table, h, channels, output)
        if mean:
            average_heads(output.tile, heads, channels)
        finish(output, u)
