"""What the processor at hand can do: sizes of its caches, and the multiply-add peak by the clock."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import cython_ext.inference.probe as kernel
from cython_ext.inference.runs import level_number

LINE_BYTES = 64
SAMPLE_S = 0.002
SAMPLES = 4
ASSUMED = {"l1": 32 << 10, "l2": 512 << 10, "l3": 8 << 20}  # where the system does not say


def core_caches() -> dict[str, int]:
    """Return the bytes of a core's data caches, l1, l2 and l3, as Linux or the C library tells them; 32 KiB, 512 KiB
    and 8 MiB where neither does."""
    names = {"l1": "SC_LEVEL1_DCACHE_SIZE", "l2": "SC_LEVEL2_CACHE_SIZE", "l3": "SC_LEVEL3_CACHE_SIZE"}
    caches = _told_by_linux()
    for level in names.keys() - caches.keys():
        try:
            told = os.sysconf(names[level])
        except (ValueError, OSError, AttributeError):
            told = 0
        caches[level] = told if told > 0 else ASSUMED[level]
    return caches


def _told_by_linux() -> dict[str, int]:
    caches = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if kind != "Instruction" and size[-1:] in "KM" and size[:-1].isdigit():
            caches[f"l{level}"] = int(size[:-1]) << (10 if size[-1] == "K" else 20)
    return {level: size for level, size in caches.items() if level in ASSUMED and size > 0}


def multiply_add_gflops() -> float:
    """Return 1e9 floating-point operations per second of one core by its CPU time, with the widest multiply-adds
    there are."""
    level, steps = level_number(), 1_000_000
    flops = kernel.multiply_add(1, level)
    return flops * steps / seconds_of(lambda: kernel.multiply_add(steps, level)) / 1e9


def rows_held(cache_bytes: int, lanes: int) -> int:
    """M of the I/O model for a cache: the rows of `lanes` float32 values it holds, at least 3."""
    return max(3, cache_bytes // (-(-lanes // 16) * LINE_BYTES))


def seconds_of(step: Callable[[], object]) -> float:
    """Return the least thread CPU seconds of a call over samples of a few milliseconds: other work only adds to it."""
    step()
    started = time.thread_time()
    step()
    calls = max(1, int(SAMPLE_S / max(time.thread_time() - started, 1e-6)))
    samples = []
    for _ in range(SAMPLES):
        started = time.thread_time()
        for _ in range(calls):
            step()
        samples.append((time.thread_time() - started) / calls)
    return min(samples)


def cpu_name() -> str:
    """Return what the system calls the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "processor"
