"""The DRAM engine: reads offered at once, by part and stream.

DRAMsim3 takes 62,700 instructions a sequential and 165,700 a random request (reference data of the DRAM models, 5).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import edgewatt as ew
from bench.harness import Case

N = 50_000


def cases() -> Iterator[Case]:
    bursts = {"sequential": np.arange(N), "random": np.random.default_rng(0).integers(0, 1 << 24, N)}
    write, arrival = np.zeros(N, np.uint8), np.zeros(N, np.int64)
    for part in ("lpddr4-3200", "lpddr5-6400", "hbm2", "hbm3"):
        for kind, burst in bursts.items():
            address = burst.astype(np.uint64) * np.uint64(64)
            play = lambda address=address, part=part: {  # noqa: E731
                "cycles": int(ew.simulate_dram(address, write, arrival, part=part).total_cycles)
            }
            yield Case(f"{part}, {kind}", play, N, "request")
