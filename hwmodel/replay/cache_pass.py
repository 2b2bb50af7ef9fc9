"""What the caches make of a trace: the bursts, which depend neither on the encoder nor on the DRAM part's constants."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hwmodel.caches.cache import CacheCounts
from hwmodel.caches.spec import CacheSpec
from hwmodel.fastmemory.scratchpad import ScratchpadCounts
from hwmodel.machine import EngineSpec, Machine
from hwmodel.replay.hierarchy import Bursts, EngineSide, EngineWork, Int64Array, open_hierarchy
from traces.base.errors import InputError, brief
from traces.trace.chunks import SLICE_ACCESSES, STREAMS, Trace, slices

BYTES_BESIDE_DATA = 34  # of a kept burst: address, access, work, cycle, direction, stream
_COLUMNS = {"address": np.uint64, "is_write": np.uint8, "stream": np.uint8, "access": np.int64, "work": np.float64}


ENGINE_WAITS = ("outstanding_misses", "dma_bytes", "instruction_pj")
"""Fields of an engine that its own pace does not depend on."""


class CachePass:
    """A trace on its way through a machine's caches: first `run`, then `flush`, each once.

    access_counts: int64[2 (load, store), 2 (accesses, bytes), len(STREAMS)]. levels: counts per cache level.
    partial_writes: stores that passed the last level. All three are of what has been given out so far.
    """

    def __init__(self, trace: Trace, machine: Machine) -> None:
        self.has_data, self.n_accesses = trace.has_data, trace.n_accesses
        self.description: Mapping[str, Any] = trace.description
        self._engine = EngineSide(trace, machine)
        self.footprint_bytes = self._engine.trace.memory.total_bytes
        self._hierarchy = open_hierarchy(self._engine.trace, machine)

    @property
    def access_counts(self) -> Int64Array:
        return self._hierarchy.access_counts

    @property
    def levels(self) -> tuple[CacheCounts, ...]:
        return tuple(level.counts for level in self._hierarchy.levels)

    @property
    def partial_writes(self) -> int:
        return self._hierarchy.partial_writes

    def run(self) -> Iterator[Bursts]:
        for chunk in slices(self._engine.trace):
            yield self._hierarchy.feed(chunk)

    @property
    def work(self) -> EngineWork:
        return self._engine.work

    @property
    def scratchpad(self) -> ScratchpadCounts | None:
        return self._engine.scratchpad

    def flush(self) -> Iterator[Bursts]:
        return self._hierarchy.flush(self._engine.work.cycles)


class KeptPass:
    """A pass that `keep` made arrays of; the same attributes and methods as a CachePass, as often as one likes."""

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]], *, checked: bool = False) -> None:
        try:
            meta = json.loads(arrays["meta"].tobytes())
            self.has_data, self.n_accesses = "data" in arrays, meta["accesses"]
            self.description: Mapping[str, Any] = meta["description"]
            self.access_counts = arrays["asked"]
            self._made_by = meta["machine"]
            self._arrays, self._n_run, self._block = arrays, meta["run_bursts"], meta["machine"]["block_bytes"]
            self._counts = {name: [CacheCounts(**level) for level in meta[name]] for name in ("run", "flush")}
            self._partial_writes = {name: int(meta["partial_writes"][name]) for name in ("run", "flush")}
            self.work = EngineWork(**meta["work"])
            self.footprint_bytes = int(meta["footprint_bytes"])
            self.scratchpad = None if meta["scratchpad"] is None else ScratchpadCounts(**meta["scratchpad"])
            if not checked:
                _check(arrays, self._n_run, self._block)
        except (KeyError, ValueError, TypeError, OverflowError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"no pass through caches ({type(error).__name__}: {brief(error)})") from None
        self._part = "run"

    def checked(self, machine: Machine) -> KeptPass:
        """Return this pass. Raises InputError for a machine whose caches, bursts or flush are not its own."""
        if self._made_by != depends_on(machine):
            raise InputError("the kept pass is of a machine with other caches, bursts or another final flush")
        return self

    @property
    def levels(self) -> tuple[CacheCounts, ...]:
        return tuple(self._counts[self._part])

    @property
    def partial_writes(self) -> int:
        return self._partial_writes[self._part]

    def run(self) -> Iterator[Bursts]:
        self._part = "run"
        return self._bursts(0, self._n_run, cycle="cycle" in self._arrays)

    def flush(self) -> Iterator[Bursts]:
        self._part = "flush"
        return self._bursts(self._n_run, len(self._arrays["address"]), cycle=False)

    def _bursts(self, start: int, end: int, *, cycle: bool) -> Iterator[Bursts]:
        a = self._arrays
        for first in range(start, end, SLICE_ACCESSES):
            part = slice(first, min(first + SLICE_ACCESSES, end))
            yield Bursts(
                a["address"][part],
                a["is_write"][part],
                a["stream"][part],
                a["access"][part],
                a["work"][part],
                a["data"][part.start * self._block : part.stop * self._block] if self.has_data else None,
                a["cycle"][part] if cycle else None,
            )


def _check(arrays: Mapping[str, npt.NDArray[Any]], n_run: Any, block: Any) -> None:
    """Raise InputError unless the columns fit each other and kernels may index by what they hold."""
    n = len(arrays["address"])
    if type(n_run) is not int or not 0 <= n_run <= n or type(block) is not int or not 0 < block <= 1 << 16:
        raise InputError(f"no pass through caches: {n_run!r} bursts of {block!r} bytes before the flush, of {n}")
    expected: dict[str, tuple[Any, tuple[int, ...]]] = {name: (kind, (n,)) for name, kind in _COLUMNS.items()}
    expected |= {
        "asked": (np.int64, (2, 2, len(STREAMS))),
        "cycle": (np.int64, (n_run,)),
        "data": (np.uint8, (n * block,)),
    }
    for name, (kind, shape) in expected.items():
        if name in ("cycle", "data") and name not in arrays:
            continue
        column = arrays[name]
        if column.dtype != kind or column.shape != shape:
            raise InputError(f"no pass through caches: {name} is {column.dtype} of shape {column.shape}, not {shape}")
    if n and (arrays["is_write"].max() > 1 or arrays["stream"].max() >= len(STREAMS) or arrays["access"].min() < 0):
        raise InputError("no pass through caches: a direction, stream or access is out of range")
    if n and not (np.isfinite(arrays["work"]).all() and arrays["work"].min() >= 0):
        raise InputError("no pass through caches: cycles of the engine are out of range")
    if n and arrays["address"].max() > np.uint64(2**63 - 1):
        raise InputError("no pass through caches: an address beyond 2^63")


def keep(trace: Trace, machine: Machine, most_bytes: int) -> dict[str, npt.NDArray[Any]] | None:
    """Send a trace through a machine's caches and return all that comes out as arrays for KeptPass.

    Returns None as soon as they would take more than most_bytes (the work so far is lost).
    """
    caches, block = CachePass(trace, machine), machine.bus.block_bytes
    each, size = BYTES_BESIDE_DATA + (block if trace.has_data else 0), 0
    held: list[Bursts] = []
    ends: dict[str, dict[str, Any]] = {}
    for name, bursts in (("run", caches.run()), ("flush", caches.flush() if machine.flush else iter(()))):
        for part in bursts:
            held.append(part)
            size += each * len(part)
            if size > most_bytes:
                return None
        ends[name] = {
            "bursts": sum(map(len, held)),
            "levels": [dict(vars(level)) for level in caches.levels],
            "partial_writes": caches.partial_writes,
        }
    meta = {
        "accesses": trace.n_accesses,
        "description": dict(trace.description),
        "machine": depends_on(machine),
        "run_bursts": ends["run"]["bursts"],
        **{name: end["levels"] for name, end in ends.items()},
        "partial_writes": {name: end["partial_writes"] for name, end in ends.items()},
        "work": asdict(caches.work),
        "footprint_bytes": caches.footprint_bytes,
        "scratchpad": None if caches.scratchpad is None else asdict(caches.scratchpad),
    }
    arrays = {name: _joined([getattr(part, name) for part in held], kind) for name, kind in _COLUMNS.items()}
    if trace.has_data:
        arrays["data"] = _joined([part.data for part in held], np.uint8)
    if any(part.cycle is not None for part in held):  # the flush, at the end, has none
        arrays["cycle"] = _joined([part.cycle for part in held if part.cycle is not None], np.int64)
    return {**arrays, "asked": caches.access_counts, "meta": np.frombuffer(json.dumps(meta).encode(), np.uint8)}


def depends_on(machine: Machine) -> dict[str, Any]:
    """Return what the bursts depend on besides the trace, as JSON values."""
    caches = [_as_json(cache) for cache in machine.caches]
    values = {"caches": caches, "block_bytes": machine.bus.block_bytes, "flush": machine.flush}
    if machine.scratchpad is not None:
        values["scratchpad"] = asdict(machine.scratchpad)
    return {**values, "engine": _pace(machine.engine)}


@lru_cache(maxsize=256)
def _as_json(cache: CacheSpec) -> dict[str, Any]:
    return {**asdict(cache), "bypass": list(cache.bypass)}


@lru_cache(maxsize=256)
def _pace(engine: EngineSpec) -> dict[str, Any]:
    return {name: value for name, value in asdict(engine).items() if name not in ENGINE_WAITS}


def _joined(parts: list[Any], kind: Any) -> npt.NDArray[Any]:
    return np.concatenate([np.zeros(0, kind), *parts], dtype=kind)
