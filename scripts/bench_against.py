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


def networks(found: dict[str, float]) -> None:
    """Time making, checking, keeping and running a network of 786,432 connections."""
    import tempfile

    import edgewatt as ew

    radix_net = first("traces.generators.radixnet:radix_net", "traces.generate_radixnet:radix_net")
    native = first("traces.readers.native:save", "traces.network:save", "traces.readers.npz:save")
    forward = first("traces.work.forward:forward", "traces.forward:forward")
    to_bits = first("traces.formats:to_bits")
    make = lambda: radix_net([[2] * 6], [16] * 7, blocks=4, batch_rows=60)  # noqa: E731
    network = make()
    shuffled = np.random.default_rng(0).permutation(network.n_connections)
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/network.npz"
        native(network, file)
        found["network, make"] = best(make, 5)
        found["network, check"] = best(network.with_, 5)
        found["network, reorder and check"] = best(lambda: network.in_order(shuffled), 5)
        found["network, save"] = best(lambda: native(network, file), 5)
        found["network, load"] = best(lambda: ew.load(file), 5)
        found["network, forward pass"] = best(lambda: forward(network), 5)
        found["network, to int8"] = best(lambda: to_bits(network.weights, "int8"), 5)


def orders(found: dict[str, float]) -> None:
    """Time counts, constructions and searches on 4 x 500 neurons at 10 %, M = 100."""
    import edgewatt as ew

    random_layered = first("traces.generators.networks:random_layered", "traces.generate:random_layered")
    network = random_layered(4, 500, 0.1, seed=1)
    for policy in ("min", "lru", "rr"):
        found[f"I/Os, {policy}"] = best(lambda policy=policy: ew.count_io(network, memory=100, policy=policy))
        reorder = lambda policy=policy: ew.order(  # noqa: E731
            network, "connection-reordering", memory=100, policy=policy, iterations=150
        )
        found[f"connection reordering, {policy}"] = best(reorder, 3)
    for method in ("two-optimal", "by-source", "depth-first", "ego", "go", "output-stationary"):
        found[f"order, {method}"] = best(lambda method=method: ew.order(network, method, memory=100), 3)
    anneal = lambda: ew.order(network, "residency", memory=100, moves=150_000)  # noqa: E731
    found["order, residency, 150,000 moves"] = best(anneal, 3)


def operators(found: dict[str, float]) -> None:
    """Time schedules of generated graphs, with the allocator of version 0.1.0."""
    import edgewatt as ew

    for name, graph in (
        ("darts_v2", lambda: ew.cell("darts_v2")), ("amoebanet", lambda: ew.cell("amoebanet")),
        ("randwire ws32", lambda: ew.randwire("ws", 32)), ("randwire ws48", lambda: ew.randwire("ws", 48)),
    ):  # fmt: skip
        found[f"schedule, {name}"] = best(lambda graph=graph: ew.schedule(graph(), allocator="linear"))


def wires(found: dict[str, float]) -> None:
    """Time encoders on 8 MB, and tuple orders of 3,000 tuples."""
    import scipy.sparse

    import edgewatt as ew

    data = np.random.default_rng(0).integers(0, 256, 1 << 23).astype(np.uint8)
    for chain in ("raw", "dbi-dc", "dbi-ac", "base-xor+dbi-dc", "base-xor-zdr", "transition"):
        found[f"encode, {chain}"] = best(lambda chain=chain: ew.encode(data, chain, element_bytes=2), 5)
    matrix = scipy.sparse.random(20, 1500, 0.1, "csr", random_state=1, dtype=np.float32)
    for stride in (32, 128):
        reorder = lambda stride=stride: ew.order_tuples(  # noqa: E731
            matrix, value_format="fp16", stride=stride, effort=0.2
        )
        found[f"tuples, stride {stride}"] = best(reorder, 3)


def points(found: dict[str, float]) -> None:
    """Time a sweep of 96 small points into a fresh folder, and again where all are finished."""
    import tempfile

    import edgewatt as ew

    network = {"generate": {"kind": "random-layered", "n_layers": 3, "width": 16, "density": 0.3}}
    base = {"network": network, "fast_memory": {"size": 8}, "caches": [{"size_bytes": 1024, "ways": 2}]}
    grid = {"encoder": ["raw", "dbi-dc"], "seed": list(range(24)), "fast_memory.size": [6, 8]}

    def sweep(folder: str) -> None:
        ew.sweep({"base": base, "grid": grid}, results=folder, executor="inline")

    with tempfile.TemporaryDirectory() as folder:
        runs = iter(range(100))
        found["sweep, 96 points"] = best(lambda: sweep(f"{folder}/{next(runs)}"), 5)
        found["sweep, 96 finished points"] = best(lambda: sweep(f"{folder}/0"), 5)


_ENGINE = ("load_part", "simulate_dram")
SECTIONS = {
    "lookups": lookups, "traces": traces, "memory": memory, "networks": networks, "orders": orders,
    "operators": operators, "wires": wires, "points": points,
}  # fmt: skip


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
