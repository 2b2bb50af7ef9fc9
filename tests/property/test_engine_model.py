"""The engine in time: resources side by side, lines and bytes in flight, and what bounds a run."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_traces import random_trace
from strategies import networks

import edgewatt as ew
from hwmodel.caches.spec import CacheSpec
from hwmodel.dram.engine import ControllerSpec, simulate_dram
from hwmodel.dram.tables import address_map
from hwmodel.fastmemory.scratchpad import ScratchpadSpec
from hwmodel.machine import BusSpec, EngineSpec, Machine
from hwmodel.parts.part_file import load_part, part_names
from hwmodel.replay import replay
from hwmodel.replay.hierarchy import EngineSide
from hwmodel.system.bounds import issue_time
from hwmodel.system.simulation import simulate
from reorder.order import order as order_edges
from traces.generators.networks import uniform_layers
from traces.trace.build import build_trace
from traces.trace.chunks import STREAMS, Chunk, Memory, Trace
from traces.trace.partition import EnginesSpec, cut_work

FAST = EngineSpec(clock_ghz=1000.0)


def loads_of(addresses, size):
    n = len(addresses)
    zeros = np.zeros(n, np.uint8)
    chunk = Chunk(
        np.asarray(addresses, np.uint64), np.full(n, size, np.uint16), zeros, zeros + STREAMS.index("external")
    )
    return Trace.from_chunks([chunk], Memory(0, int(max(addresses)) + size, None))


def on_part(name, engine, **options):
    part = load_part(name)
    o = part.organisation
    return Machine(bus=BusSpec(o.byte_lanes, o.burst_bytes), part=part, engine=engine, **options)


def line_by_hand(part, bank):
    """Clocks from the acceptance of a line of 64 bytes in banks that were never opened to its last data: one before the
    first command, ACT, RD, the data, one on the way back. Further bursts follow in the same row, or in the next bank
    group with an ACT of its own, or at once in another channel."""
    t, o = part.timing, part.organisation
    fields = {f.name: f for f in address_map(part, None).fields}
    first = 1 + t.tRCD
    further = 0
    if o.burst_bytes < 64 and fields["offset"].bits == 5:
        low = {name for name, f in fields.items() if f.source == 5}
        further = {
            "channel": 0, "column": t.tCCD_L or t.tCCD, "bank_group": max(t.tRRD, t.tCCD),
        }[low.pop()]  # fmt: skip
    return first + further + t.RL + o.burst_cycles + 1


@pytest.mark.parametrize("name", part_names())
def test_one_line_outstanding_takes_the_latency_of_a_line(name):
    part = load_part(name)
    bank = next(f for f in address_map(part, None).fields if f.name == "bank").source
    machine = on_part(
        name, replace(FAST, outstanding_misses=1), caches=(CacheSpec(4096, 64, 4),),
        controller=ControllerSpec(refresh="none"),
    )  # fmt: skip
    run = simulate(loads_of(np.arange(4) << bank, 4), machine)
    assert run.total_cycles == 4 * line_by_hand(part, bank)
    assert run.run_time.bound_by.latency + run.run_time.bound_by.bandwidth == pytest.approx(1, abs=0.01)
    two = simulate(
        loads_of(np.arange(4) << bank, 4), replace(machine, engine=replace(machine.engine, outstanding_misses=2))
    )
    assert two.total_cycles < 0.7 * run.total_cycles


@pytest.mark.parametrize("name", part_names())
def test_a_stream_takes_nine_tenths_of_peak(name):
    """DMA reads a buffer ahead; a cache has enough lines in flight; each channel takes a request a clock."""
    part = load_part(name)
    peak_ns = part.organisation.burst_cycles * part.tck_ns / part.organisation.channels
    n = 8192 * max(part.organisation.channels // 4, 1)
    burst = part.organisation.burst_bytes
    refresh = "per-bank" if part.timing.tRFCpb else "all-bank"  # as each is refreshed while it streams
    machine = on_part(name, replace(FAST, outstanding_misses=4096), controller=ControllerSpec(refresh=refresh))
    run = simulate(loads_of(np.arange(n) * burst, burst), machine)
    assert n * peak_ns >= 0.9 * run.time_ns
    assert run.run_time.roofline_ns["bandwidth"] == pytest.approx(n * peak_ns)
    assert run.run_time.bound_by.bandwidth > 0.8


@pytest.mark.parametrize("load", (0.3, 0.6, 0.9))
def test_waiting_is_that_of_a_queue_with_one_server(load):
    """Poisson arrivals of row hits: the mean wait of M/D/1 within 2 %."""
    part = load_part("lpddr4-3200")
    n, service = 1_500_000, part.organisation.burst_cycles
    time = np.cumsum(np.random.default_rng(1).exponential(service / load, n))
    address = np.arange(n, dtype=np.uint64) % np.uint64(512) * np.uint64(32)
    run = simulate_dram(
        address, np.zeros(n, np.uint8), np.ceil(time).astype(np.int64), part=part, controller={"refresh": "none"}
    )
    idle = 1 + part.timing.RL + service + 1
    load = n * service / time[-1]
    wait = (run.done_cycle - time)[n // 100 :].mean() - 0.5 - idle  # half a clock to the next one
    assert wait == pytest.approx(load * service / (2 * (1 - load)), rel=0.02)


@pytest.mark.parametrize("name", ("lpddr4-3200", "ddr4-3200-x8", "hbm2"))
def test_requests_in_memory_are_rate_times_latency(name):
    machine = on_part(name, EngineSpec(outstanding_misses=12, accesses_per_ns=4.0))
    burst = machine.bus.block_bytes
    address = np.random.default_rng(2).integers(0, 2**16, 20_000) * burst
    run = simulate(loads_of(address, burst), machine, keep=True)
    latency = run.requests.done_cycle - run.requests.accept_cycle
    assert run.dram.mean_read_latency_cycles == pytest.approx(latency.mean())
    events = np.concatenate([run.requests.accept_cycle, run.requests.done_cycle])
    step = np.repeat([1, -1], len(address))[np.argsort(events, kind="stable")]
    events.sort()
    inside = (step.cumsum()[:-1] * np.diff(events)).sum() / (events[-1] - events[0])
    assert inside == pytest.approx(len(address) / (events[-1] - events[0]) * latency.mean(), rel=1e-9)
    assert inside == pytest.approx(12, rel=0.02)  # the engine is always ahead of the memory


def cycles_by_hand(engine, accesses, values):
    """The slow way: operations as lists of (kind, is_store, pieces), each the maximum over its resources.

    Return the cycles of all, and those before the operation of each access."""
    limit = lambda rate: float("inf") if rate is None else rate  # noqa: E731
    operations, now = [], []
    for stream, store, size in accesses:
        pieces = -(-size // engine.access_bytes)
        element = stream in ("ids", "values", "tuples", "biases")
        rows = any(kind not in ("ids", "values", "tuples", "biases") for kind, _, _ in now)
        again = bool(now) and stream in {kind for kind, _, _ in now} and stream != now[-1][0]  # coo has two ids
        if stream in ("external", "row_pointers") or (element and (rows or again)):
            operations.append(now)
            now = []
        now.append((stream, store, pieces))
    operations.append(now)
    if engine.accesses_per_ns is not None:
        operations = [[access] for one in operations for access in one]
    total, before = 0.0, []
    for one in operations:
        before += [total] * len(one)
        if engine.accesses_per_ns is not None:
            total += sum(pieces for _, _, pieces in one)
            continue
        sums = dict.fromkeys(("elements", "sources", "targets", "stores"), 0)
        width = 0
        for stream, store, pieces in one:
            if stream in ("ids", "values", "tuples", "biases", "row_pointers"):
                sums["elements"] += pieces
                continue
            sums["stores" if store else "sources" if stream in ("inputs", "external") else "targets"] += pieces
            width = max(width, pieces) if stream != "external" else width
        loads = sums["sources"]
        loads += 0 if engine.records_per_cycle else sums["elements"]
        loads += 0 if engine.accumulates_per_cycle else sums["targets"]
        issued = sum(sums.values()) + (engine.instructions_per_connection + width if width else 0)
        total += max(
            (sums["elements"] > 0) / limit(engine.records_per_cycle),
            loads / limit(engine.loads_per_cycle),
            0 if engine.accumulates_per_cycle else sums["stores"] / limit(engine.stores_per_cycle),
            sums["stores"] / limit(engine.accumulates_per_cycle),
            (values if width else 0) / limit(engine.values_per_cycle),
            issued / limit(engine.instructions_per_cycle),
        )
    return total, before


rates = st.sampled_from((None, 0.5, 1.0, 2.0, 3.0))
engines = st.builds(
    EngineSpec, accesses_per_ns=st.sampled_from((None, None, None, 0.5)), access_bytes=st.sampled_from((4, 16, 64)),
    records_per_cycle=rates, loads_per_cycle=rates, stores_per_cycle=rates, accumulates_per_cycle=rates,
    values_per_cycle=rates, instructions_per_cycle=rates, instructions_per_connection=st.integers(0, 9),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(engine=engines, network=networks(), kind=st.sampled_from(("tuples", "csr", "runs", "runs-delta", "coo")),
       lanes=st.sampled_from((1, 3, 16)))  # fmt: skip
def test_cycles_are_the_sum_of_the_most_that_each_connection_takes(engine, network, kind, lanes):
    trace = build_trace(network, order_edges(network, "two-optimal", memory=3), layout=kind, lanes=lanes)
    side = EngineSide(trace, Machine(engine=engine))
    chunks = list(side.trace)
    accesses = [
        (STREAMS[stream], store, size)
        for chunk in chunks
        for stream, store, size in zip(chunk.stream.tolist(), chunk.op.tolist(), chunk.size.tolist(), strict=True)
    ]
    total, before = cycles_by_hand(engine, accesses, lanes)
    assert side.work.cycles == pytest.approx(total)
    assert np.concatenate([chunk.work for chunk in chunks]) == pytest.approx(before)
    if engine.access_bytes == 64:  # where ids are one access, a scratchpad's engine takes the same
        pad = EngineSide(trace, Machine(engine=engine, scratchpad=ScratchpadSpec(2**16), bus=BusSpec(2, 32)))
        for _ in pad.trace:
            pass
        assert pad.work.cycles == pytest.approx(side.work.cycles) and pad.work.accesses == side.work.accesses


def accesses_of(*streams):
    return st.tuples(st.sampled_from(streams), st.integers(0, 1), st.sampled_from((1, 4, 64, 200)))


ROWS = ("inputs", "partial_sums", "outputs")
anything = accesses_of("ids", "values", "tuples", "row_pointers", *ROWS, "external")
connections = st.builds(
    lambda ids, values, rows: [*ids, *values, *rows],
    st.lists(accesses_of("ids"), max_size=2), st.lists(accesses_of("values"), max_size=1),
    st.lists(accesses_of(*ROWS), min_size=1, max_size=4),
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(
    engine=engines, wide=st.booleans(), cut=st.integers(8, 99),
    pattern=connections | st.lists(anything, min_size=1, max_size=9),
    changes=st.lists(st.tuples(st.integers(1, 6), st.integers(0, 8), st.integers(0, 2), anything), max_size=6),
)  # fmt: skip
def test_accesses_that_come_again_take_as_long_each_time(engine, wide, cut, pattern, changes):
    """As another program may record them; then with another stream, way or size in a place; cut anywhere."""
    accesses = pattern * 3
    for times, at, what, other in changes:
        changed = list(pattern[at % len(pattern)])
        changed[what] = other[what]
        pattern = [*pattern[: at % len(pattern)], tuple(changed), *pattern[at % len(pattern) + 1 :]]
        accesses += pattern * times
    op = np.array([store for _, store, _ in accesses], np.uint8)
    stream = np.array([STREAMS.index(name) for name, _, _ in accesses], np.uint8)
    size = np.array([n for _, _, n in accesses], np.uint16 if wide else np.uint8)
    chunks = [
        Chunk(np.zeros(len(op[k : k + cut]), np.uint64), size[k : k + cut], op[k : k + cut], stream[k : k + cut])
        for k in range(0, len(op), cut)
    ]
    side = EngineSide(Trace.from_chunks(chunks, Memory(0, 256, None)), Machine(engine=engine))
    work = np.concatenate([chunk.work for chunk in side.trace])
    total, before = cycles_by_hand(engine, accesses, 1)
    assert side.work.cycles == pytest.approx(total) and work == pytest.approx(before)
    assert side.work.accesses == sum(-(-n // engine.access_bytes) for _, _, n in accesses)


@pytest.mark.parametrize("cached", (True, False))
def test_a_connection_and_a_header_take_a_cycle_in_every_layout(cached):
    """Coordinates, too, whose two ids are two accesses, and ids that are coded in bytes beside the others."""
    network = uniform_layers([20, 20, 20], 0.3, seed=1)
    machine = Machine() if cached else Machine(scratchpad=ScratchpadSpec(2**16), bus=BusSpec(2, 32))
    for kind, headers in (("tuples", 0), ("coo", 0), ("runs", 40), ("runs-delta", 40)):
        side = EngineSide(build_trace(network, layout=kind, lanes=3), machine)
        assert sum(len(chunk) for chunk in side.trace) and side.work.cycles == network.n_connections + headers, kind


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 999), engine=engines, part=st.sampled_from(("lpddr4-3200", "hbm2", "ddr5-4800-x8")),
       cache=st.booleans())  # fmt: skip
def test_shares_of_the_time_sum_to_one(seed, engine, part, cache):
    options = {"caches": (CacheSpec(1024, 64, 2),)} if cache else {}
    trace, machine = random_trace(seed, 300), on_part(part, engine, **options)
    for timed in (simulate(trace, machine).run_time, issue_time(replay(trace, machine), machine)):
        found = timed.bound_by.as_dict()
        assert set(found) == {"bandwidth", "latency", "engine", "dma"}
        assert sum(found.values()) == pytest.approx(1) and min(found.values()) >= 0


def test_a_small_accelerator_takes_a_connection_a_cycle_in_any_order():
    network = ew.load("configs/examples/networks/digits_small.npz")
    machine = on_part("hbm2", EngineSpec(dma_bytes=2**20), scratchpad=ScratchpadSpec(2**17, stream_bytes=2**16))
    for name in ("two-optimal", "by-source", "random-topological"):
        trace = build_trace(network, order_edges(network, name, memory=3), layout="tuples", lanes=16)
        run = simulate(trace, machine)
        assert run.counts.work.cycles == network.n_connections
        assert run.run_time.bound_by.engine > 0.5


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_no_run_is_faster_than_its_roofline(data):
    """Also where writes are posted, which the memory sends after the last completion."""
    draw = data.draw
    part = draw(st.sampled_from(("lpddr4-3200", "lpddr5-6400", "lpddr6-10667", "ddr4-3200-x8", "hbm3")))
    lanes, widths = draw(st.sampled_from((1, 4, 16))), draw(st.sampled_from(((6, 6, 4), (12, 40, 10))))
    size, write = draw(st.sampled_from((512, 4096))), draw(st.sampled_from(("through", "back")))
    cache = CacheSpec(size, 64, 2, "lru", write, draw(st.booleans()))
    scratchpad = draw(st.booleans())
    on_chip = {"scratchpad": ScratchpadSpec(4096)} if scratchpad else {"caches": (cache,)}
    engine = draw(st.sampled_from((FAST, EngineSpec(), EngineSpec(outstanding_misses=16, values_per_cycle=None))))
    machine = on_part(part, engine, **on_chip)
    network = uniform_layers(widths, draw(st.sampled_from((0.1, 0.8))), seed=draw(st.integers(0, 5)))
    order = order_edges(network, draw(st.sampled_from(("two-optimal", "by-source"))), memory=20)
    trace = build_trace(network, order, layout="tuples", lanes=lanes, batch=lanes)
    n_engines = 1 if scratchpad else draw(st.sampled_from((1, 2)))
    traces = [trace] if n_engines == 1 else cut_work(trace, EnginesSpec(n_engines, "runs"))
    for found in (simulate(traces, machine).run_time, issue_time(replay(trace, machine), machine)):
        assert all(0 <= least <= found.time_ns * (1 + 1e-12) for least in found.roofline_ns.values())
