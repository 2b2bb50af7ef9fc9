"""Replay must move the right bytes: what memory holds at each burst decides, on any hierarchy."""

import numpy as np
import pytest
from hypothesis import given, settings
from machine_strategies import a_trace, hierarchies
from oracles.levels import simulate_levels
from oracles.trace_oracle import networks

from hwmodel.caches.spec import CacheSpec
from hwmodel.coding.codec import encode
from hwmodel.machine import BusSpec, Machine
from hwmodel.replay import replay
from hwmodel.replay.hierarchy import burst_trace, open_hierarchy
from traces.base.errors import InputError
from traces.trace.build import final_image
from traces.trace.chunks import STREAMS, Chunk, Memory, Trace, slices


def bursts_of(trace, machine):
    hierarchy = open_hierarchy(trace, machine)
    parts = [hierarchy.feed(chunk) for chunk in slices(trace, 50)]
    return [*parts, *hierarchy.flush()]


@settings(max_examples=120, deadline=None)
@given(networks, hierarchies())
def test_every_burst_carries_what_memory_holds_and_the_end_is_the_final_image(made, machine):
    trace = a_trace(made)
    parts = bursts_of(trace, machine)
    low, total, n = trace.memory.base_address, trace.memory.total_bytes, machine.bus.block_bytes
    memory = np.zeros(low + total + 4096, np.uint8)
    memory[low : low + total] = trace.memory.image
    for bursts in parts:
        for i, data in enumerate(bursts.data.reshape(-1, n)):
            at = int(bursts.address[i])
            if bursts.is_write[i]:
                memory[at : at + n] = data
            else:
                assert np.array_equal(memory[at : at + n], data)
    assert np.array_equal(memory[low : low + total], final_image(trace))


@settings(max_examples=40, deadline=None)
@given(networks, hierarchies("base-xor+dbi-dc", element_bytes=4))
def test_counts_equal_the_parts_taken_one_by_one(made, machine):
    trace = a_trace(made)
    result = replay(trace, machine)
    op, address, size, stream = (
        np.concatenate([getattr(chunk, name) for chunk in trace]) for name in ("op", "address", "size", "stream")
    )
    assert result.caches[:1] == simulate_levels(op, address, size, machine.caches)[:1]
    for name, s in (("inputs", 0), ("outputs", 1)):
        number = STREAMS.index(name)
        assert (result.stores if s else result.loads)[number] == np.count_nonzero((stream == number) & (op == s))
    parts = bursts_of(trace, machine)
    data = np.concatenate([bursts.data for bursts in parts])
    whole = encode(data, "base-xor+dbi-dc", element_bytes=machine.element_bytes, bus_bytes=2, block_bytes=8)
    assert (result.total.ones, result.total.toggles) == (whole.ones, whole.toggles)
    assert np.array_equal(result.total.wires.ones.sum(axis=0), whole.wires.ones)
    assert result.total.reads.sum() == sum(int((bursts.is_write == 0).sum()) for bursts in parts)


@settings(max_examples=20, deadline=None)
@given(networks, hierarchies())
def test_addresses_alone_make_the_same_counts(made, machine):
    trace = a_trace(made)
    chunks = [Chunk(c.address, c.size, c.op, np.full(len(c), STREAMS.index("external"), np.uint8)) for c in trace]
    memory = Memory(trace.memory.base_address, trace.memory.total_bytes, None)
    bare, full = replay(Trace.from_chunks(chunks, memory), machine), replay(trace, machine)
    assert bare.caches == full.caches and bare.run.ones is None
    for name in ("reads", "writes"):
        assert getattr(bare.total, name).sum() == getattr(full.total, name).sum()


@settings(max_examples=20, deadline=None)
@given(networks, hierarchies())
def test_bursts_played_without_a_cache_are_the_same_traffic(made, machine):
    trace = a_trace(made)
    whole = replay(trace, machine)
    again = replay(burst_trace(trace, machine), Machine((), bus=machine.bus))
    assert (again.total.ones, again.total.toggles) == (whole.total.ones, whole.total.toggles)
    assert np.array_equal(again.total.reads, whole.total.reads)
    assert np.array_equal(again.total.writes, whole.total.writes)


def test_write_backs_belong_to_the_stream_of_the_last_store():
    rng = np.random.default_rng(4)
    trace = a_trace((rng, "relu"))
    result = replay(trace, Machine((CacheSpec(1 << 20, 64, 8),), bus=BusSpec(2, 32)))
    assert result.run.writes.sum() == 0
    written = {name for name, n in zip(STREAMS, result.flush.writes, strict=True) if n}
    assert written <= {"partial_sums", "outputs"} and "outputs" in written


def test_an_access_outside_the_memory_is_refused():
    trace = a_trace((np.random.default_rng(4), "relu"))
    far = [Chunk(c.address + np.uint64(1 << 20), c.size, c.op, c.stream, c.payload_offset, c.payload) for c in trace]
    with pytest.raises(InputError, match=r"access 0: 8 bytes at 0x10000c lie outside the trace's memory"):
        replay(Trace.from_chunks(far, trace.memory), Machine((CacheSpec(1024, 64, 2),)))
