"""What libCacheSim reads from our export, and its misses against ours (fully associative: one set)."""

import numpy as np
import pytest
from oracles.trace_oracle import random_network, topological_order

from hwmodel.caches.cache import simulate_cache
from traces.trace.build import build_trace
from traces.trace.chunks import touched_lines
from traces.trace_files.writer import export_trace

libcachesim = pytest.importorskip("libcachesim", reason="libcachesim is not installed: pip install libcachesim")


@pytest.mark.parametrize(("theirs", "ours"), [("LRU", "lru"), ("FIFO", "fifo"), ("Belady", "min")])
@pytest.mark.parametrize("ways", [4, 16])
def test_misses_equal_libcachesim(tmp_path, theirs, ours, ways):
    rng = np.random.default_rng(9)
    network = random_network(rng)
    trace = build_trace(network, topological_order(network, rng, rows=False))
    path = tmp_path / "trace.oracleGeneral"
    written = export_trace(trace, path, "libcachesim", line_bytes=32)
    lines = np.concatenate([touched_lines(chunk.address, chunk.size, 32)[0] for chunk in trace])
    assert written == len(lines)
    reader = libcachesim.TraceReader(str(path), libcachesim.TraceType.ORACLE_GENERAL_TRACE)
    miss_ratio, _ = getattr(libcachesim, theirs)(ways * 32).process_trace(reader)
    counts = simulate_cache(0, lines * np.uint64(32), 1, size_bytes=ways * 32, line_bytes=32, ways=ways, policy=ours)
    assert round(miss_ratio * written) == counts.misses
