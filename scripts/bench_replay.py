"""Speed of building and replaying a trace, process CPU time: python scripts/bench_replay.py"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from hwmodel.caches.spec import CacheSpec
from hwmodel.machine import Machine
from hwmodel.replay import replay
from traces.access.build import build_trace
from traces.work.network import Network

ROUNDS = 5


def layered(widths: list[int], density: float) -> Network:
    """Return a random layered network with normal weights."""
    rng = np.random.default_rng(0)
    starts = np.cumsum([0, *widths])
    sources, targets, layers = [], [], []
    for k, (inner, outer) in enumerate(pairwise(widths)):
        target, source = np.nonzero(rng.random((outer, inner)) < density)
        sources.append(source + starts[k])
        targets.append(target + starts[k + 1])
        layers.append(np.full(len(source), k))
    n = int(starts[-1])
    return Network(
        np.concatenate(sources),
        np.concatenate(targets),
        n_neurons=n,
        inputs=np.arange(widths[0]),
        outputs=np.arange(n - widths[-1], n),
        weights=rng.standard_normal(sum(map(len, sources))).astype(np.float32),
        layer=np.concatenate(layers),
        batch=rng.random((1, widths[0])).astype(np.float32),
    )


def seconds(work: Callable[[], Any]) -> float:
    """Return the median CPU seconds of ROUNDS runs."""
    taken = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return float(np.median(taken))


def main() -> None:
    network = layered([2048, 2048, 2048, 512], 0.35)
    for kind in ("csr", "tuples"):
        trace = build_trace(network, layout=kind)
        n = sum(map(len, trace))
        print(f"{network.n_connections:,} connections, {kind}: {n:,} accesses")
        print(f"  lay out      {seconds(lambda kind=kind: build_trace(network, layout=kind)):6.3f} s")
        walk = seconds(lambda trace=trace: sum(map(len, trace)))
        print(f"  walk         {walk:6.3f} s  {n / walk / 1e6:6.0f} M accesses/s")
        for size in (32768, 2048):
            for part in (None, "lpddr4-3200"):
                machine = Machine((CacheSpec(size, 64, 8),), encoder="base-xor+dbi-dc", part=part)
                taken = seconds(lambda trace=trace, machine=machine: replay(trace, machine))
                rate = replay(trace, machine).hit_rate
                what = f"{size // 1024} KiB, {'with' if part else 'without'} DRAM"
                print(f"  replay {what:22} {taken:6.3f} s  {n / taken / 1e6:6.1f} M accesses/s  hit rate {rate:.3f}")
    print(f"largest memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
