"""Hits by stream and region add up to the level's; the miss curve is that of caches of each size."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from machine_strategies import a_trace, hierarchies
from oracles.levels import simulate_levels
from oracles.trace_oracle import networks

from edgewatt.memory.traces import profile_trace
from hwmodel.caches.cache import simulate_cache
from hwmodel.caches.spec import CacheSpec
from hwmodel.machine import BusSpec, Machine
from hwmodel.replay import replay
from hwmodel.replay.profile import miss_curve, profile_caches
from traces.base.errors import InputError
from traces.trace.chunks import Memory, Trace
from traces.trace_files import export_trace
from traces.trace_files.reader import external_chunk


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=300), st.sampled_from((1, 2, 4)))
def test_the_curve_equals_a_cache_of_every_size(lines, sets):
    curve = miss_curve(np.array(lines, np.uint64), line_bytes=16, sets=sets)
    assert curve.lookups == len(lines)
    assert curve.misses[-1] == len(set(lines))
    for ways, size, misses in zip(curve.ways.tolist(), curve.size_bytes.tolist(), curve.misses.tolist(), strict=True):
        address = np.array(lines, np.uint64) * np.uint64(16)
        counts = simulate_cache(0, address, 4, size_bytes=size, line_bytes=16, ways=ways)
        assert counts.misses == misses and size == ways * sets * 16


BRRIP_BEFORE_MIN = Machine(
    (CacheSpec(32, 8, 1, "brrip", allocate=False), CacheSpec(16, 8, 2, "min", allocate=False)), bus=BusSpec(2, 8)
)


@settings(max_examples=40, deadline=None)
@given(networks, hierarchies())
@example((np.random.default_rng(0), "identity"), BRRIP_BEFORE_MIN)  # MIN must not foresee a flush that does not come
def test_parts_add_up_to_what_the_levels_count(made, machine):
    if not machine.caches:
        return
    trace = a_trace(made)
    found = profile_caches(trace, machine.caches, sets=2)
    op, address, size = (
        np.concatenate([getattr(chunk, name) for chunk in trace]) for name in ("op", "address", "size")
    )
    assert tuple(level.counts for level in found.levels) == simulate_levels(op, address, size, machine.caches)
    stream = np.concatenate([chunk.stream for chunk in trace])
    assert found.levels[0].streams.keys() == {name for k, name in enumerate(_streams()) if (stream == k).any()}
    assert set(found.levels[0].regions) <= {region.name for region in trace.memory.regions} | {"elsewhere"}
    assert found.as_dict()["accesses"] == len(op)
    in_pieces = profile_caches(trace, machine.caches, region_bytes=64)
    assert sum(part.misses for part in in_pieces.levels[0].regions.values()) == found.levels[0].counts.misses


@settings(max_examples=40, deadline=None)
@given(networks, hierarchies())
def test_a_deeper_level_is_looked_up_by_the_streams_that_replay_sends_there(made, machine):
    """A write-back is of its line's last store; it was taken for the access that evicted it."""
    trace = a_trace(made)
    found = profile_caches(trace, machine.caches) if machine.caches else None
    for k, spec in enumerate(machine.caches[1:], 1):
        if spec.line_bytes != machine.caches[k - 1].line_bytes:
            continue
        above = Machine(machine.caches[:k], bus=BusSpec(2, spec.line_bytes), flush=False)
        sent = replay(trace, above).total
        requests = dict(zip(_streams(), (sent.reads + sent.writes).tolist(), strict=True))
        found_there = {name: part.lookups for name, part in found.levels[k].streams.items()}
        assert found_there == {name: n for name, n in requests.items() if n}


def test_look_ups_are_of_the_region_of_their_bytes(tmp_path):
    """A line that begins before its region was elsewhere; objects of libCacheSim shared a line."""
    (tmp_path / "a.din").write_text("r 3c 4\nr 3c 4\nw 38 4\n")
    assert "elsewhere" not in profiled(tmp_path / "a.din").levels[0].regions
    (tmp_path / "b.din").write_text("0 3c\n0 3c\n1 38\n")
    assert profiled(tmp_path / "b.din").levels[0].counts.lookups == 6
    assert profiled(tmp_path / "b.din", access_bytes=4).levels[0].counts.lookups == 3
    lines = np.random.default_rng(0).integers(0, 60, 500).astype(np.uint64)
    export_trace(Trace.from_chunks([external_chunk(lines * np.uint64(64), np.full(500, 64))], Memory(0, 3840, None)),
                 tmp_path / "c.bin", "libcachesim")  # fmt: skip
    wanted = simulate_cache(0, lines * np.uint64(64), 64, size_bytes=2048, line_bytes=64, ways=32).misses
    assert profiled(tmp_path / "c.bin", "2KiB:64:32:lru").levels[0].counts.misses == wanted


def profiled(file, level="32KiB:64:8:lru", access_bytes=None):
    return profile_trace(file, [level], format=None, sets=1, region_bytes=None, access_bytes=access_bytes)


def _streams():
    from traces.trace.chunks import STREAMS

    return STREAMS


def test_what_cannot_be_profiled_is_refused(tmp_path):
    from traces.generators.networks import random_layered
    from traces.trace.build import build_trace

    trace = build_trace(random_layered(3, 8, 0.5, 1))
    for specs, more, words in (
        ((), {}, "at least one cache level"),
        ((CacheSpec(1024),), {"sets": 3}, "power of two"),
        ((CacheSpec(1024),), {"region_bytes": 0}, "region_bytes must be at least 1"),
        ((CacheSpec(1024, bypass=("values",)),), {}, "leave out bypass"),
    ):
        with pytest.raises(InputError, match=words):
            profile_caches(trace, specs, **more)


def test_the_command_prints_tables_and_json(tmp_path):
    import json

    from typer.testing import CliRunner

    from edgewatt.cli import app

    file = tmp_path / "small.din"
    file.write_text("0 1000\n1 1004\n0 2000\n0 1000\n2 1000\n")
    words = ["cache", str(file), "--format", "dinero", "--level", "1KiB:64:2:lru", "--level", "4KiB:64:4:srrip"]
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0 and all(word in shown.output for word in ("miss", "ratio")), shown.output
    found = json.loads(CliRunner().invoke(app, [*words, "--json", "-"]).output)
    assert found["levels"][0]["misses"] == 2 and found["curve"]["points"][-1]["misses"] == 2


@pytest.mark.parametrize("text", ["", "32", "32KB:64:8:lru", "32KiB:64:8:lru:x", "32KiB:x:8", "32KiB:64:8:lrv"])
def test_levels_that_cannot_be_read_are_refused(text):
    from hwmodel.replay.profile import parse_level

    with pytest.raises(InputError, match="cache"):
        parse_level(text)
