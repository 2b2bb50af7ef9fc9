"""What replaying a trace costs: python scripts/bench_replay.py [cases] [pieces] [fixed] [--short]

    cases   nanoseconds of CPU an access, for each policy, memory, lanes, encoder, with and without a DRAM part
    pieces  the same for the dearest of them, by the part of the machine that takes it
    fixed   milliseconds of CPU of a replay of a few accesses, which is what every replay pays

Random layered networks with normal weights; thread CPU time, least of ROUNDS. --short: a quarter of the accesses.
Results: docs/performance/caches.md.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from hwmodel.caches.spec import CacheSpec
from hwmodel.fastmemory.scratchpad import ScratchpadSpec
from hwmodel.machine import BusSpec, Machine
from hwmodel.parts.part_file import load_part, part_names
from hwmodel.replay import replay
from traces.access.build import build_trace
from traces.access.trace import Trace
from traces.work.network import Network

ROUNDS = 3
PART, ENCODER = "lpddr4-3200", "base-xor+dbi-dc"


def layered(widths: list[int], density: float) -> Network:
    """Return a random layered network with normal weights."""
    rng = np.random.default_rng(0)
    starts = np.cumsum([0, *widths])
    sources, targets, layers = [], [], []
    for k, (inner, outer) in enumerate(pairwise(widths)):
        target, source = np.nonzero(rng.random((outer, inner)) < density)
        sources.append(source + starts[k])
        targets.append(target + starts[k + 1])
        layers.append(np.full(len(source), k))
    n = int(starts[-1])
    return Network(
        np.concatenate(sources),
        np.concatenate(targets),
        n_neurons=n,
        inputs=np.arange(widths[0]),
        outputs=np.arange(n - widths[-1], n),
        weights=rng.standard_normal(sum(map(len, sources))).astype(np.float32),
        layer=np.concatenate(layers),
        batch=rng.random((1, widths[0])).astype(np.float32),
    )


def least(work: Callable[[], Any]) -> float:
    """Return the least CPU seconds of ROUNDS runs."""
    taken = []
    for _ in range(ROUNDS):
        start = time.thread_time()
        work()
        taken.append(time.thread_time() - start)
    return min(taken)


def machines() -> Iterator[tuple[str, int, Machine]]:
    """Yield the cases: a name, how many lanes the trace has, and the machine."""
    for policy in ("lru", "rr", "min", "plru", "random"):
        for size in (32768, 2048):
            for part in (None, PART):
                cache = CacheSpec(size, 64, 8, policy)
                yield f"{policy} {size // 1024} KiB", 1, Machine((cache,), encoder=ENCODER, part=part)
    for encoder in ("raw", "dbi-dc", "base-xor"):
        for part in (None, PART):
            yield f"lru 2 KiB, {encoder}", 1, Machine((CacheSpec(2048, 64, 8),), encoder=encoder, part=part)
    for part in (None, PART):
        yield "lru 16 KiB", 16, Machine((CacheSpec(16384, 64, 8),), encoder=ENCODER, part=part)
    for policy in ("min", "lru", "rr"):
        for lanes, size in ((1, 2048), (16, 16384)):
            for part in (None, PART):
                spec = ScratchpadSpec(size, policy)
                yield (
                    f"scratchpad {policy} {size // 1024} KiB",
                    lanes,
                    Machine(scratchpad=spec, encoder=ENCODER, part=part),
                )


@functools.cache
def trace_of(kind: str, lanes: int, width: int) -> Trace:
    """Return the trace of a network of three layers."""
    return build_trace(layered([width, width, width, width // 4], 0.35), layout=kind, lanes=lanes)


def cases(width: int) -> None:
    """Print what an access of the engine takes, and what a burst on the wires does."""
    print("layout   lanes  memory                      part            accesses    bursts  ns an access  a burst")
    for kind in ("tuples", "csr"):
        for what, lanes, machine in machines() if kind == "tuples" else itertools.islice(machines(), 4):
            trace = trace_of(kind, lanes, width if lanes == 1 else width // 2)
            taken, counts = least(lambda m=machine, t=trace: replay(t, m)), replay(trace, machine)
            bursts = int((counts.total.reads + counts.total.writes).sum())
            print(
                f"{kind:8}{lanes:6}  {what:28}{machine.part or '-':14}{counts.engine_accesses:10,}{bursts:10,}"
                f"{taken / counts.engine_accesses * 1e9:14.1f}{taken / bursts * 1e9:9.0f}",
                flush=True,
            )


def parts_of_the_machine() -> dict[str, list[tuple[Any, str]]]:
    """Return by name the functions that make up a replay, outermost first."""
    import hwmodel.replay.cache_pass as cache_pass
    import hwmodel.replay.hierarchy as hierarchy
    import hwmodel.replay.play as play
    from hwmodel.bus import Bus
    from hwmodel.caches.cache import CacheLevel
    from hwmodel.coding.streams import StreamChain
    from hwmodel.dram.engine import DramEngine
    from hwmodel.replay.bus_traffic import InFlight, Wires

    return {
        "accesses of the trace": [(cache_pass, "slices")],
        "counts of accesses and requests": [(cache_pass, "count_accesses"), (play, "count_requests")],
        "look-ups": [(CacheLevel, "access")],
        "bytes held, bursts": [(hierarchy.CacheHierarchy, "feed"), (hierarchy.CacheHierarchy, "flush")],
        "policy that knows the future": [(hierarchy, "lookups_of_level"), (CacheLevel, "set_future")],
        "DRAM": [(DramEngine, "feed"), (DramEngine, "finish"), (DramEngine, "result")],
        "requests in flight": [(InFlight, "add"), (InFlight, "served")],
        "encoder": [(StreamChain, "encode")],
        "wires": [(Bus, "send"), (Wires, "send")],
    }


@contextmanager
def watched(spent: dict[str, float]) -> Iterator[None]:
    """Add to `spent` the CPU seconds of each part of the machine, without those of the parts it calls."""
    inside: list[float] = []
    kept = []

    def timed(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def note(start: float) -> None:
            taken = time.thread_time() - start
            spent[name] = spent.get(name, 0.0) + taken - inside.pop()
            if inside:
                inside[-1] += taken

        def call(*args: Any, **given: Any) -> Any:
            inside.append(0.0)
            start = time.thread_time()
            try:
                result = work(*args, **given)
            finally:
                note(start)
            return steps(result) if hasattr(result, "send") else result

        def steps(generator: Iterator[Any]) -> Iterator[Any]:
            while True:
                inside.append(0.0)
                start = time.thread_time()
                try:
                    item = next(generator)
                except StopIteration:
                    return
                finally:
                    note(start)
                yield item

        return call

    for name, functions in parts_of_the_machine().items():
        for owner, attribute in functions:
            kept.append((owner, attribute, getattr(owner, attribute)))
            setattr(owner, attribute, timed(name, kept[-1][2]))
    try:
        yield
    finally:
        for owner, attribute, before in kept:
            setattr(owner, attribute, before)


def pieces(width: int) -> None:
    """Print what each part of the machine takes of an access."""
    chosen = [
        Machine((CacheSpec(2048, 64, 8, policy),), encoder=ENCODER, part=part)
        for policy in ("lru", "min")
        for part in (None, PART)
    ]
    chosen.append(Machine(scratchpad=ScratchpadSpec(2048), encoder=ENCODER, part=PART))
    for machine in chosen:
        trace = trace_of("tuples", 1, width)
        rounds = []
        for _ in range(ROUNDS):
            spent: dict[str, float] = {}
            start = time.thread_time()
            with watched(spent):
                counts = replay(trace, machine)
            rounds.append({**spent, "the rest": time.thread_time() - start - sum(spent.values())})
        best = min(rounds, key=lambda spent: sum(spent.values()))
        memory = machine.scratchpad or machine.caches[0]
        print(
            f"{memory}, {machine.part}: {counts.engine_accesses:,} accesses, "
            f"{counts.total.bursts:,} bursts on the wires"
        )
        for name, taken in sorted(best.items(), key=lambda item: -item[1]):
            print(f"  {name:34}{taken / counts.engine_accesses * 1e9:8.2f} ns an access")
        print(f"  {'together':34}{sum(best.values()) / counts.engine_accesses * 1e9:8.2f}")


def fixed() -> None:
    """Print what a replay of some ten accesses takes, with each part, and what a sweep point of it does."""
    from edgewatt.runs.machine import simulate

    trace = build_trace(layered([4, 4, 2], 0.5), layout="tuples")
    for part in (None, *part_names()):
        block = load_part(part).organisation.burst_bytes if part else 32
        bus = BusSpec(block_bytes=block)
        machine = Machine((CacheSpec(2048, 64, 8),), encoder=ENCODER, part=part, bus=bus)
        first = time.thread_time()
        counts = replay(trace, machine)
        first = time.thread_time() - first
        usual = usual_ms(lambda m=machine: replay(trace, m))
        point = (
            f", a point {usual_ms(lambda m=machine.with_part_read(): simulate(trace, m, 'replay')):.3f} ms"
            if part
            else ""
        )
        name, n = part or "no part", counts.engine_accesses
        print(f"{name:14} {n} accesses: {usual:.3f} ms{point}; the first {1e3 * first:.2f} ms", flush=True)


def usual_ms(work: Callable[[], Any]) -> float:
    """Return the median of the least CPU milliseconds of ROUNDS runs, 20 times."""
    return 1e3 * float(np.median([least(work) for _ in range(20)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", nargs="*", default=["cases", "pieces", "fixed"])
    parser.add_argument("--short", action="store_true")
    given = parser.parse_args()
    width = 512 if given.short else 1024
    for what in given.what:
        {"cases": lambda: cases(width), "pieces": lambda: pieces(width), "fixed": fixed}[what]()
    print(f"largest memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
