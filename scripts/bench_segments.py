"""Counting wires by stream, over the length of segments: python scripts/bench_segments.py

4 MiB of random bytes with flags in segments of 18 streams taken at random: of equal length, of 1 to 16 and 1 to
64 bytes at random, of geometric lengths of mean 4 and 16, and of 1 and 64 bytes at random; best of 5, thread CPU time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from hwmodel.bus import Bus

N, STREAMS, ROUNDS = 1 << 22, 18, 5


MIXED: dict[str, Callable[[np.random.Generator], npt.NDArray[np.int64]]] = {
    "1 to 16": lambda rng: rng.integers(1, 17, N),
    "1 to 64": lambda rng: rng.integers(1, 65, N),
    "mean 4": lambda rng: rng.geometric(1 / 4, N),
    "mean 16": lambda rng: rng.geometric(1 / 16, N),
    "1 or 64": lambda rng: rng.choice([1, 64], N),
}


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    rng = np.random.default_rng(0)
    data, flags = rng.integers(0, 256, N, dtype=np.uint8), rng.integers(0, 256, N // 8, dtype=np.uint8)
    print("ns a byte of Bus.send, by bytes of a segment")
    for lanes in (1, 2, 8, 64):
        for name in (1, 2, 4, 5, 6, 7, 8, 12, 16, 32, 64, 100, 256, 4096, N, *MIXED):
            lengths = MIXED[name](rng) if isinstance(name, str) else np.full(-(-N // name), name)
            ends = np.cumsum(lengths)
            ends = np.append(ends[ends < N], N)
            streams = rng.integers(0, STREAMS, len(ends))
            spent = []
            for _ in range(ROUNDS):
                bus = Bus(lanes, n_streams=STREAMS)
                start = time.thread_time()
                bus.send(data, flags, ends=ends, streams=streams)
                bus.counts  # noqa: B018 - what waits in tallies is counted too
                spent.append(time.thread_time() - start)
            print(f"{lanes} lanes {name:>8} {min(spent) / N * 1e9:6.2f}")


if __name__ == "__main__":
    main()
