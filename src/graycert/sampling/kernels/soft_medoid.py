"""The soft medoid of SMA (Geisler et al. 2020) in compiled form.

The cost is one weighted sum of distances per pair of in-neighbours. In the first layer rows are the same in all
samples, so distances are computed once; an ablated in-neighbour is the token, and all of them together are one point.
"""

import numpy as np

from graycert._compilation import bare, kernel
from graycert._types import Float32Array, IntArray
from graycert.sampling.kernels.draws import LANES, ZERO, Draw, Field, Int32Array, lanes_of
from graycert.sampling.kernels.products import sum_rows, sum_static
from graycert.sampling.kernels.tiles import Output, exp, finish

_FAR = np.float32(1e30)


@kernel
def pair_distances(
    indptr: IntArray, sources: Int32Array, table: Float32Array, offsets: IntArray, result: Float32Array
) -> None:
    """Write the Euclidean distances between all points that a receiver may see in the first layer.

    Args:
        indptr: In-edges by receiver.
        sources: Source of each edge.
        table: Projected rows (n + 1, width), the last is the token's.
        offsets: Receiver u's distances start at ``offsets[u]``; its points are its in-neighbours, itself, the token.
        result: A (d + 2, d + 2) matrix per receiver of in-degree d, row by row, float32.
    """
    width = table.shape[1]
    for u in range(indptr.size - 1):
        low, size = indptr[u], indptr[u + 1] - indptr[u] + 2
        for a in range(size):
            first = sources[low + a] if a < size - 2 else (u if a == size - 2 else table.shape[0] - 1)
            for b in range(a + 1):
                second = sources[low + b] if b < size - 2 else (u if b == size - 2 else table.shape[0] - 1)
                squared = 0.0
                for c in range(width):
                    difference = table[first, c] - table[second, c]
                    squared += difference * difference
                distance = np.float32(np.sqrt(squared))
                result[offsets[u] + a * size + b] = distance
                result[offsets[u] + b * size + a] = distance


@kernel
def _keep_largest(field: Field, draw: Draw, u: int, limit: int, points: Float32Array, order: IntArray) -> None:
    """Set to zero the weights of all but the ``limit`` points of largest weight: those of smallest degree.

    Points of equal degree are taken in the order of the in-edges, the receiver itself last. ``points`` has a row of
    weights per in-edge and one for the receiver; degrees are told from ``draw.scale``.
    """
    low, degree = field.indptr[u], field.indptr[u + 1] - field.indptr[u]
    for i in range(LANES):
        found = 0
        for position in range(degree + 1):
            node = u if position == degree else field.sources[low + position]
            if position == degree or draw.survives[low + position, i]:
                inverse = 1.0 / draw.scale[node, i]
                order[found] = np.int64(np.round(inverse * inverse)) * 2**31 + position
                found += 1
        if found <= limit:
            continue
        chosen = order[:found]
        chosen.sort()
        for rank in range(limit, found):
            points[chosen[rank] & (2**31 - 1), i] = ZERO


@bare
def _aggregate(points: Float32Array, costs: Float32Array, temperature: np.float32, lanes: Float32Array) -> None:
    """Turn weights a and costs of each point into the factors a point's row enters the soft medoid with, in place."""
    best, total, shares = lanes[0], lanes[1], lanes[2]
    best[:] = _FAR
    total[:] = ZERO
    shares[:] = ZERO
    for p in range(points.shape[0]):
        weight, cost = points[p], costs[p]
        for i in range(lanes_of(best)):
            best[i] = min(best[i], cost[i] if weight[i] > ZERO else _FAR)
            total[i] += weight[i]
    for p in range(points.shape[0]):
        weight, cost = points[p], costs[p]
        for i in range(lanes_of(weight)):
            difference = (best[i] - cost[i]) / temperature
            share = exp(difference) * weight[i] if weight[i] > ZERO else ZERO
            weight[i] = share
            shares[i] += share
    for i in range(lanes_of(shares)):
        shares[i] = total[i] / shares[i]
    for p in range(points.shape[0]):
        weight = points[p]
        for i in range(lanes_of(weight)):
            weight[i] *= shares[i]


@kernel
def _weigh(field: Field, draw: Draw, u: int, limit: int, points: Float32Array, order: IntArray) -> None:
    """Write the weight 1/sqrt(d_w d_u) of each in-edge of u, 0 where deleted or not considered, then that of u."""
    low, degree = field.indptr[u], field.indptr[u + 1] - field.indptr[u]
    scale, own = draw.scale[u], points[degree]
    for p in range(degree):
        point, survives, factor = points[p], draw.survives[low + p], draw.scale[field.sources[low + p]]
        for i in range(lanes_of(point)):
            point[i] = factor[i] * scale[i] if survives[i] else ZERO
    for i in range(lanes_of(own)):
        own[i] = scale[i] * scale[i]
    if degree + 1 > limit:
        _keep_largest(field, draw, u, limit, points, order)


@kernel
def first_layer(
    field: Field,
    draw: Draw,
    table: Float32Array,
    offsets: IntArray,
    distances: Float32Array,
    limit: int,
    temperature: np.float32,
    output: Output,
    costs: Float32Array,
    order: IntArray,
) -> None:
    """Aggregate projected rows, which are the same in all samples.

    Args:
        field: The graph.
        draw: The chunk, with ``scale``.
        table: Projected rows, float32 (n + 1, width); the last is the token's.
        offsets: See ``pair_distances``.
        distances: See ``pair_distances``.
        limit: How many points of largest weight are considered.
        temperature: T.
        output: Where the result goes.
        costs: Scratch (largest in-degree + 2, LANES).
        order: Scratch (largest in-degree + 1,).
    """
    tile, points, senders, width = output.tile, output.weights, output.senders, table.shape[1]
    for u in range(output.first, output.first + output.rows.shape[0]):
        low, high = field.indptr[u], field.indptr[u + 1]
        degree, size = high - low, high - low + 2
        _weigh(field, draw, u, limit, points, order)
        folded = points[degree + 1]
        folded[:] = ZERO
        for p in range(degree + 1):
            point, seen = points[p], draw.shown[u if p == degree else field.sources[low + p]]
            for i in range(lanes_of(folded)):
                folded[i] += ZERO if seen[i] else point[i]
                point[i] = point[i] if seen[i] else ZERO
        costs[:size] = ZERO
        for a in range(size):
            cost = costs[a]
            for b in range(size):
                distance, point = distances[offsets[u] + a * size + b], points[b]
                for i in range(lanes_of(cost)):
                    cost[i] += distance * point[i]
        _aggregate(points[:size], costs[:size], temperature, output.lanes)
        senders[0], senders[1] = u, field.token
        senders[2:size] = field.sources[low:high]
        costs[:2] = points[degree:size]
        costs[2:size] = points[:degree]
        sum_static(tile[:width], 0, costs, table, senders[:size], size, None)
        finish(output, u)


@kernel
def later_layer(
    field: Field,
    draw: Draw,
    table: Float32Array,
    limit: int,
    temperature: np.float32,
    output: Output,
    costs: Float32Array,
    order: IntArray,
) -> None:
    """Aggregate rows that differ between samples: ``table`` (n, width, LANES); otherwise as ``first_layer``."""
    tile, points, senders, width = output.tile, output.weights, output.senders, table.shape[1]
    distance = output.lanes[3]
    for u in range(output.first, output.first + output.rows.shape[0]):
        low, high = field.indptr[u], field.indptr[u + 1]
        degree, size = high - low, high - low + 1
        _weigh(field, draw, u, limit, points, order)
        costs[:size] = ZERO
        for a in range(size):
            first = field.sources[low + a] if a < degree else u
            for b in range(a):
                second = field.sources[low + b]
                distance[:] = ZERO
                for c in range(width):
                    x, y = table[first, c], table[second, c]
                    for i in range(lanes_of(distance)):
                        difference = x[i] - y[i]
                        distance[i] += difference * difference
                cost_a, cost_b, point_a, point_b = costs[a], costs[b], points[a], points[b]
                for i in range(lanes_of(cost_a)):
                    root = np.sqrt(distance[i])
                    cost_a[i] += root * point_b[i]
                    cost_b[i] += root * point_a[i]
        _aggregate(points[:size], costs[:size], temperature, output.lanes)
        senders[0] = u
        senders[1:size] = field.sources[low:high]
        costs[0] = points[degree]
        costs[1:size] = points[:degree]
        sum_rows(tile[:width], 0, costs, table, senders[:size], size, None)
        finish(output, u)
