"""Line caches: look-ups of four streams under each policy, 32 KiB, 64-byte lines, 8 ways, 25 % stores."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import edgewatt as ew
from bench.harness import Case

N = 1 << 20


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(7)
    op, size = (rng.random(N) < 0.25).astype(np.uint8), np.full(N, 4, np.uint8)
    streams = {"sequential": np.arange(N, dtype=np.uint64) * np.uint64(4)}
    for words in (12, 14, 22):
        streams[f"random in {4 << words >> 10} KiB"] = rng.integers(0, 1 << words, N).astype(np.uint64) * np.uint64(4)
    for policy in ("lru", "fifo", "random", "plru", "srrip"):
        for name, address in streams.items():
            play = lambda address=address, policy=policy: ew.simulate_cache(  # noqa: E731
                op, address, size, size_bytes=32768, line_bytes=64, ways=8, policy=policy
            )
            yield Case(f"{policy}, {name}", play, N, "access")
