"""Measure the DRAM engine and the system: requests per second, instructions per request, overhead per request, memory.

    python scripts/bench_dram.py             # CPU time and memory
    python scripts/bench_dram.py --system    # 16 engines on 16 channels, with caches and wires, alone
    python scripts/bench_dram.py --callgrind # instructions per request (needs valgrind; a few minutes)

CPU time of this thread, so that other processes on the machine do not count; medians of alternating rounds.
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
from dataclasses import replace
from pathlib import Path

import numpy as np

from hwmodel.caches.spec import CacheSpec
from hwmodel.dram.engine import ControllerSpec, DramEngine, load_part, simulate_dram
from hwmodel.machine import EngineSpec, Machine
from hwmodel.system.channels import Channels
from hwmodel.system.simulation import simulate
from traces.access.partition import partition
from traces.access.trace import Chunk, Memory, Trace

# Instructions and requests per second of DRAMsim3 (reference/dram/README.md, section 5).
DRAMSIM3 = {"sequential": (62_700, 68_000), "random": (165_700, 28_000)}
ROUNDS = 11


def stream(kind: str, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return reads of 32 bytes, offered at once: uint64 addresses, is_write, arrivals."""
    burst = np.arange(n) if kind == "sequential" else np.random.default_rng(0).integers(0, 2**25, n)
    return burst.astype(np.uint64) * np.uint64(32), np.zeros(n, np.uint8), np.zeros(n, np.int64)


def cpu_seconds(function, *arguments, **keywords) -> float:
    start = time.thread_time()
    function(*arguments, **keywords)
    return time.thread_time() - start


def requests_per_second(n: int = 200_000) -> None:
    part = load_part("lpddr4-3200")
    streams = {kind: stream(kind, n) for kind in DRAMSIM3}
    times: dict[str, list[float]] = {kind: [] for kind in (*streams, "control")}
    for _ in range(ROUNDS):
        for kind, arrays in streams.items():
            times[kind].append(cpu_seconds(simulate_dram, *arrays, part=part))
        times["control"].append(cpu_seconds(simulate_dram, *streams["random"], part=part))
    for kind, (_, theirs) in DRAMSIM3.items():
        rate = n / statistics.median(times[kind])
        print(f"{kind:11s} {rate / 1e6:.2f} M requests/s, DRAMsim3 {theirs / 1e3:.0f} k: {rate / theirs:.0f} times")
    ratio = statistics.median(a / b for a, b in zip(times["random"], times["control"], strict=True))
    print(f"A/A control {ratio:.3f}")


def system_overhead(n: int = 64 * 4000, block: int = 64) -> None:
    """Same requests, blocks of 64: once by the compiled engine alone, once under SimPy; the difference per request."""
    import simpy

    part, controller = load_part("lpddr4-3200"), ControllerSpec()
    address, write, arrival = stream("sequential", n)
    numbers = np.arange(n)

    def simulated() -> None:
        env = simpy.Environment()
        channels = Channels(env, part, controller, [None], relative=False)

        def source():
            for i in range(0, n, block):
                at = slice(i, i + block)
                yield channels.hand_over(0, numbers[at], address[at], write[at], arrival[at])
            channels.close(0)

        env.process(source())
        env.run()

    alone, system, again = [], [], []
    for _ in range(ROUNDS):
        alone.append(cpu_seconds(simulate_dram, address, write, arrival, part=part))
        system.append(cpu_seconds(simulated))
        again.append(cpu_seconds(simulated))
    overhead = statistics.median(s - a for s, a in zip(system, alone, strict=True)) / n
    control = statistics.median(s / a for s, a in zip(system, again, strict=True))
    print(f"SimPy overhead {overhead * 1e6:.3f} us per request at blocks of {block} (A/A {control:.3f})")


def whole_system(engines: int = 16, channels: int = 16, n: int = 300_000, rounds: int = 3) -> None:
    """Print what a request takes of a simulation with caches and wires: random accesses, a quarter stores."""
    rng, size = np.random.default_rng(0), 1 << 22
    payload, offset = rng.integers(0, 256, 4 * n, dtype=np.uint8), 4 * np.arange(n + 1)
    address = rng.integers(0, size // 4, n).astype(np.uint64) * np.uint64(4)
    op, stream_of = (rng.random(n) < 0.25).astype(np.uint8), rng.integers(0, 4, n).astype(np.uint8)
    chunk = Chunk(address, np.full(n, 4, np.uint8), op, stream_of, offset, payload)
    trace = Trace(lambda: iter([chunk]), Memory(0, size, rng.integers(0, 256, size, dtype=np.uint8), {}), n, {})
    part = load_part("lpddr4-3200")
    address_map = f"offset:5 channel:{channels.bit_length() - 1} column:6 bank:3 row:16"
    part = replace(part, organisation=replace(part.organisation, channels=channels), address_map=address_map)
    for per_clock in (1, 16):
        machine = Machine(
            (CacheSpec(32768, 64, 8),),
            encoder="base-xor+dbi-dc",
            part=part,
            controller=ControllerSpec(requests_per_clock=per_clock),
            engine=EngineSpec(outstanding_misses=16, accesses_per_ns=8.0),
        )
        taken = []
        for _ in range(rounds):
            traces = partition(trace, np.arange(n) * engines // n, engines)
            start = time.thread_time()
            run = simulate(traces, machine)
            taken.append(time.thread_time() - start)
        total = run.counts.total
        requests = int(total.reads.sum() + total.writes.sum())
        print(
            f"{engines} engines on {channels} channels, {per_clock} requests per clock: "
            f"{statistics.median(taken) / requests * 1e6:.2f} us a request of {requests:,}"
        )


def memory_of_long_trace(n: int = 10_000_000, block: int = 1 << 17) -> None:
    """Peak memory of the process after 1 and after 10 million random requests, fed in blocks."""
    engine = DramEngine("lpddr4-3200")
    rng = np.random.default_rng(0)
    write, arrival = np.zeros(block, np.uint8), np.zeros(block, np.int64)
    fed, early, start = 0, 0, time.thread_time()
    while fed < n:
        engine.feed(rng.integers(0, 2**25, block).astype(np.uint64) * np.uint64(32), write, arrival)
        fed += block
        if not early and fed >= n // 10:
            early = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    engine.finish()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = time.thread_time() - start
    print(f"peak memory after {n // 10:,} requests {early / 1024:.1f} MiB, after {fed:,} {peak / 1024:.1f} MiB", end="")
    print(f" ({seconds:.1f} s CPU)")


def instructions(kind: str, n: int) -> int:
    """Count instructions of a whole run of n requests under callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", sys.executable, __file__]
        run = subprocess.run(
            [*command, "--run", kind, str(n)], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip
        return int(re.search(r"Collected : (\d+)", run.stderr)[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--callgrind", action="store_true")
    parser.add_argument("--system", action="store_true")
    parser.add_argument("--run", nargs=2, metavar=("KIND", "N"), help="one run, for callgrind")
    arguments = parser.parse_args()
    if arguments.run:
        simulate_dram(*stream(arguments.run[0], int(arguments.run[1])), part="lpddr4-3200")
    elif arguments.system:
        whole_system()
    elif arguments.callgrind:
        for kind, (theirs, _) in DRAMSIM3.items():
            few, many = 2_000, 22_000
            each = (instructions(kind, many) - instructions(kind, few)) / (many - few)
            print(f"{kind:11s} {each:,.0f} instructions per request, DRAMsim3 {theirs:,}: 1/{theirs / each:.0f}")
    else:
        requests_per_second()
        system_overhead()
        whole_system()
        memory_of_long_trace()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    main()
