"""Laying out, replaying and simulating a network of 1.4 million connections, and one so small that the call shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

import edgewatt as ew
from bench.harness import Case


def layered(widths: Sequence[int], density: float) -> ew.Network:
    """Return a layered network with Gaussian weights and a batch of one input."""
    rng = np.random.default_rng(3)
    starts = np.concatenate(([0], np.cumsum(widths)))
    pairs = [
        np.argwhere(rng.random((widths[k + 1], widths[k])) < density)[:, ::-1] + starts[k : k + 2]
        for k in range(len(widths) - 1)
    ]
    sources, targets = np.concatenate(pairs).T
    return ew.Network(
        sources, targets, n_neurons=int(starts[-1]), inputs=range(widths[0]),
        outputs=range(int(starts[-2]), int(starts[-1])), weights=rng.normal(0, 0.1, len(sources)).astype(np.float32),
        layer=np.repeat(np.arange(len(pairs)), [len(p) for p in pairs]),
        batch=rng.normal(0, 1, (1, widths[0])).astype(np.float32),
    )  # fmt: skip


def cases() -> Iterator[Case]:
    network = layered([1024, 1024, 1024, 512], 0.35)
    for layout in ("csr", "tuples"):
        trace = ew.build_trace(network, layout=layout)
        n = sum(map(len, trace))
        yield Case(f"{layout}, build", lambda layout=layout: ew.build_trace(network, layout=layout), n, "access")
        for size in (32768, 2048):
            for part in (None, "lpddr4-3200"):
                machine = ew.Machine((ew.CacheSpec(size, 64, 8),), encoder="base-xor+dbi-dc", part=part)
                play = lambda trace=trace, machine=machine: ew.replay(trace, machine)  # noqa: E731
                yield Case(f"{layout}, {size >> 10} KiB lru{f', {part}' if part else ''}", play, n, "access")
    pad = ew.Machine(scratchpad=ew.ScratchpadSpec(8192, "min"), encoder="base-xor+dbi-dc", part="lpddr4-3200")
    lanes = ew.build_trace(network, layout="tuples", lanes=16)
    yield Case("16 lanes, 8 KiB scratchpad, lpddr4-3200", lambda: ew.replay(lanes, pad))
    few = ew.build_trace(layered([3, 3], 1.0), layout="tuples")
    small = ew.Machine((ew.CacheSpec(2048, 64, 8),), encoder="base-xor+dbi-dc", part="lpddr4-3200")
    yield Case("what every replay takes, lpddr4-3200", lambda: ew.replay(few, small))
