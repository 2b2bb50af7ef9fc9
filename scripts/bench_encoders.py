"""Measure encoder kernels against memcpy on 64 MB, in one process per SIMD level.

    taskset -c 0 python scripts/bench_encoders.py

Thread CPU time, 11 alternating rounds, the median of per-round ratios (1.0 is memcpy's speed); the second memcpy column
is the A/A control. Outputs are allocated and touched beforehand on both sides. Results: docs/performance/wires.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

import numpy as np

ROUNDS, BYTES = 11, 64 << 20


def measure() -> None:
    import cython_ext.wires.encode as kernels
    from cython_ext.common.cpu import simd_level
    from hwmodel.bus import Bus

    data, out, flags = (kernels.aligned_empty(n) for n in (BYTES, BYTES, BYTES // 8))
    data[:] = np.random.default_rng(0).integers(0, 256, BYTES, dtype=np.uint8)
    out[:], flags[:] = 0, 0
    level, flag_level, history = (np.zeros(2, np.uint8) for _ in range(3))
    bus = Bus(2)
    jobs = {
        "memcpy": lambda: np.copyto(out, data),
        "memcpy again": lambda: np.copyto(out, data),
        "DBI ones and toggles": lambda: kernels.dbi_totals(data, level, flag_level),
        "DBI encode, flags, ones": lambda: kernels.encode_xor_dbi(data, out, flags, history, 0, 64, 0, True),
        "Base+XOR+DBI encode, flags, ones": lambda: kernels.encode_xor_dbi(data, out, flags, history, 2, 32, 0, True),
        "ones, toggles, rising per wire": lambda: bus.send(data, flags),
    }
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(ROUNDS + 1):
        for name, job in jobs.items():
            start = time.thread_time()
            job()
            seconds[name].append(time.thread_time() - start)
    base = np.array(seconds["memcpy"][1:])  # the first round warms up
    for name, spent in seconds.items():
        ratio = np.median(base / np.array(spent[1:]))
        rate = BYTES / np.median(spent[1:]) / 1e9
        print(f"{simd_level():9} {name:34} {ratio:6.3f} of memcpy {rate:7.2f} GB/s", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", action="store_true", help="the level that EDGEWATT_SIMD names, in this process")
    if parser.parse_args().one:
        measure()
    else:
        for simd in ("avx512", "avx2", "baseline"):
            subprocess.run([sys.executable, __file__, "--one"], env={**os.environ, "EDGEWATT_SIMD": simd}, check=True)
