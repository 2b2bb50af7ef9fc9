"""The compiled cache against the plain one, against Belady's bound, and against itself in pieces."""

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.cache_oracle import PlainCache

from hwmodel.caches.cache import CacheCounts, CacheLevel, simulate_cache
from hwmodel.caches.policy import CACHE_POLICIES
from hwmodel.caches.spec import CacheSpec

COUNTS = [field.name for field in dataclasses.fields(CacheCounts)][:10]


@st.composite
def cases(draw, many_ways=False):
    sets = 2 ** draw(st.integers(0, 1 if many_ways else 3))
    ways = draw(st.integers(65, 90) if many_ways else st.integers(1, 20))
    policy = draw(st.sampled_from(("lru", "fifo", "min") if many_ways else list(CACHE_POLICIES)))
    if policy == "plru":
        ways = 2 ** draw(st.integers(0, 4))
    line = 2 ** draw(st.integers(0, 6))
    spec = CacheSpec(
        sets * ways * line,
        line,
        ways,
        policy,
        draw(st.sampled_from(("back", "through"))),
        draw(st.booleans()),
        draw(st.integers(0, 3)),
    )
    span = draw(st.sampled_from((2, 4))) * spec.size_bytes
    base = draw(st.sampled_from((0, 5, 2**63 - 1 - span - 300)))
    n = draw(st.integers(0, 600 if many_ways else 300))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    address = base + rng.integers(0, span, n)
    return (
        spec,
        rng.integers(0, 2, n),
        address,
        rng.integers(1, draw(st.sampled_from((2, 9) if many_ways else (2, 9, 256))), n),
    )


def transactions(out):
    columns = (out.address, out.size, out.is_write, out.access_index)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@settings(max_examples=200, deadline=None)
@given(st.one_of(cases(), cases(), cases(many_ways=True)))
def test_counts_and_transactions_equal_the_plain_cache(case):
    spec, op, address, size = case
    plain = PlainCache(spec.sets, spec.ways, spec.line_bytes, spec.policy, spec.write, spec.allocate, spec.seed)
    expected = plain.run(op.tolist(), address.tolist(), size.tolist())
    level = CacheLevel(spec)
    if spec.policy == "min":
        level.set_future(level.lines(address, size))
    assert transactions(level.access(op, address, size)) == expected
    assert {name: getattr(level.counts, name) for name in COUNTS} == {name: plain.counts[name] for name in COUNTS}
    assert level.counts.through_writes == sum(
        is_write and (n != spec.line_bytes or spec.write == "through" or not spec.allocate)
        for _, n, is_write, _ in expected
    ) - (level.counts.writebacks if spec.write == "back" and not spec.allocate else 0)


@settings(max_examples=60, deadline=None)
@given(st.one_of(cases(), cases(many_ways=True)), st.integers(1, 100))
def test_state_is_kept_between_chunks(case, step):
    spec, op, address, size = case
    whole, pieces = CacheLevel(spec), CacheLevel(spec)
    if spec.policy == "min":
        for level in (whole, pieces):
            level.set_future(level.lines(address, size))
    once = transactions(whole.access(op, address, size))
    parts = []
    for i in range(0, len(op), step):
        at = slice(i, i + step)
        parts += [(*t[:3], t[3] + i) for t in transactions(pieces.access(op[at], address[at], size[at]))]
    assert parts == once
    assert pieces.counts == whole.counts


@settings(max_examples=30, deadline=None)
@given(cases())
def test_no_policy_misses_less_than_min(case):
    spec, op, address, size = case
    misses = {
        policy: simulate_cache(
            op, address, size, size_bytes=spec.size_bytes, line_bytes=spec.line_bytes, ways=spec.ways, policy=policy
        ).misses
        for policy in CACHE_POLICIES
        if policy != "plru" or spec.ways & (spec.ways - 1) == 0
    }
    assert min(misses.values()) == misses["min"]


def test_flush_writes_each_dirty_line_once():
    level = CacheLevel(CacheSpec(1024, 32, 4))
    level.access([1, 0, 1], [96, 64, 8], [4, 4, 4])
    assert transactions(level.flush()) == [(0, 32, 1, -1), (96, 32, 1, -1)]
    assert len(level.flush()) == 0
    assert (level.counts.flushed, level.counts.dirty_at_end, level.counts.resident_at_end) == (2, 0, 3)


@pytest.mark.parametrize("simd", ["baseline", "avx2"])
def test_narrower_simd_levels_make_the_same_counts(simd):
    program = """
import numpy as np
from hwmodel.caches.cache import simulate_cache
rng = np.random.default_rng(5)
for ways in (1, 3, 8, 12, 32):
    for policy in ("lru", "fifo", "random", "min", "plru"):
        if policy == "plru" and ways & (ways - 1): continue
        op, address = rng.integers(0, 2, 5000), rng.integers(0, ways * 4096, 5000)
        print(simulate_cache(op, address, 8, size_bytes=ways * 1024, line_bytes=64, ways=ways, policy=policy))
"""
    outputs = [
        subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True).stdout
        for env in (os.environ, {**os.environ, "EDGEWATT_SIMD": simd})
    ]
    assert outputs[0] == outputs[1] != ""
