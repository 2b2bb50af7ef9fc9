"""Rows in int8: a finished value is a byte a lane, a partial sum four, wherever one moves."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.bytes_oracle import Values, accesses, transfers
from oracles.moves import io_moves
from oracles.trace_oracle import random_network, topological_order

import edgewatt as ew
from hwmodel.caches.spec import CacheSpec
from hwmodel.dram.controller import ControllerSpec
from hwmodel.energy.onchip import onchip_energy
from hwmodel.energy.technology import load_technology
from hwmodel.fastmemory.iomodel import count_io
from hwmodel.fastmemory.scratchpad import Scratchpad, ScratchpadSpec
from hwmodel.machine import EngineSpec, Machine
from hwmodel.replay import replay
from hwmodel.system.simulation import simulate
from traces.base.errors import InputError
from traces.layout.kind import LAYOUTS
from traces.layout.settings import Layout
from traces.networks.quantization import quantized_network
from traces.trace.build import build_trace, stored_activations
from traces.trace.chunks import STREAMS

ROWS = [STREAMS.index(name) for name in ("inputs", "partial_sums", "outputs")]
KINDS = [name for name in LAYOUTS if LAYOUTS[name].item.runs_of != "source"]


@st.composite
def cases(draw):
    """A network in 8 bits, an order, its layout and input vectors."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    network = random_network(rng, activation=draw(st.sampled_from(["identity", "relu"])))
    kind = draw(st.sampled_from([*KINDS, "csc"]))
    by_rows = LAYOUTS[kind].item.runs_of is not None
    edges = topological_order(network, rng, rows=by_rows)
    if kind == "csc":
        kind = "coo"
    layout = Layout(kind=kind, value_format="int8", neuron_format="int8", lanes=draw(st.sampled_from([1, 3, 16, 80])),
                    registers=draw(st.sampled_from(["run", "run", "none"])))  # fmt: skip
    vectors = rng.standard_normal((draw(st.integers(1, 5)), len(network.inputs))).astype(np.float32)
    return network, edges, layout, vectors


def padded(vectors, lanes):
    """Vectors of each pass; lanes without one have inputs of 0."""
    n_passes = -(-len(vectors) // lanes)
    whole = np.zeros((n_passes * lanes, vectors.shape[1]), np.float32)
    whole[: len(vectors)] = vectors
    return whole.reshape(n_passes, lanes, -1)


def rows_of(trace):
    """(stream, store, bytes) of each access to a row, and its address."""
    for chunk in trace:
        for k in np.flatnonzero(np.isin(chunk.stream, ROWS)).tolist():
            payload = chunk.payload[chunk.payload_offset[k] : chunk.payload_offset[k + 1]]
            yield (STREAMS[chunk.stream[k]], int(chunk.op[k]), payload.tobytes()), int(chunk.address[k])


@settings(max_examples=200)
@given(cases())
def test_every_access_carries_a_byte_or_a_sum(case):
    network, edges, layout, vectors = case
    trace = build_trace(network, edges, layout=layout, inputs=vectors)
    quantized = quantized_network(network, vectors)
    found = list(rows_of(trace))
    wanted, neurons, held = [], [], []
    for one in padded(vectors, layout.lanes):
        made = list(accesses(network, edges, quantized, one, registers=layout.registers == "run"))
        wanted += [(stream, store, data) for stream, _, store, data in made]
        neurons += [(neuron, stream == "partial_sums", len(held)) for stream, neuron, *_ in made]
        last = Values(network, quantized, one)
        for e in edges:
            last.add(int(e))
        held.append(last.held)
    if layout.kind != "ell":  # whose padding makes accesses of its own
        assert [one for one, _ in found] == wanted
        places = {}
        for (_, address), where in zip(found, neurons, strict=True):
            assert places.setdefault(where, address) == address  # a value has one address, a sum another
        assert len(set(places.values())) == len(places)
    values = np.array(held, np.float32).transpose(0, 2, 1).reshape(-1, network.n_neurons) - quantized.zero
    finished = network.in_degree > 0
    found_values = stored_activations(trace, network.n_neurons, "int8")
    assert np.array_equal(found_values[:, finished], (values * quantized.scale)[: len(vectors), finished])


@settings(max_examples=200)
@given(cases(), st.integers(3, 12), st.sampled_from(["min", "lru", "rr"]), st.sampled_from(["literal", "pin_both"]),
       st.booleans())  # fmt: skip
def test_a_scratchpad_moves_the_rows_counted_in_their_widths(case, memory, policy, pinning, timed):
    network, edges, layout, vectors = case
    if layout.kind == "ell":
        layout = replace(layout, kind="tuples")
    trace = build_trace(network, edges, layout=layout, inputs=vectors)
    quantized, lanes = quantized_network(network, vectors), layout.lanes
    spec = ScratchpadSpec(256 + 4 * lanes * (memory - 1), policy, pinning, stream_bytes=256)  # a sum has 4 bytes a lane
    machine = Machine(scratchpad=spec)
    moves = io_moves(network, edges, memory=memory, policy=policy, pinning=pinning)
    listed = list(zip(moves.step.tolist(), moves.neuron.tolist(), moves.kind.tolist(), strict=True))
    wanted = [(stream, store, data) for one in padded(vectors, lanes)
              for stream, _, store, data in transfers(network, edges, quantized, one, listed)]  # fmt: skip
    assert [one for one, _ in rows_of(Scratchpad(trace, spec, EngineSpec()).transfers.trace)] == wanted

    found = replay(trace, machine)
    counts, io = found.scratchpad, count_io(network, edges, memory=memory, policy=policy, pinning=pinning)
    assert counts.memory == memory
    assert (counts.reads_neurons, counts.writes_live, counts.writes_outputs) == (
        io.reads_neurons, io.writes_live, io.writes_outputs,
    )  # fmt: skip
    for stream in ("inputs", "partial_sums", "outputs"):
        at = STREAMS.index(stream)
        width = (4 if stream == "partial_sums" else 1) * lanes
        for store, (rows, n_bytes) in enumerate(((found.loads, found.load_bytes), (found.stores, found.store_bytes))):
            sizes = [len(data) for name, op, data in wanted if (name, op) == (stream, store)]
            assert set(sizes) <= {width}
            assert (int(rows[at]), int(n_bytes[at])) == (len(sizes), sum(sizes))
    if timed:
        in_time = simulate(trace, replace(machine, part="lpddr4-3200")).counts
        assert in_time.scratchpad == counts
        assert np.array_equal(in_time.load_bytes, found.load_bytes)
        assert np.array_equal(in_time.store_bytes, found.store_bytes)


@settings(max_examples=60)
@given(cases(), st.integers(0, 2))
def test_replay_and_system_agree_through_caches(case, ways):
    network, edges, layout, vectors = case
    trace = build_trace(network, edges, layout=layout, inputs=vectors)
    machine = Machine(caches=(CacheSpec(512 << ways, 64, 1 << ways),), encoder="base-xor+dbi-dc", part="lpddr4-3200")
    machine = replace(machine, controller=ControllerSpec(scheduler="fcfs", refresh="none"))
    timed, counted = simulate(trace, machine).counts, replay(trace, machine)
    for name in ("loads", "stores", "load_bytes", "store_bytes"):
        assert np.array_equal(getattr(timed, name), getattr(counted, name))
    assert timed.caches == counted.caches
    for name in ("ones", "toggles", "rising"):
        assert np.array_equal(getattr(timed.run.way_wires, name), getattr(counted.run.way_wires, name))


def test_whole_numbers_are_those_of_compile_inference():
    rng = np.random.default_rng(3)
    for _ in range(20):
        network = random_network(rng, whole_numbers=True)
        edges = topological_order(network, rng, rows=False)
        layout = Layout(kind="tuples", value_format="int8", neuron_format="int8", lanes=4)
        trace = build_trace(network, edges, layout=layout, inputs=network.batch)
        wanted = ew.compile_inference(network, edges, dtype="int8", lanes=4).neurons(network.batch)
        fed = network.in_degree > 0
        assert np.array_equal(stored_activations(trace, network.n_neurons, "int8")[:, fed], wanted[:, fed])


def test_an_access_on_chip_costs_what_its_width_costs():
    network = random_network(np.random.default_rng(1))
    layout = Layout(kind="tuples", value_format="int8", neuron_format="int8", lanes=16)
    machine = Machine(scratchpad=ScratchpadSpec(8192), technology="lop-45nm")
    result = replay(build_trace(network, layout=layout, batch=16), machine)
    counts, pad = result.scratchpad, load_technology("lop-45nm")
    rows = {row.term: row for row in onchip_energy(result, machine, 0.0).memory}
    value, sums = pad.scratchpad(8192, 16), pad.scratchpad(8192, 64)
    pieces = 64 // sums.block_bytes
    read = (counts.rows_read - counts.sums_read) * value.read_pj + counts.sums_read * pieces * sums.read_pj
    written = (
        counts.rows_written - counts.sums_written
    ) * value.write_pj + counts.sums_written * pieces * sums.write_pj
    assert rows["scratchpad_read"].energy_pj == pytest.approx(read)
    assert rows["scratchpad_write"].energy_pj == pytest.approx(written)
    assert counts.sums_written < counts.rows_written and counts.sums_read < counts.rows_read


@settings(max_examples=40)
@given(cases(), st.sampled_from(["ids", "slots"]))
def test_slots_name_the_same_rows(case, addressing):
    network, edges, layout, vectors = case
    trace = build_trace(network, edges, layout=replace(layout, kind="tuples"), inputs=vectors)
    size = 256 + 4 * layout.lanes * 6
    spec = ScratchpadSpec(size, stream_bytes=256, addressing=addressing)
    plain = replay(trace, Machine(scratchpad=ScratchpadSpec(size, stream_bytes=256)))
    found = replay(trace, Machine(scratchpad=spec))
    assert np.array_equal(found.load_bytes[ROWS], plain.load_bytes[ROWS])
    assert np.array_equal(found.store_bytes, plain.store_bytes)


def test_memory_of_a_scratchpad_has_room_for_sums():
    layout = Layout(kind="tuples", value_format="int8", neuron_format="int8", lanes=16)
    network = random_network(np.random.default_rng(1))
    found = replay(build_trace(network, layout=layout, batch=16), Machine(scratchpad=ScratchpadSpec(8192)))
    assert found.scratchpad.memory == (8192 - 1024) // 64 + 1
    assert (found.scratchpad.row_bytes, found.scratchpad.sum_row_bytes) == (16, 64)


CONFIG = {
    "network": {"file": "configs/examples/networks/digits_small.npz"}, "orderings": ["two-optimal"],
    "layout": {"kind": "tuples", "neuron_format": "int8"},
}  # fmt: skip


def test_weights_are_in_int8_too():
    with pytest.raises(InputError, match="neuron_format int8 needs weights in int8, not fp16"):
        build_trace(random_network(np.random.default_rng(1)), layout=Layout(neuron_format="int8", value_format="fp16"))
    with pytest.raises(InputError, match="neuron_format int8 needs formats int8, not fp32"):
        ew.run(CONFIG)


@pytest.mark.parametrize("system", ["scratchpad-8k", "edge"])
def test_a_configuration_runs_in_int8(system):
    (record,) = ew.run({**CONFIG, "system": system, "formats": ["int8"]})
    energy = record.results["energy_pj"]
    assert energy["dynamic"] + energy["static"] == pytest.approx(energy["total"])
    assert sum(record.results["bound_by"].values()) == pytest.approx(1)
