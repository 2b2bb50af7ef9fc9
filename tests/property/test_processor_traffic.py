"""What the caches of a processor move for an order, against a plain simulation of 64-byte lines."""

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodel.processor.inference import compile_inference
from hwmodel.processor.traffic import (
    STREAM_AT,
    LineTraffic,
    accesses,
    row_bytes,
    stream_pieces,
    traffic,
    value_accesses,
)
from hwmodel.processor.work import OrderedWork, ordered_work, spread
from reorder.order import order
from tests.oracles.random_networks import random_order
from tests.strategies import networks
from traces.generators.networks import uniform_layers
from traces.generators.radixnet import radix_net
from traces.networks.network import Network


class Lru:
    """A set-associative write-back cache of 64-byte lines."""

    def __init__(self, size: int, ways: int) -> None:
        self.ways, self.sets = ways, [OrderedDict[int, bool]() for _ in range(size // 64 // ways)]
        self.fills = self.written = self.streamed = self.stores = 0

    @property
    def counts(self) -> tuple[int, ...]:
        return self.fills, self.written, self.streamed, self.stores

    def touch(self, line: int, write: bool, below: "Lru | None") -> None:
        held = self.sets[line % len(self.sets)]
        if line not in held:
            self.fills += line < STREAM_AT // 64
            self.stores += write
            self.streamed += line >= STREAM_AT // 64
            if len(held) == self.ways:
                old, dirty = held.popitem(last=False)
                if dirty:
                    self.written += 1
                    if below:
                        below.touch(old, True, None)
            if below:
                below.touch(line, False, None)
            held[line] = False
        held.move_to_end(line)
        held[line] |= write


def plain(work: OrderedWork, lanes: int, caches: tuple[tuple[int, int], tuple[int, int]]) -> LineTraffic:
    first, second = Lru(*caches[0]), Lru(*caches[1])
    op, address = accesses(work, row_bytes(lanes))
    for _ in range(2):
        before = first.counts + second.counts
        for write, start in zip(op.tolist(), address.tolist(), strict=True):
            for line in range(start // 64, (start + row_bytes(lanes)) // 64):
                first.touch(line, bool(write), second)
    moved = np.subtract(first.counts + second.counts, before).tolist()
    l1, l1_written, l1_stream, l1_stores, l2, l2_written, l2_stream, _ = moved
    return LineTraffic(l1, l1_written, l2, l2_written, l1_stream, l2_stream, l1_stores)


@settings(max_examples=60, deadline=None)
@given(networks(), st.integers(0, 2**32 - 1), st.sampled_from([16, 32, 48, 64, 128, 144]))
def test_a_cache_of_rows_counts_what_a_cache_of_lines_does(network: Network, seed: int, lanes: int) -> None:
    work = ordered_work(network, random_order(network, np.random.default_rng(seed)))
    caches = (4096, 4), (16384, 8)
    assert traffic(work, lanes, caches) == plain(work, lanes, caches)


@pytest.mark.parametrize("lanes", [16, 64])
def test_power_of_two_strides_too(lanes: int) -> None:
    work = ordered_work(radix_net([[8, 8]], blocks=2), None)
    caches = (8192, 4), (32768, 8)
    assert traffic(work, lanes, caches) == plain(work, lanes, caches)


def test_accesses_are_those_of_the_kernel() -> None:
    network = Network(
        np.array([0, 1, 2, 2]), np.array([2, 2, 3, 4]), 5, inputs=[0, 1], outputs=[3, 4], weights=np.ones(4)
    )
    op, address = value_accesses(ordered_work(network, np.array([0, 1, 2, 3])), 64)
    assert op.tolist() == [0, 0, 1, 0, 1, 0, 1]  # two inputs, the hidden neuron's store; then it is read twice
    assert address[2] == address[3] == address[5] and len(set(address.tolist())) == 5
    again = ordered_work(network.with_(weights=np.ones(4)), None, single_steps=True)
    assert value_accesses(again, 64)[0].tolist() == [0, 1, 0, 0, 1, 0, 1, 0, 1]  # the second step loads its target


def in_pairs(work: OrderedWork, row: dict[int, int]) -> list[tuple[int, int]]:
    """(op, neuron) of every access, read off the definition of a pair; without inputs' own table."""
    found: list[tuple[int, int]] = []
    begun: set[int] = set()
    r = 0
    while r < len(work.starts) - 1:
        two = 2 if work.shared[r] else 1
        runs = [work.sources[work.starts[k] : work.starts[k + 1]].tolist() for k in range(r, r + two)]
        targets = [int(work.targets[work.starts[k]]) for k in range(r, r + two)]
        found += [(0, t) for t in targets if t in begun]
        begun.update(targets)
        shared = 4 * int(work.shared[r])
        assert two == 1 or (runs[0][:shared] == runs[1][:shared] and targets[0] not in runs[1])
        found += [(0, s) for s in runs[0][:shared]]
        for own, target in zip(runs, targets, strict=True):
            found += [(0, s) for s in own[shared:]] + [(1, target)]
        r += two
    return [(op, row[neuron]) for op, neuron in found]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**16), st.sampled_from([0.3, 0.7, 1.0]), st.none() | st.integers(4, 20))
def test_pairs_load_what_they_share_once(seed: int, density: float, tile: int | None) -> None:
    network = uniform_layers([16, 12, 9, 20], density, seed=seed)
    work = ordered_work(network, order(network, "long-runs", memory=10, sources=tile, pairs=True))
    op, address = value_accesses(work, 64, pairs=True)
    assert len(op) == len(value_accesses(work, 64)[0]) - 4 * work.shared.sum()
    ids = {a: k for k, a in enumerate(dict.fromkeys(address.tolist()))}
    expected = in_pairs(work, {n: n for n in range(network.n_neurons)})
    assert op.tolist() == [o for o, _ in expected]
    renamed = dict(zip(expected, zip(op.tolist(), (ids[a] for a in address.tolist()), strict=True), strict=True))
    assert [renamed[pair][1] for pair in expected] == [ids[a] for a in address.tolist()]


@pytest.mark.parametrize("lanes", [16, 64, 128])
def test_pieces_of_the_stream_are_as_many_as_its_bytes(lanes: int) -> None:
    network = uniform_layers([50, 60, 20], 0.3)
    made, work = compile_inference(network, lanes=lanes), ordered_work(network, None)
    pitch = row_bytes(lanes)
    run, address = stream_pieces(work, pitch)
    assert made.stream_bytes <= len(run) * pitch < made.stream_bytes + 3 * pitch
    assert len(set(address.tolist())) == len(address) and run.max() < made.runs
    op, everything = accesses(work, pitch)
    assert len(op) == len(everything) == len(run) + len(value_accesses(work, pitch)[0])
    rows = everything < STREAM_AT
    assert everything[rows].tolist() == value_accesses(work, pitch)[1].tolist()


@given(st.integers(0, 40))
def test_spreading_exchanges_rows_of_one_block(block: int) -> None:
    rows = np.arange(16 * block, 16 * block + 16)
    assert sorted(spread(rows).tolist()) == rows.tolist()
    assert spread(np.array([-1])).tolist() == [-1]


@pytest.mark.parametrize("stride", [16, 32, 64, 128, 256])
def test_spread_rows_of_a_stride_fall_everywhere(stride: int) -> None:
    assert len(set((spread(stride * np.arange(512)) % 16).tolist())) == 16
