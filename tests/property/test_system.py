"""The system adds time, not counts: it agrees with replay on whatever was served, in the order it was served."""

from dataclasses import fields, replace

import numpy as np
import pytest
from dram_parts import with_channels
from hypothesis import given, settings
from hypothesis import strategies as st
from random_traces import random_trace

from hwmodel.caches.spec import CacheSpec
from hwmodel.dram.engine import ControllerSpec, load_part, simulate_dram
from hwmodel.machine import BusSpec, EngineSpec, Machine
from hwmodel.replay import replay
from hwmodel.replay.bus_traffic import Wires, wire_traffic
from hwmodel.replay.hierarchy import CacheHierarchy
from hwmodel.system.simulation import simulate
from traces.base.errors import InputError
from traces.trace.chunks import STREAMS, Chunk, Memory, Trace
from traces.trace.partition import partition

PART = load_part("lpddr4-3200")


def a_machine(encoder="dbi-dc", *, part=PART, **controller):
    return Machine(
        (CacheSpec(1024, 64, 2),),
        encoder=encoder,
        bus=BusSpec(2, 32),
        part=part,
        controller=ControllerSpec(**controller),
        engine=EngineSpec(outstanding_misses=4, accesses_per_ns=0.5),
    )


def assert_same_wires(a, b):
    for name in ("ones", "toggles", "rising"):
        assert np.array_equal(getattr(a, name), getattr(b, name))


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(0, 2000),
    st.sampled_from(("raw", "dbi-dc", "base-xor+dbi-dc", "dbi-ac")),
    st.sampled_from((1, 2, 4, 8)),
)
def test_one_engine_in_order_counts_as_replay_does(seed, n, encoder, channels):
    part = with_channels(channels)
    trace, machine = random_trace(seed, n), a_machine(encoder, part=part, scheduler="fcfs", refresh="none")
    counted, timed = replay(trace, machine), simulate(trace, machine)
    assert counted.caches == timed.counts.caches
    for name in ("loads", "stores", "load_bytes", "store_bytes"):
        assert np.array_equal(getattr(counted, name), getattr(timed.counts, name))
    for a, b in ((counted.run, timed.counts.run), (counted.flush, timed.counts.flush)):
        assert np.array_equal(a.reads, b.reads) and np.array_equal(a.writes, b.writes)
        assert np.array_equal(a.way_bursts, b.way_bursts)
        assert_same_wires(a.way_wires, b.way_wires)
    assert counted.dram.commands == timed.dram.commands


def assert_all_equal(a, b):
    """Every count, time and energy of two ReplayResults, but for the queue statistics of single requests."""
    assert a.caches == b.caches and a.partial_writes == b.partial_writes
    for name in ("loads", "stores", "load_bytes", "store_bytes"):
        assert np.array_equal(getattr(a, name), getattr(b, name))
    for one, other in ((a.run, b.run), (a.flush, b.flush)):
        assert np.array_equal(one.reads, other.reads) and np.array_equal(one.writes, other.writes)
        assert np.array_equal(one.way_bursts, other.way_bursts)
        assert_same_wires(one.way_wires, other.way_wires)
    for field in fields(a.dram.counts):
        assert np.array_equal(getattr(a.dram.counts, field.name), getattr(b.dram.counts, field.name)), field.name
    assert a.dram.commands == b.dram.commands and a.dram.energy_pj == b.dram.energy_pj
    assert (a.dram.total_cycles, a.dram.end_cycle) == (b.dram.total_cycles, b.dram.end_cycle)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(0, 2000),
    st.sampled_from(("raw", "dbi-dc", "base-xor+dbi-dc")),
    st.sampled_from((1, 2, 4, 8)),
    st.sampled_from(("none", "all-bank", "per-bank")),
    st.sampled_from(("fcfs", "fr-fcfs")),
)
def test_replay_at_the_clocks_of_the_system_equals_it(seed, n, encoder, channels, refresh, scheduler):
    """All counts equal: caches, bursts, ones and edges, every command (refreshes and the activates they cause too),
    times and energy; and the served requests alone, offered at these clocks, are done at the same ones."""
    part = with_channels(channels)
    trace, machine = random_trace(seed, n), a_machine(encoder, part=part, scheduler=scheduler, refresh=refresh)
    timed = simulate(trace, machine, keep=True)
    requests = timed.requests
    assert_all_equal(replay(trace, machine, arrival=requests.accept_cycle), timed.counts)
    at = np.argsort(requests.accept_cycle, kind="stable")
    alone = simulate_dram(
        requests.address[at],
        requests.is_write[at],
        requests.accept_cycle[at],
        part=part,
        controller=machine.memory_controller(),
    )
    assert alone.commands == timed.dram.commands and alone.energy_pj == timed.dram.energy_pj
    assert np.array_equal(alone.done_cycle, requests.done_cycle[at])
    assert np.array_equal(alone.accept_cycle, requests.accept_cycle[at])


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from((1, 2, 4, 8)), st.sampled_from(("all-bank", "per-bank")))
def test_at_the_pace_of_replay_only_refreshes_and_what_they_close_differ(seed, channels, refresh):
    """One engine, fcfs: an engine that waits has other clocks than replay's, which asks at its rate."""
    trace = random_trace(seed, 2000)
    machine = a_machine(part=with_channels(channels), scheduler="fcfs", refresh=refresh)
    counted, timed = replay(trace, machine), simulate(trace, machine)
    assert counted.caches == timed.counts.caches
    for a, b in ((counted.run, timed.counts.run), (counted.flush, timed.counts.flush)):
        assert np.array_equal(a.way_bursts, b.way_bursts)
        assert_same_wires(a.way_wires, b.way_wires)
    ours, theirs = counted.dram.commands, timed.dram.commands
    assert all(ours[name] == theirs[name] for name in ("RD", "WR", "RDA", "WRA"))
    # Each time adds its own refreshes, and at most one activate for each bank they close.
    closed = {"all-bank": 8, "per-bank": 1}[refresh]
    refreshes = max(c["REFab"] + c["REFpb"] for c in (ours, theirs))
    assert abs(ours["ACT"] - theirs["ACT"]) <= closed * refreshes


@pytest.mark.parametrize(
    ("clocks", "words"),
    [
        ([0, 5], "arrival has 2 clocks, the trace causes 4 bursts or more"),
        ([0, 5, 6, 7, 8], "arrival has 5 clocks, the trace causes 4 bursts"),
        ([0, 9, 8, 7], "arrival cycle 8 goes back behind 9"),
        ([0, -1, 8, 9], "arrival"),
        ([0, 0.5, 8, 9], "arrival"),
    ],
)
def test_arrivals_that_do_not_fit_are_named(clocks, words):
    chunk = Chunk(np.arange(4, dtype=np.uint64) * np.uint64(32), np.full(4, 32, np.uint8), *[np.zeros(4, np.uint8)] * 2)
    trace = Trace.from_chunks([chunk], Memory(0, 128, None))
    with pytest.raises(InputError, match=words):
        replay(trace, Machine((), part=PART, flush=False), arrival=clocks)
    with pytest.raises(InputError, match="need a machine with a DRAM part"):
        replay(trace, Machine((), flush=False), arrival=[0, 1, 2, 3])


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(1, 3000),
    st.sampled_from((1, 2, 3, 16)),
    st.integers(1, 200),
    st.sampled_from((1, 2, 8, 16)),
    st.sampled_from((1, 4)),
)
def test_the_served_order_replayed_gives_the_same_counts(seed, n, engines, block, channels, per_clock):
    trace = random_trace(seed, n)
    machine = a_machine(part=with_channels(channels), requests_per_clock=per_clock)
    machine = replace(machine, engine=EngineSpec(outstanding_misses=16, accesses_per_ns=8.0))
    traces = partition(trace, np.random.default_rng(seed).integers(0, engines, n), engines)
    timed = simulate(traces, machine, block_requests=block, interleave_accesses=64, keep=True)
    requests = timed.requests
    assert len(requests.address) == int(timed.counts.total.reads.sum() + timed.counts.total.writes.sum())
    if engines == 1:
        hierarchy = CacheHierarchy(machine, trace.memory)
        bursts = [*(hierarchy.feed(chunk) for chunk in trace), *hierarchy.flush()]
        data = np.concatenate([b.data for b in bursts]).reshape(-1, 32)
        ones = toggles = 0
        for order in requests.served:
            wires = Wires(machine, 1, {})
            in_run = np.zeros(len(order), np.uint8)
            wires.send(data[order], requests.stream[order], requests.is_write[order], in_run)
            zero = np.zeros((2, len(STREAMS)), np.int64)
            channel = wire_traffic(zero, zero, wires, 0)
            ones, toggles = ones + channel.ones, toggles + channel.toggles
        assert (ones, toggles) == (timed.counts.total.ones, timed.counts.total.toggles)
    # Offered at the cycles of their acceptance, the requests alone make the controller do the same.
    at = np.argsort(requests.accept_cycle, kind="stable")
    alone = simulate_dram(
        requests.address[at],
        requests.is_write[at],
        requests.accept_cycle[at],
        part=machine.part,
        controller=machine.memory_controller(),
    )
    assert alone.commands == timed.dram.commands
    assert np.array_equal(alone.done_cycle, requests.done_cycle[at])
    assert timed.dram.energy_pj == alone.energy_pj


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from((1, 3, 4)), st.sampled_from((1, 2, 8)), st.integers(1, 8))
def test_an_engine_never_has_more_lines_in_flight_than_it_may(seed, engines, channels, misses):
    trace = random_trace(seed, 1500)
    machine = a_machine(part=with_channels(channels), requests_per_clock=1)
    machine = replace(machine, engine=EngineSpec(outstanding_misses=misses, accesses_per_ns=8.0))
    engine = np.random.default_rng(seed).integers(0, engines, 1500)
    result = simulate(partition(trace, engine, engines), machine, interleave_accesses=64, keep=True)
    requests = result.requests
    reads = requests.is_write == 0
    begin, end = requests.accept_cycle[reads], requests.done_cycle[reads]
    if engines == 1:  # a line of two bursts is in flight from the first to the last
        begin, end = begin[::2], end.reshape(-1, 2).max(axis=1)
    events = np.concatenate([begin, end])
    step = np.repeat([1, -1], len(begin))
    order = np.lexsort((step, events))  # a line that is back makes room in the same clock
    assert step[order].cumsum().max(initial=0) <= misses * engines * (1 if engines == 1 else 2)
    if engines == 1:
        assert (np.diff(requests.accept_cycle) >= 1).all()  # in order over all channels


@pytest.mark.parametrize("channels", [1, 8])
def test_an_engine_that_does_not_stall_asks_when_replay_does(channels):
    """An access every 64 clocks: the further bursts of a line go one per clock, and the engine keeps its pace."""
    trace = random_trace(7, 3000, footprint=1 << 16)
    machine = a_machine(part=with_channels(channels), scheduler="fr-fcfs")
    machine = replace(machine, engine=EngineSpec(outstanding_misses=64, accesses_per_ns=1 / 40))
    hierarchy = CacheHierarchy(machine, trace.memory)
    access = np.concatenate([hierarchy.feed(chunk).access for chunk in trace])
    requests = simulate(trace, machine, keep=True).requests
    late = requests.accept_cycle[: len(access)] - (access * (40 / PART.tck_ns)).astype(np.int64)
    assert late.min() == 0 and late.max() <= 4  # at most four bursts an access: a line out, a line in


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(0, 1000),
    st.sampled_from((1, 3)),
    st.sampled_from((1, 2, 4)),
    st.sampled_from((1, 2, 4)),
    st.sampled_from((1, 2, 3, 7, 64)),
)
def test_block_size_changes_nothing(seed, n, engines, channels, per_clock, block):
    """Nor where several requests enter in a clock: the last of a block wait for those of the next."""
    machine = a_machine(part=with_channels(channels), requests_per_clock=per_clock)
    machine = replace(machine, engine=EngineSpec(outstanding_misses=16, accesses_per_ns=8.0))
    traces = partition(random_trace(seed, n), np.random.default_rng(seed).integers(0, engines, n), engines)
    whole, cut = (simulate(traces, machine, block_requests=size, keep=True) for size in (10**6, block))
    assert cut.total_cycles == whole.total_cycles and cut.dram.commands == whole.dram.commands
    assert cut.requests.accept_cycle.tolist() == whole.requests.accept_cycle.tolist()
    assert_same_wires(cut.counts.total.wires, whole.counts.total.wires)


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
