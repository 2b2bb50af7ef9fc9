"""What the caches of a processor move for an order, against a plain simulation of 64-byte lines."""

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodel.processor.inference import compile_inference
from hwmodel.processor.traffic import STREAM_AT, Traffic, accesses, row_bytes, stream_pieces, traffic, value_accesses
from hwmodel.processor.work import OrderedWork, ordered_work, spread
from tests.oracles.random_networks import random_order
from tests.strategies import networks
from traces.generators.networks import uniform_layers
from traces.generators.radixnet import radix_net
from traces.work.network import Network


class Lru:
    """A set-associative write-back cache of 64-byte lines."""

    def __init__(self, size: int, ways: int) -> None:
        self.ways, self.sets = ways, [OrderedDict[int, bool]() for _ in range(size // 64 // ways)]
        self.fills = self.written = self.streamed = 0

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.fills, self.written, self.streamed

    def touch(self, line: int, write: bool, below: "Lru | None") -> None:
        held = self.sets[line % len(self.sets)]
        if line not in held:
            self.fills += line < STREAM_AT // 64
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


def plain(work: OrderedWork, lanes: int, caches: tuple[tuple[int, int], tuple[int, int]]) -> Traffic:
    first, second = Lru(*caches[0]), Lru(*caches[1])
    op, address = accesses(work, row_bytes(lanes))
    for _ in range(2):
        before = first.counts + second.counts
        for write, start in zip(op.tolist(), address.tolist(), strict=True):
            for line in range(start // 64, (start + row_bytes(lanes)) // 64):
                first.touch(line, bool(write), second)
    l1, l1_written, l1_stream, l2, l2_written, l2_stream = np.subtract(first.counts + second.counts, before).tolist()
    return Traffic(l1, l1_written, l2, l2_written, l1_stream, l2_stream)


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
