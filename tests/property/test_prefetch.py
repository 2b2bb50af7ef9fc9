"""Prefetchers: the compiled one against the plain one, and what must hold of any."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_strategies import prefetchers
from oracles.prefetch_oracle import PlainPrefetcher
from oracles.trace_oracle import networks, random_network, topological_order

from hwmodel.caches.cache import CacheCounts, CacheLevel
from hwmodel.caches.spec import CacheSpec, PrefetchSpec
from hwmodel.machine import BusSpec, Machine
from hwmodel.replay import replay
from hwmodel.replay.hierarchy import burst_trace, open_hierarchy, slices
from hwmodel.system.simulation import simulate
from traces.base.errors import InputError
from traces.layout.settings import Layout
from traces.trace.build import build_trace, final_image
from traces.trace.chunks import Chunk, Memory, Trace
from traces.trace.partition import partition

COUNTS = [field.name for field in dataclasses.fields(CacheCounts)][:10]
POLICIES = ("lru", "fifo", "rr", "random", "plru")


@st.composite
def caches(draw, line=None):
    ways = 2 ** draw(st.integers(0, 4))
    line = line or 2 ** draw(st.integers(0, 6))
    size = line * ways * 2 ** draw(st.integers(0, 3))
    policy, write = draw(st.sampled_from(POLICIES)), draw(st.sampled_from(("back", "through")))
    return CacheSpec(size, line, ways, policy, write, draw(st.booleans()), draw(st.integers(0, 3)), draw(prefetchers))


@st.composite
def cases(draw):
    """Streams that walk with a stride of their own and sometimes jump, so that predictions are right and wrong."""
    spec = draw(caches())
    span = draw(st.sampled_from((2, 4))) * spec.size_bytes + 300
    base = draw(st.sampled_from((0, 5, 2**63 - 1 - span - 300)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(0, 200))
    stride = rng.integers(-2 * spec.line_bytes, 3 * spec.line_bytes, 8)
    where, stream, address = rng.integers(0, span, 8), rng.integers(0, 8, n), np.zeros(n, np.int64)
    for i, s in enumerate(stream):
        where[s] = (where[s] + stride[s]) % span if rng.random() < 0.9 else rng.integers(0, span)
        address[i] = base + where[s]
    size = rng.integers(1, draw(st.sampled_from((2, 9, 256))), n)
    return spec, (base, base + span), rng.integers(0, 2, n), address, size, stream


def transactions(out):
    columns = (out.address, out.size, out.is_write, out.access_index)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@settings(max_examples=150, deadline=None)
@given(cases(), st.integers(1, 100))
def test_counts_and_transactions_equal_the_plain_prefetcher(case, step):
    spec, footprint, *accesses = case
    plain = PlainPrefetcher(
        spec.sets, spec.ways, spec.line_bytes, spec.policy, spec.write, spec.allocate, spec.seed,
        **dataclasses.asdict(spec.prefetch), footprint=footprint,
    )  # fmt: skip
    expected = plain.run(*(column.tolist() for column in accesses))
    level = CacheLevel(spec, footprint)
    got = []
    for i in range(0, len(accesses[0]), step):  # state is kept between chunks
        out = level.access(*(column[i : i + step] for column in accesses))
        got += [(*t[:3], t[3] + i) for t in transactions(out)]
    assert got == expected
    counts = level.counts
    assert {name: getattr(counts, name) for name in COUNTS} == {name: plain.counts[name] for name in COUNTS}
    names = ("prefetches", "useful", "useless", "unused")
    assert [plain.counts[name] for name in names] == [
        counts.prefetches, counts.useful_prefetches, counts.useless_prefetches, counts.unused_prefetches,
    ]  # fmt: skip


def a_trace(made):
    rng, activation = made
    network = random_network(rng, activation=activation)
    layout = Layout(kind="tuples", base_address=12, alignment_bytes=4, registers="none")
    order = topological_order(network, rng, rows=False)
    return build_trace(network, order, layout=layout, sample=[0, 1], chunk_accesses=64)


@settings(max_examples=60, deadline=None)
@given(networks, caches(line=16), st.booleans())
def test_every_burst_carries_what_memory_holds_and_the_end_is_the_final_image(made, first, second_level):
    trace = a_trace(made)
    deeper = (CacheSpec(256, 32, 2, "min"),) if second_level else ()
    machine = Machine((first, *deeper), bus=BusSpec(2, 8))
    hierarchy = open_hierarchy(trace, machine)
    low, total, n = trace.memory.base_address, trace.memory.total_bytes, machine.bus.block_bytes
    memory = np.zeros(low + total + 4096, np.uint8)
    memory[low : low + total] = trace.memory.image
    last = -1
    for bursts in [*(hierarchy.feed(chunk) for chunk in slices(trace, 50)), *hierarchy.flush()]:
        for i, data in enumerate(bursts.data.reshape(-1, n)):
            at = int(bursts.address[i])
            if bursts.is_write[i]:
                memory[at : at + n] = data
            else:
                assert np.array_equal(memory[at : at + n], data)
        assert not len(bursts) or (bursts.access[0] >= last and (np.diff(bursts.access) >= 0).all())
        last = int(bursts.access[-1]) if len(bursts) else last
    assert np.array_equal(memory[low : low + total], final_image(trace))


@settings(max_examples=20, deadline=None)
@given(networks, caches(line=16))
def test_addresses_alone_and_the_exported_bursts_make_the_same_traffic(made, spec):
    trace, machine = a_trace(made), Machine((spec,), bus=BusSpec(2, 8))
    full = replay(trace, machine)
    chunks = [Chunk(c.address, c.size, c.op, c.stream) for c in trace]
    bare = replay(Trace.from_chunks(chunks, Memory(trace.memory.base_address, trace.memory.total_bytes, None)), machine)
    assert bare.caches == full.caches
    assert bare.total.reads.sum() == full.total.reads.sum()
    again = replay(burst_trace(trace, machine), Machine((), bus=machine.bus))
    assert (again.total.ones, again.total.toggles) == (full.total.ones, full.total.toggles)
    assert np.array_equal(again.total.reads, full.total.reads)


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 2**32), caches(line=32), st.integers(1, 3))
def test_the_system_counts_as_replay_does(seed, spec, engines):
    rng = np.random.default_rng(seed)
    trace = a_trace((rng, "relu"))
    machine = Machine((spec,), part="lpddr4-3200", controller={"scheduler": "fcfs"})
    expected, got = replay(trace, machine), simulate(trace, machine).counts
    assert got.caches == expected.caches
    for name in ("reads", "writes"):
        assert np.array_equal(getattr(got.total, name), getattr(expected.total, name))
    assert (got.total.ones, got.total.toggles) == (expected.total.ones, expected.total.toggles)
    shared = simulate(partition(trace, rng.integers(0, engines, sum(map(len, trace))), engines), machine).counts
    assert shared.read_bytes == shared.caches[0].fills * 32


def walk(spec, address):
    level = CacheLevel(spec)
    level.access(np.zeros(len(address), np.uint8), address, np.full(len(address), 4))
    return level.counts


@pytest.mark.parametrize("degree", [1, 2, 4])
@pytest.mark.parametrize("kind", ["next-line", "stride"])
def test_a_sequential_stream_hardly_misses(kind, degree):
    address = 4 * np.arange(8000)
    plain = walk(CacheSpec(1024, 32, 4), address)
    counts = walk(CacheSpec(1024, 32, 4, prefetch=PrefetchSpec(kind, degree)), address)
    assert plain.misses == 1000
    # next-line is tagged, so only the first line misses; a stride is steady at the third line.
    assert counts.misses == {"next-line": 1, "stride": 3}[kind]
    assert counts.useless_prefetches == 0
    assert counts.fills == 1000 + counts.unused_prefetches == 1000 + degree


def test_a_constant_stride_is_learnt_and_next_line_is_useless_there():
    address = 160 * np.arange(500)
    assert walk(CacheSpec(1024, 32, 4, prefetch=PrefetchSpec("stride")), address).misses == 3
    counts = walk(CacheSpec(1024, 32, 4, prefetch=PrefetchSpec("next-line")), address)
    assert counts.misses == 500 and counts.useful_prefetches == 0
    backwards = walk(CacheSpec(1024, 32, 4, prefetch=PrefetchSpec("stride")), address[::-1].copy())
    assert backwards.misses == 3 and backwards.prefetches == 497  # the last steps lead below address 0


@settings(max_examples=20, deadline=None)
@given(networks, caches(line=16))
def test_kind_none_changes_nothing_whatever_else_is_set(made, spec):
    trace = a_trace(made)
    off = dataclasses.replace(spec, prefetch=PrefetchSpec("none", 4, 3, 2))
    bare = dataclasses.replace(spec, prefetch=PrefetchSpec())
    a, b = (replay(trace, Machine((s,), bus=BusSpec(2, 8))) for s in (off, bare))
    assert a.caches == b.caches and a.caches[0].prefetches == 0 and a.total.toggles == b.total.toggles


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PrefetchSpec("next_line"), "next-line"),
        (lambda: PrefetchSpec("stride", degree=0), "degree"),
        (lambda: PrefetchSpec("stride", distance=2**30), "distance"),
        (lambda: CacheSpec(1024, policy="min", prefetch=PrefetchSpec("stride")), "min"),
        (lambda: CacheSpec(1024, prefetch="stride"), "PrefetchSpec"),
        (
            lambda: Machine((CacheSpec(1024), CacheSpec(4096, prefetch=PrefetchSpec("stride")))),
            "only the first",
        ),
    ],
)
def test_what_does_not_fit_is_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_a_configuration_reaches_the_prefetcher():
    from edgewatt.runs.model import build_machine
    from edgewatt.runs.plan import load_sweep

    prefetch = {"kind": "stride", "degree": 2}
    network = {"generate": {"kind": "random-layered", "n_layers": 2, "width": 8, "density": 0.5}}
    caches = [{"size_bytes": 1024, "prefetch": prefetch}, {"size_bytes": 4096}]
    machine = build_machine(load_sweep({"network": network, "caches": caches}).points[0])
    assert machine.caches == (CacheSpec(1024, prefetch=PrefetchSpec("stride", 2)), CacheSpec(4096))
