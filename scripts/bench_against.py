"""CPU time of one checkout over that of another, in alternating processes: python scripts/bench_against.py OLD NEW

OLD, NEW: checkouts with built kernels; OLD may be version 0.1.0, whose modules lay elsewhere. Shares are best time over
best time. Results: docs/performance/caches.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

CALLS = 7


def best(work: Callable[[], Any], calls: int = CALLS) -> float:
    """Return the least thread CPU time of some calls."""
    spent = []
    for _ in range(calls):
        start = time.thread_time()
        work()
        spent.append(time.thread_time() - start)
    return min(spent)


def first(*places: str) -> Any:
    """Import `module:name` from the first place that has it."""
    from importlib import import_module

    for place in places:
        module, name = place.split(":")
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(places)


def lookups(found: dict[str, float]) -> None:
    """Time 2^20 look-ups of four streams under four policies."""
    level_of = first("hwmodel.caches.cache:CacheLevel", "hwmodel.cache:CacheLevel")
    spec = first("hwmodel.caches.spec:CacheSpec", "hwmodel.machine:CacheSpec")
    n, rng = 1 << 20, np.random.default_rng(1)
    op, size = (rng.random(n) < 0.25).astype(np.uint8), np.full(n, 4, np.uint8)
    streams = {"sequential": np.arange(n, dtype=np.uint64) * 4 % (1 << 24)}
    for words in (12, 14, 22):
        streams[f"random in {4 << words >> 10} KiB"] = rng.integers(0, 1 << words, n).astype(np.uint64) * 4
    for policy in ("lru", "fifo", "random", "plru"):
        for name, address in streams.items():
            kernel = level_of(spec(32768, 64, 8, policy=policy))._kernel
            for emit in (False, True):
                what = f"{policy}, {name}, {'with the transactions' if emit else 'counts only'}"
                found[what] = best(lambda k=kernel, a=address, e=emit: k.access(op, a, size, e))


def traces(found: dict[str, float]) -> None:
    """Time laying out, walking and replaying a network of 1.4 million connections."""
    from bench_replay import layered

    build = first("traces.access.build:build_trace", "traces.build:build_trace")
    spec = first("hwmodel.caches.spec:CacheSpec", "hwmodel.machine:CacheSpec")
    machine, replay = first("hwmodel.machine:Machine"), first("hwmodel.replay:replay")
    network = layered([1024, 1024, 1024, 512], 0.35)
    for kind in ("csr", "tuples"):
        trace = build(network, layout=kind)
        found[f"{kind}, lay out"] = best(lambda kind=kind: build(network, layout=kind))
        found[f"{kind}, walk"] = best(lambda trace=trace: sum(map(len, trace)))
        for size in (32768, 2048):
            for part in (None, "lpddr4-3200"):
                made = machine((spec(size, 64, 8),), encoder="base-xor+dbi-dc", part=part)
                what = f"{kind}, replay {size >> 10} KiB{', DRAM' if part else ''}"
                found[what] = best(lambda trace=trace, made=made: replay(trace, made), 5)


def memory(found: dict[str, float]) -> None:
    """Time the DRAM engine."""
    from bench_dram import stream

    load, simulate = (first(f"hwmodel.dram.engine:{name}", f"hwmodel.dram:{name}") for name in _ENGINE)
    part = load("lpddr4-3200")
    for kind in ("sequential", "random"):
        arrays = stream(kind, 100_000)
        found[f"DRAM, {kind}"] = best(lambda arrays=arrays: simulate(*arrays, part=part))


_ENGINE = ("load_part", "simulate_dram")
SECTIONS = {"lookups": lookups, "traces": traces, "memory": memory}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--section", choices=SECTIONS, action="append")
    parser.add_argument("--pairs", type=int, default=3)
    given = parser.parse_args()
    for section in given.section or SECTIONS:
        times: dict[str, dict[str, list[float]]] = {}
        for k in range(given.pairs):
            for tree in (given.old, given.new) if k % 2 == 0 else (given.new, given.old):
                paths = [tree, f"{tree}/scripts"]
                program = f"import sys; sys.path[:0] = {paths!r}; exec(open({__file__!r}).read())"
                done = subprocess.run(
                    [sys.executable, "-P", "-c", f"__name__ = 'one'; {program}; one({section!r})"],
                    capture_output=True, text=True, check=False,
                )  # fmt: skip
                if done.returncode:
                    sys.exit(done.stderr)
                for what, seconds in json.loads(done.stdout).items():
                    times.setdefault(what, {}).setdefault(tree, []).append(seconds)
        for what, spent in times.items():
            print(f"{what:50} {min(spent[given.new]) / min(spent[given.old]):.3f}", flush=True)


def one(section: str) -> None:
    """Print the seconds of one section as JSON."""
    found: dict[str, float] = {}
    SECTIONS[section](found)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
