"""A model of the time of an order: runs, lines of values by the level they come from, and the stream.

Nanoseconds of a pass are a sum over TERMS of how often each occurs times what it takes. A *line* is 64 bytes; a row of
values has lanes/16 of them.

- pass: one. copied_line: lines of outputs copied to the result, and of inputs copied to rows, outside all runs.
- run, quad: runs, and fours of connections whose places and weights are loaded together; once for every eight vectors
  of a row. Loads limit a quad of one target; what two runs share is limited by its multiply-adds, behind which loads
  of places and weights hide, so these quads do not count.
- stored_line, resumed_line: lines of targets that runs store, and load where they go on with a target.
- part: partial sums that a run adds to its first one, one after the other, where rows are of few vectors.
- jumped_line: stored lines of a target that is not the next neuron: the caches' own prefetchers have not brought it.
- row_line: lines of sources loaded (what two runs share, once); connection_line: lines multiplied and added.
- l2_line, far_line, far_written_line: lines of rows loaded from L2, fetched from beyond it and written beyond it, as
  set-associative LRU caches of the processor's sizes move them in one pass of many, while the stream goes through them,
  too (hwmodel.processor.traffic). Stores wait for no line, and the stream's own are fetched ahead.
- surprise: a loop of another length than the one before, where there are more than the branch predictor remembers from
  pass to pass (`surprises`); change: a run that is the first of its target after one that is not, or the reverse. Wide
  rows hide part of both (by the square root of the lines).

A stream of more than half of L3 comes from memory in every pass, at the bandwidth measured there. Inputs are packed:
copying the batch is not part of a pass.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import cython_ext.inference.probe as kernel
from cython_ext.inference.runs import level_number
from hwmodel.processor.arena import Arena
from hwmodel.processor.traffic import LINE_BYTES, LineTraffic, first_runs, row_bytes, traffic
from hwmodel.processor.work import PAIRING, RUN_BYTES, OrderedWork, ordered_work
from traces.base.document import read_document
from traces.base.errors import InputError, did_you_mean
from traces.base.files import need_regular, whole_file
from traces.networks.network import Network

TRIES = 7
SAMPLE_BYTES = 1 << 26
ASSUMED_WAYS = 8
ASSUMED = {"l1": 32 << 10, "l2": 512 << 10, "l3": 8 << 20}  # where the system does not say


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes; bandwidths of reading in 1e9 bytes/s; fma_gflops in 1e9 floating-point operations/s, all of one
    core by its CPU time, the best of a few tries. Sizes and ways that the system does not tell are assumed (32 KiB, 512
    KiB, 8 MiB; 8).
    """

    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    l1_gbs: float
    l2_gbs: float
    l3_gbs: float
    dram_gbs: float
    fma_gflops: float
    l1_ways: int = ASSUMED_WAYS
    l2_ways: int = ASSUMED_WAYS

    @property
    def caches(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """(bytes, ways) of the first two levels."""
        return (self.l1_bytes, self.l1_ways), (self.l2_bytes, self.l2_ways)


def core_caches() -> dict[str, tuple[int, int]]:
    """Return (bytes, ways) of a core's data caches, l1, l2 and l3, as Linux or, for sizes, the C library tells them."""
    names = {"l1": "SC_LEVEL1_DCACHE_SIZE", "l2": "SC_LEVEL2_CACHE_SIZE", "l3": "SC_LEVEL3_CACHE_SIZE"}
    caches = _told_by_linux()
    for level in names.keys() - caches.keys():
        try:
            told = os.sysconf(names[level])
        except (ValueError, OSError, AttributeError):
            told = 0
        caches[level] = (told if told > 0 else ASSUMED[level]), ASSUMED_WAYS
    return caches


def _told_by_linux() -> dict[str, tuple[int, int]]:
    """(bytes, ways) by level; ways that it does not know are assumed."""
    caches = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            names = ("level", "type", "size", "ways_of_associativity")
            level, kind, size, ways = ((index / name).read_text().strip() for name in names)
        except OSError:
            continue
        if kind != "Instruction" and size[-1:] in "KM" and size[:-1].isdigit():
            known = int(ways) if ways.isdigit() and int(ways) > 0 else ASSUMED_WAYS
            caches[f"l{level}"] = (int(size[:-1]) << (10 if size[-1] == "K" else 20), known)
    return {level: pair for level, pair in caches.items() if level in ASSUMED and pair[0] > 0}


def measure_limits() -> Limits:
    """Measure for about a second, by the widest loads and multiply-adds there are."""
    level = level_number()
    caches = core_caches()
    sizes = {name: size for name, (size, _) in caches.items()}
    tested = {
        "l1": sizes["l1"] // 2, "l2": (sizes["l1"] + sizes["l2"]) // 2, "l3": (sizes["l2"] + sizes["l3"] // 2) // 2,
        "dram": 4 * sizes["l3"],
    }  # fmt: skip
    arena = Arena(max(tested.values()) // 512 * 512)
    arena.bytes[:] = 0  # every page its own: untouched pages all share one
    speed = {}
    for name, size in tested.items():
        size = size // 512 * 512
        times = max(1, SAMPLE_BYTES // size)

        def read(size: int = size, times: int = times) -> None:
            kernel.read(arena.address, size, times, level)

        speed[name] = size * times / best_of(read) / 1e9
    steps = 1_000_000
    flops = kernel.multiply_add(1, level)
    fma = flops * steps / best_of(lambda: kernel.multiply_add(steps, level)) / 1e9
    return Limits(
        sizes["l1"], sizes["l2"], sizes["l3"], speed["l1"], speed["l2"], speed["l3"], speed["dram"], fma,
        caches["l1"][1], caches["l2"][1],
    )  # fmt: skip


def best_of(step: Callable[[], object], tries: int = TRIES) -> float:
    """Return the least thread CPU seconds of a few calls."""
    least = float("inf")
    for _ in range(tries):
        started = time.thread_time()
        step()
        least = min(least, time.thread_time() - started)
    return least


TERMS = (
    "pass",
    "copied_line",
    "run",
    "quad",
    "stored_line",
    "resumed_line",
    "part",
    "jumped_line",
    "row_line",
    "connection_line",
    "l2_line",
    "far_line",
    "far_written_line",
    "surprise",
    "change",
)
KIND = "processor"
FORM = 6
"""Of the terms and limits: system files of another form are measured again."""
VECTOR_FLOATS = {"baseline": 4, "avx2": 8, "avx512": 16}
MOST_CACHE_BYTES = 1 << 30
"""Of a first or second cache in a system file: more is a mistake."""
MOST_VECTORS = 8  # of a row that a kernel sums at a time
PARTS = {8: 1, 4: 2, 2: 4, 1: 4}
"""By vectors of a row: in how many partial sums a kernel adds, to cover the latency of an addition."""


def exposed(lines: int) -> float:
    """How much of a surprise is not hidden by the work of rows of so many lines, in those of 4 lines."""
    return math.sqrt(4 / lines)


def surprises(changes: npt.ArrayLike, remembered: int) -> npt.NDArray[np.float64]:
    """Of so many loops of another length than the one before, those that a branch predictor does not foresee.

    None where it remembers them all, and all from twice as many on: each new one pushes out one that comes again.
    """
    every = np.asarray(changes, np.float64)
    return every * np.clip(every / max(remembered, 1) - 1, 0, 1)


def rows_held(cache_bytes: int, lanes: int) -> int:
    """M of the I/O model for a cache: the rows of `lanes` float32 values it holds, at least 3."""
    return max(3, cache_bytes // row_bytes(lanes))


def sweeps(lanes: int, simd: str) -> list[int]:
    """Return the vectors of a row that a kernel takes at a time, one entry for each time that it reads the stream."""
    left, parts = row_bytes(lanes) // 4 // VECTOR_FLOATS[simd], []
    while left:
        parts.append(next(vectors for vectors in PARTS if vectors <= left))
        left -= parts[-1]
    return parts


def features(
    work: OrderedWork, lanes: int, limits: Limits, simd: str, remembered: int, *, cached: bool = False
) -> npt.NDArray[np.float64]:
    """Return float64[terms], how often each of TERMS occurs in one pass. O(W). cached: as if all rows stayed in
    L1 and no branch was a surprise."""
    lines = row_bytes(lanes) // LINE_BYTES
    pairs = simd == PAIRING
    moved = LineTraffic(0, 0, 0, 0, 0, 0, 0) if cached else traffic(work, lanes, limits.caches, pairs)
    lengths, targets = np.diff(work.starts), work.targets[work.starts[:-1]]
    runs, w = len(lengths), len(work.sources)
    first = first_runs(targets)
    shared = work.shared if pairs else np.zeros(runs, np.int64)
    swept = sweeps(lanes, simd)
    hidden = 0.0 if cached else exposed(lines)
    surprised = float(surprises(_loop_changes(lengths, shared), remembered)) * hidden
    counts = {
        "pass": 1, "copied_line": (len(work.network.outputs) + len(work.copied)) * lines, "run": runs * len(swept),
        "quad": int((-(-lengths // 4)).sum() - 2 * shared.sum()) * len(swept), "stored_line": runs * lines,
        "resumed_line": int(np.count_nonzero(~first)) * lines,
        "part": runs * sum(PARTS[vectors] - 1 for vectors in swept),
        "jumped_line": int((np.diff(targets) != 1).sum()) * lines, "row_line": (w - 4 * int(shared.sum())) * lines,
        "connection_line": w * lines, "l2_line": moved.l1_fills - moved.l1_stores, "far_line": moved.l2_fills,
        "far_written_line": moved.l2_written, "surprise": surprised,
        "change": int(np.count_nonzero(np.diff(first))) * hidden,
    }  # fmt: skip
    return np.array([counts[term] for term in TERMS], np.float64)


def _loop_changes(lengths: npt.NDArray[np.int64], shared: npt.NDArray[np.int64]) -> int:
    """How often a loop over a run's own sources, or over those of a pair, ends elsewhere than the one before."""
    own = lengths - 4 * (shared + np.concatenate(([0], shared[:-1])))
    paired = shared[shared > 0]
    return int(np.count_nonzero(np.diff(own)) + np.count_nonzero(np.diff(paired)))


def stream_lines(work: OrderedWork) -> float:
    """Lines of 64 bytes of the float32 stream of one pass, places of 2 bytes."""
    lengths = np.diff(work.starts)
    return float((RUN_BYTES * len(lengths) + 24 * (-(-lengths // 4)).sum()) / LINE_BYTES)


@dataclass(frozen=True)
class Processor:
    """A core as the model sees it: its limits and the nanoseconds of each of TERMS, fitted to measured passes.

    remembered_runs: run lengths that the branch predictor keeps. fitted_on: number of passes; median_error: of the fit
    on those, relative. source: how the numbers were found.
    """

    limits: Limits
    nanoseconds: dict[str, float]
    remembered_runs: int
    simd: str
    fitted_on: int
    median_error: float
    source: str

    def seconds(
        self, network: Network, order: Any = None, *, lanes: int = 128, batch: int | None = None, cached: bool = False
    ) -> float:
        """Predict thread CPU seconds of inference of `batch` vectors (default: one pass) in the given order.

        order: an Ordering, int[W], None (the network's own), or OrderedWork. cached: as if all rows stayed in the first
        cache and the lengths of runs were known: a lower bound that takes less work.
        """
        work = order if isinstance(order, OrderedWork) else ordered_work(network, order)
        cost = np.array([self.nanoseconds[term] for term in TERMS])
        one = float(features(work, lanes, self.limits, self.simd, self.remembered_runs, cached=cached) @ cost) * 1e-9
        stream = stream_lines(work) * LINE_BYTES
        if stream > self.limits.l3_bytes / 2:  # more than stays in a cache that others use, too
            one += stream / self.limits.dram_gbs * 1e-9
        return one * (1 if batch is None else -(-batch // lanes))

    def weights(self, lanes: int) -> tuple[float, list[tuple[int, float]]]:
        """Return (ns of a run, [(M, ns of an I/O of a fast memory of M)]): what depends on the order, for searches."""
        lines = row_bytes(lanes) / LINE_BYTES
        ns = self.nanoseconds
        run = ns["run"] + (ns["stored_line"] + ns["resumed_line"]) * lines
        levels = [
            (rows_held(self.limits.l1_bytes, lanes), ns["l2_line"] * lines),
            (rows_held(self.limits.l2_bytes, lanes), (ns["far_line"] + ns["far_written_line"]) * lines),
        ]
        return run, [(memory, weight) for memory, weight in levels if weight > 0]

    def save(self, path: str | Path) -> None:
        """Write a system file (YAML) that `load_processor` reads, also on another machine."""
        import yaml

        with whole_file(path) as stream:
            stream.write(yaml.safe_dump({"kind": KIND, **asdict(self)}, sort_keys=False).encode())


def fit(table: npt.NDArray[np.float64], seconds: npt.NDArray[np.float64]) -> tuple[dict[str, float], float, float]:
    """Return (nanoseconds of each term, median relative error, mean square of relative errors): least squares of
    relative errors, none negative."""
    from scipy.optimize import nnls

    per_term, _ = nnls(table / seconds[:, None], np.ones(len(seconds)))
    error = np.abs(table @ per_term / seconds - 1)
    nanoseconds = dict(zip(TERMS, (float(x) * 1e9 for x in per_term), strict=True))
    return nanoseconds, float(np.median(error)), float(np.mean(error**2))


def load_processor(path: str | Path) -> Processor:
    """Read a system file of kind 'processor'. Raises InputError naming file and field."""
    need_regular(path)
    data = read_document(path).data
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise InputError(f"{path}: no system file of kind 'processor' (written by `edgewatt bench --calibrate`)")
    known = {field.name: field.type for field in fields(Processor)}
    _same_keys(path, "", set(map(str, data)) - {"kind"}, set(known))
    limits, ns = data["limits"], data["nanoseconds"]
    numbers = {name: data[name] for name in ("fitted_on", "remembered_runs", "median_error")}
    for name, given, keys in (
        ("limits", limits, {field.name for field in fields(Limits)}), ("nanoseconds", ns, set(TERMS)),
    ):  # fmt: skip
        if not isinstance(given, dict):
            raise InputError(f"{path}: {name} is a mapping, not a {type(given).__name__}")
        _same_keys(path, f"{name}.", set(map(str, given)), keys)
        numbers |= {f"{name}.{key}": value for key, value in given.items()}
    for name, value in numbers.items():
        whole = name.endswith(("_bytes", "_ways", "_on", "_runs"))
        number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        if not number or not 0 <= value < 1e18:
            raise InputError(f"{path}: {name} must be a number of at least 0, not {str(value)[:40]!r}")
        if name.startswith("limits.") and not value:
            raise InputError(f"{path}: {name} is 0: no processor has none")
    if data["simd"] not in tuple(VECTOR_FLOATS):
        named = str(data["simd"])[:40]
        raise InputError(f"{path}: unknown SIMD level {named!r}{did_you_mean(named, VECTOR_FLOATS)}")
    for level in ("l1", "l2"):
        size, ways = limits[f"{level}_bytes"], limits[f"{level}_ways"]
        if not LINE_BYTES * ways <= size <= MOST_CACHE_BYTES:
            raise InputError(
                f"{path}: limits.{level}_bytes is {size}: from a line of {LINE_BYTES} bytes in each of {ways} ways "
                f"to {MOST_CACHE_BYTES}"
            )
    return Processor(
        Limits(**limits), {term: float(ns[term]) for term in TERMS}, data["remembered_runs"], str(data["simd"]),
        data["fitted_on"], float(data["median_error"]), str(data["source"]),
    )  # fmt: skip


def _same_keys(path: str | Path, where: str, given: set[str], wanted: set[str]) -> None:
    for key in sorted(map(str, given - wanted)):
        raise InputError(f"{path}: unknown key {where}{key}{did_you_mean(key, sorted(wanted))}")
    for key in sorted(wanted - given):
        raise InputError(f"{path}: {where}{key} is missing")
