"""Hardware counters of the calling thread, by Linux's perf_event_open, where processor and system allow them."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Callable, Mapping

CALLS = {"x86_64": 298, "aarch64": 241}
"""Numbers of perf_event_open by machine (Linux, asm/unistd.h)."""
HARDWARE, SOFTWARE, CACHE = 0, 1, 3
EVENTS = {
    "cycles": (HARDWARE, 0), "instructions": (HARDWARE, 1), "branch_misses": (HARDWARE, 5),
    "l1_load_misses": (CACHE, 0 | 0 << 8 | 1 << 16),
}  # fmt: skip
"""(type, config) of linux/perf_event.h; a cache event is level | operation << 8 | result << 16."""
USER_ONLY = 1 << 5 | 1 << 6  # exclude_kernel, exclude_hv
TIMES = 1 | 2  # with each count, the time that it was wanted and the time that it was counted


class NotCounted(Exception):
    """Why there are no counters here."""


def counted(
    step: Callable[[], object], calls: int = 3, events: Mapping[str, tuple[int, int]] = EVENTS
) -> dict[str, float]:
    """Return how often each event happened in one call of step, in user mode of this thread: the mean of some calls.

    Raises NotCounted with the system's reason.
    """
    opened: dict[str, int] = {}
    try:
        for name, (kind, config) in events.items():
            opened[name] = _opened(name, kind, config)
        before = {name: _read(descriptor) for name, descriptor in opened.items()}
        for _ in range(calls):
            step()
        per_call = {}
        for name, descriptor in opened.items():
            count, wanted, ran = (b - a for a, b in zip(before[name], _read(descriptor), strict=True))
            per_call[name] = count * (wanted / ran if ran else 0.0) / calls  # counters may take turns
        return per_call
    finally:
        for descriptor in opened.values():
            os.close(descriptor)


def _opened(name: str, kind: int, config: int) -> int:
    call = CALLS.get(platform.machine()) if platform.system() == "Linux" else None
    if call is None:
        raise NotCounted(f"no hardware counters are read on {platform.system()}, {platform.machine()}")
    asked = struct.pack("=IIQQQQQ", kind, 64, config, 0, 0, TIMES, USER_ONLY).ljust(64, b"\0")
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = int(libc.syscall(ctypes.c_long(call), asked, 0, -1, -1, ctypes.c_ulong(0)))
    if descriptor < 0:
        raise NotCounted(f"hardware counters ({name}): {os.strerror(ctypes.get_errno())}")
    return descriptor


def _read(descriptor: int) -> tuple[int, int, int]:
    count, wanted, ran = struct.unpack("=QQQ", os.read(descriptor, 24))
    return count, wanted, ran
