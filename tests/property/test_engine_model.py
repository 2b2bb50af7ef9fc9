"""The engine in time: resources side by side, lines and bytes in flight, and what bounds a run."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_traces import random_trace
from strategies import networks

from cython_ext.trace.ports import EngineClock
from hwmodel.caches.spec import CacheSpec
from hwmodel.dram.engine import ControllerSpec, load_part, part_names
from hwmodel.dram.tables import address_map
from hwmodel.fastmemory.scratchpad import ScratchpadSpec
from hwmodel.machine import BusSpec, EngineSpec, Machine
from hwmodel.replay import replay
from hwmodel.system.simulation import simulate
from traces.trace.build import build_trace
from traces.trace.chunks import STREAMS, Chunk, Memory, Trace

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
