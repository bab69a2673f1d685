"""Row-wise steps and weighted sums of the kernels, against NumPy in float64."""

import numpy as np
import pytest

from graycert._compilation import kernel, with_constants
from graycert.sampling.drawing_plan import LANES as WIDTHS
from graycert.sampling.kernels.draws import LANES
from graycert.sampling.kernels.products import apply_linear, sum_rows, sum_static
from graycert.sampling.kernels.tiles import (
    ELU,
    IDENTITY,
    LEAKY_RELU,
    RELU,
    Output,
    RowwiseStep,
    exp,
    finish,
    pack_steps,
)
from graycert.sampling.layers import room_for_lanes


@kernel
def _each_exp(x, out):
    for i in range(x.size):
        out[i] = exp(x[i])


def test_exp_errs_by_less_than_two_units_in_the_last_place():
    x = np.concatenate([np.linspace(-87, 88, 300_001), np.linspace(-1, 1, 300_001)]).astype(np.float32)
    out = np.empty_like(x)
    _each_exp(x, out)
    exact = np.exp(x.astype(np.float64))
    assert (np.abs(out - exact) < 2 * np.spacing(exact.astype(np.float32))).all()
    ends = np.array([-1e30, -87, 88, 1e30], dtype=np.float32)
    out = np.empty_like(ends)
    _each_exp(ends, out)
    assert out[0] == out[1] > 0
    assert out[2] == out[3] < np.inf


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def output_for(steps, width, *, num_receivers=1):
    widest = max(width, *(max(step.scale.size, step.width_out) for step in steps))
    tile, spare = (np.full((widest, LANES), np.nan, dtype=np.float32) for _ in range(2))
    weights = np.full((4, LANES), np.nan, dtype=np.float32)
    rows = np.full((num_receivers, steps[-1].width_out, LANES), np.nan, dtype=np.float32)
    senders, lanes = np.zeros(4, dtype=np.int32), np.full((4, LANES), np.nan, dtype=np.float32)
    return Output(pack_steps(steps), tile, spare, weights, senders, lanes, rows)


def in_numpy(steps, rows):
    rows = rows.astype(np.float64)
    for step in steps:
        rows = rows * step.scale[:, None] + step.shift[:, None]
        negative = {
            IDENTITY: rows,
            RELU: np.zeros_like(rows),
            ELU: step.slope * np.expm1(np.minimum(rows, 0)),
            LEAKY_RELU: step.slope * rows,
        }[step.activation]
        rows = np.where(rows > 0, rows, negative)
        if step.weight is not None:
            rows = step.weight.astype(np.float64) @ rows + step.bias[:, None]
    return rows


def step(width, width_out=None, *, activation=IDENTITY, slope=1.0, seed=0):
    weight = None if width_out is None else numbers(width_out, width, seed=seed) / np.float32(np.sqrt(width))
    bias = None if width_out is None else numbers(width_out, seed=seed + 1)
    return RowwiseStep(numbers(width, seed=seed + 2), numbers(width, seed=seed + 3), activation, slope, weight, bias)


@pytest.mark.deep
@pytest.mark.parametrize(
    "steps",
    [
        [step(7)],
        [step(64, 9, activation=ELU, slope=0.7)],
        [step(5, 3, activation=RELU), step(3, 6, activation=LEAKY_RELU, slope=0.2, seed=9), step(6, seed=5)],
        [step(6, activation=RELU), step(6, activation=ELU, seed=3), step(6, 1, seed=4)],
        [step(1030, 517, activation=RELU)],
    ],
    ids=["affine", "one", "three", "without maps between", "wide"],
)
def test_a_chain_of_steps(steps):
    width = steps[0].scale.size
    output = output_for(steps, width, num_receivers=2)
    row = numbers(width, LANES, seed=20)
    output.tile[:width] = row
    finish(output, 1)
    np.testing.assert_allclose(output.rows[1], in_numpy(steps, row), rtol=1e-4, atol=2e-5)
    assert np.isnan(output.rows[0]).all()


@pytest.mark.few(1)
@pytest.mark.parametrize("degree", [0, 1, 2, 3, 4, 5, 7, 8, 13])
@pytest.mark.parametrize("scaled", [False, True])
def test_weighted_sums_take_every_row_once(degree, scaled):
    rows = np.random.default_rng(1).integers(20, size=degree).astype(np.int32)
    weights = numbers(degree, LANES, seed=4)
    scale = numbers(LANES, seed=5) if scaled else None
    for write, table in ((sum_static, numbers(20, 10)), (sum_rows, numbers(20, 10, LANES))):
        before = numbers(10, LANES, seed=3)
        tile = before.copy()
        write(tile[2:7], 2, weights, table, np.append(rows, [3, 19]).astype(np.int32), degree, scale)
        values = table[rows].astype(np.float64)
        values = values if values.ndim == 3 else values[..., None]
        expected = (weights[:, None] * values)[:, 2:7].sum(axis=0) * (1.0 if scale is None else scale)
        np.testing.assert_allclose(tile[2:7], expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(tile[:2], before[:2])
        np.testing.assert_array_equal(tile[7:], before[7:])


@pytest.mark.parametrize("width_out", [1, 2, 3, 4, 7, 8, 15, 45])
def test_a_linear_map_rounds_as_one_sum_in_order_with_fused_products(width_out):
    weight, bias = numbers(width_out, 64), numbers(width_out, seed=1)
    rows = numbers(70, LANES, seed=2)
    out = np.empty((width_out + 1, LANES), dtype=np.float32)
    out[-1] = 7.0
    apply_linear(np.ascontiguousarray(weight.T), bias, rows, out)
    sums = np.zeros((width_out, LANES), dtype=np.float32)
    for k in range(64):  # float64 holds a product of two float32 exactly
        sums = (sums.astype(np.float64) + weight[:, k, None].astype(np.float64) * rows[k]).astype(np.float32)
    np.testing.assert_array_equal(out[:-1], sums + bias[:, None])
    assert (out[-1] == 7.0).all()


@pytest.mark.few(2)
@pytest.mark.parametrize("num_columns", [101, 47, 1, 2, 3, 8, 16, 40, 64])
@pytest.mark.parametrize("lanes", WIDTHS[1:])
def test_sums_are_those_of_the_widest_tile_bit_by_bit(lanes, num_columns):
    num_rows, rows = 11, np.random.default_rng(2).integers(20, size=14).astype(np.int32)
    weights, scale, bias = numbers(num_rows, LANES), numbers(LANES, seed=1), numbers(num_columns, seed=2)
    same, differing = numbers(20, num_columns + 3, seed=3), numbers(20, num_columns + 3, LANES, seed=4)

    def results(width):
        found = np.full((3, num_columns + 1, width), 7.0, dtype=np.float32)
        some = [np.ascontiguousarray(each[..., :width]) for each in (weights, differing, scale)]
        static, own, linear = (with_constants(each, LANES=width) for each in (sum_static, sum_rows, apply_linear))
        static(found[0, :-1], 3, some[0], same, rows, num_rows, some[2])
        own(found[1, :-1], 3, some[0], some[1], rows, num_rows, None)
        linear(np.ascontiguousarray(same[:num_rows, :num_columns]), bias, some[0], found[2])
        return found

    np.testing.assert_array_equal(results(lanes), results(LANES)[..., :lanes])


@pytest.mark.few(2)
@pytest.mark.parametrize("num_columns", [1, 3, 8, 15, 21])
def test_sums_stay_within_their_columns(num_columns):
    rows, weights = np.arange(3, dtype=np.int32), numbers(3, LANES)
    for write, table in ((sum_static, numbers(3, 40)), (sum_rows, numbers(3, 40, LANES))):
        tile = np.full((num_columns + 16, LANES), 7.0, dtype=np.float32)
        write(tile[8 : 8 + num_columns], 5, weights, table, rows, rows.size, None)
        values = table if table.ndim == 3 else table[..., None]
        expected = (weights[:, None] * values)[:, 5 : 5 + num_columns].sum(axis=0)
        np.testing.assert_allclose(tile[8 : 8 + num_columns], expected, rtol=1e-5, atol=1e-5)
        assert (tile[:8] == 7.0).all()
        assert (tile[8 + num_columns :] == 7.0).all()


def test_room_for_lanes_begins_where_a_line_of_the_cache_does():
    for rows in range(1, 9):
        room = room_for_lanes(rows, 3, LANES)
        assert room.shape == (rows, 3, LANES)
        assert room.flags.c_contiguous
        assert room.ctypes.data % 64 == 0


def test_sums_refuse_arrays_that_are_not_contiguous_float32():
    rows, weights = np.zeros(1, dtype=np.int32), numbers(1, LANES)
    with pytest.raises(Exception, match="contiguous arrays of float32"):
        sum_static(np.zeros((4, LANES)), 0, weights, numbers(3, 4), rows, rows.size, None)
