"""A kept pass through the caches replays to what the trace replays to, on any machine that differs only behind them."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_strategies import a_trace, hierarchies
from oracles.trace_oracle import networks, random_network, topological_order

import hwmodel.replay.cache_pass
from hwmodel.caches.spec import CacheSpec
from hwmodel.dram.engine import load_part
from hwmodel.machine import BusSpec, Machine
from hwmodel.replay import replay
from hwmodel.replay.cache_pass import KeptPass, keep
from traces.base.errors import InputError
from traces.generators.networks import random_layered
from traces.layout.settings import Layout
from traces.trace.build import build_trace
from traces.trace.chunks import STREAMS, Chunk, Memory, Trace

MOST = 1 << 30


def plain(value):
    """Return a result as JSON text: what two equal ones have in common, arrays and nested dataclasses included."""
    found = {**asdict(value), "description": {**value.description}}
    return json.dumps(found, default=lambda array: [str(array.dtype), array.tolist()], sort_keys=True)


@st.composite
def machines(draw):
    return draw(hierarchies(draw(st.sampled_from(("raw", "base-xor+dbi-dc"))), flush=draw(st.booleans())))


@settings(max_examples=80, deadline=None)
@given(networks, machines(), st.sampled_from((3, 64, 2**17)))
def test_a_kept_pass_is_the_trace(made, machine, slice_bursts):
    trace = a_trace(made)
    kept = keep(trace, replace(machine, encoder="transition"), MOST)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hwmodel.replay.cache_pass, "SLICE_ACCESSES", slice_bursts)
        assert plain(replay(KeptPass(kept), machine)) == plain(replay(trace, machine))
        assert plain(replay(KeptPass(kept), machine)) == plain(replay(trace, machine)), "and again"


@pytest.mark.parametrize("encoder", ["raw", "dbi-dc"])
@pytest.mark.parametrize("part", ["lpddr4-3200", "lpddr4-4266"])
def test_with_a_part(part, encoder):
    trace = build_trace(random_layered(3, 24, 0.4, 1))
    front = Machine((CacheSpec(1024, 64, 2),), part=load_part("lpddr4-3733"))
    kept = KeptPass(keep(trace, front, MOST))
    machine = replace(front, part=load_part(part), encoder=encoder)
    assert plain(replay(kept, machine)) == plain(replay(trace, machine))


@pytest.mark.parametrize("cycles", [True, False])
@pytest.mark.parametrize("n", [0, 1, 100])
def test_recorded_addresses(n, cycles):
    rng = np.random.default_rng(n)
    address, cycle = rng.integers(0, 4000, n).astype(np.uint64), np.sort(rng.integers(0, 9999, n))
    op, stream = rng.integers(0, 2, n).astype(np.uint8), np.full(n, STREAMS.index("external"), np.uint8)
    chunk = Chunk(address, np.full(n, 4, np.uint16), op, stream, None, None, cycle if cycles else None)
    trace = Trace.from_chunks([chunk], Memory(0, 4096, None))
    machine = Machine((CacheSpec(1024, 64, 2),), part=load_part("lpddr4-3200"))
    kept = KeptPass(keep(trace, machine, MOST))
    assert plain(replay(kept, machine)) == plain(replay(trace, machine))


def test_nothing_is_kept_beyond_the_limit():
    trace = build_trace(random_layered(3, 24, 0.4, 1))
    machine = Machine((CacheSpec(1024, 64, 2),), bus=BusSpec(2, 32))
    kept = keep(trace, machine, MOST)
    n = len(kept["address"])
    assert keep(trace, machine, n * (32 + hwmodel.replay.cache_pass.BYTES_BESIDE_DATA)) is not None
    assert keep(trace, machine, n * (32 + hwmodel.replay.cache_pass.BYTES_BESIDE_DATA) - 1) is None


@pytest.mark.parametrize("change", [{"caches": ()}, {"bus": BusSpec(2, 16)}, {"flush": False}])
def test_a_pass_of_another_machine_is_refused(change):
    machine = Machine((CacheSpec(1024, 64, 2),), bus=BusSpec(2, 32))
    kept = KeptPass(keep(build_trace(random_layered(3, 8, 0.4, 1)), machine, MOST))
    with pytest.raises(InputError, match="other caches, bursts or another final flush"):
        replay(kept, replace(machine, **change))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(("lru", "min", "plru")), st.sampled_from(((), ("tuples",))))
def test_streams_pass_by_a_cache(seed, policy, outer):
    """What stays in the cache is what it would hold were the passing stream not there; every line that a stream enters
    is read once, whole; bursts carry what memory holds (asserted by replay)."""
    network = random_network(np.random.default_rng(seed))
    order = topological_order(network, np.random.default_rng(seed), rows=False)
    trace = build_trace(network, order, layout=Layout(kind="tuples", lanes=4))
    levels = (CacheSpec(512, 64, 2, policy, bypass=("tuples",)), CacheSpec(2048, 64, 4, bypass=outer))
    found = replay(trace, Machine(levels, bus=BusSpec(2, 32)))
    chunks = list(trace)
    rest = Trace.from_chunks(
        [Chunk(c.address[at], c.size[at], c.op[at], c.stream[at]) for c in chunks
         for at in [np.flatnonzero(c.stream != STREAMS.index("tuples"))]],
        Memory(trace.memory.base_address, trace.memory.total_bytes, None),
    )  # fmt: skip
    plain = replay(rest, Machine((replace(levels[0], bypass=()),), bus=BusSpec(2, 32)))
    first, region = found.caches[0], trace.memory.region("tuples")
    assert replace(first, bypassing=0, bypassing_lines=0) == plain.caches[0]
    assert first.bypassing == network.n_connections
    assert first.bypassing_lines == -(-region.n_bytes // 64)
    assert found.caches[1].bypassing == (first.bypassing_lines if outer else 0)


def test_only_streams_of_connections_pass_by():
    with pytest.raises(InputError, match="'inputs'"):
        CacheSpec(1024, bypass=("inputs",))
