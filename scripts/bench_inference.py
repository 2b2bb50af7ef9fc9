"""Measure inference on this processor: the libraries, the cost model, misses of the first cache, the papers' figures.

    python scripts/bench_inference.py libraries            # the table of docs/performance/inference.md
    python scripts/bench_inference.py prediction           # predicted and measured time, orders that were not fitted
    python scripts/bench_inference.py misses               # predicted and cachegrind's D1 misses (gcc, valgrind)
    python scripts/bench_inference.py gleinig-7a gleinig-7b gleinig-7c gleinig-8 ego-3
    python scripts/bench_inference.py threads dtypes
    python scripts/bench_inference.py libraries --network "app-a 1 %" --network "bert-ffn 1 %" --simd avx2

Every line is JSON. Ratios are medians of per-round ratios of thread CPU time, with an A/A control; --simd avx2
gives the AVX2 figures. The figures of the papers are repeated with the machine, libraries and kernel of today: what can
be compared is the shape of the curves, not times.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import edgewatt as ew
from edgewatt.checks.clocks import one_core
from hwmodel.processor.calibration import calibrate, seconds_of, this_cpu
from hwmodel.processor.cost import l1_misses
from hwmodel.processor.inference import compile_inference
from hwmodel.processor.work import ordered_work
from reorder.order import order
from traces.generators.networks import bert_ffn, random_layered, uniform_layers
from traces.generators.radixnet import radix_net
from traces.work.network import Network

Results = Iterator[dict[str, Any]]
SPARSE = ["scipy", "torch", "mkl"]
ONE_VECTOR = "app-a 10 %, one vector"
RADIX = [[32, 32]]  # 1024 neurons, 32 connections each

NETWORKS: dict[str, Callable[[], Network]] = {
    "app-a 0.1 %": lambda: random_layered(4, 500, 0.001),
    "app-a 1 %": lambda: random_layered(4, 500, 0.01),
    "app-a 10 %": lambda: random_layered(4, 500, 0.1),
    "4 x 500 + 1, 100 %": lambda: uniform_layers([500, 500, 500, 500, 1], 1.0),
    "bert-ffn 1 %": lambda: bert_ffn(0.01),
    "bert-ffn 10 %": lambda: bert_ffn(0.1),
    "radix-net 16": lambda: radix_net(RADIX, blocks=8),
    "radix-net 120": lambda: radix_net(RADIX, blocks=60),
}


def compared(network: Network, **options: Any) -> dict[str, Any]:
    """One comparison as numbers: how many times longer each library takes than ours."""
    result = ew.bench(network, **options)
    return {
        "connections": result.connections, "batch": result.batch, "order": result.order, "lanes": result.lanes,
        "simd": result.simd, "us": round(next(r.microseconds for r in result.rows if r.name == "edgewatt"), 1),
        "times": {row.name: round(row.times, 2) for row in result.rows}, "aa": round(result.aa, 3),
        "of_fma_peak": round(result.fma_share, 3), "predicted_us": round(result.predicted_microseconds, 1),
        "missing": result.missing,
    }  # fmt: skip


def libraries(chosen: list[str], simd: str | None) -> Results:
    """The networks of the table, and one input vector at 10 %."""
    for name, make in NETWORKS.items():
        if name in chosen:
            yield {"network": name, **compared(make(), peers=None if "100 %" in name else SPARSE, simd=simd)}
    if ONE_VECTOR in chosen:
        yield {"network": ONE_VECTOR, **compared(NETWORKS["app-a 10 %"](), batch=1, peers=SPARSE, simd=simd)}


def dtypes() -> Results:
    """Microseconds for 128 vectors, inputs packed, and in brackets not; the fastest float32 order for all."""
    for name in ("app-a 1 %", "app-a 10 %", "bert-ffn 1 %", "bert-ffn 10 %"):
        network = NETWORKS[name]()
        with one_core():
            fastest = ew.fastest_order(network, this_cpu(), lanes=(64, 128))
            vectors = np.random.default_rng(0).random((128, len(network.inputs)), np.float32)
            row: dict[str, Any] = {"network": name, "order": dict(fastest.ordering.parameters), "lanes": fastest.lanes}
            for dtype in ("float32", "bf16", "int8"):
                made = compile_inference(
                    network, fastest.ordering, lanes=fastest.lanes, dtype=dtype, calibration=vectors
                )
                packed = made.pack(vectors)
                both = [seconds_of(lambda made=made, x=x: made.run(x)) * 1e6 for x in (packed, vectors)]  # type: ignore[misc]
                row[dtype] = [round(x, 1) for x in both]
            yield row


def banded(width: int, layers: int, half: int, seed: int = 5) -> Network:
    """Every neuron is fed by four fifths of those at most `half` places beside it. Stored by source."""
    near = np.abs(np.subtract.outer(np.arange(width), np.arange(width))) <= half
    rng = np.random.default_rng(seed)
    pairs = [np.argwhere(near & (rng.random(near.shape) < 0.8)) + layer * width for layer in range(layers)]
    sources, targets = np.concatenate(pairs).T
    n = (layers + 1) * width
    return Network(
        sources, targets + width, n, inputs=np.arange(width), outputs=np.arange(n - width, n),
        weights=rng.normal(size=len(sources)), biases=np.zeros(n),
    )  # fmt: skip


def unseen() -> Iterator[tuple[str, Network, str, Any]]:
    """Networks and orders that the probe does not contain."""
    networks = {
        "app-a 10 %": random_layered(4, 500, 0.1, 7), "app-a 1 %": random_layered(4, 500, 0.01, 7),
        "bert-ffn 5 %": bert_ffn(0.05), "radix-net 4": radix_net(RADIX, blocks=2),
        "3 x 700, 2 %": uniform_layers([700, 700, 700], 0.02, 77),
        "3 x 300, 5 %": uniform_layers([300, 300, 300], 0.05, 78),
        "banded, 4 x 600": banded(600, 3, 12), "radix-net 18 x 18": radix_net([[18, 18]], blocks=2),
    }  # fmt: skip
    for name, network in networks.items():
        yield name, network, "as stored", None
        for tile in (150, 64):
            ordering = order(network, "tiles", memory=100, targets=1, sources=tile, outer="sources")
            yield name, network, f"tiles {tile}", ordering
        for method in ("random-topological", "by-source", "depth-first"):
            yield name, network, method, order(network, method, memory=100)
        for what in ({"near": 96}, {"sources": 200, "pairs": True}):
            yield name, network, " ".join(map(str, what)), order(network, "long-runs", memory=100, **what)


def larger() -> Iterator[tuple[str, Network, str, Any]]:
    """Networks whose streams leave the second cache; the first four are those of the table of the libraries."""
    networks = {
        "bert-ffn 10 %": bert_ffn(0.1), "4 x 500 + 1, 100 %": uniform_layers([500, 500, 500, 500, 1], 1.0),
        "radix-net 16": radix_net(RADIX, blocks=8), "radix-net 120": radix_net(RADIX, blocks=60),
        "6 x 900, 20 %": uniform_layers([900] * 6, 0.2, 79),
        "1200, 300, 1200, 100 %": uniform_layers([1200, 300, 1200], 1.0),
        "radix-net 16 x 64, 8": radix_net([[16, 64]], blocks=4), "banded, 4 x 2000": banded(2000, 3, 40),
    }  # fmt: skip
    for name, network in networks.items():
        yield name, network, "as stored", None
        for what in ({"sources": 176, "alike": True}, {"sources": 256, "pairs": True}, {"alike": True, "pairs": True}):
            yield name, network, " ".join(map(str, what)), order(network, "long-runs", memory=100, **what)


def prediction() -> Results:
    """Calibrate, then predict; a line per order and lanes, and a summary per network.

    Every order is measured in two sweeps, seconds apart, and the less of both counts: a burst of other work is shorter.
    """
    from scipy.stats import spearmanr

    with one_core():
        cases = [(*case, lanes) for each in (unseen, larger) for case in each() for lanes in (64, 128)]
        steps = []
        for _name, network, _method, ordering, lanes in cases:
            made = compile_inference(network, ordering, lanes=lanes)
            inputs = made.pack(np.random.default_rng(0).random((lanes, len(network.inputs)), np.float32))
            steps.append(partial(made.run, inputs))
        processor = calibrate()
        measured = np.min([[seconds_of(step) for step in steps] for _ in range(2)], axis=0)
    pairs: dict[str, list[tuple[float, float]]] = {}
    for (name, network, method, ordering, lanes), seconds in zip(cases, measured.tolist(), strict=True):
        predicted = processor.seconds(network, ordering, lanes=lanes)
        pairs.setdefault(name, []).append((seconds, predicted))
        yield {
            "network": name, "order": method, "lanes": lanes, "measured_us": round(seconds * 1e6, 1),
            "predicted_us": round(predicted * 1e6, 1), "ratio": round(predicted / seconds, 3),
        }  # fmt: skip
    for name, found_pairs in pairs.items():
        ratios = np.array([p / m for m, p in found_pairs])
        yield {
            "network": name, "rank_correlation": round(float(spearmanr(*zip(*found_pairs, strict=True)).statistic), 3),
            "median_error": round(float(np.median(np.abs(ratios - 1))), 3),
            "within_15_percent": f"{int((np.abs(ratios - 1) <= 0.15).sum())} of {len(ratios)}",
            "worst": round(float(ratios[np.argmax(np.abs(np.log(ratios)))]), 3),
        }  # fmt: skip


DRIVER = """
#include <stdio.h>
#include <stdlib.h>
#include "inference/runs.h"
/* The AVX-512 kernel, a float for each vector of 64 bytes: the same lines. Cachegrind knows no AVX-512. */
#define LEVEL lines
#define TARGET
#define V float
#define WIDTH 16
#define EW_PAIRS 1
#define LOAD(p) (*(p))
#define STORE(p, x) (*(p) = (x))
#define SET1(x) (x)
#define FMA(a, b, c) ((a) * (b) + (c))
#define ADD(a, b) ((a) + (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define NOT_ZERO(s, x) ((s) != 0 ? (x) : 0)
#define QUAD ew_v4
#define LOAD_QUAD_F32(p) (*(const ew_v4 *)(p))
#define LOAD_QUAD_BF16(p) ((ew_v4){ew_bf16(p), ew_bf16((p) + 1), ew_bf16((p) + 2), ew_bf16((p) + 3)})
#define PICK(q, k) (q)[k]
#include "inference/runs_body.h"
static void *table(const char *name, long words) {
    void *found = aligned_alloc(4096, (words * 4 / 4096 + 2) * 4096);
    FILE *file = fopen(name, "rb");
    if (!file || fread(found, 4, words, file) != (size_t)words) exit(1);
    return found;
}
int main(int argc, char **argv) {
    long n[6];
    for (int k = 0; k < 6; k++) n[k] = atol(argv[k + 1]);
    const ew_run *runs = table("runs", n[0]);
    const char *places = table("places", n[1]), *weights = table("weights", n[2]);
    char *rows = aligned_alloc(4096, (2 * n[3] / 4096 + 2) * 4096);
    memset(rows, 0, 2 * n[3]);
    for (long t = 0; t < n[5]; t++)
        ew_columns_lines(runs, runs + (n[0] - 16) / 4, places, weights, rows, rows + n[3], n[4], atoi(argv[7]));
    return 0;
}
"""


def misses() -> Results:
    """Cachegrind's D1 misses of one pass (runs of 3 passes minus 2) beside the prediction, 64 lanes, runs in pairs.

    A line per order and a summary per network.
    """
    lanes, l1 = 64, 48 << 10
    found_ratios: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "driver.c").write_text(DRIVER)
        include = str(Path(__file__).parents[1] / "cython_ext")
        subprocess.run(
            ["gcc", "-O2", "-w", "-I", include, "driver.c", "-o", "driver"], cwd=here,
            check=True,
        )  # fmt: skip
        for name, network, method, ordering in unseen():
            made = compile_inference(network, ordering, lanes=lanes)
            work = ordered_work(network, ordering)
            for table, words in zip(("runs", "places", "weights"), made._stream, strict=True):
                words.tofile(here / table)
            numbers = [*map(len, made._stream), made.arena_bytes, lanes]
            counts = []
            for times in (2, 3):
                command = [
                    "valgrind", "--tool=cachegrind", "--cache-sim=yes", f"--D1={l1},12,64", "--cachegrind-out-file=out",
                    "./driver", *map(str, (*numbers, times, made._kind)),
                ]  # fmt: skip
                done = subprocess.run(command, cwd=here, check=True, capture_output=True, text=True)
                line = next(x for x in done.stderr.splitlines() if "D1  misses" in x)
                counts.append(int(line.split()[3].replace(",", "")))
            measured = counts[1] - counts[0]
            predicted = l1_misses(work, lanes, (l1, 12), made._pairs)
            found_ratios.setdefault(name, []).append(predicted / measured)
            yield {
                "network": name, "order": method, "pairs": int(np.count_nonzero(work.shared)), "d1_misses": measured,
                "predicted": predicted, "ratio": round(predicted / measured, 3),
            }  # fmt: skip
    for name, ratios in found_ratios.items():
        yield {"network": name, "orders": len(ratios), "least": round(min(ratios), 3), "most": round(max(ratios), 3)}


def gleinig(names: dict[str, Network]) -> Results:
    """Time of MKL, of the order by targets, and of Connection Reordering (MIN, M = 100, 10,000 steps), fastest."""
    for name, network in names.items():
        plain = compared(network, peers=["mkl"], order=None)
        cr = order(network, "connection-reordering", memory=100, iterations=10_000)
        reordered = compared(network, peers=["mkl"], order=cr, lanes=128)
        fastest = compared(network, peers=["mkl"])
        yield {
            "network": name, "mkl_us": round(plain["us"] * plain["times"]["mkl"], 1), "two_optimal_us": plain["us"],
            "connection_reordering_us": reordered["us"], "fastest_us": fastest["us"],
            "times_mkl": {"two-optimal": plain["times"]["mkl"], "connection-reordering": reordered["times"]["mkl"],
                          "fastest": fastest["times"]["mkl"]}, "aa": [plain["aa"], reordered["aa"], fastest["aa"]],
        }  # fmt: skip


def gleinig_7a() -> Results:
    """Figure 7a: density."""
    yield from gleinig({f"density {d}": random_layered(4, 500, d) for d in (0.001, 0.01, 0.1, 0.5)})


def gleinig_7b() -> Results:
    """Figure 7b: depth."""
    yield from gleinig({f"{n} layers": random_layered(n, 500, 0.1) for n in (2, 4, 8)})


def gleinig_7c() -> Results:
    """Figure 7c: width."""
    yield from gleinig({f"{n} wide": random_layered(4, n, 0.1) for n in (125, 250, 500, 1000)})


def gleinig_8() -> Results:
    """Figure 8: the shape of BERT-large's feed-forward block (random, no trained weights)."""
    yield from gleinig({f"bert-ffn {d}": bert_ffn(d) for d in (0.01, 0.05)})


def ego_3() -> Results:
    """Figure 3: connections per second on RadiX-Nets of 1024 neurons, one vector as there, and 128."""
    for layers in (2, 4, 8, 16):
        network = radix_net(RADIX, blocks=layers // 2)
        for batch in (1, 128):
            speed = compared(network, batch=batch, peers=["scipy", "torch"])
            ours = network.n_connections * batch / speed["us"]
            speeds = {name: round(ours / times, 1) for name, times in speed["times"].items()}
            yield {"layers": layers, "batch": batch, "million_connections_per_second": speeds, "aa": speed["aa"]}


def other_process(network: Network, ordering: Any, vectors: Any, core: int, go: Any, calls: Any, least: Any) -> None:
    """The work of one thread in a process of its own, again and again while `go` is set."""
    os.sched_setaffinity(0, {core})
    made = compile_inference(network, ordering, lanes=64)
    packed = made.pack(vectors)
    while go.wait():
        started = time.perf_counter()
        made.run(packed)
        took = time.perf_counter() - started
        if go.is_set():
            least.value = min(least.value, took)
        calls.value += 1


def threads() -> Results:
    """Two threads against one by the clock on the wall: 11 rounds, each the least of 40 calls of one, then of two.

    The control: two processes that share nothing and do the work of one thread each, at once. What both do in the time
    that one takes alone is the most that two threads can give on these cores at the moment (`bound`). Threads and
    processes are pinned to a core each, so that the system does not put both on one; other work should rest.
    """
    cores = sorted(os.sched_getaffinity(0))
    network = bert_ffn(0.1)
    ordering = ew.fastest_order(network, this_cpu(), lanes=(64,)).ordering
    vectors = np.random.default_rng(0).random((128, len(network.inputs)), np.float32)
    fork = multiprocessing.get_context("fork")
    go, calls, beside = fork.Event(), fork.Value("q", 0), fork.Value("d", np.inf)
    fork.Process(
        target=other_process, args=(network, ordering, vectors, cores[0], go, calls, beside), daemon=True
    ).start()

    def least_of(step: Callable[[], object]) -> float:
        least = np.inf
        for _ in range(40):
            started = time.perf_counter()
            step()
            least = min(least, time.perf_counter() - started)
        return least

    for split, lanes in (("lanes", 128), ("targets", 128)):
        made = {n: compile_inference(network, ordering, lanes=lanes // (2 // n) if split == "lanes" else 64, threads=n,
                                     split=split) for n in (1, 2)}  # fmt: skip
        steps = {n: partial(compiled.run, compiled.pack(vectors)) for n, compiled in made.items()}
        steps[2]()  # starts its thread
        for thread in threading.enumerate():
            pinned = cores[-1] if thread is threading.main_thread() else cores[0]
            os.sched_setaffinity(thread.native_id or 0, {pinned})
        rounds = []
        for _ in range(11):
            one, two = (least_of(steps[n]) for n in (1, 2))
            beside.value, before = np.inf, calls.value
            go.set()
            while calls.value == before:  # the other one works
                time.sleep(0.001)
            ours = least_of(steps[1])
            go.clear()
            rounds.append((one, two, max(ours, beside.value)))
        one, two, both = np.median(rounds, axis=0)
        times, bounds = (np.array([r[0] / r[k] for r in rounds]) * k for k in (1, 2))
        yield {
            "split": split, "one_us": round(one * 1e6), "two_us": round(two * 1e6),
            "each_of_two_processes_us": round(both * 1e6),
            "times": round(float(np.median(times)), 2), "bound": round(float(np.median(bounds)), 2),
            "of_bound": round(float(np.median(times / bounds)), 2),
            "rounds": np.stack((times, bounds), axis=1).round(2).tolist(),
        }  # fmt: skip


COMMANDS: dict[str, Callable[[], Results]] = {
    "prediction": prediction, "misses": misses, "threads": threads, "dtypes": dtypes, "gleinig-7a": gleinig_7a,
    "gleinig-7b": gleinig_7b, "gleinig-7c": gleinig_7c, "gleinig-8": gleinig_8, "ego-3": ego_3,
}  # fmt: skip


def main() -> None:
    """Print one JSON line per result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", choices=["libraries", *COMMANDS])
    parser.add_argument("--network", action="append", choices=[*NETWORKS, ONE_VECTOR], help="libraries: only these")
    parser.add_argument("--simd", help="libraries: at most avx512, avx2 or baseline")
    given = parser.parse_args()
    for name in given.what:
        results = (
            libraries(given.network or [*NETWORKS, ONE_VECTOR], given.simd) if name == "libraries" else COMMANDS[name]()
        )
        for line in results:
            print(json.dumps({"what": name, **line}))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
