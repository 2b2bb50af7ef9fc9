"""Benchmarks of the I/O model and of Connection Reordering; docs/performance/iomodel.md holds their results.

    python scripts/bench_iomodel.py libcachesim      # LRU, RR, MIN against libCacheSim's process_trace, one process
    python scripts/bench_iomodel.py end-to-end       # the same for whole calls of count_io, and against their kernel
    python scripts/bench_iomodel.py instructions     # instructions per access (needs valgrind)
    python scripts/bench_iomodel.py reordering       # incremental against full counting in Connection Reordering
    python scripts/bench_iomodel.py ego              # EGO on density 0.5, 4 layers of 1024

Times are thread CPU seconds; a ratio is the median over alternating rounds, shown with an A/A control.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import cython_ext.iomodel.counts as kernel
from reorder.order import order
from traces.work.network import Network

MEMORY = 100


def cpu_seconds(work: Callable[[], object]) -> float:
    """Thread CPU time of one call."""
    begun = time.thread_time()
    work()
    return time.thread_time() - begun


def compare(ours: Callable[[], object], theirs: Callable[[], object], rounds: int) -> tuple[float, float, float, float]:
    """Return medians: theirs/ours, ours/ours (A/A control), seconds of ours and of theirs. Rounds alternate."""
    for work in (ours, theirs):
        work()  # warm
    rows = [(cpu_seconds(ours), cpu_seconds(theirs), cpu_seconds(ours)) for _ in range(rounds)]
    return (
        statistics.median(2 * b / (a + c) for a, b, c in rows),
        statistics.median(c / a for a, b, c in rows),
        statistics.median((a + c) / 2 for a, b, c in rows),
        statistics.median(b for a, b, c in rows),
    )


def stream(n_connections: int, width: int, kind: str) -> tuple[np.ndarray, np.ndarray, int, np.ndarray]:
    """Sources, targets, N and output mask of two layers: 'miss-heavy' in random order, 'grouped' target by target."""
    rng = np.random.default_rng(1)
    pairs = rng.choice(width * width, n_connections, replace=False)
    if kind == "grouped":
        pairs.sort()
    outputs = np.zeros(2 * width, np.uint8)
    outputs[width:] = 1
    return (pairs % width).astype(np.int32), (pairs // width + width).astype(np.int32), 2 * width, outputs


def write_oracle_general(path: Path, accesses: np.ndarray) -> None:
    """Write libCacheSim's binary format: time, object, size, position of the object's next access (-1: none)."""
    record = np.dtype([("time", "<u4"), ("object", "<u8"), ("size", "<u4"), ("next", "<i8")])
    by_object = np.argsort(accesses, kind="stable")
    following = np.full(len(accesses), -1, np.int64)
    same = accesses[by_object[1:]] == accesses[by_object[:-1]]
    following[by_object[:-1][same]] = by_object[1:][same]
    rows = np.zeros(len(accesses), record)
    rows["time"], rows["object"], rows["size"] = np.arange(len(accesses)), accesses + 1, 1
    rows["next"] = following
    rows.tofile(path)


def bench_libcachesim(rounds: int, connections: int) -> None:
    """Print the table of ratios on miss-heavy and grouped streams."""
    import libcachesim

    theirs = {"lru": libcachesim.LRU, "rr": libcachesim.FIFO, "min": libcachesim.Belady}
    print(f"{2 * connections:,} accesses, C = {MEMORY - 1}, {rounds} rounds; seconds are of thread CPU time")
    print("stream      policy  ours s  libCacheSim s  ratio   A/A   ours ns/access  misses ours / theirs")
    for kind in ("miss-heavy", "grouped"):
        s, t, n, outputs = stream(connections, 4000, kind)
        accesses = np.stack((s, t), axis=1).reshape(-1)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "stream.oracleGeneral"
            write_oracle_general(path, accesses)
            for policy, cache in theirs.items():
                code = kernel.POLICY_CODES[policy]
                misses: list[float] = []

                def play(cache: type = cache, path: Path = path, misses: list[float] = misses) -> None:
                    reader = libcachesim.TraceReader(str(path), libcachesim.TraceType.ORACLE_GENERAL_TRACE)
                    ratio, _ = cache(cache_size=MEMORY - 1, hashpower=16).process_trace(reader)
                    misses.append(ratio)

                def count(code: int = code, s: np.ndarray = s, t: np.ndarray = t) -> np.ndarray:
                    return kernel.count(s, t, n, outputs, MEMORY, code, kernel.LITERAL)  # noqa: B023

                ratio, control, a, b = compare(count, play, rounds)
                reads = int(count()[0])
                print(
                    f"{kind:10}  {policy:6}  {a:6.3f}  {b:13.3f}  {ratio:5.1f}  {control:5.3f}"
                    f"  {1e9 * a / len(accesses):14.2f}  {reads} / {round(misses[0] * len(accesses))}"
                )


def bench_end_to_end(rounds: int, connections: int) -> None:
    """Print whole calls of `count_io` against the kernel alone and libCacheSim, on the miss-heavy stream.

    The order is given as an array for the first time (checked while it is counted) and again (compared with what was
    laid out), as an Ordering (checked once) and as the network's own.
    """
    import libcachesim

    from hwmodel.fastmemory.iomodel import count_io
    from reorder.base import Ordering

    theirs = {"lru": libcachesim.LRU, "rr": libcachesim.FIFO, "min": libcachesim.Belady}
    s, t, n, outputs = stream(connections, 4000, "miss-heavy")
    by_pair = np.lexsort((s, t))
    fields = {"n_neurons": n, "inputs": range(n // 2), "outputs": range(n // 2, n)}
    sorted_network = Network(s[by_pair], t[by_pair], **fields)
    order = np.argsort(by_pair)
    given = {
        "array": (sorted_network, order),
        "again": (sorted_network, order),
        "Ordering": (sorted_network, Ordering(order, "random")),
    }
    given["own order"] = (Network(s, t, **fields), None)
    print(f"{2 * connections:,} accesses, C = {MEMORY - 1}, {rounds} rounds; seconds are of thread CPU time")
    print("policy  order      call s  over its kernel  against libCacheSim")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stream.oracleGeneral"
        write_oracle_general(path, np.stack((s, t), axis=1).reshape(-1))
        for policy, cache in theirs.items():
            code = kernel.POLICY_CODES[policy]
            for name, (network, edges) in given.items():

                def call(
                    network: Network = network, edges: object = edges, policy: str = policy, name: str = name
                ) -> object:
                    array = order.view() if name == "array" else edges  # a new object: it is not known
                    return count_io(network, array, memory=MEMORY, policy=policy)

                def count(code: int = code) -> object:
                    return kernel.count(s, t, n, outputs, MEMORY, code, kernel.LITERAL)

                def play(cache: type = cache) -> object:
                    reader = libcachesim.TraceReader(str(path), libcachesim.TraceType.ORACLE_GENERAL_TRACE)
                    return cache(cache_size=MEMORY - 1, hashpower=16).process_trace(reader)

                over, _, seconds, _ = compare(call, count, rounds)
                ratio, _, _, _ = compare(call, play, max(3, rounds // 3))
                print(f"{policy:6}  {name:9}  {seconds:6.4f}  {1 / over:15.2f}  {ratio:19.1f}")


def bench_instructions(connections: int) -> None:
    """Print instructions per access: callgrind of n + 1 calls less n calls."""
    print("stream      policy  instructions per access (first pass over the stream included)")
    for kind in ("miss-heavy", "grouped"):
        for policy in ("lru", "rr", "min"):
            totals = []
            for calls in (1, 2):
                command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable, __file__]
                command += ["one", "--policy", policy, "--kind", kind, "--calls", str(calls)]
                command += ["--connections", str(connections)]
                counted = subprocess.run(command, capture_output=True, text=True, check=True)
                totals.append(int(re.findall(r"(?:refs|Collected *): +([\d,]+)", counted.stderr)[-1].replace(",", "")))
            print(f"{kind:10}  {policy:6}  {(totals[1] - totals[0]) / (2 * connections):.1f}")


def call_kernel(policy: str, kind: str, calls: int, connections: int) -> None:
    """What bench_instructions runs under callgrind."""
    s, t, n, outputs = stream(connections, 4000, kind)
    for _ in range(calls):
        kernel.count(s, t, n, outputs, MEMORY, kernel.POLICY_CODES[policy], kernel.LITERAL)


def appendix_a_like() -> Network:
    """4 layers of 500 at 10 % and one output, drawn with the project's own generator."""
    from traces.generators.networks import random_layered

    return random_layered(4, 500, 0.1, seed=1)


def bench_reordering(rounds: int, iterations: int, network: Network) -> None:
    """Print seconds of Connection Reordering with full and with incremental counting, same seed and same result."""
    print(f"{network.name}: W = {network.n_connections}, M = {MEMORY}, {iterations} iterations, {rounds} rounds")
    print("policy  full s  incremental s  ratio   A/A  objective")
    for policy in ("min", "lru", "rr"):
        edges: dict[bool, np.ndarray] = {}
        last = [0.0]

        def run(incremental: bool, policy: str = policy, edges: dict = edges, last: list = last) -> None:
            ordering = order(
                network,
                "connection-reordering",
                memory=MEMORY,
                policy=policy,
                seed=1,
                iterations=iterations,
                incremental=incremental,
            )
            edges[incremental] = ordering.edges
            last[0] = ordering.curve[-1][2]

        ratio, control, a, b = compare(lambda: run(True), lambda: run(False), rounds)
        assert (edges[True] == edges[False]).all()
        print(f"{policy:6}  {b:6.2f}  {a:13.2f}  {ratio:5.2f}  {control:5.3f}  {last[0]:.0f}")


def bench_ego() -> None:
    """Print time and peak memory of EGO and GO at density 0.5, 4 layers of 1024."""
    rng = np.random.default_rng(0)
    pairs = [np.argwhere(rng.random((1024, 1024)) < 0.5) + np.array([k * 1024, (k + 1) * 1024]) for k in range(3)]
    edges = np.concatenate(pairs)
    network = Network(*edges.T, n_neurons=4096, inputs=range(1024), outputs=range(3072, 4096))
    for method in ("go", "ego"):
        seconds = cpu_seconds(lambda: order(network, method, memory=MEMORY))  # noqa: B023
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{method}: {network.n_connections} connections, {seconds:.1f} s, peak memory of the process {peak:.0f} MiB"
        )


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("libcachesim", "end-to-end", "instructions", "reordering", "ego", "one"))
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--connections", type=int, default=None)
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--network", help="a network file instead of the generated one (reordering)")
    parser.add_argument("--policy", default="lru")
    parser.add_argument("--kind", default="miss-heavy")
    parser.add_argument("--calls", type=int, default=1)
    given = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    if given.what == "libcachesim":
        bench_libcachesim(given.rounds, given.connections or 5_000_000)
    elif given.what == "end-to-end":
        bench_end_to_end(given.rounds, given.connections or 5_000_000)
    elif given.what == "instructions":
        bench_instructions(given.connections or 500_000)
    elif given.what == "one":
        call_kernel(given.policy, given.kind, given.calls, given.connections or 500_000)
    elif given.what == "ego":
        bench_ego()
    else:
        from traces.readers import load

        network = load(given.network) if given.network else appendix_a_like()
        bench_reordering(given.rounds, given.iterations, network)


if __name__ == "__main__":
    main()
