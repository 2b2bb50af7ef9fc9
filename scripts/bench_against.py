"""CPU time of one checkout over that of another: python scripts/bench_against.py OLD NEW

OLD, NEW: checkouts with built kernels; OLD may be version 0.1.0, whose modules lay elsewhere. A process of each makes
the same call in turns, so that both see the same moments of a busy machine. Two shares are printed: least time over
least time, and the median of the shares of the rounds. Results: docs/performance/caches.md.
"""

# ruff: noqa: B023 - a call is made before its loop goes on
from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Calls = Iterator[tuple[str, Callable[[], Any]]]


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


def lookups() -> Calls:
    """2^20 look-ups of four streams under four policies."""
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
            yield f"{policy}, {name}, counts only", lambda: kernel.access(op, address, size, False)
            yield f"{policy}, {name}, with the transactions", lambda: kernel.access(op, address, size, True)


def traces() -> Calls:
    """Laying out, walking and replaying a network of 1.4 million connections."""
    from bench_replay import layered

    build = first("traces.access.build:build_trace", "traces.build:build_trace")
    spec = first("hwmodel.caches.spec:CacheSpec", "hwmodel.machine:CacheSpec")
    machine, replay = first("hwmodel.machine:Machine"), first("hwmodel.replay:replay")
    network = layered([1024, 1024, 1024, 512], 0.35)
    for kind in ("csr", "tuples"):
        trace = build(network, layout=kind)
        yield f"{kind}, lay out", lambda: build(network, layout=kind)
        yield f"{kind}, walk", lambda: sum(map(len, trace))
        for size in (32768, 2048):
            for part in (None, "lpddr4-3200"):
                made = machine((spec(size, 64, 8),), encoder="base-xor+dbi-dc", part=part)
                yield f"{kind}, replay {size >> 10} KiB{', DRAM' if part else ''}", lambda: replay(trace, made)


def memory() -> Calls:
    """The DRAM engine."""
    from bench_dram import stream

    load, simulate = (first(f"hwmodel.dram.engine:{name}", f"hwmodel.dram:{name}") for name in _ENGINE)
    part = load("lpddr4-3200")
    for kind in ("sequential", "random"):
        arrays = stream(kind, 100_000)
        yield f"DRAM, {kind}", lambda: simulate(*arrays, part=part)


def networks() -> Calls:
    """Making, checking, keeping and running a network of 786,432 connections."""
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
        yield "network, make", make
        yield "network, check", network.with_
        yield "network, reorder and check", lambda: network.in_order(shuffled)
        yield "network, save", lambda: native(network, file)
        yield "network, load", lambda: ew.load(file)
        yield "network, forward pass", lambda: forward(network)
        yield "network, to int8", lambda: to_bits(network.weights, "int8")


def orders() -> Calls:
    """Counts, constructions and searches on 4 x 500 neurons at 10 %, M = 100."""
    import edgewatt as ew

    random_layered = first("traces.generators.networks:random_layered", "traces.generate:random_layered")
    network = random_layered(4, 500, 0.1, seed=1)
    for policy in ("min", "lru", "rr"):
        yield f"I/Os, {policy}", lambda: ew.count_io(network, memory=100, policy=policy)
        reorder = lambda: ew.order(  # noqa: E731
            network, "connection-reordering", memory=100, policy=policy, iterations=1000
        )
        yield f"connection reordering, {policy}", reorder
    for method in ("two-optimal", "by-source", "depth-first", "ego", "go", "output-stationary"):
        yield f"order, {method}", lambda: ew.order(network, method, memory=100)
    yield "order, residency, 150,000 moves", lambda: ew.order(network, "residency", memory=100, moves=150_000)


def operators() -> Calls:
    """Schedules of generated graphs, with the allocator of version 0.1.0."""
    import edgewatt as ew

    for name, make in (
        ("darts_v2", lambda: ew.cell("darts_v2")), ("amoebanet", lambda: ew.cell("amoebanet")),
        ("randwire ws32", lambda: ew.randwire("ws", 32)), ("randwire ws48", lambda: ew.randwire("ws", 48)),
    ):  # fmt: skip
        yield f"schedule, {name}", lambda: ew.schedule(make(), allocator="linear")


def wires() -> Calls:
    """Encoders on 8 MB, and tuple orders of 3,000 tuples."""
    import scipy.sparse

    import edgewatt as ew

    data = np.random.default_rng(0).integers(0, 256, 1 << 23).astype(np.uint8)
    for chain in ("raw", "dbi-dc", "dbi-ac", "base-xor+dbi-dc", "base-xor-zdr", "transition"):
        yield f"encode, {chain}", lambda: ew.encode(data, chain, element_bytes=2)
    matrix = scipy.sparse.random(20, 1500, 0.1, "csr", random_state=1, dtype=np.float32)
    for stride in (32, 128):
        reorder = lambda: ew.order_tuples(matrix, value_format="fp16", stride=stride, effort=0.2)  # noqa: E731
        yield f"tuples, stride {stride}", reorder


def points() -> Calls:
    """A sweep of 96 small points into a fresh folder, by both timings and without a machine, and of finished points."""
    import tempfile

    import edgewatt as ew

    network = {"generate": {"kind": "random-layered", "n_layers": 3, "width": 16, "density": 0.3}}
    base = {"network": network, "fast_memory": {"size": 8}, "caches": [{"size_bytes": 1024, "ways": 2}]}
    grid = {"encoder": ["raw", "dbi-dc"], "seed": list(range(24)), "fast_memory.size": [6, 8]}

    def sweep(folder: str, **fields: str) -> None:
        ew.sweep({"base": {**base, **fields}, "grid": grid}, results=folder, executor="inline")

    with tempfile.TemporaryDirectory() as folder:
        runs = iter(range(1000))
        for timing in ("replay", "system"):
            yield f"sweep, 96 points, {timing}", lambda: sweep(f"{folder}/{next(runs)}", timing=timing)
        yield "sweep, 96 points, I/O model", lambda: sweep(f"{folder}/{next(runs)}", measure="io")
        yield "sweep, 96 finished points", lambda: sweep(f"{folder}/0", timing="replay")


_ENGINE = ("load_part", "simulate_dram")
SECTIONS = {
    "lookups": lookups, "traces": traces, "memory": memory, "networks": networks, "orders": orders,
    "operators": operators, "wires": wires, "points": points,
}  # fmt: skip


class Tree:
    """A process in which one checkout makes the calls of a section, each when it is asked to."""

    def __init__(self, tree: str, section: str) -> None:
        paths = [tree, f"{tree}/scripts"]
        own = "[f for f in sys.meta_path if not getattr(f, '__module__', '').startswith('__editable__')]"
        program = f"import sys; sys.path[:0] = {paths!r}; sys.meta_path = {own}; __name__ = 'tree'"
        program = f"{program}; exec(open({__file__!r}).read())"  # without what is installed in place
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", f"{program}; answer({section!r})"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def ask(self, text: str) -> str:
        """Send a line and return the answer. Ends the program where the checkout fails."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        return answer.strip() if answer else sys.exit(f"{self.process.args}: ended")


def answer(section: str) -> None:
    """Tell the next call of a section for `next`, the thread CPU seconds that it takes for `time`."""
    calls, work = SECTIONS[section](), None
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        if line.strip() == "next":
            name, work = next(calls, ("", None))
            print(name, file=out, flush=True)
        else:
            start = time.thread_time()
            work()
            print(time.thread_time() - start, file=out, flush=True)


def compare(old: Tree, new: Tree, seconds: float, rounds: int) -> tuple[float, float, int]:
    """Make a call in turns for some seconds and at least 3 rounds; return least over least, the median, the rounds."""
    spent: list[tuple[float, float]] = []
    end = time.monotonic() + seconds
    for tree in (old, new):
        tree.ask("time")  # the first call of each fills its caches
    while len(spent) < 3 or (time.monotonic() < end and len(spent) < rounds):
        first, second = (old, new) if len(spent) % 2 == 0 else (new, old)
        both = {first: float(first.ask("time"))}
        both[second] = float(second.ask("time"))
        spent.append((both[old], both[new]))
    before, after = zip(*spent, strict=True)
    return min(after) / min(before), statistics.median(b / a for a, b in spent), len(spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--section", choices=SECTIONS, action="append")
    parser.add_argument("--only", default="", help="calls whose name holds this")
    parser.add_argument("--seconds", type=float, default=6.0, help="for each call, both checkouts together")
    parser.add_argument("--rounds", type=int, default=40)
    given = parser.parse_args()
    for section in given.section or SECTIONS:
        old, new = Tree(given.old, section), Tree(given.new, section)
        while name := old.ask("next"):
            if new.ask("next") != name:
                sys.exit(f"{section}: the checkouts differ in what they call")
            if given.only in name:
                least, median, rounds = compare(old, new, given.seconds, given.rounds)
                print(f"{name:50} {least:.3f} {median:.3f} ({rounds} rounds)", flush=True)


if __name__ == "__main__":
    main()
