"""The system adds time, not counts: it agrees with replay on whatever was served, in the order it was served."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodel.caches.hierarchy import CacheHierarchy
from hwmodel.dram.engine import ControllerSpec, load_part, simulate_dram
from hwmodel.machine import BusSpec, CacheSpec, EngineSpec, Machine
from hwmodel.replay import Wires, replay
from hwmodel.system.simulation import simulate
from traces.access.partition import partition
from traces.access.trace import STREAMS, Chunk, Memory, Trace

PART = load_part("lpddr4-3200")
FOOTPRINT = 1 << 13


def random_trace(seed, n_accesses, *, footprint=FOOTPRINT, chunk=500):
    """Loads and stores of 4 bytes that say what memory holds, or will hold, there."""
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 256, footprint).astype(np.uint8)
    now, chunks = image.copy(), []
    for start in range(0, n_accesses, chunk):
        n = min(chunk, n_accesses - start)
        address = rng.integers(0, footprint // 4, n).astype(np.uint64) * np.uint64(4)
        op = (rng.random(n) < 0.3).astype(np.uint8)
        payload = np.empty((n, 4), np.uint8)
        for i in range(n):
            at = slice(int(address[i]), int(address[i]) + 4)
            if op[i]:
                now[at] = rng.integers(0, 256, 4)
            payload[i] = now[at]
        stream = rng.integers(0, len(STREAMS), n).astype(np.uint8)
        offset = np.arange(n + 1, dtype=np.int64) * 4
        chunks.append(Chunk(address, np.full(n, 4, np.uint8), op, stream, offset, payload.reshape(-1)))
    return Trace.from_chunks(chunks, Memory(0, footprint, image))


def a_machine(encoder="dbi-dc", **controller):
    return Machine(
        (CacheSpec(1024, 64, 2),),
        encoder=encoder,
        bus=BusSpec(2, 32),
        part=PART,
        controller=ControllerSpec(**controller),
        engine=EngineSpec(outstanding_misses=4, accesses_per_ns=0.5),
    )


def assert_same_wires(a, b):
    for name in ("ones", "toggles", "rising"):
        assert np.array_equal(getattr(a, name), getattr(b, name))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 2000), st.sampled_from(("raw", "dbi-dc", "base-xor+dbi-dc", "dbi-ac")))
def test_one_engine_in_order_counts_as_replay_does(seed, n, encoder):
    trace, machine = random_trace(seed, n), a_machine(encoder, scheduler="fcfs", refresh="none")
    counted, timed = replay(trace, machine), simulate(trace, machine)
    assert counted.caches == timed.counts.caches
    for name in ("loads", "stores", "load_bytes", "store_bytes"):
        assert np.array_equal(getattr(counted, name), getattr(timed.counts, name))
    for a, b in ((counted.run, timed.counts.run), (counted.flush, timed.counts.flush)):
        assert np.array_equal(a.reads, b.reads) and np.array_equal(a.writes, b.writes)
    assert_same_wires(counted.total.way_wires, timed.counts.total.way_wires)
    assert counted.dram.commands == timed.dram.commands


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3000), st.integers(1, 3), st.integers(1, 200))
def test_the_served_order_replayed_gives_the_same_counts(seed, n, engines, block):
    trace = random_trace(seed, n)
    machine = replace(a_machine(), engine=EngineSpec(outstanding_misses=16, accesses_per_ns=8.0))
    traces = partition(trace, np.random.default_rng(seed).integers(0, engines, n), engines)
    timed = simulate(traces, machine, block_requests=block, interleave_accesses=64, keep=True)
    requests = timed.requests
    assert len(requests.address) == int(timed.counts.total.reads.sum() + timed.counts.total.writes.sum())
    if engines == 1:
        hierarchy = CacheHierarchy(machine, trace.memory)
        bursts = [*(hierarchy.feed(chunk) for chunk in trace), *hierarchy.flush()]
        data = np.concatenate([b.data for b in bursts]).reshape(-1, 32)
        order = requests.served[0]
        wires = Wires(machine)
        wires.send(data[order].reshape(-1), requests.stream[order], requests.is_write[order])
        zero = np.zeros(len(STREAMS), np.int64)
        assert_same_wires(wires.traffic(zero, zero).way_wires, timed.counts.total.way_wires)
    # Offered at the cycles of their acceptance, the requests alone make the controller do the same.
    at = np.argsort(requests.accept_cycle, kind="stable")
    alone = simulate_dram(
        requests.address[at],
        requests.is_write[at],
        requests.accept_cycle[at],
        part=PART,
        controller=machine.memory_controller(),
    )
    assert alone.commands == timed.dram.commands
    assert np.array_equal(alone.done_cycle, requests.done_cycle[at])
    assert timed.dram.energy_pj == alone.energy_pj


def test_block_size_changes_nothing():
    trace, machine = random_trace(5, 4000), a_machine()
    results = [simulate(trace, machine, block_requests=n) for n in (1, 64, 10_000)]
    for other in results[1:]:
        assert other.total_cycles == results[0].total_cycles
        assert other.dram.commands == results[0].dram.commands
        assert_same_wires(other.counts.total.wires, results[0].counts.total.wires)


def test_more_outstanding_misses_and_more_engines_are_not_slower():
    trace = random_trace(1, 6000, footprint=1 << 15)
    cycles = []
    for misses in (1, 2, 4, 16):
        engine = EngineSpec(outstanding_misses=misses, accesses_per_ns=4.0)
        cycles.append(simulate(trace, replace(a_machine(), engine=engine)).total_cycles)
    assert cycles == sorted(cycles, reverse=True) and cycles[0] > 1.5 * cycles[-1]
    slow = replace(a_machine(), engine=EngineSpec(outstanding_misses=1, accesses_per_ns=4.0))
    halves = partition(trace, np.arange(6000) % 2)
    assert simulate(halves, slow, interleave_accesses=32).total_cycles < cycles[0]


def test_an_engine_that_computes_slowly_never_stalls_long():
    trace = random_trace(2, 500)
    engine = EngineSpec(outstanding_misses=8, accesses_per_ns=0.001)
    run = simulate(trace, replace(a_machine(), engine=engine)).engines[0]
    assert run.compute_cycles == int(500 / 0.001 / PART.tck_ns)
    assert run.stall_cycles < 0.01 * run.compute_cycles


def test_partition_keeps_every_access_with_its_bytes():
    trace = random_trace(3, 1200)
    engine = np.random.default_rng(0).integers(0, 3, 1200)
    parts = partition(trace, engine)
    whole = np.concatenate([c.payload.reshape(-1, 4) for c in trace])
    for e, part in enumerate(parts):
        assert np.array_equal(np.concatenate([c.payload.reshape(-1, 4) for c in part]), whole[engine == e])


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda t: simulate([], a_machine()), "at least one trace"),
        (lambda t: simulate(t, replace(a_machine(), part=None)), "DRAM part"),
        (lambda t: simulate([t, random_trace(9, 10)], a_machine()), "share one memory"),
        (lambda t: simulate(t, a_machine(), block_requests=0), "at least 1"),
        (lambda t: partition(t, np.zeros(3, int)), "3 entries"),
        (lambda t: partition(t, -np.ones(10, int)), "from 0"),
    ],
)
def test_what_does_not_fit_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call(random_trace(4, 10))
