"""What the processor at hand is: the size of its first cache, its name, and what a call takes by its clock."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

LINE_BYTES = 64
SAMPLE_S = 0.002
SAMPLES = 4


def l1_bytes() -> int:
    """Return the bytes of a core's first data cache, from the C library; 32 KiB where it does not."""
    try:
        size = os.sysconf("SC_LEVEL1_DCACHE_SIZE")
    except (ValueError, OSError, AttributeError):
        size = 0
    return size if size > 0 else 32 << 10


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
