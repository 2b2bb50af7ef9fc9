"""Sparse products as traces: accesses, bytes, coalescing and caches against the spelled-out versions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.spmv_oracle import element_bytes, gpu, row_wise_trace
from scipy.sparse import csr_array, random_array

from hwmodel.caches.spec import CacheSpec
from hwmodel.machine import Machine
from hwmodel.replay import replay
from papers.studies.cdr_strides import convolution_matrix, lay_out_convolution
from papers.studies.gpu import GpuSpec, gpu_time, simulate_gpu_spmv
from papers.studies.spmv import lay_out_spmv
from traces.base.errors import InputError
from traces.trace.build import final_image


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, columns = draw(st.integers(1, 60)), draw(st.integers(1, 300))
    matrix = random_array((rows, columns), density=draw(st.sampled_from((0.02, 0.3, 0.9))), rng=rng, format="csr")
    if not matrix.nnz:
        matrix = csr_array(([1.0], ([0], [0])), shape=(rows, columns))
    key = rng.random(matrix.nnz) if draw(st.booleans()) else np.zeros(matrix.nnz)
    row = np.repeat(np.arange(rows), np.diff(matrix.indptr))
    positions = np.lexsort((key, row))
    options = {
        "value_format": draw(st.sampled_from(("fp32", "fp16", "int8"))),
        "vector_format": draw(st.sampled_from(("fp32", "fp16"))),
        "id_bits": draw(st.sampled_from((16, 32))),
        "base_address": draw(st.sampled_from((0, 100))),
        "alignment_bytes": draw(st.sampled_from((4, 256))),
    }
    return lay_out_spmv(matrix, rng.random(columns), positions=positions, **options)


@settings(max_examples=20, deadline=None)
@given(problems())
def test_row_wise_traces_store_the_product_and_replay(problem):
    trace = row_wise_trace(problem)
    region = problem.memory.region("y")
    image = final_image(trace)[region.base_address - problem.memory.base_address :][: region.n_bytes]
    y = image.view(np.float32 if problem.vector_bytes == 4 else np.float16)
    rows = np.repeat(np.arange(problem.n_rows), np.diff(problem.start))
    terms = problem.weight.astype(np.float64) * problem.x[problem.column]
    expected = np.bincount(rows, weights=terms, minlength=problem.n_rows)
    assert np.allclose(y, expected, rtol=2e-3, atol=1e-5)
    result = replay(trace, Machine((CacheSpec(1024, 64, 2),)))
    assert result.loads.sum() == 1 + problem.n_rows + 3 * len(problem.column) and result.total.ones is not None


SMALL = GpuSpec(
    sms=2,
    warp_lanes=8,
    warps_per_sm=3,
    warps_per_block=2,
    l1_bytes_per_clock=64,
    l1=CacheSpec(512, 32, 2, "lru", "through", False),
    l2=CacheSpec(2048, 32, 4),
)


@settings(max_examples=40, deadline=None)
@given(problems())
def test_gpu_accesses_and_misses_equal_the_lane_by_lane_version(problem):
    made, l1, l2, traffic, busy = gpu(problem, SMALL, element_bytes(problem))
    result = simulate_gpu_spmv(problem, SMALL)
    streams = {"row_pointers": 2, "column_ids": 1, "values": 0, "x": 3, "y": 5}
    assert {region: int(result.l1_accesses[n]) for region, n in streams.items()} == {r: made[r] for r in streams}
    for counts, plain in ((result.l1, l1), (result.l2, l2)):
        for name in ("loads", "stores", "load_line_misses", "store_line_misses", "evictions", "writebacks"):
            assert getattr(counts, name) == plain[name], name
    n = len(traffic)
    assert list(zip(result.memory_address[:n].tolist(), result.memory_is_write[:n].tolist(), strict=True)) == [
        (address, is_write) for address, _, is_write in traffic
    ]
    assert (np.diff(result.memory_cycle) >= 0).all() and result.busy_cycles == busy


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 2), st.integers(0, 2))
def test_convolution_is_a_series_of_products(seed, stride, padding):
    rng = np.random.default_rng(seed)
    weights = np.where(rng.random((3, 2, 3, 2)) < 0.5, rng.standard_normal((3, 2, 3, 2)), 0)
    weights[0, 0, 0, 0] = 1
    image = rng.random((2, 7, 6))
    padded = np.pad(image, ((0, 0), (padding,) * 2, (padding,) * 2))
    matrix = convolution_matrix(weights, *padded.shape[1:])
    rows = np.repeat(np.arange(3), np.diff(matrix.indptr))
    positions = np.lexsort((rng.random(matrix.nnz), rows)) if stride == 1 else None  # any order inside rows
    problem = lay_out_convolution(
        weights, image, positions=positions, stride=stride, padding=padding, value_format="fp32"
    )
    assert np.array_equal(problem.weight, matrix.data if positions is None else matrix.data[positions].astype("f4"))
    height, width = (padded.shape[1] - 3) // stride + 1, (padded.shape[2] - 2) // stride + 1
    expected = np.zeros((3, height, width))
    for o, i, j in np.ndindex(expected.shape):
        window = padded[:, i * stride : i * stride + 3, j * stride : j * stride + 2]
        expected[o, i, j] = (weights[o] * window).sum()
    region = problem.memory.region("y")
    y = final_image(row_wise_trace(problem))[region.base_address - problem.memory.base_address :][: region.n_bytes]
    assert np.allclose(y.view(np.float32).reshape(expected.shape), expected, atol=1e-5)
    made, l1, _, _, busy = gpu(problem, SMALL, element_bytes(problem))
    result = simulate_gpu_spmv(problem, SMALL)
    assert result.l1_accesses.sum() == sum(made.values())
    assert result.l1.load_line_misses == l1["load_line_misses"] and result.busy_cycles == busy


@pytest.mark.parametrize(
    ("matrix", "options", "message"),
    [
        (np.zeros((2, 3)), {}, "no stored element"),
        (np.ones((2, 3)), {"positions": [0, 1, 2, 3, 5, 5]}, "not a permutation"),
        (np.ones((2, 3)), {"positions": [0, 1, 3, 2, 4, 5]}, r"positions\[2\] moves an element of row 1 to row 0"),
        (np.ones((2, 3)), {"positions": [0, 1]}, "must be 6 whole numbers"),
        (np.ones((2, 300)), {"id_bits": 8}, "column id 299 does not fit id_bits 8"),
        (np.ones((2, 3)), {"vector_format": "int8"}, "unknown vector format"),
        (np.full((2, 3), np.nan), {}, "not finite"),
    ],
)
def test_what_is_no_product_is_refused(matrix, options, message):
    with pytest.raises(InputError, match=message):
        lay_out_spmv(matrix, np.ones(matrix.shape[1]), **options)


def test_shapes_and_specs_are_checked():
    with pytest.raises(InputError, match="one value per column"):
        lay_out_spmv(np.ones((2, 3)), np.ones(2))
    with pytest.raises(InputError, match="gpu sms"):
        GpuSpec(sms=0)


def shuffled(matrix, stride, rng):
    """Positions with the tuples of each stride of a row shuffled."""
    lengths = np.diff(matrix.indptr)
    within = np.arange(matrix.nnz) - np.repeat(matrix.indptr[:-1], lengths)
    block = within // stride if stride else within
    return np.lexsort((rng.random(matrix.nnz), block, np.repeat(np.arange(len(lengths)), lengths)))


def test_longer_strides_cost_coalescing():
    rng = np.random.default_rng(6)
    matrix = random_array((256, 2048), density=0.2, rng=rng, format="csr")
    x = rng.random(2048)

    def lay_out(stride):
        return lay_out_spmv(matrix, x, positions=shuffled(matrix, stride, np.random.default_rng(1)))

    accesses = [int(simulate_gpu_spmv(lay_out(stride)).l1_accesses[3]) for stride in (None, 32, 128, 512)]
    assert accesses[0] == accesses[1] < accesses[2] < accesses[3]  # a warp reads a stride of 32 in one step
    spec = GpuSpec()
    done = gpu_time(simulate_gpu_spmv(lay_out(32)), spec, "lpddr4-3200")
    assert done.time_ns >= done.dram.time_ns > 0
