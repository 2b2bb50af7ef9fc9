"""A model of the time of an order: runs, lines of values by the level they come from, and the stream.

    seconds of a pass = c + a * runs + b * quads + d * stored lines + e * jumped lines + f * connection lines
                        + g * lines from L2 + h * lines beyond L2 + i * lines written beyond L2 + j * surprises

A *line* is 64 bytes; a row of values has lanes/16 of them. A *quad* is four connections of a run, whose places and
weights are loaded together. Lines (of rows) from L2, from beyond it and written beyond it are what set-associative LRU
caches of the processor's sizes move in one pass of many, while the stream goes through them, too
(hwmodel.processor.traffic); the stream's own lines are fetched ahead and hidden. A stored line is *jumped* to where the
run's target is not the next neuron: the caches' own prefetchers have not brought it. A *surprise* is a run of another
length than the one before, beyond the number of runs that the branch predictor remembers from pass to pass; wide rows
hide part of it (by the square root of the lines). A stream of more than half of L3 comes from memory in every pass, at
the bandwidth measured there. Inputs are packed: copying them is not part of a pass.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hwmodel.processor.limits import Limits
from hwmodel.processor.traffic import LINE_BYTES, Traffic, row_bytes, traffic
from hwmodel.processor.work import RUN_BYTES, OrderedWork, ordered_work
from traces.base.errors import InputError, did_you_mean
from traces.base.files import whole_file
from traces.base.plain_yaml import read_yaml
from traces.work.network import Network

TERMS = (
    "pass",
    "run",
    "quad",
    "stored_line",
    "jumped_line",
    "connection_line",
    "l2_line",
    "far_line",
    "far_written_line",
    "surprise",
)
KIND = "processor"
FORM = 4
"""Of the terms and limits: system files of another form are measured again."""


def exposed(lines: int) -> float:
    """How much of a surprise is not hidden by the work of rows of so many lines, in those of 4 lines."""
    return math.sqrt(4 / lines)


def rows_held(cache_bytes: int, lanes: int) -> int:
    """M of the I/O model for a cache: the rows of `lanes` float32 values it holds, at least 3."""
    return max(3, cache_bytes // row_bytes(lanes))


def features(
    work: OrderedWork, lanes: int, limits: Limits, remembered: int, *, cached: bool = False
) -> npt.NDArray[np.float64]:
    """Return float64[terms], how often each of TERMS occurs in one pass. O(W). cached: as if all rows stayed in
    L1 and no run was a surprise."""
    lines = row_bytes(lanes) // LINE_BYTES
    moved = Traffic(0, 0, 0, 0, 0, 0) if cached else traffic(work, lanes, limits.caches)
    lengths = np.diff(work.starts)
    runs, w = len(lengths), len(work.sources)
    quads = int((-(-lengths // 4)).sum())
    jumps = int((np.diff(work.targets[work.starts[:-1]]) != 1).sum())
    surprise = max(0, int(np.count_nonzero(np.diff(lengths))) - remembered) * exposed(lines)
    surprise = 0.0 if cached else surprise
    found = {
        "pass": 1, "run": runs, "quad": quads, "stored_line": runs * lines, "jumped_line": jumps * lines,
        "connection_line": w * lines, "l2_line": moved.l1_fills, "far_line": moved.l2_fills,
        "far_written_line": moved.l2_written, "surprise": surprise,
    }  # fmt: skip
    return np.array([found[term] for term in TERMS], np.float64)


def l1_misses(work: OrderedWork, lanes: int, l1: tuple[int, int]) -> int:
    """Predict misses of the first cache (bytes, ways) in one pass of many, nothing fitted: rows, and the stream."""
    found = traffic(work, lanes, (l1, (1 << 30, 16)))
    return found.l1_fills + found.l1_stream


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
        one = float(features(work, lanes, self.limits, self.remembered_runs, cached=cached) @ cost) * 1e-9
        stream = stream_lines(work) * LINE_BYTES
        if stream > self.limits.l3_bytes / 2:  # more than stays in a cache that others use, too
            one += stream / self.limits.dram_gbs * 1e-9
        return one * (1 if batch is None else -(-batch // lanes))

    def weights(self, lanes: int) -> tuple[float, list[tuple[int, float]]]:
        """Return (ns of a run, [(M, ns of an I/O of a fast memory of M)]): what depends on the order, for searches."""
        lines = row_bytes(lanes) / LINE_BYTES
        ns = self.nanoseconds
        run = ns["run"] + ns["stored_line"] * lines
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

    found, _ = nnls(table / seconds[:, None], np.ones(len(seconds)))
    error = np.abs(table @ found / seconds - 1)
    nanoseconds = dict(zip(TERMS, (float(x) * 1e9 for x in found), strict=True))
    return nanoseconds, float(np.median(error)), float(np.mean(error**2))


def load_processor(path: str | Path) -> Processor:
    """Read a system file of kind 'processor'. Raises InputError naming file and field."""
    data = read_yaml(path)
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise InputError(f"{path}: no system file of kind 'processor' (written by `edgewatt bench --calibrate`)")
    known = {field.name: field.type for field in fields(Processor)}
    _same_keys(path, "", set(map(str, data)) - {"kind"}, set(known))
    limits, ns = data["limits"], data["nanoseconds"]
    for name, given, keys in (
        ("limits", limits, {field.name for field in fields(Limits)}), ("nanoseconds", ns, set(TERMS)),
    ):  # fmt: skip
        if not isinstance(given, dict):
            raise InputError(f"{path}: {name} is a mapping, not a {type(given).__name__}")
        _same_keys(path, f"{name}.", set(map(str, given)), keys)
        for key, value in given.items():
            good = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e18
            if not good or (key.endswith(("_bytes", "_ways")) and (not isinstance(value, int) or value < 1)):
                raise InputError(f"{path}: {name}.{key} must be a number of at least 0, not {str(value)[:40]!r}")
    if not all(isinstance(data[name], int) for name in ("fitted_on", "remembered_runs")) or not isinstance(
        data["median_error"], int | float
    ):
        raise InputError(f"{path}: remembered_runs, fitted_on and median_error are numbers")
    return Processor(
        Limits(**limits), {term: float(ns[term]) for term in TERMS}, data["remembered_runs"], str(data["simd"]),
        data["fitted_on"], float(data["median_error"]), str(data["source"]),
    )  # fmt: skip


def _same_keys(path: str | Path, where: str, given: set[str], wanted: set[str]) -> None:
    for key in sorted(map(str, given - wanted)):
        raise InputError(f"{path}: unknown key {where}{key}{did_you_mean(key, sorted(wanted))}")
    for key in sorted(wanted - given):
        raise InputError(f"{path}: {where}{key} is missing")
