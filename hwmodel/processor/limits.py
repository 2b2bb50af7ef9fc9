"""The roofline of any kernel: what one core reads per second from each level of memory, and adds per second."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import cython_ext.inference.probe as kernel
from cython_ext.inference.runs import level_number
from hwmodel.processor.arena import Arena

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


def cache_bytes() -> dict[str, int]:
    """Return the sizes of a core's data caches, l1, l2 and l3, as Linux or the C library tells them."""
    names = {"l1": "SC_LEVEL1_DCACHE_SIZE", "l2": "SC_LEVEL2_CACHE_SIZE", "l3": "SC_LEVEL3_CACHE_SIZE"}
    sizes = {level: size for level, (size, _) in _told_by_linux().items()}
    for level, name in names.items():
        try:
            told = os.sysconf(name)
        except (ValueError, OSError, AttributeError):
            told = 0
        sizes.setdefault(level, told if told > 0 else ASSUMED[level])
    return sizes


def cache_ways() -> dict[str, int]:
    """Return the ways of a core's data caches, l1, l2 and l3, as Linux tells them."""
    return {level: ASSUMED_WAYS for level in ASSUMED} | {level: ways for level, (_, ways) in _told_by_linux().items()}


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
    sizes, ways = cache_bytes(), cache_ways()
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
        ways["l1"], ways["l2"],
    )  # fmt: skip


def best_of(step: Callable[[], object], tries: int = TRIES) -> float:
    """Return the least thread CPU seconds of a few calls."""
    least = float("inf")
    for _ in range(tries):
        started = time.thread_time()
        step()
        least = min(least, time.thread_time() - started)
    return least
