"""Hits by stream and region add up to the level's; the miss curve is that of caches of each size."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from machine_strategies import a_trace, hierarchies
from oracles.levels import simulate_levels
from oracles.trace_oracle import networks

from hwmodel.caches.cache import simulate_cache
from hwmodel.caches.spec import CacheSpec
from hwmodel.machine import BusSpec, Machine
from hwmodel.replay.profile import miss_curve, profile_caches
from traces.base.errors import InputError


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
