"""Measure the ordering engine: published and known results beside ours, one record per line, resumable.

    python scripts/bench_reorder.py --results bench_reorder.jsonl             # everything that is not in the file yet
    python scripts/bench_reorder.py --results bench_reorder.jsonl --only bert --seeds 1
    python scripts/bench_reorder.py --results bench_reorder.jsonl --table     # print what is there

Time limits count the process's CPU seconds, so a busy machine does not change what is measured. Cases that read
reference instances need EDGEWATT_REFERENCE. gap = (found - lower) / (two-optimal - lower) with lower = W + N + S.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hwmodel.fastmemory.iomodel import count_io, io_bounds
from reorder.edges.search.budget import Budget
from reorder.order import order
from traces.generators.networks import bert_ffn, compact_growth, random_layered
from traces.generators.radixnet import radix_net
from traces.work.network import Network


@dataclass(frozen=True)
class Case:
    """One cell: which network, fast memory and policy, how long, and the gap wanted (None: reported only)."""

    group: str
    name: str
    make: Callable[[], Network]
    memory: int
    policy: str
    seconds: float | None
    wanted: float | None = None
    method: str = "auto"
    against: str | None = None  # another method, with its parameters, on the same network

    @property
    def key(self) -> str:
        """What makes the cell's record findable again."""
        return f"{self.group} {self.name} M={self.memory} {self.policy} {self.seconds}s {self.method}"


def reference(name: str) -> Path:
    """A file of the reference data, or an error that says how to get it found."""
    folder = os.environ.get("EDGEWATT_REFERENCE")
    if not folder:
        raise SystemExit("set EDGEWATT_REFERENCE to the folder of reference data, or choose other cases with --only")
    return Path(folder) / "reorder" / name


@cache
def instance(name: str) -> Network:
    """A reference instance, in its initial order."""
    with gzip.open(reference(f"{name}_edges.csv.gz"), "rt") as file:
        edges = np.loadtxt(file, delimiter=",", skiprows=1, dtype=np.int64)
    with reference(f"{name}_neurons.csv").open() as file:
        rows = list(csv.DictReader(file))
    having = lambda role: [int(row["neuron"]) for row in rows if row["role"] == role]  # noqa: E731
    return Network(edges[:, 0], edges[:, 1], len(rows), having("input"), having("output"), name=name)


def named_cases() -> Iterator[Case]:
    """The cells with a published or known result."""
    d10, d1 = (lambda: instance("ffnn_4x500_d10_s1")), (lambda: instance("ffnn_4x500_d1_s1"))
    for seconds, wanted in ((1, 0.205), (10, 0.198), (60, 0.193)):
        yield Case("d10", "ffnn_4x500_d10_s1", d10, 100, "min", seconds, wanted)
    for seconds, wanted in ((1, 0.52), (10, 0.485), (60, 0.455)):
        yield Case("d1", "ffnn_4x500_d1_s1", d1, 100, "min", seconds, wanted)
    for policy, wanted in (("lru", (0.19, 0.178)), ("rr", (0.43, 0.423))):
        for seconds, gap in zip((15, 60), wanted, strict=True):
            yield Case("d10-others", "ffnn_4x500_d10_s1", d10, 100, policy, seconds, gap)
    yield Case("medium", "App. A 4x500 5 %", lambda: random_layered(4, 500, 0.05, seed=1), 100, "min", 60, 0.3005)
    yield Case("medium", "ffnn_8x300_d10_s4", lambda: instance("ffnn_8x300_d10_s4"), 100, "min", 60, 0.300)
    yield Case("memory", "ffnn_4x500_d10_s1", d10, 30, "min", 20, 0.305)
    yield Case("memory", "ffnn_4x500_d10_s1", d10, 300, "min", 20, 0.277)
    yield Case("width", "App. A 4x250 10 %", lambda: random_layered(4, 250, 0.1, seed=1), 100, "min", 20, 0.308)
    yield Case("width", "App. A 4x1000 10 %", lambda: random_layered(4, 1000, 0.1, seed=1), 100, "min", 20, 0.141)
    for seed in (1, 2, 3):
        sparse = lambda seed=seed: random_layered(4, 500, 0.001, seed=seed)  # noqa: E731
        yield Case("sparse", f"App. A 4x500 0.1 % seed {seed}", sparse, 100, "min", 1, 0.0)
    for seed in (1, 2, 3):
        for seconds, wanted in ((10, 0.145), (60, 0.13)):
            make = lambda seed=seed: bert_ffn(0.1, seed=seed)  # noqa: E731
            yield Case("bert", f"BERT-FFN 10 % seed {seed}", make, 100, "min", seconds, wanted)
    make = lambda: radix_net([[2] * 6], [16] * 7, blocks=20, seed=0)  # noqa: E731
    yield Case("radix", "RadiX-Net 1024 x 120", make, 100, "min", 60, 0.15)
    for grown in (100, 300, 500):
        make = lambda grown=grown: compact_growth(grown, 1000, 5, seed=1)  # noqa: E731
        yield Case("compact", f"Compact Growth Mg={grown}", make, grown, "min", 5, 0.0)
    for name in (
        "ffnn_4x500_d10_s1", "ffnn_4x500_d1_s1", "ffnn_8x300_d10_s4", "radix_1024x4", "compact_growth_mg300"
    ):  # fmt: skip
        for policy in ("min", "lru", "rr"):
            memory = 300 if name.startswith("compact") else 100
            yield Case("reference", name, lambda name=name: instance(name), memory, policy, 20)


def fresh_cases() -> Iterator[Case]:
    """Fresh Appendix A networks, beside Connection Reordering at 10 000 iterations."""
    for seed in (11, 12, 13):
        for density in (0.01, 0.05, 0.1, 0.2):
            make = cache(lambda density=density, seed=seed: random_layered(4, 500, density, seed=seed))
            for memory in (50, 100, 200):
                for policy in ("min", "lru", "rr") if density == 0.1 else ("min",):
                    yield Case(
                        "fresh", f"App. A 4x500 {density:.0%} seed {seed}", make, memory, policy, 5,
                        against="connection-reordering",
                    )  # fmt: skip


def best_known(case: Case) -> int | None:
    """The best total of counts.csv for a reference instance, literal pinning."""
    if case.group != "reference":
        return None
    with reference("counts.csv").open() as file:
        for row in csv.DictReader(file):
            if (row["name"], row["policy"].lower(), row["pinning"]) == (case.name, case.policy, "literal"):
                return int(row["best_known_total"])
    return None


def measure(case: Case, seed: int) -> dict[str, Any]:
    """Run one cell with one seed."""
    network = case.make()
    lower = io_bounds(network).lower_total
    total = lambda edges: count_io(network, edges, memory=case.memory, policy=case.policy).total  # noqa: E731
    upper = total(order(network, "two-optimal", memory=case.memory))
    gap = lambda value: round((value - lower) / (upper - lower), 4) if upper > lower else float(value > lower)  # noqa: E731
    started, wall = time.process_time(), time.perf_counter()
    ordering = order(network, case.method, memory=case.memory, policy=case.policy, seed=seed, time_limit_s=case.seconds)
    record = {
        "key": case.key, "group": case.group, "name": case.name, "memory": case.memory, "policy": case.policy,
        "seconds": case.seconds, "seed": seed, "wanted": case.wanted, "lower": lower, "two_optimal": upper,
        "total": total(ordering), "gap": gap(total(ordering)), "cpu_s": round(time.process_time() - started, 2),
        "wall_s": round(time.perf_counter() - wall, 2), "parameters": dict(ordering.parameters),
        "best_known": best_known(case), "connections": network.n_connections,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "date": time.strftime("%Y-%m-%d"),
    }  # fmt: skip
    if case.against:
        started = time.process_time()
        other = order(network, case.against, memory=case.memory, policy=case.policy, seed=seed)
        record |= {
            "other": case.against, "other_gap": gap(total(other)),
            "other_cpu_s": round(time.process_time() - started, 2),
        }  # fmt: skip
    return record


def print_table(records: list[dict[str, Any]]) -> None:
    """Print the median of each cell over its seeds."""
    cells: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        cells.setdefault(record["key"], []).append(record)
    print("| case | M | policy | limit (CPU s) | seeds | gap (median) | wanted or other | total | CPU s | peak MB |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for rows in cells.values():
        first, median = rows[0], statistics.median(row["gap"] for row in rows)
        other = first["wanted"] if first["wanted"] is not None else ""
        if "other" in first:
            other = f"CR {statistics.median(row['other_gap'] for row in rows):.3f} in {first['other_cpu_s']} s"
        if first["best_known"]:
            other = f"best known {first['best_known']}"
        totals = statistics.median_low(row["total"] for row in rows)
        spent = statistics.median(row["cpu_s"] for row in rows)
        print(
            f"| {first['name']} | {first['memory']} | {first['policy']} | {first['seconds']} | {len(rows)} "
            f"| {median:.4f} | {other} | {totals} | {spent:.1f} | {max(row['peak_rss_mb'] for row in rows)} |"
        )


def main() -> None:
    Budget.clock = staticmethod(time.process_time)  # limits are CPU seconds: the machine may be busy
    """Run the cells that are missing, or print those that are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("bench_reorder.jsonl"))
    parser.add_argument("--only", nargs="*", default=None, help="groups: d10 d1 d10-others medium memory ... fresh")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--table", action="store_true", help="print the table instead of measuring")
    arguments = parser.parse_args()
    records = []
    if arguments.results.exists():
        records = [json.loads(line) for line in arguments.results.read_text().splitlines() if line.strip()]
    if arguments.table:
        print_table(records)
        return
    done = {(record["key"], record["seed"]) for record in records}
    for seed in range(1, arguments.seeds + 1):
        for case in [*named_cases(), *fresh_cases()]:
            wanted = arguments.only is None or case.group in arguments.only
            if not wanted or (case.key, seed) in done or (case.group == "fresh" and seed > 1):
                continue  # fresh networks have seeds of their own
            record = measure(case, seed)
            with arguments.results.open("a") as file:  # one whole line per cell: a killed run loses one cell
                file.write(json.dumps(record) + "\n")
            print(
                f"{case.key} seed {seed}: gap {record['gap']} (wanted {case.wanted}) in {record['cpu_s']} s", flush=True
            )


if __name__ == "__main__":
    main()
