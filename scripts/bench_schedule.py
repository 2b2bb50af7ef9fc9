"""Measure operator scheduling: python scripts/bench_schedule.py [--quick].

Times are thread CPU time (time.thread_time), median of 5 runs for searches under a second; whole processes are measured
by their user plus system time, Python's own start-up stated apart. Rows from the reference data need
EDGEWATT_REFERENCE.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from edgewatt.operators.request import load_graph
from reorder.operators.schedule.schedule import schedule
from traces.work.opgraph import OpGraph

WHOLE = """
import sys, edgewatt as ew
graph = ew.load(sys.argv[1])
found = ew.schedule(graph)
print(ew.footprint(graph).peak_bytes, found.peak_bytes, found.proved)
"""


def reference_graph(name: str) -> OpGraph | None:
    """Return a graph of the reference data, or None without it."""
    from traces.readers.opgraph_json import from_dict

    path = Path(os.environ.get("EDGEWATT_REFERENCE", "")) / "schedule" / f"{name}.json"
    if not path.is_file():
        return None
    value = json.loads(path.read_text())
    return from_dict({key: value[key] for key in ("name", "nodes", "outputs")})


def measure(work: Callable[[], Any], least: int = 5) -> tuple[Any, float]:
    """Return the result and the median seconds of thread time (one run where it takes longer than a second)."""
    times = []
    result = None
    for _ in range(least):
        started = time.thread_time()
        result = work()
        times.append(time.thread_time() - started)
        if times[0] > 1:
            break
    return result, statistics.median(times)


def row(name: str, graph: OpGraph, **options: Any) -> None:
    """Print one line of the table."""
    plan, seconds = measure(lambda: schedule(graph, **options))
    gap = 100 * (plan.peak_bytes / plan.lower_bound_bytes - 1)
    verdict = "proved" if plan.proved else f"at least {plan.lower_bound_bytes:,} (gap {gap:.1f} %)"
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"| {name} | {graph.n_nodes:,} | {plan.peak_bytes:,} | {verdict} | {plan.states:,} | {1000 * seconds:,.1f} | "
        f"{memory:,.0f} |",
        flush=True,
    )


def whole_process(model: Path) -> None:
    """Time reading and scheduling a model as a process of its own."""

    def cpu(*arguments: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    start = statistics.median(cpu("-c", "pass") for _ in range(11))
    whole = statistics.median(cpu("-c", WHOLE, str(model)) for _ in range(11))
    print(f"\n{model.name}: {whole:.3f} s of CPU time for the whole process, of which Python's start-up {start:.3f} s")


def main() -> None:
    """Print the tables of docs/performance/schedule.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="leave out what takes longer than a few seconds")
    quick = parser.parse_args().quick
    schedule(load_graph("darts_v2"), method="large")  # load kernels and libraries before the clock runs
    print("| graph | operators | peak, bytes | | states | ms | process MB |\n|---|---|---|---|---|---|---|")
    for name in ("swiftnet_62_folded", "swiftnet_62_rewritten", "swiftnet_file_86"):
        graph = reference_graph(name)
        if graph is not None:
            row(name, graph)
    for name in ("randwire-ws48", "randwire-ws64", "randwire-ws80", "randwire-ws80-seed1", "randwire-ws80-seed2"):
        row(name, load_graph(name))
    if not quick:
        for name in ("randwire-ws96", "randwire-ba80", "randwire-er100"):
            row(name, load_graph(name))
        row("145 stages of randwire-ws32", _deep(), method="large", time_limit_s=60)
        for name, limit in (("ws128", 10), ("ws200", 10), ("ws1000", 10), ("ws5000", 20)):
            row(f"randwire-{name}, {limit} s", load_graph(f"randwire-{name}"), method="large", time_limit_s=limit)
    model = Path(os.environ.get("EDGEWATT_REFERENCE", "")) / "models" / "swiftnet_vww_uint8.tflite"
    if model.is_file():
        whole_process(model)


def _deep() -> OpGraph:
    """A deep network of 4,786 operators: 145 randomly wired stages, each fed by the one before."""
    from dataclasses import replace

    from traces.generators.operators import randwire
    from traces.work.opgraph import Operator

    nodes: list[Operator] = []
    last = ""
    for stage in range(145):
        part = randwire("ws", 32, seed=stage, size=32)
        rename = {t: (last if t == "input" and stage else f"{stage}/{t}") for t in part.tensors}
        for node in part.nodes[1 if stage else 0 : -1]:
            tensor = replace(node.output, name=f"{stage}/{node.name}", buffer=f"{stage}/{node.name}")
            nodes.append(
                replace(node, name=tensor.name, inputs=tuple(rename[name] for name in node.inputs), outputs=(tensor,))
            )
        last = nodes[-1].name
    return OpGraph("deep", tuple(nodes), (last,))


if __name__ == "__main__":
    main()
