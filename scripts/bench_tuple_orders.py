"""Measure tuple orders: against the best known orders, exact optima, OR-Tools, popcount, and a large layer.

    python scripts/bench_tuple_orders.py best-known exact or-tools effort kinds long popcount large
        workers dask

Times are CPU seconds of this process (large, workers and dask state seconds of the wall clock). The first
four and popcount's matrices need EDGEWATT_REFERENCE. Results are tabled in docs/performance/wires.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from bench_weights import pruned

import edgewatt as ew


def reference() -> Path:
    folder = os.environ.get("EDGEWATT_REFERENCE")
    if not folder:
        sys.exit("set EDGEWATT_REFERENCE to the folder of reference data")
    return Path(folder) / "cdr"


def matrices() -> Iterator[tuple[str, dict[str, Any], sp.csr_matrix]]:
    for name, facts in json.loads((reference() / "best_known.json").read_text()).items():
        with np.load(reference() / f"{name}.npz") as z:
            yield name, facts, sp.csr_matrix((z["data"], z["indices"], z["indptr"]), shape=tuple(z["shape"]))


def gaussian(rows: int, columns: int, density: float, seed: int) -> sp.csr_matrix:
    dense = np.random.default_rng(seed).normal(0, 0.01, (rows, columns)).astype(np.float32)
    return sp.csr_matrix(dense * (np.abs(dense) > np.quantile(np.abs(dense), 1 - density)))


def timed(matrix: sp.csr_matrix, **kind: Any) -> tuple[Any, float]:
    start = time.process_time()
    result = ew.order_tuples(matrix, bound=False, **kind)
    return result, time.process_time() - start


def best_known() -> None:
    """Default effort and four times that against the best known totals of the reference."""
    print("matrix                 format stride  best known  greedy   ours  vs best  effort 4   ms/tuple  bound gap")
    for name, facts, matrix in matrices():
        for value_format, known in facts["formats"].items():
            for text, best in known["stride"].items():
                stride = text if text == "row" else int(text)
                kind = dict(value_format=value_format, stride=stride)
                ordered, seconds = timed(matrix, **kind)
                more, _ = timed(matrix, effort=4.0, **kind)
                bound = ew.order_tuples(matrix, effort=0, **kind).lower_bound
                goal = sum(best["best_joint"])
                print(
                    f"{name:22} {value_format:6} {text:>6} {goal:10} {sum(best['greedy_joint']):8} {ordered.ones:7} "
                    f"{100 * ordered.ones / goal - 100:+7.2f}% {100 * more.ones / goal - 100:+8.2f}% "
                    f"{1e3 * seconds / matrix.nnz:9.3f} {100 * ordered.ones / bound - 100:8.1f}%",
                    flush=True,
                )


def exact() -> None:
    """Random rows of up to 12 tuples: the search's total against the optimum's."""
    for value_format in ("fp16", "bf16", "int8", "fp32"):
        totals = np.zeros(2, np.int64)
        for seed in range(200):
            n = 3 + seed % 10
            rng = np.random.default_rng(seed)
            ids = np.sort(rng.choice(4096, n, replace=False))
            matrix = sp.csr_matrix((rng.normal(0, 0.01, n).astype(np.float32), ids, [0, n]), shape=(1, 4096))
            kind = dict(value_format=value_format, stride="row")
            totals += [timed(matrix, method=method, **kind)[0].ones for method in ("exact", "local-search")]
        print(f"{value_format}: 200 rows of 3 to 12 tuples, exact {totals[0]}, local-search {totals[1]}", flush=True)


def or_tools() -> None:
    """Greedy descent of OR-Tools' vehicles, same rows, joint objective, fp16."""
    cases = [("gaussian 20 x 4096 at 15 %", gaussian(20, 4096, 0.15, 11), 512)]
    cases += [(name, matrix, 128) for name, _, matrix in matrices()]
    timed(cases[0][1][:1, :50], value_format="fp16", stride=16, method="or-tools-cvrp")  # load the library first
    for name, matrix, stride in cases:
        routed, seconds = timed(matrix, value_format="fp16", stride=stride, method="or-tools-cvrp")
        print(f"{name}, stride {stride}: OR-Tools {routed.ones} ones in {seconds:.2f} s")
        for effort in (0.05, 0.2, 1.0):
            ordered, ours = timed(matrix, value_format="fp16", stride=stride, effort=effort)
            change = 100 * ordered.ones / routed.ones - 100
            print(
                f"    effort {effort:4}: {ordered.ones} ones ({change:+.2f} %) in {ours / seconds:.3f} of its CPU",
                flush=True,
            )


def effort() -> None:
    """Effort against ones: all 36 combinations of the reference (change from the best known), and stride 128 alone."""
    efforts = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
    changes: dict[float, list[float]] = {e: [] for e in efforts}
    seconds: dict[float, list[float]] = {e: [] for e in efforts}
    for name, facts, matrix in matrices():
        for value_format, known in facts["formats"].items():
            for text, best in known["stride"].items():
                stride = text if text == "row" else int(text)
                row = []
                for e in efforts:
                    ordered, spent = timed(matrix, effort=e, value_format=value_format, stride=stride)
                    changes[e].append(100 * ordered.ones / sum(best["best_joint"]) - 100)
                    seconds[e].append(1e3 * spent / matrix.nnz)
                    row.append(f"{changes[e][-1]:+.2f} % ({seconds[e][-1]:.3f})")
                if stride == 128:
                    print(f"{name} {value_format} stride 128: {', '.join(row)}", flush=True)
    for e in efforts:
        print(
            f"effort {e:4}: {np.mean(changes[e]):+.2f} % on average, worst {max(changes[e]):+.2f} %; "
            f"{np.mean(seconds[e]):.3f} ms CPU a tuple on average, most {max(seconds[e]):.3f}"
        )


def data_kinds(rows: int = 64, columns: int = 2048, density: float = 0.2) -> Iterator[tuple[str, sp.csr_matrix, str]]:
    """Name, matrix and value format of five kinds of data, of which the reference has the third alone."""
    rng = np.random.default_rng(5)
    mask = rng.random((rows, columns)) < density
    clusters = np.repeat(rng.random((rows, columns // 32)) < density, 32, axis=1)
    normal = rng.normal(0, 0.01, (rows, columns)).astype(np.float32)
    yield "random", sp.csr_matrix(normal * mask), "fp16"
    yield "clustered", sp.csr_matrix(normal * clusters), "fp16"
    for name, _, matrix in matrices():
        if name.startswith("resnet8"):
            yield name, matrix, "fp16"
    sixteen = rng.choice(rng.normal(0, 0.01, 16), (rows, columns)).astype(np.float32)
    yield "16 values", sp.csr_matrix(sixteen * mask), "fp16"
    yield "random int8", sp.csr_matrix(normal * mask), "int8"


def kinds() -> None:
    """Five kinds of data, stride 128: CPU microseconds a tuple of `default` (effort 1) and `fast`, and their ones."""
    for name, matrix, value_format in data_kinds():
        kind: dict[str, Any] = dict(value_format=value_format, stride=128)
        timed(matrix[:1], effort="fast", **kind)  # what is loaded at the first call
        default, slow = timed(matrix, **kind)
        fast, quick = min((timed(matrix, effort="fast", **kind) for _ in range(3)), key=lambda pair: pair[1])
        print(
            f"{name} {value_format}, {matrix.nnz} tuples: default {1e6 * slow / matrix.nnz:.1f} us, "
            f"fast {1e6 * quick / matrix.nnz:.2f} us, {100 * fast.ones / default.ones - 100:+.2f} % ones",
            flush=True,
        )


def long() -> None:
    """One row of n normal weights, fp16, whole-row stride: ones against greedy, CPU microseconds a tuple."""
    for n, efforts in ((5000, (0.0, 0.1, 1.0)), (30000, (0.0, 0.1))):
        row = sp.csr_matrix(np.random.default_rng(n).normal(0, 0.01, (1, n)).astype(np.float32))
        kind: dict[str, Any] = dict(value_format="fp16", stride="row")
        greedy, spent = timed(row, method="greedy", **kind)
        told = [f"greedy {1e6 * spent / n:.1f} us"]
        for e in efforts:
            ordered, spent = timed(row, effort=e, **kind)
            told.append(f"effort {e:g} {100 * ordered.ones / greedy.ones - 100:+.2f} %, {1e6 * spent / n:.1f} us")
        print(f"{n} tuples: {'; '.join(told)}", flush=True)


def popcount() -> None:
    """Toggles on an unterminated bus as wide as an element, values alone."""
    for name, _, matrix in matrices():
        for value_format in ("int8", "fp32"):
            kind = dict(value_format=value_format, stride="row", encoder="raw", metric="toggles", objective="values")
            ours, _ = timed(matrix, **kind)
            theirs, _ = timed(matrix, method="popcount", **kind)
            print(
                f"{name:22} {value_format}: given {ours.original_cost}, popcount {theirs.cost} "
                f"({100 * theirs.cost / ours.original_cost - 100:+.1f} %), local-search {ours.cost} "
                f"({100 * ours.cost / ours.original_cost - 100:+.1f} %; {100 * ours.cost / theirs.cost - 100:+.1f} % "
                "against popcount)",
                flush=True,
            )


def large() -> None:
    """A 4096 x 4096 layer at 9 %, stride 128, two worker processes; OR-Tools from a sample of 8 rows."""
    matrix = gaussian(4096, 4096, 0.09, 3)
    start, own = time.perf_counter(), time.process_time()
    ordered = ew.order_tuples(matrix, value_format="fp16", stride=128, workers=2, bound=False)
    wall, children = time.perf_counter() - start, os.times()
    cpu = time.process_time() - own + children.children_user + children.children_system
    print(f"{matrix.nnz} tuples: {ordered.original_ones} -> {ordered.ones} ones, {wall:.0f} s wall, {cpu:.0f} s CPU")
    sample = matrix[:8]
    routed, seconds = timed(sample, value_format="fp16", stride=128, method="or-tools-cvrp")
    whole = seconds * matrix.nnz / sample.nnz
    print(f"OR-Tools, 8 rows: {seconds:.1f} s for {sample.nnz} tuples, so {whole:.0f} s CPU for all (extrapolated)")
    print(f"ones of those rows: OR-Tools {routed.ones}, ours {timed(sample, value_format='fp16', stride=128)[0].ones}")


def timed_workers(rows: int, control: bool) -> None:
    """Print seconds of the wall clock of one matrix of `rows` x 5494 at 50 %, effort 0, by one and by two workers."""
    from distributed import LocalCluster

    kind: dict[str, Any] = dict(value_format="fp16", stride=128, effort=0, bound=False)
    matrix = sp.csr_matrix(pruned(rows, 5494, np.float16, 3).astype(np.float32))
    ew.order_tuples(matrix[:8], **kind)  # what is loaded at the first call

    def clocked(**by: Any) -> tuple[float, str]:
        start = time.perf_counter()
        ordered = ew.order_tuples(matrix, **kind, **by)
        return time.perf_counter() - start, hashlib.sha256(ordered.positions.tobytes()).hexdigest()[:8]

    def told(what: str, seconds: float, order: str = "") -> None:
        print(f"{what}: {seconds:.2f} s wall, {alone / seconds:.2f} times one worker {order}", flush=True)

    alone, same = clocked()
    told(f"{matrix.nnz} tuples, one worker", alone, same)
    told("two threads", *clocked(workers=2))
    if control:
        own = [[sys.executable, __file__, "one-of-two", str(rows)] for _ in range(2)]
        both = [subprocess.Popen(each, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for each in own]
        for process in both:
            process.stdout.readline()  # type: ignore[union-attr]
        for process in both:
            process.stdin.close()  # type: ignore[union-attr]
        slower = max(float(process.stdout.readline()) for process in both)  # type: ignore[union-attr]
        told("control, two such calls at once in two processes, by the slower, a call", slower / 2)
        return
    told("two processes, their start included", *clocked(workers=2, executor="processes"))
    told("two over Dask, the cluster's start included", *clocked(workers=2, executor="dask"))
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        ew.order_tuples(matrix[:100], **kind, scheduler=cluster.scheduler_address)
        told("two over Dask on a cluster that runs", *clocked(scheduler=cluster.scheduler_address))


def one_of_two(rows: int) -> None:
    """Order the matrix of `workers` when standard input closes, and say how long it took."""
    kind: dict[str, Any] = dict(value_format="fp16", stride=128, effort=0, bound=False)
    matrix = sp.csr_matrix(pruned(rows, 5494, np.float16, 3).astype(np.float32))
    ew.order_tuples(matrix[:8], **kind)
    print("ready", flush=True)
    sys.stdin.read()
    start = time.perf_counter()
    ew.order_tuples(matrix, **kind)
    print(time.perf_counter() - start, flush=True)


def workers() -> None:
    """2.25e7 tuples, effort 0, by one worker and by two, and two independent calls at once: what the machine gives."""
    timed_workers(8192, control=True)


def dask() -> None:
    """1.1e7 tuples, effort 0, by one worker, by two threads and processes, and by two workers over Dask."""
    timed_workers(4096, control=False)


SECTIONS = {
    "best-known": best_known,
    "exact": exact,
    "or-tools": or_tools,
    "effort": effort,
    "kinds": kinds,
    "long": long,
    "popcount": popcount,
    "large": large,
    "workers": workers,
    "dask": dask,
}

if __name__ == "__main__":
    if sys.argv[1:2] == ["one-of-two"]:
        sys.exit(one_of_two(int(sys.argv[2])))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", choices=[[], *SECTIONS], metavar="SECTION", help="default: all")
    for name in parser.parse_args().sections or SECTIONS:
        print(f"== {name}: {SECTIONS[name].__doc__}")
        SECTIONS[name]()
