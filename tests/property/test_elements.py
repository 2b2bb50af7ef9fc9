"""Each stream is encoded with the element of its own data; what a search of tuples charged is what the bus counts."""

import numpy as np
import pytest
import scipy.sparse as sp
from bitarray import bitarray
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import encoders_oracle as oracle
from oracles.spmv_oracle import row_wise_trace

import edgewatt as ew
from hwmodel.caches.spec import CacheSpec
from hwmodel.coding.chain import Chain
from hwmodel.coding.stage import Geometry
from hwmodel.coding.streams import StreamChain
from hwmodel.machine import BusSpec, Machine
from hwmodel.replay import replay
from papers.studies.spmv import lay_out_spmv
from traces.base.errors import InputError
from traces.trace.chunks import STREAMS

quick = settings(max_examples=40, deadline=None)
CHAINS = ("raw", "base-xor", "base-xor+dbi-dc", "base-xor-zdr+dbi-dc", "universal-xor", "base-xor+dbi-ac")


@quick
@given(st.sampled_from(CHAINS), st.integers(0, 2**32 - 1))
def test_the_chain_of_another_channel_starts_afresh_and_apart(encoder, seed):
    rng = np.random.default_rng(seed)
    kinds, data = rng.integers(0, 2, (3, 8)), rng.integers(0, 8, (3, 8 * 32), np.uint8)
    one, alone, later = (StreamChain(encoder, (4, 12), 2, 32) for _ in range(3))
    one.encode(data[0], kinds[0])
    other = one.fresh()
    for k in (1, 2):  # taking turns, neither sees the other's bytes
        assert np.array_equal(other.encode(data[k], kinds[k]).data, alone.encode(data[k], kinds[k]).data)
        later.encode(data[0], kinds[0]) if k == 1 else None
        assert np.array_equal(one.encode(data[k], kinds[k]).data, later.encode(data[k], kinds[k]).data)


@quick
@given(st.data(), st.sampled_from(CHAINS), st.sampled_from((32, 64)))
def test_blocks_are_encoded_with_their_own_element(data, encoder, block):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    sizes = data.draw(st.lists(st.sampled_from((1, 2, 4, 8, 5, 6, 12)), min_size=1, max_size=4))
    kinds = rng.integers(0, len(sizes), data.draw(st.integers(0, 12)))
    plain = np.cumsum(rng.integers(-3, 4, len(kinds) * block)).astype(np.uint8)
    chain = StreamChain(encoder, sizes, 2, block)
    cut = data.draw(st.integers(0, len(kinds)))
    pieces = [chain.encode(plain[: cut * block], kinds[:cut]), chain.encode(plain[cut * block :], kinds[cut:])]
    sent = np.concatenate([piece.data for piece in pieces])
    stage = encoder.split("+")[0]
    if len(set(sizes)) == 1 and sizes[0] in (1, 2, 4, 8):
        whole, _ = Chain(encoder, Geometry(sizes[0], 2, block)).encode(plain)
        assert (sent == whole.data).all()
        return
    if "dbi-ac" in encoder:
        return  # depends on what the lanes carried: the case of one size covers it
    for k, kind in enumerate(kinds):
        size = sizes[kind]
        if stage != "base-xor":
            size = max(n for n in (1, 2, 4, 8) if size % n == 0)
        mine = plain[k * block : (k + 1) * block].tobytes()
        want, flags = oracle.encode(mine, encoder, size, 2, block)
        assert sent[k * block : (k + 1) * block].tobytes() == want
        if pieces[0].flags is not None:
            given_flags = np.concatenate([piece.flags for piece in pieces])[k * block // 8 : (k + 1) * block // 8]
            bits = bitarray(endian="little")
            bits.frombytes(given_flags.tobytes())
            assert bits == flags


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 6),
    st.sampled_from(("int8", "fp8_e4m3", "fp16", "fp32")),
    st.sampled_from(("base-xor+dbi-dc", "base-xor", "dbi-dc", "raw")),
    st.integers(0, 2**32 - 1),
)
def test_ones_that_a_search_of_tuples_charged_are_counted_on_the_bus(blocks, value_format, encoder, seed):
    rng = np.random.default_rng(seed)
    rows, per_row = 2, 32 * blocks  # whole blocks of values and of ids
    columns = 40 + per_row
    matrix = np.zeros((rows, columns), np.float32)
    for row in range(rows):
        matrix[row, rng.choice(columns, per_row, replace=False)] = rng.integers(1, 90, per_row)
    csr = sp.csr_matrix(matrix)
    found = ew.order_tuples(csr, value_format=value_format, stride=16, encoder=encoder, effort=0.1)
    problem = lay_out_spmv(csr, np.ones(columns), positions=found.positions, value_format=value_format)
    machine = Machine((CacheSpec(2**18, 32, 8),), encoder, bus=BusSpec(2, 32))  # every line is fetched once
    ones = replay(row_wise_trace(problem), machine).run.wires.ones.sum(axis=1)
    assert ones[STREAMS.index("values")] == found.ones_values
    assert ones[STREAMS.index("ids")] == found.ones_ids


def test_elements_can_be_set_for_all_streams_or_for_some():
    chain = Machine((), "base-xor").encoder_chain({"ids": 2})
    data = np.arange(32, dtype=np.uint8)
    of = {name: chain.encode(data, np.array([STREAMS.index(name)])).data.tolist() for name in ("ids", "values")}
    expected = {n: Chain("base-xor", Geometry(n)).encode(data)[0].data.tolist() for n in (1, 2, 4, 8)}
    assert of == {"ids": expected[2], "values": expected[4]}
    for element, want in ((8, 8), ({"ids": 1}, 1)):
        chain = Machine((), "base-xor", element).encoder_chain({"ids": 2})
        assert chain.encode(data, np.array([STREAMS.index("ids")])).data.tolist() == expected[want]


@pytest.mark.parametrize(
    ("element", "words"),
    [
        (3, "elements have 1, 2, 4 or 8 bytes"),
        ({"idz": 2}, "unknown stream 'idz'.*did you mean 'ids'"),
        ({"ids": 0}, "element_bytes of ids must be a whole number of at least 1"),
        ("4", "element_bytes: '4' is a str, wanted: int"),
    ],
)
def test_senseless_elements_are_refused(element, words):
    with pytest.raises(InputError, match=words):
        Machine((), "base-xor", element)
