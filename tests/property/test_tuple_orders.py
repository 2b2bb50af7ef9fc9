"""Tuple orders against plain oracles: costs, greedy, exact; bounds below, permutations inside strides, determinism."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import cdr_oracle as oracle

import edgewatt as ew
from reorder.tuples import TUPLE_ORDERS, order_tuples
from reorder.tuples.matrix import stride_bounds
from traces.formats import to_bits

quick = settings(max_examples=40, deadline=None)
FORMATS = ("fp16", "bf16", "int8", "fp32", "fp8_e4m3", "int4")


@st.composite
def matrices(draw, most_rows=6, most_columns=40):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = (draw(st.integers(1, most_rows)), draw(st.integers(1, most_columns)))
    dense = rng.normal(0, 0.01, shape) * (rng.random(shape) < draw(st.sampled_from((0.1, 0.4, 0.9))))
    return sp.csr_matrix(dense.astype(np.float32))


def windows(bounds):
    return list(zip(bounds.tolist(), bounds[1:].tolist(), strict=False))


@quick
@given(matrices(), st.sampled_from(FORMATS[:-1]), st.booleans(), st.sampled_from((32, 64, None)))
def test_costs_match_the_oracle_and_the_encoders(matrix, value_format, dbi, interval):
    encoder = "base-xor+dbi-dc" if dbi else "base-xor"
    got = order_tuples(
        matrix,
        value_format=value_format,
        stride=8,
        encoder=encoder,
        method="greedy",
        base_interval="matrix" if interval is None else interval,
    )
    bits = to_bits(matrix.data, value_format)[0]
    size = bits.dtype.itemsize
    values, ids = bits[got.positions], matrix.indices[got.positions].astype(np.uint16)
    want = [
        oracle.array_ones(values.tolist(), size, interval, dbi),
        oracle.array_ones(ids.tolist(), 2, interval, dbi),
    ]
    assert [got.ones_values, got.ones_ids] == want
    if interval:
        for array, element, ones in ((values, size, want[0]), (ids, 2, want[1])):
            assert ew.encode(array, encoder, element_bytes=element, block_bytes=interval).ones == ones
    fields = [(bits.tolist(), size), (matrix.indices.tolist(), 2)]
    cuts = stride_bounds(np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), 8, "row", rows_may_mix=False)
    assert got.positions.tolist() == oracle.greedy(fields, windows(cuts), interval, dbi)
    assert got.lower_bound <= got.cost


@quick
@given(matrices(1, 7), st.sampled_from(("fp16", "int8", "fp32")))
def test_search_is_between_the_optimum_and_the_greedy_order(matrix, value_format):
    bits = to_bits(matrix.data, value_format)[0]
    fields = [(bits.tolist(), bits.dtype.itemsize), (matrix.indices.tolist(), 2)]
    best = oracle.exact(fields, (0, matrix.nnz), [])
    got, greedy = (order_tuples(matrix, value_format=value_format, stride="row", method=method)
                   for method in ("local-search", "greedy"))  # fmt: skip
    assert got.lower_bound <= best <= got.cost <= greedy.cost


@quick
@given(
    matrices(),
    st.sampled_from(FORMATS),
    st.sampled_from(("csr", "csc", "coo")),
    st.sampled_from((1, 2, 5, 16, "row")),
    st.sampled_from(("row", "continuous")),
    st.sampled_from(list(TUPLE_ORDERS)),
)
def test_tuples_stay_in_their_strides_and_the_matrix_stays_the_same(
    matrix, value_format, layout, stride, restart, method
):
    if method == "exact" and stride in (16, "row"):
        stride = 5
    kind = dict(value_format=value_format, layout=layout, stride=stride, stride_restart=restart, method=method)
    got = order_tuples(matrix, **kind)
    major = got.entries.major
    cuts = stride_bounds(major, stride, restart, rows_may_mix=layout == "coo")
    for a, b in windows(cuts):
        assert sorted(got.positions[a:b].tolist()) == list(range(a, b))
    assert abs(got.matrix() - matrix).nnz == 0
    if value_format != "int4":
        assert got.lower_bound <= got.cost
    if stride == 1:
        assert (got.positions == np.arange(matrix.nnz)).all()
    if method == "local-search":
        assert got.cost <= order_tuples(matrix, **{**kind, "method": "greedy"}).cost


@quick
@given(
    matrices(1, 6),
    st.sampled_from(("fp16", "int8", "fp32")),
    st.sampled_from(("raw", "dbi-dc", "base-xor", "base-xor+dbi-dc")),
    st.sampled_from(((1.0, 0.0), (3.0, 1.0), (0.0, 2.0))),
)
def test_the_bound_on_energy_is_below_every_order(matrix, value_format, encoder, energy_pj):
    kind = dict(value_format=value_format, metric="energy", encoder=encoder, energy_pj=energy_pj)
    got = order_tuples(matrix, stride="row", **kind)
    best = min(
        order_tuples(got_in(matrix, order), stride=1, method="sort", **kind).cost
        for order in itertools.permutations(range(matrix.nnz))
    )
    assert got.lower_bound <= best + 1e-9 and best <= got.cost + 1e-9


def got_in(matrix, order):
    """A matrix of one row with its entries stored in an order."""
    order = np.array(order, np.int64)
    return sp.csr_matrix((matrix.data[order], matrix.indices[order], matrix.indptr), shape=matrix.shape)


@quick
@given(matrices(), st.sampled_from((("fp32", 4), ("int8", 1), ("fp16", 1), ("fp32", 2))), st.booleans())
def test_toggles_are_those_of_the_bus(matrix, kind, dbi):
    value_format, lanes = kind
    encoder = "dbi-dc" if dbi else "raw"
    got = order_tuples(
        matrix,
        value_format=value_format,
        stride="row",
        encoder=encoder,
        metric="toggles",
        objective="values",
        bus_bytes=lanes,
    )
    values = to_bits(matrix.data, value_format)[0][got.positions]
    assert got.cost == ew.encode(values, encoder, element_bytes=values.itemsize, bus_bytes=lanes).toggles
    assert got.cost <= got.original_cost


@quick
@given(matrices(), st.sampled_from(("raw", "dbi-dc", "base-xor", "base-xor+dbi-dc")))
def test_int4_sends_two_values_a_byte(matrix, encoder):
    """Toggles were those of a byte a value, beside ones of packed bytes."""
    given = dict(value_format="int4", stride="row", encoder=encoder, objective="values", block_bytes=8)
    bits = to_bits(matrix.data, "int4")[0].astype(np.uint8)
    for metric in ("toggles", "energy"):
        got = order_tuples(matrix, metric=metric, energy_pj=(1.0, 0.0) if metric == "energy" else None, **given)
        packed = np.append(bits[got.positions], np.zeros(matrix.nnz % 2, np.uint8))
        packed = packed[0::2] | packed[1::2] << 4
        sent = ew.encode(packed, encoder, element_bytes=1, bus_bytes=1, block_bytes=8)
        assert got.cost == (sent.toggles if metric == "toggles" else sent.ones)


def test_the_result_does_not_depend_on_the_number_of_workers(monkeypatch):
    import reorder.tuples.groups as parallel

    monkeypatch.setattr(parallel, "GROUP_TUPLES", 200)
    matrix = sp.random(30, 100, 0.3, random_state=1, format="csr", dtype=np.float32)
    one, two = (order_tuples(matrix, value_format="fp16", stride=16, effort=0.2, workers=w) for w in (1, 2))
    assert (one.positions == two.positions).all() and one.lower_bound == two.lower_bound
    again = order_tuples(matrix, value_format="fp16", stride=16, effort=0.2, seed=1)
    assert (one.positions != again.positions).any()


STORED = (  # how the pieces that workers get may be stored: bases and strides across their ends
    {"stride": 16},
    {"stride": "row"},
    {"stride": 24, "base_interval": "row"},
    {"stride": 24, "base_interval": "matrix", "layout": "csc"},
    {"stride": "matrix", "layout": "coo"},
    {"stride": 40, "layout": "coo", "stride_restart": "continuous"},
    {"stride": 32, "metric": "toggles", "encoder": "dbi-dc"},
    {"stride": 32, "metric": "energy", "energy_pj": (1.0, 2.0)},
)


@given(
    st.sampled_from(STORED),
    st.sampled_from(("fp16", "fp32", "int8", "int4")),
    st.integers(0, 2**32 - 1),
    st.integers(1, 90),
)
def test_pieces_are_ordered_and_bounded_as_the_whole(kind, value_format, seed, group):
    """What a worker gets of a matrix is enough: group by group gives what the group gives inside the whole problem."""
    import reorder.tuples.groups as parallel
    from reorder.tuples.base import TUPLE_ORDERS
    from reorder.tuples.cost import lower_bounds
    from reorder.tuples.tuple_order import Storage, WireRequest, stored_tuples

    kind = {**kind, "stride": 8} if value_format == "fp32" and kind.get("metric") == "toggles" else dict(kind)
    matrix = sp.random(9, 40, 0.4, random_state=np.random.default_rng(seed), format="csr", dtype=np.float32)
    storage = Storage(
        kind.get("layout", "csr"), value_format, 16, kind["stride"], kind.get("stride_restart", "row"),
    )  # fmt: skip
    wires = WireRequest(
        kind.get("encoder", "base-xor+dbi-dc"), 32, kind.get("base_interval"), "joint", kind.get("metric", "ones"),
        None, kind.get("energy_pj"),
    )  # fmt: skip
    problem = stored_tuples(matrix, storage, wires)[0]
    entry = TUPLE_ORDERS["local-search"]
    parameters = entry.make_parameters({"effort": 0.3})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "GROUP_TUPLES", group)
        found = parallel.order_all(problem, "local-search", seed=5, parameters=parameters)
        whole = np.arange(problem.size)
        for first, last in parallel.groups(problem):
            order = np.arange(problem.size)
            entry.item.order(problem, order, first, last, 5, parameters, lambda *told: None)
            start, stop = problem.bounds[first], problem.bounds[last]
            whole[start:stop] = order[start:stop]
        assert (found == whole).all()
        pieces = lower_bounds(problem, found)
    assert pieces == lower_bounds(problem, found)  # of one group, which is the whole


def test_a_killed_run_continues(tmp_path, monkeypatch):
    import reorder.tuples.groups as parallel

    monkeypatch.setattr(parallel, "GROUP_TUPLES", 300)
    matrix = sp.random(30, 100, 0.3, random_state=1, format="csr", dtype=np.float32)
    file = tmp_path / "kept.npz"
    kind = dict(value_format="fp16", stride=16, effort=0.1)

    def killed(done, total, text):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        order_tuples(matrix, **kind, checkpoint=file, progress=killed)
    assert len(file.read_text().splitlines()) == 2
    done = []
    resumed = order_tuples(matrix, **kind, checkpoint=file, progress=lambda d, t, x: done.append(d))
    assert done[0] > 300
    assert (resumed.positions == order_tuples(matrix, **kind).positions).all()


def test_a_row_longer_than_one_search_gets_below_greedy():
    rng = np.random.default_rng(5)
    columns = np.cumsum(rng.integers(1, 6, 4500)) - 1
    matrix = sp.csr_matrix((rng.standard_normal(4500).astype(np.float32), columns, [0, 4500]), (1, 30_000))
    asked = {"value_format": "fp16", "stride": "row", "bound": False}
    found = order_tuples(matrix, effort=0, **asked)
    assert sorted(found.positions) == list(range(4500))
    assert found.cost < order_tuples(matrix, method="greedy", **asked).cost
