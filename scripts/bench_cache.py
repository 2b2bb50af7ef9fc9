"""Line look-ups per second of the cache kernel, thread CPU time, one pinned core: python scripts/bench_cache.py

Each figure is the median of the rounds; the A/A column is the ratio of the medians of odd and even rounds.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np

from cython_ext.common.cpu import simd_level
from hwmodel.caches.cache import CacheLevel
from hwmodel.caches.spec import CacheSpec

N = 10_000_000
ROUNDS = 11
CHUNK = 2**20


def streams() -> dict[str, np.ndarray]:
    """Byte addresses of 4-byte accesses: what a 32 KiB cache sees from easy to hard."""
    rng = np.random.default_rng(7)
    return {
        "sequential": np.arange(N, dtype=np.uint64) * np.uint64(4),
        "resident (16 KiB, random)": rng.integers(0, 4096, N).astype(np.uint64) * np.uint64(4),
        "half misses (64 KiB, random)": rng.integers(0, 16384, N).astype(np.uint64) * np.uint64(4),
        "misses (16 MiB, random)": rng.integers(0, 2**22, N).astype(np.uint64) * np.uint64(4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policies", nargs="*", default=["lru", "fifo", "random", "plru"], help="default: %(default)s")
    policies = parser.parse_args().policies
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rng = np.random.default_rng(8)
    op, size = (rng.random(N) < 0.25).astype(np.uint8), np.full(N, 4, np.uint8)
    print(f"SIMD {simd_level()}, 32 KiB, 64-byte lines, 8 ways, write-back, 25 % stores, {N:,} look-ups")
    for name, address in streams().items():
        for policy in policies:
            for emit in (False, True):
                seconds = []
                for _ in range(ROUNDS):
                    level = CacheLevel(CacheSpec(32768, 64, 8, policy))
                    play = level.access if emit else level.count
                    start = time.thread_time()
                    for at in range(0, N, CHUNK):
                        play(op[at : at + CHUNK], address[at : at + CHUNK], size[at : at + CHUNK])
                    seconds.append(time.thread_time() - start)
                a_to_a = np.median(seconds[::2]) / np.median(seconds[1::2])
                rate = N / np.median(seconds) / 1e6
                what = "with transactions" if emit else "counts only"
                hits = level.counts.hits / N
                print(f"{name:30} {policy:7} {what:18} {rate:7.0f} M/s  hit rate {hits:5.3f}  A/A {a_to_a:.2f}")


if __name__ == "__main__":
    main()
