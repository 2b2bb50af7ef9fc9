"""Laying out, replaying and simulating a network of 1.4 million connections, and one so small that the call shows."""

from __future__ import annotations

from collections.abc import Iterator

import edgewatt as ew
from bench.harness import Case
from traces.generators.networks import uniform_layers


def cases() -> Iterator[Case]:
    network = uniform_layers([1024, 1024, 1024, 512], 0.35, seed=3)
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
    few = ew.build_trace(uniform_layers([3, 3], 1.0, seed=3), layout="tuples")
    small = ew.Machine((ew.CacheSpec(2048, 64, 8),), encoder="base-xor+dbi-dc", part="lpddr4-3200")
    yield Case("what every replay takes, lpddr4-3200", lambda: ew.replay(few, small))
